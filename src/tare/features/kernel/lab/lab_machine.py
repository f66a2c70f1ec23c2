"""One lab: a throwaway machine with the agent as its PID 1, by KVM if it runs guests here, otherwise by emulation.

QEMU runs in its own root and mount namespace, and in a control group of the lab's, so nothing of it can stay: the
namespace ends with the process, and group and folder are in the journal.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.errors import HostError, PlatformError, SessionError
from tare.features.kernel.lab.lab_build import HOME_INSIDE
from tare.host import cgroup, instance_console, processes, state
from tare.host.kernel import pinning
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.image import guest
from tare.model import Progress, Resources
from tare.platforms.parts.machines import vm
from tare.session import Session, SocketStream

#: Enough for an emulated host on a busy machine, which usually takes less than a tenth of it.
BOOT_LIMIT_S = 600.0
#: Includes all services of a stock host, which start before commands are accepted.
STOCK_BOOT_LIMIT_S = 1800.0
#: QEMU's own memory beside the machine's, mainly for translated code.
TRANSLATED_MIB = 512
MONITOR_BYTES = 1 << 30
#: The emulated processor. It does not offer fast `rep movsb` and `rep stosb`, which are emulated byte by byte. Without
#: them, kernels clear and copy pages by words, in half the time.
EMULATED = "max,+svm,-erms,-fsrm"
#: Arguments of the host's kernel. No init system loads AppArmor's profiles, and LXC fails without its own.
LINUX = "quiet panic=-1 apparmor=0 mitigations=off nokaslr"
#: Arguments of a stock host's kernel. Everything is as in Debian, except defences, which are costly under emulation,
#: and services' time limits, which are too short for it.
STOCK = "loglevel=4 panic=-1 mitigations=off nokaslr systemd.default_timeout_start_sec=900"
#: Arguments of Xen. Its defences against guests are costly under emulation, and are off. Lazy switching of floating
#: point registers, then the default, must stay off too: under emulation it loses registers (docs/lab.md).
XEN = "loglvl=warning bootscrub=0 spec-ctrl=no,eager-fpu xpti=no"
#: Completes the emulator's root with devices, and with TARE_HOME and its disks (scripts/own-host mounts them there).
#: Only QEMU sees these mounts.
_ENTER = """\
root=$1 home=$2 inside=$3; shift 3
mount --bind /dev "$root/dev"
mount --rbind "$home" "$root/$inside"
exec chroot "$root" "$@"
"""


@dataclass(frozen=True, slots=True)
class MachineParts:
    """The parts that a machine is started from: a host's folder, the payload's file, the emulator's root.

    ``kernel``: a kernel with all drivers built in, to boot in place of the host's own.
    """

    emulator: Path
    host: Path
    payload: Path
    kernel: Path | None = None
    stock: bool = False  # With its own init, and a network card.


@dataclass(frozen=True, slots=True)
class LabMachine:
    """The facts that decide the command line."""

    accel: str  # kvm or tcg
    cpus: int
    memory_bytes: int
    host: Path  # The folder with disk, kernel and, for Xen, the hypervisor.
    payload: Path
    initramfs: Path
    control: Path
    console: Path
    words: tuple[str, ...] = ()  # Further arguments of the host's kernel.
    kernel: Path | None = None  # Replaces the host's own.
    stock: bool = False
    in_turn: bool = False  # Under emulation, one thread runs all of its processors.


def command(machine: LabMachine, home: Path) -> list[str]:
    """Return the command inside the emulator's root. ``home``: TARE_HOME, which has another path in that root."""

    def inside(path: Path) -> str:
        return seen_inside(path, home)

    hypervisor = machine.host / "xen"
    kernel, initramfs = machine.kernel or machine.host / "vmlinuz", inside(machine.initramfs)
    arguments = " ".join([STOCK if machine.stock else LINUX, *machine.words])
    # A link with an address, as on a user's machine, but with nothing behind it. The first card is enp0s1.
    card = ("-netdev", "user,id=net,restrict=on", "-device", "virtio-net-pci,netdev=net,addr=1,romfile=")
    if hypervisor.exists():
        # A multiboot kernel loads its Linux kernel, with arguments, in place of an initramfs.
        booted = [
            "-kernel",
            inside(hypervisor),
            "-append",
            f"console=com1 dom0_mem={_dom0_mib(machine)}M {XEN}",
        ]
        booted += ["-initrd", f"{inside(kernel)} console=hvc0 {arguments},{initramfs}"]
    else:
        booted = ["-kernel", inside(kernel), "-initrd", initramfs]
        booted += ["-append", " ".join(["console=ttyS0", arguments, *vm.clock_words(machine.accel)])]
    return [
        vm.PROGRAM,
        *_accelerator(machine.accel, in_turn=machine.in_turn or hypervisor.exists()),
        *("-M", "q35", "-smp", str(machine.cpus), "-m", f"{machine.memory_bytes >> 20}M"),
        *("-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{inside(machine.console)}"),
        *booted,
        *(card if machine.stock else ()),
        *("-drive", f"if=none,id=host,file={inside(machine.host / 'disk.ext4')},format=raw,snapshot=on,cache=unsafe"),
        *("-drive", f"if=none,id=payload,file={inside(machine.payload)},format=raw,readonly=on"),
        *("-device", "virtio-blk-pci,drive=host", "-device", "virtio-blk-pci,drive=payload"),
        *("-device", "virtio-rng-pci"),
        *("-chardev", f"socket,id=agent,path={inside(machine.control)}"),
        *("-device", "virtio-serial-pci", "-device", "virtserialport,chardev=agent,name=tare.0"),
    ]


def seen_inside(path: Path, home: Path) -> str:
    """Return the path in the emulator's root of a path below TARE_HOME."""
    return str("/" / Path(HOME_INSIDE) / path.relative_to(home))


def _accelerator(accel: str, *, in_turn: bool) -> list[str]:
    if accel == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    # On two busy cores, a thread for each processor makes Xen slower (docs/lab.md).
    threads = "single" if in_turn else "multi"
    return ["-accel", f"tcg,thread={threads},tb-size={TRANSLATED_MIB}", "-cpu", EMULATED]


def _dom0_mib(machine: LabMachine) -> int:
    """Return half of the memory, at most 2 GiB. The rest is for the guests and for Xen."""
    return min(2048, machine.memory_bytes >> 21)


def accelerator() -> tuple[str, str]:
    """Return the accelerator of a lab on this host, and the reason."""
    if processes.find(vm.PROGRAM) is None:
        return "tcg", "KVM: not tried, QEMU is not installed"
    return vm.accelerated(guest.ensure())


@contextlib.contextmanager
def running(
    parts: MachineParts, cpus: int, memory_bytes: int, progress: Progress, words: Sequence[str] = ()
) -> Iterator[Session]:
    """Boot a machine, and stop it at the end. Raises `PlatformError` with its last output.

    ``words``: further arguments of its kernel.
    """
    if os.geteuid() != 0:
        raise HostError("the lab's emulator needs a root of its own", fix="run tare as root (sudo)")
    label = f"lab{secrets.token_hex(3)}"
    space = state.work() / label
    group = cgroup.named(f"tare-{label}")
    log = space / "console.log"
    with CleanupStack() as resources:
        resources.own(removers.folder(space), removers.control_group(group.path))
        space.mkdir()
        group.create(Resources(tuple(sorted(pinning.usable())), memory_bytes + MONITOR_BYTES))
        initramfs = space / "initramfs"
        initramfs.write_bytes(_initramfs(parts))
        accel, why = accelerator()
        expected = "a minute or more" if parts.stock else "some 10 s, half a minute for Xen"
        progress(f"booting the lab by {accel}, {expected} ({why})")
        control = space / "control"
        files = (parts.host, parts.payload, initramfs, control, log)
        instance_console.watch(log)
        # If the processors cannot run at the same time anyway, one thread makes their calls and atomic operations
        # cheaper.
        in_turn = parts.stock and len(pinning.usable()) <= cpus
        machine = LabMachine(
            accel, cpus, memory_bytes, *files, tuple(words), kernel=parts.kernel, stock=parts.stock, in_turn=in_turn
        )
        with _connected(machine, parts.emulator, space, group) as session:
            yield session


@contextlib.contextmanager
def _connected(machine: LabMachine, root: Path, space: Path, group: cgroup.Group) -> Iterator[Session]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(machine.control))
        listener.listen(1)
        process = start(command(machine, state.home()), root, space, group)
        try:
            stream = SocketStream(_accept(listener, process))
            try:
                limit_s = STOCK_BOOT_LIMIT_S if machine.stock else BOOT_LIMIT_S
                session = Session.open(stream, time_limit_s=limit_s)
            except SessionError as error:
                stream.close()
                raise _failed(f"the lab does not come up: {error.what}", machine.console) from error
            with session:
                yield session
        finally:
            # The machine keeps no data, so it need not be shut down.
            processes.end(process)


def start(emulator: Sequence[str], root: Path, space: Path, group: cgroup.Group) -> subprocess.Popen[bytes]:
    """Start an emulator in its root and its group. Its output goes to ``qemu.log`` in its folder."""
    home = state.home()
    within = f"/{HOME_INSIDE}/{space.relative_to(home)}"
    # The machine's disk writes go to a nameless file in TMPDIR.
    inner = ["env", f"TMPDIR={within}", *emulator]
    entered = ["sh", "-ec", _ENTER, "sh", str(root), str(home), HOME_INSIDE, *inner]
    with (space / "qemu.log").open("wb") as log:
        argv = ["unshare", "--mount", "--propagation", "private", *entered]
        return processes.start(argv, stdout=log, stderr=log, cgroup_procs=group.leaf("tool"))


def _accept(listener: socket.socket, process: subprocess.Popen[bytes]) -> socket.socket:
    try:
        return vm.accept(listener, lambda: process.poll() is not None)
    except PlatformError as error:
        log = Path(listener.getsockname()).with_name("qemu.log")
        raise _failed("the lab's emulator does not start", log) from error


def _failed(problem: str, log: Path) -> PlatformError:
    output = instance_console.read(log)[-65536:]
    lines = output.decode(errors="replace").strip().splitlines()[-3:]
    tail = " | ".join(line.strip()[:300] for line in lines) or "nothing"
    fix = "tare lab build; with another --memory, or --cpus 1"
    return PlatformError(f"{problem}; its console ends: {tail}", fix=fix, console=output)


def _initramfs(parts: MachineParts) -> bytes:
    init = Path(__file__).with_name("init.sh").read_bytes()
    modules = sorted((parts.host / "modules").iterdir()) if parts.kernel is None else []
    return guest.pack(init, guest.busybox_path(), modules)
