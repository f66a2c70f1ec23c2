"""krun: crun with libkrun, which runs the bundle's process as a small virtual machine by KVM.

The same bundle as runc's. libkrun is in neither Debian 12 nor 13; where a user has it, crun starts it by the name krun.
By its documentation: no bundle of it has run here yet.
"""

from __future__ import annotations

import os

from tare.host import processes
from tare.host.resources.journal import CleanupStack
from tare.image.forms import image_bytes
from tare.image.image_build import Image
from tare.platforms import crun
from tare.platforms.base import Availability, Instance, LaunchSpec, Platform, Prepared
from tare.platforms.gvisor import KVM_FIX
from tare.platforms.parts.bundles.oci_bundle import Net, launch_bundle, make_bundle
from tare.platforms.parts.common.attempt import complaint

PROGRAM = "krun"
FIX = "install crun with libkrun (crun-krun on Fedora): neither Debian 12 nor 13 has it"


class Krun(Platform):
    """A virtual machine with libkrun's own kernel, which hands its programs' sockets to the network namespace's."""

    name = "krun"
    title = "krun (crun with libkrun) on an OCI bundle, no daemon"
    network_path = "client, bridge, veth, sockets by pass-through"
    disk_cache = "the guest's page cache over virtio-fs"
    own_kernel = True
    by_default = False
    # src/libcrun/handlers/krun.c: the limit of the bundle is the guest's memory, and the group's that it runs in too.
    not_honoured = (
        "the memory limit is the guest's memory and its monitor's together: a guest that fills its own may be killed",
        "at most 16 virtual processors, which is libkrun's limit",
    )

    def detect(self) -> Availability:
        """Run a trivial bundle."""
        if processes.find(PROGRAM) is None:
            return Availability(False, reason="krun is not installed", fix=FIX)
        if not os.access("/dev/kvm", os.R_OK | os.W_OK):
            return Availability(False, reason="/dev/kvm cannot be opened", fix=KVM_FIX)
        why = complaint(lambda site: crun.trial_argv(site, PROGRAM))
        if why:
            return Availability(False, reason=f"a trivial bundle fails: {why}", fix=KVM_FIX)
        shown = processes.run([PROGRAM, "--version"], time_limit_s=5).text.split("\n")[0].split()
        return Availability(True, version=shown[-1] if shown else "unknown")

    def prepare(self, image: Image) -> Prepared:
        """Return the image as a folder."""
        return Prepared("folder", image_bytes(image), (image.root,), (PROGRAM,))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Run the bundle."""
        return launch_bundle(
            make_bundle(spec, cleanup, spec.agent_argv(), PROGRAM, [], Net.VETH, without_v2=True), spec
        )


PLATFORMS = (Krun(),)
