"""Podman as root, without a daemon: its own defaults. Variants are the runtimes and networks."""

from __future__ import annotations

import functools
import json
import resource
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from tare.errors import PlatformError
from tare.host import criu, distribution, instance_limits, processes
from tare.host.cgroup import Group
from tare.host.daemons import runtimes
from tare.host.facts import security
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.host.resources.removers import PODMAN_STATE as STATE
from tare.host.resources.resource import HostResource
from tare.image.forms import oci_tar
from tare.image.image_build import Image
from tare.platforms import crun, gvisor
from tare.platforms.base import (
    HELPER_PIDS,
    Address,
    Availability,
    Instance,
    LaunchSpec,
    Life,
    Observed,
    Platform,
    Prepared,
)
from tare.platforms.gvisor import NETSTACK, find_runsc
from tare.platforms.parts.bundles import genuine
from tare.platforms.parts.bundles.oci_bundle import NULL_NETNS
from tare.platforms.parts.common import left_open
from tare.platforms.parts.common.attempt import TrialSite, complaint
from tare.platforms.parts.common.pipes import TOOL, start
from tare.platforms.parts.engines.layers import stored

LABEL = "tare"
IMPORT_LIMIT_S = 300.0
#: Podman's own limit of a user's processes.
NPROC = 1 << 15
_INSTALL = ("podman", "netavark", "nftables")
BRIDGE = "podman0"  # by netavark
_BRIDGE_PATH = f"client, bridge, published port (NAT), {BRIDGE}, veth"
_SHARED_PATH = "client, bridge, host stack"
FACTS = "{{.Version.Version}} {{.Store.GraphDriverName}} {{.Host.NetworkBackend}} {{.Host.CgroupManager}}"
#: What a program of the host's needs below /, where a trivial container runs one.
SYSTEM = ("/bin", "/lib", "/lib64", "/usr")


class Podman(Platform):
    """A container of ``podman run``: seccomp filter, overlay storage, conmon as its monitor."""

    by_default = False
    helper_pids = HELPER_PIDS
    years = MappingProxyType(
        {2022: "4.0 4.1 4.2 4.3", 2023: "4.4 4.5 4.6 4.7 4.8", 2024: "4.9 5.0 5.1 5.2 5.3", 2025: "5.4 5.5 5.6 5.7"}
    )

    def __init__(self, name: str, runtime: str | None = None, *, shares_network: bool = False) -> None:
        """``runtime``: its program; None: podman's own default."""
        self.name = name
        by = "its default runtime" if runtime is None else runtime
        self.title = f"Podman with {by}{' on the host network' if shares_network else ''}, as root, no daemon"
        self.network_path = _SHARED_PATH if shares_network else _BRIDGE_PATH
        if runtime == "runsc":
            self.network_path += NETSTACK
        self.open_by_design = left_open.BY_NETWORK["host" if shares_network else "bridge"]
        if runtime != "runsc":
            self.open_by_design = {**self.open_by_design, **left_open.BY_PODMANS_FILTER}
        if runtime in {None, "crun"}:  # most distributions' default is crun
            self.not_honoured = (crun.WRAPPED,)
        self.publishes = not shares_network
        self._runtime = runtime
        self._shares_network = shares_network

    def detect(self) -> Availability:
        """Run a trivial container of the host's own files, without a network."""
        asked = [self._runtime] if self._runtime else []
        missing = [program for program in ("podman", *asked) if _path(program) is None]
        if missing:
            runsc_only = missing == ["runsc"]
            advice = distribution.install(*_INSTALL, *asked, lean=True)
            fix = "tare setup --with gvisor" if runsc_only else advice
            return Availability(False, reason=f"{missing[0]} is not installed", fix=fix)
        for program in asked:
            another = genuine.other(_path(program) or program, program)
            if another is not None:
                return another
        finished = processes.run([*runtimes.podman(), "info", "--format", FACTS], time_limit_s=10)
        if finished.code != 0:
            if b"NetworkBackend" in finished.stderr:  # the template asks for what that version has not
                reason, fix = "podman is older than 4.0", "install podman 4.0 or newer"
            else:
                reason, fix = "`podman info` fails", "see what `podman info` says"
            return Availability(False, reason=reason, fix=fix)
        version, storage, backend, manager = finished.text.split()
        default_runtime.cache_clear()
        why = complaint(self._command)
        if why:
            return Availability(False, reason=f"a trivial container fails: {why}", fix="see what `podman info` says")
        details = {"storage": storage, "network": "the host's" if self._shares_network else backend}
        details["cgroup manager"] = manager
        details["runtime"] = runtimes.described(self._program())
        return Availability(True, version=version, details=details)

    def _command(self, site: TrialSite) -> list[str]:
        name = f"tare-{site.folder.name}"
        root, state = site.folder / "root", site.folder / STATE
        root.mkdir()
        site.cleanup.own(removers.mount(state / NULL_NETNS), removers.podman_container(name, site.group.inner))
        binds = [f"--volume={path.resolve()}:{path}:ro" for path in map(Path, SYSTEM) if path.exists()]
        argv = [*self._podman(state), "run", "--rm", *_options(name, site.group)]
        return [*argv, "--network=none", *security.binds_of_hosts_own(), *binds, "--rootfs", str(root), "/bin/true"]

    def prepare(self, image: Image) -> Prepared:
        """Import the image once; it stays in podman's own storage as ``tare:HASH``."""
        tag = image_tag(image)
        if processes.run([*runtimes.podman(), "image", "exists", tag]).code != 0:
            change = f"--change=LABEL {LABEL}={image.hash}"
            output([*runtimes.podman(), "import", "--quiet", change, str(oci_tar(image)), tag])
        [shown] = json.loads(output([*runtimes.podman(), "image", "inspect", tag]))
        return stored(tag, shown, ("podman", "conmon", self._program()))

    def kept(self, image: Image) -> list[HostResource]:
        """Return the imported image."""
        return [removers.podman_image(image_tag(image))]

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """``podman create``; then, from the start instant on, ``podman start``, whose stdin and stdout are the agent's.

        Together it is what ``podman run`` does, by two commands.
        """
        name = f"tare-{spec.id}"
        state = spec.space.folder / STATE
        # The rules are there for as long as the container is.
        container = removers.podman_container(name, spec.group.inner)
        cleanup.own(removers.packet_rules(name), removers.mount(state / NULL_NETNS), container)
        podman = self._podman(state)
        # conmon notes that memory ran out in a file `oom` in the folder that podman was called in.
        within = ("env", f"--chdir={spec.space.folder}")
        output(self._create(spec, podman, "--rm", argv=spec.agent_argv()), spec.group.leaf("tool"))
        began = start(spec, [*podman, "start", "--attach", "--interactive", name], within)
        if self._shares_network:
            return Instance(spec, began.stream, began.at, Address.on_host(spec), began.first_byte, client=TOOL)
        why = "its network namespace answers before the sandbox starts"
        address = Address(spec.network.front, spec.port, spec.port, None, why)
        instance = Instance(spec, began.stream, began.at, address, began.first_byte, client=TOOL)

        def settle() -> None:
            pid, own_address = _process_and_address(name)
            spec.network.enclose(spec.id, pid, own_address)
            instance.address = replace(address, early_ping=own_address)

        instance.settle = settle
        return instance

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:
        """Podman's own commands."""
        name, state = f"tare-{spec.id}", spec.space.folder / STATE
        container = removers.podman_container(name, spec.group.inner)
        cleanup.own(removers.packet_rules(name), removers.mount(state / NULL_NETNS), container)
        podman = tuple(self._podman(state))
        return Life(
            create=tuple(self._create(spec, list(podman), argv=argv)),
            start=(*podman, "start", name),
            execute=(*podman, "exec", name),
            stop=(*podman, "stop", name),
            kill=(*podman, "kill", name),
            remove=(*podman, "rm", name),
            pause=(*podman, "pause", name),
            resume=(*podman, "unpause", name),
            lacks=dict.fromkeys(("snapshot", "restore"), criu.why_not() or "tare does not know its checkpoints yet"),
            within=("env", f"--chdir={spec.space.folder}"),
            made_ns=spec.made(),
            settle=None if self._shares_network else lambda: spec.network.enclose(spec.id, *_process_and_address(name)),
        )

    def _create(self, spec: LaunchSpec, podman: Sequence[str], *options: str, argv: Sequence[str]) -> list[str]:
        resources = spec.resources
        return [
            *podman,
            "create",
            *options,
            *_options(f"tare-{spec.id}", spec.group),
            f"--cpuset-cpus={','.join(map(str, resources.cpus))}",
            *([] if resources.cpu_quota is None else [f"--cpus={resources.cpu_quota}"]),
            f"--memory={resources.memory_bytes}b",
            f"--memory-swap={resources.memory_bytes}b",
            f"--pids-limit={resources.pids or -1}",  # its own is 2,048
            f"--volume={spec.space.data}:/data:{security.writable_bind()}",
            *self._network(spec),
            "--pull=never",
            image_tag(spec.image),
            *argv,
        ]

    def observed(self, instance: Instance, read: Callable[[str], str]) -> Observed:
        """Return what a sandbox of gVisor's shows; and the bridge, which netavark and CNI call by different names."""
        shown = gvisor.seen(self, instance, read) if self._runtime == "runsc" else super().observed(instance, read)
        if self._shares_network:
            return shown
        arguments = ["network", "inspect", "podman", "--format", "{{.NetworkInterface}}"]
        bridge = processes.run([*runtimes.podman(), *arguments], time_limit_s=10).text.strip()
        return replace(shown, network_path=shown.network_path.replace(BRIDGE, bridge or "its bridge"))

    def _network(self, spec: LaunchSpec) -> list[str]:
        if self._shares_network:
            return ["--network=host"]
        if not spec.published:
            return []
        where = f"{spec.network.front}:{spec.port}:{spec.port}"
        return [f"--publish={where}/tcp", f"--publish={where}/udp"]

    def _podman(self, state: Path) -> list[str]:
        # The runtime's own notes are the instance's, and nothing of them stays below /run.
        program = self._program()
        told = [] if self._runtime is None and program == default_runtime() else [f"--runtime={program}"]
        return [*runtimes.podman(), *told, f"--runtime-flag=root={state}"]

    def _program(self) -> str:
        """Return the path of the runtime, or of the script that hides a part of the host from crun."""
        if self._runtime is not None:
            return _path(self._runtime) or self._runtime
        default = default_runtime()
        return runtimes.crun() if Path(default).name == "crun" else default


def _options(name: str, group: Group) -> list[str]:
    """Return the options of ``podman run`` and ``podman create``."""
    return [
        "--interactive",
        f"--name={name}",
        f"--cgroup-parent={group.parent_for(cgroup_manager())}",
        # No log: the stream is tare's protocol, and journald would keep it for good.
        "--log-driver=none",
        "--http-proxy=false",  # podman would hand on the user's
        *ulimits(),
    ]


@functools.cache
def cgroup_manager() -> str:
    """Return the maker of the groups of podman's containers: ``systemd`` or ``cgroupfs``. Raises `PlatformError`."""
    return output([*runtimes.podman(), "info", "--format", "{{.Host.CgroupManager}}"])


@functools.cache
def default_runtime() -> str:
    """Return the path of the runtime that podman takes when it is told none. Raises `PlatformError`."""
    return output([*runtimes.podman(), "info", "--format", "{{.Host.OCIRuntime.Path}}"])


def _path(program: str) -> str | None:
    if program == "runsc":
        return find_runsc()
    path = processes.find(program)
    return runtimes.crun() if program == "crun" and path else path


def _process_and_address(name: str) -> tuple[int, str]:
    """Return a running container's first process, and its address on podman's bridge, which its published port hides.

    Raises `PlatformError`.
    """
    template = "{{.State.Pid}} {{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}"
    pid, *addresses = output([*runtimes.podman(), "container", "inspect", "--format", template, name]).split()
    if not addresses:
        raise PlatformError(f"{name} has no address on podman's bridge", fix="see `podman network inspect podman`")
    return int(pid), addresses[0]


def ulimits() -> list[str]:
    """Options for the limits of processes: those of all platforms, and `NPROC`, lowered to what this process may have.

    Podman raises ``nofile`` and ``nproc`` by itself, which fails without CAP_SYS_RESOURCE.
    """
    most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    own = {"nproc": NPROC if most == resource.RLIM_INFINITY else min(NPROC, most)}
    return [f"--ulimit={name}={value}:{value}" for name, value in {**instance_limits.for_engines(), **own}.items()]


def image_tag(image: Image) -> str:
    """Return the tag of the imported image."""
    return f"{LABEL}:{image.hash[:12]}"


def output(
    argv: list[str], procs: Sequence[Path] = (), *, name: str = "podman", fix: str = "see what `podman info` says"
) -> str:
    """Return what a command of podman's prints. ``name`` and ``fix`` are for the error. Raises `PlatformError`."""
    done = processes.run(argv, time_limit_s=IMPORT_LIMIT_S, cgroup_procs=procs)
    if done.code != 0:
        raise PlatformError(f"{name} refuses: {done.message}", fix=fix)
    return done.text.strip()


PLATFORMS = (
    Podman("podman"),
    Podman("podman-runc", "runc"),
    Podman("podman-crun", "crun"),
    Podman("podman-gvisor", "runsc"),
    Podman("podman-host", shares_network=True),
)
