"""gVisor: runsc on an OCI bundle, without a daemon. Variants are its ways to trap system calls."""

from __future__ import annotations

import os

from tare.host import cgroup, janitor, processes, state
from tare.host.journal import Belongings, Journal
from tare.image.build import Image
from tare.image.forms import disk_bytes
from tare.model import Resources
from tare.platforms.base import Availability, Instance, LaunchSpec, Platform, Prepared
from tare.platforms.oci import NULL_NETNS, launch_bundle

DETECT_MEMORY = 1 << 30


def find_runsc() -> str | None:
    """The runsc that `make gvisor` built, else one on PATH."""
    built = state.home() / "bin" / "runsc"
    return str(built) if os.access(built, os.X_OK) else processes.find("runsc")


class Gvisor(Platform):
    """A kernel in user space: runsc's own network stack, its own filesystem over a gofer."""

    network_path = "client, bridge, veth, gVisor's netstack"

    def __init__(self, name: str, trap: str) -> None:
        self.name = name
        self.title = f"gVisor (runsc, {trap}) on an OCI bundle, no daemon"
        self.by_default = trap == "systrap"  # runsc's own default
        self._trap = trap

    def detect(self) -> Availability:
        """Start a trivial sandbox by ``runsc do``, with nothing of the host but its root for reading."""
        runsc = find_runsc()
        if runsc is None:
            return Availability(False, reason="runsc is not installed", fix="make gvisor")
        if os.geteuid() != 0:
            return Availability(False, reason="a sandbox of gVisor's needs root here", fix="run tare as root (sudo)")
        version = processes.run([runsc, "--version"], time_limit_s=5).text.splitlines()
        tried = self._try(runsc)
        if tried.code != 0:
            said = (tried.stderr or tried.stdout).decode(errors="replace").strip().splitlines()
            why = said[-1] if said else ("no answer within 10 s" if tried.timed_out else "no message")
            return Availability(False, reason=f"a trivial sandbox fails: {why}", fix="make gvisor")
        shown = version[0].removeprefix("runsc version ").strip() if version else "unknown"
        return Availability(True, version=shown, details={"platform": self._trap, "runsc": runsc})

    def _try(self, runsc: str) -> processes.Finished:
        folder = state.work() / f"detect{os.getpid()}"
        group = cgroup.Group(f"tare-detect{os.getpid()}")
        with Belongings(Journal(state.journal())) as things:
            things.own(janitor.folder(folder), janitor.mount(folder / NULL_NETNS), janitor.control_group(group.path))
            folder.mkdir()
            group.create(Resources(tuple(os.sched_getaffinity(0)), DETECT_MEMORY))
            options = [f"--root={folder}", f"--platform={self._trap}", "--network=none", "--ignore-cgroups"]
            # In a group of its own: a sandbox that hangs goes with it.
            return processes.run([runsc, *options, "do", "true"], time_limit_s=10, cgroup_procs=group.leaf("tool"))

    def prepare(self, image: Image) -> Prepared:
        """The image as a folder."""
        return Prepared("folder", disk_bytes(image.root))

    def launch(self, spec: LaunchSpec, things: Belongings) -> Instance:
        """Run the bundle."""
        runsc = find_runsc()
        assert runsc is not None, "launch follows a successful detect"
        options = [f"--platform={self._trap}", "--network=sandbox"]
        return launch_bundle(spec, things, runsc, options, own_stack=True)


PLATFORMS = (Gvisor("gvisor", "systrap"), Gvisor("gvisor-ptrace", "ptrace"))
