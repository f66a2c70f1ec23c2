"""Nested platforms: a container platform inside a virtual machine of QEMU's. Variants are what runs inside (`inner`).

The machine is that of the platform `qemu`, or of `qemu-tcg`. Its system is not the image but a small one of tare's
with the inner platform's programs (`image.outer`), which runs the image in a container; the container's stdin and
stdout are the machine's virtio port.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tare.errors import ImageError
from tare.host import distribution, processes
from tare.host.daemons.runtimes import asked_version
from tare.image import forms, guest, outer
from tare.image.image_build import Image
from tare.platforms.base import Availability, LaunchSpec, Prepared
from tare.platforms.parts.machines import vm
from tare.platforms.parts.machines.qemu_line import Plug, QemuMachine
from tare.platforms.parts.nested import nested_store
from tare.platforms.parts.nested.inner import DOCKER, Inner, Task, padded, runtime
from tare.platforms.qemu import MachineKind, Qemu


class Nested(Qemu):
    """The image in a container in a guest."""

    def __init__(self, name: str, inner: Inner, accel: str = "kvm") -> None:
        super().__init__(name, MachineKind(accel=accel))
        self.title = f"{inner.title} in a guest of QEMU, {vm.BY[accel]}"
        self.network_path = f"client, bridge, TAP, virtio-net, {inner.network}"
        self.not_honoured = (
            *Qemu.not_honoured,
            "the limits are the machine's: the container may use all that its guest has",
            *inner.not_honoured,
        )
        self.start_limit_factor = inner.start_limit_factor
        if inner.store and accel == "tcg":
            self.only_named = "an emulated machine fills its engine's store before the first block: that takes minutes"
        self._inner = inner

    def detect(self) -> Availability:
        """As QEMU; and look whether all of the inner platform's programs are here, and run."""
        answer = super().detect()
        if not answer.available:
            return answer
        try:
            version = self._version()
        except ImageError as error:
            return Availability(False, reason=error.what, fix=error.fix or "")
        return replace(answer, version=f"{version} in QEMU {answer.version}")

    def prepare(self, image: Image) -> Prepared:
        """Return the disks of a guest: image, or Docker's store with it, and system; and kernel and initramfs."""
        boot_files = guest.ensure()
        files = [self._root(image), self._system(), boot_files.kernel, boot_files.initramfs]
        form = "Docker's store" if self._inner.store else "ext4 file"
        return Prepared(
            f"{form}, guest's system, kernel and initramfs",
            sum(map(forms.disk_bytes, files)),
            tuple(files),
            (vm.PROGRAM,),
        )

    def _version(self) -> str:
        for program in (self._inner.program, *self._inner.beside):
            if processes.find(program) is None:
                package = self._inner.packages.get(program, self._inner.packages[self._inner.program])
                raise ImageError(f"{program} is not installed", fix=distribution.install(package))
        argv = asked_version(self._inner.program)
        finished = processes.run(argv, time_limit_s=5)
        if finished.code != 0 or not finished.text.strip():
            package = self._inner.packages[self._inner.program]
            raise ImageError(f"`{' '.join(argv)}` fails", fix=distribution.install(package, again=True))
        return finished.text.splitlines()[0].partition("version ")[2].partition(",")[0].strip()

    def _system(self) -> Path:
        return outer.ensure(self._inner.programs(), self._inner.modules)

    def _root(self, image: Image) -> Path:
        if not self._inner.store:
            return super()._root(image)
        return nested_store.ensure(image, self._system(), self._kind.accel)

    def _machine(self, spec: LaunchSpec, boot_files: guest.Guest | guest.Direct, plug: Plug) -> QemuMachine:
        machine = super()._machine(spec, boot_files, plug)
        order_file = spec.space.folder / "order"
        task = Task(spec.agent_argv(), spec.port, machine.cpus, machine.memory_bytes)
        order_file.write_bytes(padded(self._inner.order(task)))
        return replace(machine, further=(self._system(), order_file), words=("tare.outer",), agent=())


PLATFORMS = (
    Nested("crun-in-qemu", runtime("crun")),
    Nested("crun-in-qemu-tcg", runtime("crun"), "tcg"),
    Nested("docker-in-qemu", DOCKER),
    Nested("docker-in-qemu-tcg", DOCKER, "tcg"),
    Nested("runc-in-qemu", runtime("runc")),
    Nested("runc-in-qemu-tcg", runtime("runc"), "tcg"),
)
