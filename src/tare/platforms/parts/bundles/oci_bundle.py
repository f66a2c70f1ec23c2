"""The OCI bundle of the runtimes without a daemon, written as pure data and then run."""

from __future__ import annotations

import enum
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tare.host import cgroup as cgroups
from tare.host import criu, instance_limits, userns
from tare.host.daemons import runtimes
from tare.host.filesystems import roots
from tare.host.network import bridge
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.model import Resources
from tare.platforms.base import NO_NETWORK, Address, Instance, LaunchSpec, Life
from tare.platforms.parts.bundles import seccomp
from tare.platforms.parts.common import room
from tare.platforms.parts.common.pipes import TOOL, start
from tare.platforms.parts.common.root_rights import CAPABILITIES, MASKED, READ_ONLY
from tare.platforms.watchers.marks import EchoPing

#: runsc keeps a namespace mounted here below its state, and never takes it away.
NULL_NETNS = "null-netns"


class Net(enum.Enum):
    """The network of a bundle; the value is the way of a packet to it."""

    VETH = "client, bridge, veth"
    OWN_STACK = "client, bridge, veth, a stack of the runtime's own"  # which takes the namespace's address over
    NONE = NO_NETWORK  # an empty namespace

    @property
    def path(self) -> str:
        """The network as a platform declares it in its ``network_path``."""
        return self.value


def bundle_config(
    argv: Sequence[str],
    root: Path,
    data: Path,
    resources: Resources,
    cgroup: str,
    netns: Path | None,
    users: Path | None = None,
    *,
    filtered: bool = False,
) -> dict[str, Any]:
    """Return the ``config.json`` of a bundle (OCI runtime specification 1.0). Without ``netns`` it gets an empty one.

    ``users``: the user namespace that it joins, whose own ``netns`` is. ``filtered``: by Docker's seccomp profile.
    """
    ids = [{"containerID": 0, "hostID": userns.FIRST, "size": userns.COUNT}]
    mapped = {} if users is None else {"uidMappings": ids, "gidMappings": ids}
    flags = ["nosuid", "noexec", "nodev"]
    cpu_quota = resources.cpu_quota
    quota = {} if cpu_quota is None else {"quota": cgroups.quota_us(cpu_quota), "period": cgroups.PERIOD_US}
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0},
            "args": list(argv),
            "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "cwd": "/",
            "capabilities": {kind: list(CAPABILITIES) for kind in ("bounding", "effective", "permitted")},
            "rlimits": [
                {"type": f"RLIMIT_{name.upper()}", "soft": value, "hard": value}
                for name, value in instance_limits.for_engines().items()
            ],
            "noNewPrivileges": False,
        },
        "root": {"path": str(root), "readonly": False},
        "hostname": "tare",
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc", "options": flags},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            {"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": ["nosuid", "newinstance"]},
            {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": flags},  # noqa: S108
            {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": [*flags, "ro"]},
            # As the folder is mounted on the host: runc keeps what is locked there, other runtimes only what is named.
            {
                "destination": "/data",
                "type": "bind",
                "source": str(data),
                "options": ["rbind", "rw", "nosuid", "nodev"],
            },
        ],
        "linux": {
            "cgroupsPath": f"/{cgroup}",
            "resources": {
                # As in the runtimes' own default specs: on control groups v2 crun filters no device without it.
                "devices": [{"allow": False, "access": "rwm"}],
                "cpu": {"cpus": ",".join(map(str, resources.cpus)), **quota},
                "memory": {"limit": resources.memory_bytes},
            },
            "maskedPaths": list(MASKED),
            "readonlyPaths": list(READ_ONLY),
            **mapped,
            **({"seccomp": seccomp.docker_profile(CAPABILITIES)} if filtered else {}),
            "namespaces": [
                *([{"type": "user", "path": str(users)}] if users is not None else []),
                {"type": "pid"},
                {"type": "ipc"},
                {"type": "uts"},
                {"type": "mount"},
                {"type": "network", "path": str(netns)} if netns else {"type": "network"},
            ],
        },
    }


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that a runtime can run, with what it needs around it."""

    name: str  # the container's
    tool: tuple[str, ...]  # the runtime with the options of all its commands
    folder: Path
    surroundings: tuple[str, ...]  # the command prefix that makes them
    address: Address


def make_bundle(
    spec: LaunchSpec,
    cleanup: CleanupStack,
    argv: Sequence[str],
    runtime: str,
    options: Sequence[str],
    net: Net = Net.VETH,
    *,
    removed_by: str = "",
    without_v2: bool = False,
    users: bool = False,
    filtered: bool = False,
) -> Bundle:
    """Write the bundle of a program, with its root and network.

    ``removed_by``: the installed runtime that removes its container, where ``runtime`` is another build of that.
    ``without_v2``: the runtime is not to see cgroup v2 beside v1 (`runtimes.surroundings`). ``users``: in a user
    namespace. ``filtered``: by Docker's seccomp profile.
    """
    root, data, mapped = spec.space.folder / "root", spec.space.data, spec.space.folder / "users"
    surroundings = runtimes.surroundings(cgroups.hierarchies()) if without_v2 else []
    surroundings += roots.privileged_within(root)
    if users:
        address = own_users(spec, cleanup, mapped)
        # In the user namespace runc has no right to pass through TARE_HOME.
        surroundings += room.made({"root": root, "data": data})
        root, data = Path(room.inside("root")), Path(room.inside("data"))
    else:
        address = plugged(spec, cleanup, net)
        roots.overlay_root(cleanup, spec.space, spec.image.root)
    netns = None if net is Net.NONE else bridge.namespace_path(spec.id)
    group = f"{spec.group.inner}/box"
    joined = mapped if users else None
    config = bundle_config(argv, root, data, spec.resources, group, netns, joined, filtered=filtered)
    (spec.space.folder / "config.json").write_text(json.dumps(config))
    name = f"tare-{spec.id}"
    # State of its own: nothing is shared with other containers of the runtime, and it is removed with the instance.
    state = spec.space.folder / "state"
    container = removers.oci_container(removed_by or runtime, state, name, without_v2=without_v2)
    cleanup.own(removers.mount(state / NULL_NETNS), container)
    # Removed first: a runtime whose tare was killed would go on, and mount again what was removed.
    cleanup.own(removers.control_group(f"{spec.group.inner}/tool"))
    return Bundle(name, (runtime, "--root", str(state), *options), spec.space.folder, tuple(surroundings), address)


def launch_bundle(bundle: Bundle, spec: LaunchSpec) -> Instance:
    """Run it in the foreground: its stdin and stdout are the agent's."""
    argv = [*bundle.tool, "run", "--bundle", str(bundle.folder), bundle.name]
    began = start(spec, argv, bundle.surroundings)
    address = bundle.address
    ping = EchoPing(address.ping) if address.ping and spec.measured else None
    return Instance(spec, began.stream, began.at, address, began.first_byte, ping, client=TOOL)


def bundle_life(bundle: Bundle, spec: LaunchSpec) -> Life:
    """Its life by the commands of the OCI runtimes' command line (opencontainers/runtime-spec, Operations)."""
    tool, name = bundle.tool, bundle.name
    return Life(
        create=(*tool, "create", "--bundle", str(bundle.folder), name),
        start=(*tool, "start", name),
        execute=(*tool, "exec", name),
        stop=(*tool, "kill", name, "TERM"),
        kill=(*tool, "kill", name, "KILL"),
        remove=(*tool, "delete", name),
        pause=(*tool, "pause", name),
        resume=(*tool, "resume", name),
        within=bundle.surroundings,
        made_ns=spec.made(),
    )


def by_criu(bundle: Bundle, image: Path) -> dict[str, Any]:
    """Return how runc and crun write what a container is to the disk and restore it, as fields of a `Life`: by CRIU."""
    why = criu.why_not()
    if why:
        return {"lacks": dict.fromkeys(("snapshot", "restore"), why)}
    words = ("--image-path", str(image))
    return {
        "snapshot": (*bundle.tool, "checkpoint", *words, "--leave-running", bundle.name),
        "restore": (*bundle.tool, "restore", *words, "--bundle", str(bundle.folder), "--detach", bundle.name),
        "snapshot_at": image,
    }


def own_users(spec: LaunchSpec, cleanup: CleanupStack, place: Path) -> Address:
    """Make a user namespace at ``place``, with its own network namespace on the bridge and its own root."""
    with userns.new(cleanup, place) as holder:
        endpoint = spec.network.new_namespace(cleanup, spec.id, holder)
    roots.overlay_root(cleanup, spec.space, spec.image.root, place)
    return Address.on_veth(spec, endpoint.address)


def plugged(spec: LaunchSpec, cleanup: CleanupStack, net: Net) -> Address:
    """Make an instance's network namespace, if it has one (`bridge.namespace_path`); returns where it is reached."""
    if net is Net.NONE:
        return Address.nowhere(spec)
    endpoint = spec.network.new_namespace(cleanup, spec.id)
    if net is Net.VETH:
        return Address.on_veth(spec, endpoint.address)
    # The kernel must not answer pings in the stack's stead.
    bridge.silence_ping(spec.id)
    return Address(endpoint.address, spec.port, spec.port, endpoint.address)
