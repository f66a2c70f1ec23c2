"""containerd without Docker: containers by its own client, `ctr run`. Variants are the runtimes, each with its shim."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType

from tare.errors import TareError
from tare.host import criu, distribution, processes, state
from tare.host.daemons import containerd_access, runtimes
from tare.host.network import bridge
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.host.resources.resource import HostResource
from tare.image.forms import image_bytes
from tare.image.image_build import Image
from tare.platforms import crun, gvisor
from tare.platforms.base import HELPER_PIDS, Availability, Instance, LaunchSpec, Life, Observed, Platform, Prepared
from tare.platforms.gvisor import NETSTACK, find_runsc
from tare.platforms.parts.bundles.oci_bundle import NULL_NETNS, Net, plugged
from tare.platforms.parts.common import adopt, left_open
from tare.platforms.parts.common.attempt import TrialSite, complaint, system_folders
from tare.platforms.parts.common.pipes import TOOL, start
from tare.platforms.parts.engines import containerd_server
from tare.platforms.parts.engines.containerd_server import SHARED, ContainerdServer, SharedServer
from tare.platforms.watchers.marks import EchoPing

_INSTALL = distribution.install("containerd")
#: What brings the programs that a runtime takes besides containerd and runc.
_FIXES = {
    "crun": distribution.install("crun"),
    "runsc": "tare setup --with containerd-gvisor",  # brings runsc too
    "kata": "install Kata Containers by its project's releases (kata-static): no package registry has it",
}
#: Since then a daemon reads the JSON by which shims of today tell their address.
_TALKS_JSON = (1, 7)
#: In an instance's folder, where `_keeps_its_state`.
RUNTIMES_STATE = "runtime"
#: By Kata's documentation (host-cgroups.md, vcpu-handling.md).
BY_KATA = (
    "unless Kata is told sandbox_cgroup_only, its guest's processors alone are in the container's group: what its "
    "monitor takes besides is neither counted nor limited",
    "the guest's processors and memory are those of Kata's own configuration, and what the limits add to them",
)
FILTERLESS = "no seccomp filter, as `ctr run` has none without --seccomp"


class Containerd(Platform):
    """A container of ``ctr run`` with its own defaults, on a snapshot of the image, in tare's network namespace."""

    by_default = False
    helper_pids = HELPER_PIDS
    daemon = "containerd"
    years = MappingProxyType({2020: "1.4", 2021: "1.5", 2022: "1.6", 2023: "1.7", 2024: "2.0", 2025: "2.1 2.2"})

    def __init__(self, name: str, runtime: str, title: str, *, runcs_shim: bool = False) -> None:
        """``runcs_shim``: runc's shim starts the runtime, though it has one of its own."""
        self.name = name
        self.title = title
        self.runtime = runtime
        self._shims = "runc" if runcs_shim else runtime
        self._net = Net.VETH
        if runtime in {"runsc", "kata"}:
            self._net = Net.OWN_STACK
            self.network_path = Net.VETH.path + (NETSTACK if runtime == "runsc" else ", the guest's virtio-net")
        else:
            self.network_path = Net.VETH.path
            self.open_by_design = left_open.on_bridge(FILTERLESS, *left_open.UNFILTERED)
        if runtime == "kata":
            self.own_kernel = True
            self.disk_cache = "the guest's page cache over virtio-fs"
            self.not_honoured = BY_KATA
        if runtime == "crun":
            self.not_honoured = (crun.WRAPPED,)

    @property
    def shared(self) -> SharedServer:
        """The daemon that its containers share with those of other platforms."""
        return SHARED

    def detect(self) -> Availability:
        """Run a trivial container of the host's own files, by the daemon in use or one for its time."""
        missing = next((name for name in self._programs() if path_of(name) is None), None)
        if missing is not None:
            fix = (
                _INSTALL if missing in {"ctr", "containerd"} else _FIXES.get(self.runtime, distribution.install("runc"))
            )
            return Availability(False, reason=f"{missing} is not installed", fix=fix)
        try:
            with self.shared.lent() as server:
                version, own = server.version(), server.own
                lacking = too_old(self._shims, version)
                if lacking is not None:
                    return lacking
                self._require(server)
                why = complaint(lambda site: self._trivial(server, site))
        except TareError as error:
            return Availability(False, reason=error.what, fix=error.fix or "")
        if why:
            fix = "see containerd's log, and `ctr run` by hand"
            return Availability(False, reason=f"a trivial container fails: {why}", fix=fix)
        details = {
            "daemon": "tare's own" if own else "the host's",
            "shim": containerd_server.runtime_type(self._shims),
        }
        return Availability(True, version=version, details=details)

    def prepare(self, image: Image) -> Prepared:
        """Import the image, and unpack it for the overlay snapshotter; in a daemon of the host's it stays."""
        self.shared.taken(self.name).import_image(image)
        programs = ("ctr", *(path_of(name) or name for name in self._programs()[2:]))
        # The snapshot is a copy of the image's folder.
        return Prepared(f"image {containerd_server.image_tag(image)}", image_bytes(image), (), programs)

    def kept(self, image: Image) -> list[HostResource]:
        """Return the imported image, where the daemon is the host's."""
        return self.shared.taken(self.name).kept(image)

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """``ctr run``: its stdin and stdout are the agent's."""
        server = self.shared.taken(self.name)
        name = f"tare-{spec.id}"
        address = plugged(spec, cleanup, self._net)
        cleanup.own(*self._made(server, name, spec.space.folder))
        words = self._options(spec)
        image = containerd_server.image_tag(spec.image)
        argv = [*containerd_access.ctr(server.address), "run", "--rm", *words, image, name, *spec.agent_argv()]
        began = start(spec, argv)
        ping = EchoPing(address.ping) if address.ping and spec.measured else None
        group = server.group()

        def settle() -> None:
            adopt.adopt(spec.group, lambda words: containerd_server.helps(words, name))

        daemons = () if group is None else (group,)
        return Instance(
            spec,
            began.stream,
            began.at,
            address,
            began.first_byte,
            ping=ping,
            daemons=daemons,
            client=TOOL,
            settle=settle,
        )

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:
        """Return the commands of ctr. Its ``containers create`` takes no control group: ``run`` creates and starts."""
        server = self.shared.taken(self.name)
        name, ctr = f"tare-{spec.id}", tuple(containerd_access.ctr(server.address))
        plugged(spec, cleanup, self._net)
        cleanup.own(*self._made(server, name, spec.space.folder))
        image, group = containerd_server.image_tag(spec.image), server.group()
        # A task has a container, and both are deleted; what was killed is, by a code that is not 0.
        deleted = 'name=$1; shift; "$@" tasks delete --force "$name"; "$@" containers delete "$name"'
        return Life(
            start=(*ctr, "run", "--detach", "--null-io", *self._options(spec), image, name, *argv),
            execute=(*ctr, "tasks", "exec", f"--fifo-dir={spec.space.folder}", "--exec-id=tare", name),
            stop=(*ctr, "tasks", "kill", "--signal=SIGTERM", name),
            kill=(*ctr, "tasks", "kill", "--signal=SIGKILL", name),
            remove=("sh", "-c", deleted, "sh", name, *ctr),
            pause=(*ctr, "tasks", "pause", name),
            resume=(*ctr, "tasks", "resume", name),
            made_ns=spec.made(),
            lacks=dict.fromkeys(("snapshot", "restore"), self._without_checkpoints()),
            daemons=() if group is None else (group,),
        )

    def _without_checkpoints(self) -> str:
        why = criu.why_not() if self._shims == "runc" else ""
        return why or "tare does not know `ctr tasks checkpoint` yet"

    def _options(self, spec: LaunchSpec) -> list[str]:
        """Return the options of ``ctr run``, for any program."""
        return [
            *run_words(self._shims, self.runtime, f"{spec.group.inner}/box", spec.space.folder),
            f"--fifo-dir={spec.space.folder}",
            f"--memory-limit={spec.resources.memory_bytes}",
            f"--with-ns=network:{bridge.namespace_path(spec.id)}",
            f"--mount=type=bind,src={spec.space.data},dst=/data,options=rbind:rw",
        ]

    def restart_engine(self) -> None:
        """End tare's own containerd and start it again: containers outlive it with their shims."""
        server = self.shared.taken(self.name)
        if not server.own:
            super().restart_engine()
        server.restart()

    def daemon_failure(self) -> TareError | None:
        """Return the error where the daemon has died, else None."""
        server = self.shared.held()
        return None if server is None else server.ended()

    def observed(self, instance: Instance, read: Callable[[str], str]) -> Observed:
        """Return what a sandbox of gVisor's shows of itself; of other runtimes what is declared."""
        return gvisor.seen(self, instance, read) if self.runtime == "runsc" else super().observed(instance, read)

    def close(self) -> None:
        """Give the daemon back, which is stopped with its last platform where it is tare's."""
        self.shared.given_back(self.name)

    def _require(self, server: ContainerdServer) -> None:
        """Raise `TareError` where the daemon lacks what a platform needs besides `ctr`."""

    def _programs(self) -> list[str]:
        """Return what must be there, `containerd` and `ctr` first."""
        shim = containerd_server.shim_program(self._shims)
        of_runtime = ["kata-runtime"] if self.runtime == "kata" else [self.runtime]
        return ["containerd", "ctr", shim, *of_runtime]

    def _trivial(self, server: ContainerdServer, site: TrialSite) -> Sequence[str]:
        name = f"tare-{site.folder.name}"
        root = site.folder / "root"
        root.mkdir()
        site.cleanup.own(*self._made(server, name, site.folder))
        binds = [f"--mount=type=bind,src={path.resolve()},dst={path},options=rbind:ro" for path in system_folders()]
        words = run_words(self._shims, self.runtime, f"{site.group.inner}/box", site.folder)
        options = [f"--fifo-dir={site.folder}", *binds, "--rootfs", str(root)]
        return [*containerd_access.ctr(server.address), "run", "--rm", *words, *options, name, "/bin/true"]

    def _made(self, server: ContainerdServer, name: str, folder: Path) -> Sequence[HostResource]:
        """Return what `run_words` makes: the container, and what runsc mounts beside its state."""
        container = removers.containerd_container(server.address, name)
        mount = removers.mount(folder / RUNTIMES_STATE / containerd_access.NAMESPACE / NULL_NETNS)
        return (mount, container) if _keeps_its_state(self._shims, self.runtime) else (container,)


def run_words(shims: str, runtime: str, group: str, folder: Path) -> list[str]:
    """Return the first options of ``ctr run``: the shim, what it starts, and the container's control group.

    ``shims``: the runtime whose shim it is; ``folder``: the instance's.
    """
    # runc's shim starts what it is told: for crun that is the script that hides cgroup v2 from it, where it must be.
    program = None if runtime == shims else path_of(runtime)
    if runtime == "crun":
        program = runtimes.crun()
    named = [f"--runc-binary={program}"] if program else []
    named += [f"--runc-root={folder / RUNTIMES_STATE}"] if _keeps_its_state(shims, runtime) else []
    return [f"--runtime={containerd_server.runtime_type(shims)}", *named, f"--cgroup=/{group}"]


def _keeps_its_state(shims: str, runtime: str) -> bool:
    """Return True if the state is in the instance's folder: below /run/containerd runsc leaves a mount forever."""
    return (shims, runtime) == ("runc", "runsc")


def too_old(shims: str, version: str) -> Availability | None:
    """Return why a daemon of this version cannot start a runtime's shim; None where it can."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if shims != "runsc" or numbers >= _TALKS_JSON:
        return None
    reason = f"gVisor's shim needs containerd 1.7 or newer, and this is {version}"
    return Availability(False, reason=reason, fix="a newer containerd, or containerd-gvisor-runc, by runc's shim")


def path_of(program: str) -> str | None:
    """Return where a program is: below TARE_HOME, else on PATH; None where it is not installed."""
    if program == "runsc":
        return find_runsc()
    built = state.home_if_any() / "bin" / program
    return str(built) if os.access(built, os.X_OK) else processes.find(program)


PLATFORMS = (
    Containerd("containerd", "runc", "containerd with runc, by ctr"),
    Containerd("containerd-crun", "crun", "containerd with crun, by ctr"),
    Containerd("containerd-gvisor", "runsc", "containerd with gVisor's own shim (runsc, systrap), by ctr"),
    Containerd(
        "containerd-gvisor-runc",
        "runsc",
        "containerd with gVisor by runc's shim (runsc, systrap), by ctr",
        runcs_shim=True,
    ),
    Containerd("containerd-kata", "kata", "containerd with Kata's shim: a virtual machine for each container, by ctr"),
)
