"""youki: the OCI runtime written in Rust, without a daemon, on a bundle over the image."""

from __future__ import annotations

from collections.abc import Sequence

from tare.host import processes
from tare.host.daemons import runtimes
from tare.host.resources.journal import CleanupStack
from tare.image.forms import image_bytes
from tare.image.image_build import Image
from tare.platforms import crun
from tare.platforms.base import HELPER_PIDS, Availability, Instance, LaunchSpec, Life, Platform, Prepared
from tare.platforms.parts.bundles import own_build
from tare.platforms.parts.bundles.oci_bundle import Bundle, bundle_life, launch_bundle, make_bundle
from tare.platforms.parts.common import left_open
from tare.platforms.parts.common.attempt import complaint

ERROR = "error in executing command"
FIX = "tare setup --with youki"


class Youki(Platform):
    """Namespaces, cgroups and capabilities by youki; the same bundle as runc's."""

    title = "youki on an OCI bundle, no daemon"
    network_path = "client, bridge, veth"
    by_default = False
    helper_pids = HELPER_PIDS
    open_by_design = left_open.on_bridge("no seccomp filter, as in its own default spec", *left_open.UNFILTERED)

    def __init__(self, name: str = "youki", build: str = "") -> None:
        """``build``: the path of a user's own build."""
        self.name = name
        self._build = build
        if build:
            self.title = f"a build of {type(self).title}"

    def detect(self) -> Availability:
        """Run a trivial bundle."""
        program = self._program()
        if program is None:
            return Availability(False, reason="youki is not installed", fix=FIX)
        unfit = own_build.unfit(program, "youki") if self._build else None
        if unfit is not None:
            return unfit
        why = complaint(lambda site: crun.trial_argv(site, program, removed_by="youki"), ERROR)  # a stack follows it
        if why:
            return Availability(False, reason=f"a trivial bundle fails: {why}", fix=f"try `{program} info`")
        shown = version(processes.run([program, "--version"], time_limit_s=5).text)
        return Availability(True, version=shown, details=own_build.details(program) if self._build else {})

    def _program(self) -> str | None:
        return self._build or runtimes.find("youki")

    def prepare(self, image: Image) -> Prepared:
        """Return the image as a folder."""
        return Prepared("folder", image_bytes(image), (image.root,), (self._program() or "youki",))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Run the bundle."""
        return launch_bundle(self._bundle(spec, cleanup, spec.agent_argv()), spec)

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:
        """Return the commands of youki itself."""
        return bundle_life(self._bundle(spec, cleanup, argv), spec)

    def _bundle(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Bundle:
        return make_bundle(spec, cleanup, argv, self._program() or "youki", [], removed_by="youki")


def version(printed: str) -> str:
    """Return the version in what ``youki --version`` prints."""
    return next((line.split()[2] for line in printed.splitlines() if line.startswith("youki version: ")), "unknown")


PLATFORMS = (Youki(),)
FAMILIES = own_build.family("youki", "youki", Youki)
