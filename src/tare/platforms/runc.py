"""runc: the reference OCI runtime, without a daemon, on a bundle over the image."""

from __future__ import annotations

from types import MappingProxyType

from tare.host import distribution, processes
from tare.platforms.base import Availability
from tare.platforms.parts.bundles import own_build
from tare.platforms.parts.bundles.oci_bundle import Net
from tare.platforms.parts.bundles.on_bundle import OnBundle


class Runc(OnBundle):
    """Namespaces, cgroups and capabilities by runc; no seccomp filter, as in its own default spec, or Docker's."""

    runtime = "runc"
    years = MappingProxyType({2021: "1.0", 2022: "1.1", 2024: "1.2", 2025: "1.3"})

    def detect(self) -> Availability:
        """Ask runc for its version."""
        if processes.find("runc") is None:
            return Availability(False, reason="runc is not installed", fix=distribution.install("runc"))
        answer = processes.run([self.program, "--version"], time_limit_s=5)
        unfit = self.unfit()
        if unfit is not None:
            return unfit
        if answer.code != 0:
            fix = distribution.install("runc", again=True)
            return Availability(False, reason=f"`{self.program} --version` fails", fix=fix)
        version = answer.text.splitlines()[0].removeprefix("runc version ").strip()
        return Availability(True, version=version, details=self.details())


PLATFORMS = (
    Runc("runc"),
    Runc("runc-none", Net.NONE),
    Runc("runc-userns", users=True),
    Runc("runc-seccomp", filtered=True),
)
FAMILIES = own_build.family("runc", "runc", lambda name, path: Runc(name, build=path))
