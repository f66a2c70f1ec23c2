"""QEMU: a full virtual machine, by KVM where that works and else by emulation (TCG). Variants are machine types.

The agent is the guest's PID 1 and speaks over a virtio-serial port; QEMU connects it to a socket on which the host
listens before the guest exists, so that the guest never sees a false end of its input.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.errors import HostError, ImageError, PlatformError
from tare.host import processes, state
from tare.host.journal import Belongings
from tare.image import forms, guest
from tare.image.build import Image
from tare.platforms.base import Address, Availability, Instance, Instant, LaunchSpec, Platform, Prepared
from tare.platforms.marks import FirstByte, Ping
from tare.session import SocketStream

PROGRAM = "qemu-system-x86_64"
#: The image's filesystem, with room for what the guest writes beside /data.
ROOT_BYTES = 1200 << 20
#: At most; sparse, so it takes what is written to it.
DATA_BYTES = 16 << 30
#: Of the instance's memory limit, for the monitor itself and, under TCG, its translated code.
MONITOR_BYTES = 256 << 20
#: QEMU's own default is 1 GiB, which would have the monitor killed at the instance's memory limit.
TRANSLATED_MIB = 96
#: A guest that has not said a word by then does not run on this host.
KVM_LIMIT_S = 5.0
CONNECT_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Machine:
    """All that decides the command line."""

    kind: str  # q35 or microvm
    accel: str  # kvm or tcg
    cpus: int
    memory_bytes: int
    kernel: Path
    initramfs: Path
    root: Path
    data: Path
    control: Path  # socket of the agent's port
    console: Path
    tap: str
    mac: str
    address: str  # with prefix length
    gateway: str
    agent: Sequence[str]  # the agent's arguments


def command(machine: Machine) -> list[str]:
    """The command that starts a machine."""
    bus = "device" if machine.kind == "microvm" else "pci"
    rom = "" if machine.kind == "microvm" else ",romfile="
    append = f"console=ttyS0 panic=-1 reboot=t tare.ip={machine.address} tare.gw={machine.gateway} -- "
    return [
        PROGRAM,
        *accelerator(machine.accel),
        *("-M", machine.kind, "-smp", str(machine.cpus), "-m", f"{machine.memory_bytes >> 20}M"),
        *("-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{machine.console}"),
        *("-kernel", str(machine.kernel), "-initrd", str(machine.initramfs)),
        *("-drive", f"if=none,id=root,file={machine.root},format=raw,snapshot=on"),
        *("-drive", f"if=none,id=data,file={machine.data},format=raw"),
        *("-device", f"virtio-blk-{bus},drive=root", "-device", f"virtio-blk-{bus},drive=data"),
        *("-netdev", f"tap,id=net,ifname={machine.tap},script=no,downscript=no"),
        *("-device", f"virtio-net-{bus},netdev=net,mac={machine.mac}{rom}"),
        *("-chardev", f"socket,id=agent,path={machine.control}"),
        *("-device", f"virtio-serial-{bus}", "-device", "virtserialport,chardev=agent,name=tare.0"),
        *("-append", append + " ".join(machine.agent)),
    ]


def accelerator(accel: str) -> list[str]:
    """How the guest's instructions are run, and the processor that it sees."""
    if accel == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", f"tcg,thread=multi,tb-size={TRANSLATED_MIB}", "-cpu", "max"]


class Qemu(Platform):
    """A virtual machine of its own kernel; what it writes goes to raw files on the host's disk."""

    shares_data = False
    by_default = False  # a start takes seconds without KVM
    network_path = "client, bridge, TAP, virtio-net"
    not_honoured = (
        "the data volume is an ext4 of its own, on a raw file on the host's disk",
        f"the memory limit holds for guest and monitor together: the guest has {MONITOR_BYTES >> 20} MiB less",
        "dropping cached data drops the host's pages, not the guest's",
    )

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.title = f"QEMU, machine {kind}"
        self._kind = kind

    def detect(self) -> Availability:
        """Look for QEMU, get the guest's kernel, and find out whether KVM runs it."""
        if processes.find(PROGRAM) is None:
            return Availability(False, reason="QEMU is not installed", fix="apt-get install qemu-system-x86")
        if os.geteuid() != 0:
            return Availability(False, reason="a TAP needs root", fix="run tare as root (sudo)")
        try:
            accel, why = accelerated(guest.ensure())
        except (ImageError, HostError) as error:
            return Availability(False, reason=error.what, fix=error.fix or "")
        version = processes.run([PROGRAM, "--version"], time_limit_s=10).text.split("\n")[0]
        details = {"accelerator": f"{accel}: {why}", "guest kernel": guest.ensure().release}
        shown = version.removeprefix("QEMU emulator version ").split()[0]
        return Availability(True, version=f"{shown}, {accel}", details=details)

    def prepare(self, image: Image) -> Prepared:
        """The image as an ext4 filesystem; guests write to a copy that is thrown away."""
        disk = forms.ext4(image, ROOT_BYTES)
        made = guest.ensure()
        sizes = [forms.disk_bytes(path) for path in (disk, made.kernel, made.initramfs)]
        return Prepared("ext4 file, kernel and initramfs", sum(sizes))

    def launch(self, spec: LaunchSpec, things: Belongings) -> Instance:
        """Make TAP, data volume and control socket, and start the machine."""
        endpoint, tap = spec.network.new_tap(things, spec.id)
        made = guest.ensure()
        control = spec.space.folder / "control"
        machine = Machine(
            kind=self._kind,
            accel=accelerated(made)[0],
            cpus=len(spec.resources.cpus),
            memory_bytes=spec.resources.memory_bytes - MONITOR_BYTES,
            kernel=made.kernel,
            initramfs=made.initramfs,
            root=forms.ext4(spec.image, ROOT_BYTES),
            data=_data_volume(spec.space.data),
            control=control,
            console=spec.space.log,
            tap=tap,
            mac=endpoint.mac,
            address=f"{endpoint.address}/{spec.network.prefix}",
            gateway=spec.network.host,
            agent=spec.agent_argv()[1:],
        )
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(control))
            listener.listen(1)
            listener.settimeout(CONNECT_LIMIT_S)
            started, process = _start(spec, command(machine))
            connection = _accept(listener, process)
        stream = MachineStream(connection, process)
        first_byte = FirstByte(stream.fileno())
        ping = Ping(endpoint.address) if spec.measured else None
        address = Address(endpoint.address, spec.port, spec.port, endpoint.address)
        return Instance(spec, stream, started, address, first_byte, ping)


class MachineStream(SocketStream):
    """The agent's port; closing it ends the machine."""

    def __init__(self, connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
        super().__init__(connection)
        self._process = process

    def close(self) -> None:
        """Close the port: the agent switches the machine off. By force if it does not."""
        super().close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            processes.kill_group(self._process)
            self._process.wait()


@functools.cache
def accelerated(made: guest.Guest) -> tuple[str, str]:
    """Which accelerator runs a stock guest here, and why; kept for as long as the host is not rebooted."""
    kept = state.home() / "guest" / "kvm.json"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    key = [boot, made.release]
    try:
        seen = json.loads(kept.read_text())
    except (OSError, ValueError):
        seen = {}
    if not isinstance(seen, dict) or seen.get("key") != key:
        seen = {"key": key, "why": _try_kvm(made)}
        kept.write_text(json.dumps(seen))
    why = seen["why"]
    return ("kvm", "a guest came up") if why is None else ("tcg", f"KVM: {why}")


def _try_kvm(made: guest.Guest) -> str | None:
    """None when a guest comes up by KVM; else why not. A /dev/kvm that opens proves nothing."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "/dev/kvm cannot be opened"
    argv = [PROGRAM, *accelerator("kvm"), "-M", "q35", "-m", "256M", "-nodefaults", "-display", "none", "-no-reboot"]
    argv += ["-serial", "stdio", "-kernel", str(made.kernel), "-initrd", str(made.initramfs)]
    tried = processes.run([*argv, "-append", "console=ttyS0 quiet panic=-1 tare.probe"], time_limit_s=KVM_LIMIT_S)
    if b"tare-guest-runs" in tried.stdout:
        return None
    if tried.timed_out:
        return f"a guest does not come up within {KVM_LIMIT_S:.0f} s"
    said = (tried.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
    return f"a guest does not start: {said}"


def _data_volume(folder: Path) -> Path:
    place = folder / "data.ext4"
    size = min(DATA_BYTES, shutil.disk_usage(folder).free // 2)
    with place.open("wb") as file:
        file.truncate(size)
    processes.run(["mkfs.ext4", "-q", "-F", str(place)]).require(fix="apt-get install e2fsprogs")
    return place


def _start(spec: LaunchSpec, argv: Sequence[str]) -> tuple[Instant, subprocess.Popen[bytes]]:
    # What the guest writes to its root is kept in a file there.
    full = ["env", f"TMPDIR={spec.space.folder}", *argv]
    errors = (spec.space.folder / "qemu.log").open("wb")
    with errors:
        nothing = subprocess.DEVNULL
        procs = spec.group.leaf("tool")
        held = processes.start_held(full, stdin=nothing, stdout=nothing, stderr=errors, cgroup_procs=procs)
    started = Instant.now()
    held.go()
    return started, held.process


def _accept(listener: socket.socket, process: subprocess.Popen[bytes]) -> socket.socket:
    deadline = time.monotonic() + CONNECT_LIMIT_S
    listener.settimeout(0.2)
    while time.monotonic() < deadline:
        try:
            return listener.accept()[0]
        except TimeoutError:
            if process.poll() is not None:
                break
    processes.kill_group(process)
    process.wait()
    raise PlatformError("QEMU ended before it connected the agent's port", fix="see the console kept in the campaign")


PLATFORMS = (Qemu("qemu", "q35"),)
