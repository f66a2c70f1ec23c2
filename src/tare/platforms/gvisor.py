"""gVisor: runsc on an OCI bundle, without a daemon. Variants are its ways to trap system calls."""

from __future__ import annotations

import os

from tare.host import processes, state
from tare.host.journal import Belongings
from tare.image.build import Image
from tare.image.forms import disk_bytes
from tare.platforms.base import Availability, Instance, LaunchSpec, Platform, Prepared
from tare.platforms.oci import STATE, launch_bundle


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
        version = processes.run([runsc, "--version"], time_limit_s=5).text.splitlines()
        probe = [runsc, f"--root={STATE}", f"--platform={self._trap}", "--network=none", "--ignore-cgroups"]
        tried = processes.run([*probe, "do", "true"], time_limit_s=10)
        if tried.code != 0:
            said = (tried.stderr or tried.stdout).decode(errors="replace").strip().splitlines()
            why = said[-1] if said else ("no answer within 10 s" if tried.timed_out else "no message")
            return Availability(False, reason=f"a trivial sandbox fails: {why}", fix="make gvisor")
        shown = version[0].removeprefix("runsc version ").strip() if version else "unknown"
        return Availability(True, version=shown, details={"platform": self._trap, "runsc": runsc})

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
