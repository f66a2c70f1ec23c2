"""native: a chroot, and nothing else isolated. The chroot into the image is the baseline.

Variants: the same behind a veth, which is what a container's network costs without the container; and the host's own
programs instead of the image's, which is what the choice of the image costs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tare.errors import PlatformError
from tare.host import distribution
from tare.host.filesystems import roots
from tare.host.network import bridge
from tare.host.resources.journal import CleanupStack
from tare.image.forms import image_bytes
from tare.image.image_build import Image
from tare.model import NATIVE_VETH, Family
from tare.platforms.base import AGENT, STARTED, Address, Availability, Instance, LaunchSpec, Life, Platform, Prepared
from tare.platforms.parts.common import left_open, signal_commands
from tare.platforms.parts.common.pipes import start

#: Where programs lie; an overlay over / has none of what is mounted below it.
PROGRAMS = ("/bin", "/etc", "/lib", "/sbin", "/usr")


class Native(Platform):
    """The host itself: the image's programs run in a chroot, without any sandbox."""

    name = "native"
    title = "the host itself: chroot into the image"
    network_path = "client, bridge, host stack"
    open_by_design = left_open.every_door("only a chroot, and what runs in it is the host's root")
    baseline: ClassVar[bool] = True
    without_root = True
    needs_root = False

    def detect(self) -> Availability:
        """Root and chroot are all it takes."""
        return Availability(True, version=os.uname().release)

    def prepare(self, image: Image) -> Prepared:
        """Return the image as a folder."""
        return Prepared("folder", image_bytes(image), (image.root,), ("chroot",))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Start the agent in a chroot, in the instance's control group."""
        address, within = self._network(spec, cleanup)
        root = self._root(spec, cleanup)
        roots.chroot_mounts(cleanup, root, spec.space.data)
        began = start(spec, ["chroot", str(root), *spec.agent_argv()], within)
        return Instance(spec, began.stream, began.at, address, began.first_byte)

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:
        """Return a process in the chroot, entered by another one, and ended by signals."""
        _, within = self._network(spec, cleanup)
        root = self._root(spec, cleanup)
        roots.chroot_mounts(cleanup, root, spec.space.data)
        enter = ("chroot", str(root))
        return Life(
            start=(*enter, *argv),
            execute=enter,
            stop=signal_commands.sent("TERM", STARTED),
            kill=signal_commands.sent("KILL", STARTED),
            pause=signal_commands.sent("STOP", STARTED),
            resume=signal_commands.sent("CONT", STARTED),
            within=tuple(within),
            stays=True,
            made_ns=spec.made(),
        )

    def _network(
        self,
        spec: LaunchSpec,
        cleanup: CleanupStack,  # noqa: ARG002 (a variant makes a namespace)
    ) -> tuple[Address, Sequence[str]]:
        """Its address, and the command that enters its network before the start."""
        return Address.on_host(spec), ()

    def _root(self, spec: LaunchSpec, cleanup: CleanupStack) -> Path:
        """Return the folder that it is chrooted into."""
        return roots.overlay_root(cleanup, spec.space, spec.image.root)


class NativeVeth(Native):
    """The host itself, as of `Native`, in a network namespace."""

    name = NATIVE_VETH
    title = "the host itself behind a veth: chroot into the image, in a network namespace"
    network_path = "client, bridge, veth"
    baseline: ClassVar[bool] = False
    by_default = False
    second_baseline = (Family.NETWORK, Family.APPLICATION)
    not_honoured = ("the namespace is joined before the start instant, so that its start-up is native's",)

    def _network(self, spec: LaunchSpec, cleanup: CleanupStack) -> tuple[Address, Sequence[str]]:
        endpoint = spec.network.new_namespace(cleanup, spec.id)
        return Address.on_veth(spec, endpoint.address), bridge.entered(spec.id)


class NativeUserland(Native):
    """Other bits: what the host itself has installed."""

    name = "native-userland"
    title = "the host itself with its own programs: chroot into an overlay over /"
    baseline: ClassVar[bool] = False
    by_default = False
    same_bits = False
    not_honoured = ("other bits: the host's own programs in the versions that it has, and none that it lacks",)

    def detect(self) -> Availability:
        """Refuse a host whose programs are on filesystems of their own: an overlay over / does not have them."""
        answer = super().detect()
        if not answer.available:
            return answer
        apart = [path for path in PROGRAMS if os.path.ismount(path)]
        if apart:
            why = f"{apart[0]} is a filesystem of its own, which an overlay over / does not have"
            return Availability(False, reason=why, fix="use a host that has its programs on its root filesystem")
        return Availability(True, version=answer.version, details={"userland": distribution.title(distribution.here())})

    def prepare(self, image: Image) -> Prepared:  # noqa: ARG002 (the contract's)
        """Nothing is made. What it takes is all that lies on the host's root filesystem."""
        facts = os.statvfs("/")
        return Prepared("the host's own /", (facts.f_blocks - facts.f_bfree) * facts.f_frsize)

    def _root(self, spec: LaunchSpec, cleanup: CleanupStack) -> Path:
        root = roots.overlay_root(cleanup, spec.space, Path("/"))
        agent = root / AGENT.lstrip("/")
        try:
            agent.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(spec.image.root / AGENT.lstrip("/"), agent)
        except OSError as error:
            raise PlatformError(f"the agent cannot be put into {root}: {error.strerror}") from error
        return root


PLATFORMS = (Native(), NativeVeth(), NativeUserland())
