"""Platforms of runc and crun: the same bundles, with another network, in a user namespace, or filtered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tare.host.resources.journal import CleanupStack
from tare.image.forms import image_bytes
from tare.image.image_build import Image
from tare.platforms.base import HELPER_PIDS, Availability, Instance, LaunchSpec, Life, Platform, Prepared
from tare.platforms.parts.bundles import genuine, own_build
from tare.platforms.parts.bundles.oci_bundle import Bundle, Net, bundle_life, by_criu, launch_bundle, make_bundle
from tare.platforms.parts.common import left_open


class OnBundle(Platform):
    """A runtime that is started on a bundle over the image; of its platforms only the plain one is a default."""

    open_by_design = left_open.on_bridge("no seccomp filter, as in its own default spec", *left_open.UNFILTERED)
    helper_pids = HELPER_PIDS
    runtime: str  # its program
    without_v2 = False  # whether it is not to see cgroup v2 beside v1

    def __init__(
        self, name: str, net: Net = Net.VETH, *, users: bool = False, filtered: bool = False, build: str = ""
    ) -> None:
        """``build``: the path of a user's own build of the runtime."""
        self.name = name
        self.program = build or self.runtime
        self._build = build
        differs = ", Docker's seccomp profile" if filtered else "" if net is Net.VETH else ", no network"
        in_users = ", in a user namespace" if users else ""
        self.title = f"{'a build of ' if build else ''}{self.runtime} on an OCI bundle, no daemon{differs}{in_users}"
        self.network_path = net.path
        self.by_default = type(self).by_default and net is Net.VETH and not users and not filtered and not build
        self._net = net
        self._users = users
        self._filtered = filtered
        if filtered:
            self.open_by_design = left_open.BY_BRIDGE

    def unfit(self) -> Availability | None:
        """Return why its program is not measured; None: it is."""
        return own_build.unfit(self._build, self.runtime) if self._build else genuine.other(self.runtime, self.runtime)

    def details(self) -> dict[str, str]:
        """Which build it is, of a user's own."""
        return own_build.details(self._build) if self._build else {}

    def prepare(self, image: Image) -> Prepared:
        """Return the image as a folder."""
        return Prepared("folder", image_bytes(image), (image.root,), (self.program,))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Run the bundle."""
        return launch_bundle(self._bundle(spec, cleanup, spec.agent_argv()), spec)

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:
        """Return the runtime's own commands."""
        bundle = self._bundle(spec, cleanup, argv)
        return replace(bundle_life(bundle, spec), **by_criu(bundle, spec.space.folder / "checkpoint"))

    def _bundle(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Bundle:
        return make_bundle(
            spec,
            cleanup,
            argv,
            self.program,
            [],
            self._net,
            removed_by=self.runtime,
            without_v2=self.without_v2,
            users=self._users,
            filtered=self._filtered,
        )
