"""What runc and crun share: the same bundles, with another network, in a user namespace, or filtered."""

from __future__ import annotations

from tare.host.resources.journal import CleanupStack
from tare.image.build import Image
from tare.image.forms import image_bytes
from tare.platforms.base import Instance, LaunchSpec, Platform, Prepared
from tare.platforms.parts.bundles.oci import Net, launch_bundle
from tare.platforms.parts.common import left_open


class OnBundle(Platform):
    """A runtime that is started on a bundle over the image; of its platforms only the plain one is a default."""

    open_by_design = left_open.on_bridge("no seccomp filter, as in its own default spec", *left_open.UNFILTERED)
    runtime: str  # its program
    without_v2 = False  # whether it is not to see cgroup v2 beside v1

    def __init__(self, name: str, net: Net = Net.VETH, *, users: bool = False, filtered: bool = False) -> None:
        self.name = name
        differs = ", Docker's seccomp profile" if filtered else "" if net is Net.VETH else ", no network"
        in_users = ", in a user namespace" if users else ""
        self.title = f"{self.runtime} on an OCI bundle, no daemon{differs}{in_users}"
        self.network_path = net.path
        self.by_default = type(self).by_default and net is Net.VETH and not users and not filtered
        self._net = net
        self._users = users
        self._filtered = filtered
        if filtered:
            self.open_by_design = left_open.BY_BRIDGE

    def prepare(self, image: Image) -> Prepared:
        """The image as a folder."""
        return Prepared("folder", image_bytes(image), (image.root,), (self.runtime,))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Run the bundle."""
        return launch_bundle(
            spec,
            cleanup,
            self.runtime,
            [],
            self._net,
            without_v2=self.without_v2,
            users=self._users,
            filtered=self._filtered,
        )
