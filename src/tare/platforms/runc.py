"""runc: the reference OCI runtime, without a daemon, on a bundle over the image."""

from __future__ import annotations

from tare.host import distribution, processes
from tare.host.resources.journal import CleanupStack
from tare.image.build import Image
from tare.image.forms import image_bytes
from tare.platforms.base import Availability, Instance, LaunchSpec, Platform, Prepared
from tare.platforms.parts import genuine, left_open
from tare.platforms.parts.oci import Net, launch_bundle


class Runc(Platform):
    """Namespaces, cgroups and capabilities by runc; no seccomp filter, as in its own default spec, or Docker's."""

    open_by_design = left_open.on_bridge("no seccomp filter, as in its own default spec", *left_open.UNFILTERED)

    def __init__(self, name: str, net: Net = Net.VETH, *, users: bool = False, filtered: bool = False) -> None:
        self.name = name
        differs = ", Docker's seccomp profile" if filtered else "" if net is Net.VETH else ", no network"
        self.title = f"runc on an OCI bundle, no daemon{differs}{', in a user namespace' if users else ''}"
        self.network_path = net.path
        self.by_default = net is Net.VETH and not users and not filtered
        self._net = net
        self._users = users
        self._filtered = filtered
        if filtered:
            self.open_by_design = left_open.BY_BRIDGE

    def detect(self) -> Availability:
        """Ask runc for its version."""
        if processes.find("runc") is None:
            return Availability(False, reason="runc is not installed", fix=distribution.install("runc"))
        answer = processes.run(["runc", "--version"], time_limit_s=5)
        another = genuine.other("runc", "runc")
        if another is not None:
            return another
        if answer.code != 0:
            return Availability(False, reason="`runc --version` fails", fix=distribution.install("runc", again=True))
        return Availability(True, version=answer.text.splitlines()[0].removeprefix("runc version ").strip())

    def prepare(self, image: Image) -> Prepared:
        """The image as a folder."""
        return Prepared("folder", image_bytes(image), (image.root,), ("runc",))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Run the bundle."""
        return launch_bundle(spec, cleanup, "runc", [], self._net, users=self._users, filtered=self._filtered)


PLATFORMS = (
    Runc("runc"),
    Runc("runc-none", Net.NONE),
    Runc("runc-userns", users=True),
    Runc("runc-seccomp", filtered=True),
)
