"""gVisor: runsc on an OCI bundle, without a daemon. Variants are its ways to trap system calls."""

from __future__ import annotations

import os

from tare.host import janitor, processes, state
from tare.host.journal import Belongings
from tare.image.build import Image
from tare.image.forms import disk_bytes
from tare.platforms.attempt import Ground, complaint
from tare.platforms.base import Availability, Instance, LaunchSpec, Platform, Prepared
from tare.platforms.oci import NULL_NETNS, launch_bundle

KVM_FIX = "use a host whose KVM runs guests, or a lab: tare lab run -- tare doctor"


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
        if self._trap == "kvm" and not os.access("/dev/kvm", os.R_OK | os.W_OK):
            return Availability(False, reason="/dev/kvm cannot be opened", fix=KVM_FIX)
        version = processes.run([runsc, "--version"], time_limit_s=5).text.splitlines()
        # Where KVM is there and does not work, this hangs, and is ended.
        why = complaint(lambda ground: self._command(runsc, ground))
        if why:
            fix = KVM_FIX if self._trap == "kvm" else "make gvisor"
            return Availability(False, reason=f"a trivial sandbox fails: {why}", fix=fix)
        shown = version[0].removeprefix("runsc version ").strip() if version else "unknown"
        return Availability(True, version=shown, details={"platform": self._trap, "runsc": runsc})

    def _command(self, runsc: str, ground: Ground) -> list[str]:
        ground.things.own(janitor.mount(ground.folder / NULL_NETNS))
        options = [f"--root={ground.folder}", f"--platform={self._trap}", "--network=none", "--ignore-cgroups"]
        return [runsc, *options, "do", "true"]

    def prepare(self, image: Image) -> Prepared:
        """The image as a folder."""
        return Prepared("folder", disk_bytes(image.root))

    def launch(self, spec: LaunchSpec, things: Belongings) -> Instance:
        """Run the bundle."""
        runsc = find_runsc()
        assert runsc is not None, "launch follows a successful detect"
        options = [f"--platform={self._trap}", "--network=sandbox"]
        return launch_bundle(spec, things, runsc, options, own_stack=True)


PLATFORMS = (Gvisor("gvisor", "systrap"), Gvisor("gvisor-ptrace", "ptrace"), Gvisor("gvisor-kvm", "kvm"))
