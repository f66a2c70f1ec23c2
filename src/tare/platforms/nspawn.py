"""nspawn: systemd's container tool, without systemd: no unit, no registration, no bus."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

from tare.host import cgroup, distribution, processes, userns
from tare.host.filesystems import roots
from tare.host.network import bridge
from tare.host.resources import removers
from tare.host.resources.claims import NSPAWN
from tare.host.resources.journal import CleanupStack
from tare.host.resources.resource import HostResource
from tare.image.forms import image_bytes
from tare.image.image_build import Image
from tare.platforms.base import LEADER, STARTED, Address, Availability, Instance, LaunchSpec, Life, Platform, Prepared
from tare.platforms.parts.common import left_open, signal_commands
from tare.platforms.parts.common.attempt import TrialSite, complaint, system_folders
from tare.platforms.parts.common.pipes import start
from tare.platforms.parts.common.root_rights import MASKED, READ_ONLY, present

_INSTALL = distribution.install("systemd-container")
#: Pipes instead of a terminal, in the caller's control group, and the image left as it is.
_PLAIN = ("--quiet", "--register=no", "--keep-unit", "--console=pipe", "--resolv-conf=off", "--timezone=off")

#: What nspawn gives beyond `rights.WITHOUT_NODES` (no set can be named, only what goes). By CAP_SYS_ADMIN root inside
#: takes nspawn's read-only mounts away, by CAP_DAC_READ_SEARCH it opens files of the host's disk by their handles.
#: CAP_MKNOD goes too: the device group is the unit's, and there is no unit.
TAKEN = (
    "CAP_AUDIT_CONTROL", "CAP_DAC_READ_SEARCH", "CAP_IPC_OWNER", "CAP_LEASE", "CAP_LINUX_IMMUTABLE", "CAP_MKNOD",
    "CAP_NET_ADMIN", "CAP_NET_BROADCAST", "CAP_SYS_ADMIN", "CAP_SYS_BOOT", "CAP_SYS_NICE", "CAP_SYS_PTRACE",
    "CAP_SYS_RESOURCE", "CAP_SYS_TTY_CONFIG",
)  # fmt: skip


def traces(root: Path, name: str, group: str) -> list[HostResource]:
    """Return what a killed nspawn leaves below /run; its processes are ended before, or they would make it again."""
    facts = root.stat()
    export = NSPAWN / "unix-export" / name  # systemd 256 and later
    return [
        removers.folder(export),
        removers.mount(export),
        removers.folder(NSPAWN / "propagate" / name),
        removers.file(NSPAWN / "locks" / f"inode-{facts.st_dev}:{facts.st_ino}"),
        removers.control_group(f"{group}/tool"),
    ]


def sandbox_argv(name: str, root: Path, *more: str) -> list[str]:
    """Return the start of the command; the program to run inside follows."""
    options = [f"--drop-capability={','.join(TAKEN)}", f"--machine={name}", f"--directory={root}"]
    return ["systemd-nspawn", *_PLAIN, *options, *more]


def groups_as_hosts() -> list[str]:
    """Return the command prefix that makes nspawn use the host's control groups of version 2.

    In a root without systemd it takes v1's to be wanted, and leaves the host a hierarchy ``name=systemd`` for good.
    """
    return ["env", "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1"] if cgroup.hierarchies().unified else []


def guards() -> list[str]:
    """Mounts over the doors in /proc and /sys. nspawn's own --inaccessible needs a host that systemd runs."""
    closed = [f"--bind-ro={path}" for path in present(READ_ONLY) if path.name != "sys"]  # that is so by itself
    hidden = (f"--tmpfs={path}:ro" if path.is_dir() else f"--bind=/dev/null:{path}" for path in present(MASKED))
    return [*closed, *hidden]


def trial_argv(site: TrialSite) -> list[str]:
    """Return the host's own `true`, in a root with nothing else."""
    root = site.folder / "root"
    (root / "usr").mkdir(parents=True)  # what nspawn knows a root by
    name = f"tare-{site.folder.name}"
    site.cleanup.own(*traces(root, name, site.group.inner))
    binds = [f"--bind-ro={path}" for path in system_folders()]
    return [*groups_as_hosts(), *sandbox_argv(name, root, "--private-network", *binds), "true"]


class Nspawn(Platform):
    """systemd-nspawn with its own seccomp filter and the other platforms' capabilities; the agent is pid 1."""

    network_path = "client, bridge, veth"
    by_default = False
    years = MappingProxyType(
        {2021: "248 249 250", 2022: "251 252", 2023: "253 254 255", 2024: "256 257", 2025: "258 259"}
    )

    def __init__(self, name: str, *, users: bool = False) -> None:
        self.name = name
        calls = ("user-namespace", "vsock", "freezer")
        by_filter = left_open.on_bridge("nspawn's own filter lets these calls pass", *calls)
        self.open_by_design = by_filter if users else {**by_filter, **left_open.BY_NSPAWNS_PROC}
        self.title = f"systemd-nspawn, without systemd's units{', in a user namespace (-U)' if users else ''}"
        self._users = users
        if users:
            self.not_honoured = (
                "it is started inside its network namespace by nsenter, before the start instant: root inside has "
                "no rights on that network",
            )

    def detect(self) -> Availability:
        """Run a trivial container."""
        if processes.find("systemd-nspawn") is None:
            return Availability(False, reason="systemd-nspawn is not installed", fix=_INSTALL)
        why = complaint(trial_argv)
        if why:
            fix = "try `systemd-nspawn --volatile=yes -D / true`"
            return Availability(False, reason=f"a trivial container fails: {why}", fix=fix)
        version = processes.run(["systemd-nspawn", "--version"], time_limit_s=5).text.splitlines()
        return Availability(True, version=version[0].removeprefix("systemd ").strip() if version else "unknown")

    def prepare(self, image: Image) -> Prepared:
        """Return the image as a folder."""
        return Prepared("folder", image_bytes(image), (image.root,), ("systemd-nspawn",))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Run it in the foreground."""
        endpoint = spec.network.new_namespace(cleanup, spec.id)
        argv, within = self._command(spec, cleanup)
        give_streams = _give_streams if self._users else None
        began = start(spec, [*argv, *spec.agent_argv()], within, own=give_streams)
        address = Address.on_veth(spec, endpoint.address)
        return Instance(spec, began.stream, began.at, address, began.first_byte)

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:
        """Its start in the foreground; without systemd's units it is entered by nsenter and ended by signals."""
        spec.network.new_namespace(cleanup, spec.id)
        command, within = self._command(spec, cleanup)
        unpaused = "systemd-nspawn has no command for it: `systemctl freeze` takes a unit of systemd's"
        return Life(
            # By default a container that was not booted is killed at once by this signal.
            start=(*command, "--kill-signal=SIGTERM", *argv),
            execute=("nsenter", "--target", LEADER, "--mount", "--uts", "--ipc", "--net", "--pid", *self._entered()),
            stop=signal_commands.sent("TERM", STARTED),
            kill=signal_commands.sent("KILL", LEADER),
            lacks=dict.fromkeys(("pause", "resume"), unpaused),
            within=tuple(within),
            stays=True,
            made_ns=spec.made(),
        )

    def _entered(self) -> tuple[str, ...]:
        return ("--user",) if self._users else ()

    def _command(self, spec: LaunchSpec, cleanup: CleanupStack) -> tuple[list[str], list[str]]:
        """Return the start of its command, and what it is to run in."""
        root = self._root(spec, cleanup)
        name = f"tare-{spec.id}"
        cleanup.own(*traces(root, name, spec.group.inner))
        entered: list[str] = []
        if self._users:
            # It would join the network from its own user namespace, which may not: so it is started in there.
            options = [f"--private-users={userns.FIRST}:{userns.COUNT}", "--private-users-ownership=off"]
            entered = bridge.entered(spec.id)
        else:
            options = [f"--network-namespace-path={bridge.namespace_path(spec.id)}"]
        argv = sandbox_argv(name, root, *options, *guards(), f"--bind={spec.space.data}:/data")
        # In its user namespace nspawn could not mount a /proc itself where one of the host's is covered.
        mounted = roots.privileged_within(root) if self._users else roots.privileged_beneath_hosts_root(root)
        return argv, [*entered, *groups_as_hosts(), *mounted]

    def _root(self, spec: LaunchSpec, cleanup: CleanupStack) -> Path:
        if not self._users:
            return roots.overlay_root(cleanup, spec.space, spec.image.root)
        # The users of a namespace that ends with this: nspawn makes its own, of the same ids.
        place = spec.space.folder / "users"
        with userns.new(cleanup, place):
            return roots.overlay_root(cleanup, spec.space, spec.image.root, place)


def _give_streams(pid: int) -> None:
    """Let the pipes of a process belong to root inside, as runc does: programs there open /dev/stdout."""
    for number in range(3):
        os.chown(f"/proc/{pid}/fd/{number}", userns.FIRST, userns.FIRST)


PLATFORMS = (Nspawn("nspawn"), Nspawn("nspawn-users", users=True))
