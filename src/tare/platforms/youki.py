"""youki: the OCI runtime written in Rust, without a daemon, on a bundle over the image."""

from __future__ import annotations

from tare.host import processes
from tare.host.daemons import runtimes
from tare.host.resources.journal import CleanupStack
from tare.image.build import Image
from tare.image.forms import image_bytes
from tare.platforms import crun
from tare.platforms.base import Availability, Instance, LaunchSpec, Platform, Prepared
from tare.platforms.parts.bundles.oci import launch_bundle
from tare.platforms.parts.common import left_open
from tare.platforms.parts.common.attempt import complaint

ERROR = "error in executing command"
FIX = "tare setup --with youki"


class Youki(Platform):
    """Namespaces, cgroups and capabilities by youki; the same bundle as runc's."""

    name = "youki"
    title = "youki on an OCI bundle, no daemon"
    network_path = "client, bridge, veth"
    by_default = False
    open_by_design = left_open.on_bridge("no seccomp filter, as in its own default spec", *left_open.UNFILTERED)

    def detect(self) -> Availability:
        """Run a trivial bundle."""
        program = runtimes.find("youki")
        if program is None:
            return Availability(False, reason="youki is not installed", fix=FIX)
        why = complaint(lambda site: crun.trial_argv(site, program), ERROR)  # a stack follows it
        if why:
            return Availability(False, reason=f"a trivial bundle fails: {why}", fix=f"try `{program} info`")
        return Availability(True, version=version(processes.run([program, "--version"], time_limit_s=5).text))

    def prepare(self, image: Image) -> Prepared:
        """The image as a folder."""
        return Prepared("folder", image_bytes(image), (image.root,), (runtimes.find("youki") or "youki",))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Run the bundle."""
        return launch_bundle(spec, cleanup, runtimes.find("youki") or "youki", [])


def version(printed: str) -> str:
    """The version in what ``youki --version`` prints."""
    return next((line.split()[2] for line in printed.splitlines() if line.startswith("youki version: ")), "unknown")


PLATFORMS = (Youki(),)
