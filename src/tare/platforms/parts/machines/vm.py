"""Code for virtual machines of every starter: the accelerator, the data volume, the agent's port."""

from __future__ import annotations

import functools
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tare.errors import HostError, PlatformError
from tare.host import distribution, instance_console, probe_cache, processes, state
from tare.host.facts import tsc
from tare.host.filesystems import ext4
from tare.host.kernel import process_table
from tare.image import forms, guest
from tare.image.image_build import Image
from tare.platforms.base import Instance, Instant, LaunchSpec, Prepared
from tare.session.byte_streams import SocketStream
from tare.timeouts import stretched, until

#: As QEMU calls it; RHEL has it by another name, on no path.
PROGRAMS = ("qemu-system-x86_64", "/usr/libexec/qemu-kvm")
PROGRAM = next(filter(processes.find, PROGRAMS), PROGRAMS[0])
KVM = "/dev/kvm"
VHOST = "/dev/vhost-net"
#: The image's filesystem, with room for what the guest writes beside /data.
ROOT_BYTES = 1200 << 20
#: The same where the image has layers, such as a kernel's source; sparse, so it takes what is in it.
LAYERED_BYTES = 4 << 30
#: At most; sparse, so it takes what is written to it.
DATA_BYTES = 16 << 30
#: What the monitor itself and, under TCG, its translated code may take beside the guest's memory.
MONITOR_BYTES = 256 << 20
#: A disk that is a file on the host's: written back by the monitor, or read and written past the host's page cache.
DISK_CACHE = "the guest's page cache over the host's, written back"
DIRECT_DISK_CACHE = "the guest's page cache alone: the monitor passes the host's (cache=none)"
#: Of a disk that is written back.
NO_DIRECT_IO = "the disk is a file on the host, which its monitor reads and writes through the host's page cache"
#: The file of an instance's data volume, in its folder.
VOLUME = "data.ext4"
#: The fact of the manifest that says how its monitor has it open.
OPENED = "data volume opened"
OWN_VOLUME = "the data volume is an ext4 of its own, on a raw file on the host's disk"
#: QEMU's own default is 1 GiB, which would have the monitor killed at its group's limit.
TRANSLATED_MIB = 96
#: Printed by a Linux guest of several processors where one but the first has not come on for 20 s.
_STUCK = re.compile(rb"watchdog: BUG: soft lockup - CPU#[1-9]")
#: By its commit deba78709ae8. Before, a processor could keep an instruction as it was while another one changed it, and
#: a guest's kernel that changes its own code then meets for good the breakpoint that stood there for a moment.
HANGS_BEFORE = (8, 1)
HANG_FIX = (
    "try again: QEMU before 8.1 hangs an emulated machine of several processors at times, by a known fault; use a newer"
    " QEMU, or --cpus with one CPU"
)
#: What runs the guest's instructions, in words.
BY = {"kvm": "KVM", "tcg": "emulation"}
#: The guest's kernel: its console is for its last words, as every byte of an emulated serial line leaves the guest.
KERNEL_WORDS = ("console=ttyS0", "quiet", "panic=-1", "reboot=t")
#: A guest that has printed nothing after this time does not run on this host.
KVM_LIMIT_S = 5.0
CONNECT_LIMIT_S = 10.0
COPY_LIMIT_S = 120.0
#: Seconds between two checks that the monitor still runs.
TURN_S = 0.2


def root_bytes(image: Image) -> int:
    """Return how large a disk the image gets: a user's own in whole GiB, at least half more than what is in it."""
    if image.tools is not None:
        return max(LAYERED_BYTES, (forms.image_bytes(image) * 3 // 2 >> 30) + 1 << 30)
    return LAYERED_BYTES if image.layers else ROOT_BYTES


def root_disk(image: Image) -> Path:
    """Return the image as an ext4 filesystem, made once; guests do not write to it."""
    return forms.ext4(image, root_bytes(image))


class MachineStream(SocketStream):
    """The agent's port; closing it ends the machine."""

    def __init__(self, connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
        super().__init__(connection)
        self._process = process

    def close(self) -> None:
        """Close the port: the agent switches the machine off. By force if it does not."""
        super().close()
        processes.end(self._process, grace_s=2)


def accelerator(accel: str) -> list[str]:
    """Return how the guest's instructions are run, and the processor that it sees."""
    if accel == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", f"tcg,thread=multi,tb-size={TRANSLATED_MIB}", "-cpu", "max"]


#: How the names of platforms end that emulate a machine.
_EMULATED = "-tcg"


@functools.cache
def accelerated(made: guest.Guest) -> tuple[str, str]:
    """Which accelerator runs a stock guest here, and why: by a try, or by one of an earlier command (`tries`)."""
    if not os.access(KVM, os.R_OK | os.W_OK):
        return "tcg", f"KVM: {KVM} cannot be opened"
    program = processes.find(PROGRAM)
    depends: list[str | int] = [made.release, Path(program).stat().st_mtime_ns if program else 0]
    why = probe_cache.why_not("kvm", depends, lambda: _try_kvm(made), keep_good=True)
    return ("tcg", f"KVM: {why}") if why else ("kvm", "a guest came up")


def emulated_name(name: str) -> str:
    """Return the platform that emulates the machine of one that takes KVM."""
    return f"{name.removesuffix('-kvm')}{_EMULATED}"


def is_emulated(name: str) -> bool:
    """Return True if the platform of this name emulates its machine."""
    return name.endswith(_EMULATED)


def need_kvm(made: guest.Guest, emulates: str) -> str:
    """Return how it is known that KVM runs guests here. Raises `HostError`, which names the platform that emulates."""
    accel, why = accelerated(made)
    if accel != "kvm":
        raise HostError(why, fix=f"use {emulates}, which emulates, or a host whose /dev/kvm runs guests")
    return why


def _try_kvm(boot_files: guest.Guest) -> str:
    """Return why a guest does not come up by KVM, "" when it does. A /dev/kvm that opens proves nothing."""
    argv = [PROGRAM, *accelerator("kvm"), "-M", "q35", "-m", "256M", "-nodefaults", "-display", "none", "-no-reboot"]
    argv += ["-serial", "stdio", "-kernel", str(boot_files.kernel), "-initrd", str(boot_files.initramfs)]
    tried = processes.run([*argv, "-append", "console=ttyS0 quiet panic=-1 tare.probe"], time_limit_s=KVM_LIMIT_S)
    return why_not(tried)


def why_not(tried: processes.Finished) -> str:
    """Return why a monitor that was given `KVM_LIMIT_S` showed no guest that prints its line; "" when it did."""
    if b"tare-guest-runs" in tried.stdout:
        return ""
    if tried.timed_out:
        return f"a guest does not come up within {stretched(KVM_LIMIT_S):.0f} s"
    lines = (tried.stderr or tried.stdout).decode(errors="replace").strip().splitlines()
    return f"a guest does not start: {lines[-1] if lines else 'no message'}"


def clock_words(accel: str) -> list[str]:
    """Return the kernel's options for its time stamp counter: under emulation the host's counter is the guest's.

    By itself it measures the counter's speed by timers that come late on a busy host: guests that took 2,596 MHz for
    220 were seen, whose clock went twelve times too fast; and a microvm, whose one old timer does not show when it
    ends, then waits for ever for a tick. Reliable: else a watchdog doubts it there. Nor is it to try whether ticks come
    in time (`no_timer_check`), as without that some do not come up. KVM tells its guests all of this itself.
    """
    return [] if accel == "kvm" else [f"tsc_early_khz={tsc.khz()}", "tsc=reliable", "no_timer_check"]


def monitor_beyond_limit(monitor_bytes: int) -> str:
    """Return what a machine does not honour of the memory limit, as half a sentence."""
    return f"the memory limit is the guest's memory; its monitor may take {monitor_bytes >> 20} MiB beside it"


def version() -> str:
    """Return the version of the QEMU that is installed. Raises `HostError`."""
    shown = processes.run([PROGRAM, "--version"], time_limit_s=10).text.split("\n")[0]
    return shown.removeprefix("QEMU emulator version ").split()[0]


def hang_fix(printed: bytes) -> str:
    """Return what to do where QEMU's emulation has hung a machine that printed this; "" where it has not."""
    if _STUCK.search(printed) is None:
        return ""
    release = tuple(int(part) for part in version().split(".")[:2])
    return HANG_FIX if release < HANGS_BEFORE else ""


def vhost() -> str | None:
    """Return why the host's kernel cannot move the packets of a guest's virtio card (vhost-net); None: it can."""
    try:
        os.close(os.open(VHOST, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"{VHOST} cannot be opened: {error.strerror}"
    return None


def back_ends(instance: Instance) -> dict[str, str]:
    """Which back ends a running machine has, by what its monitor has open; for `Observed`."""
    links: dict[str, Path] = {}
    for pid in instance.host_processes():
        links |= process_table.open_files(pid)
    moved = {"packets moved by": _mover(instance, links)}
    volume = links.get(str(Path(instance.spec.space.data, VOLUME).resolve()))
    if volume is None:
        return moved
    return {**moved, OPENED: opened_how(direct=bool(process_table.open_flags(volume) & os.O_DIRECT))}


def opened_how(*, direct: bool) -> str:
    """Return the value of the manifest's fact `OPENED`: how the monitor has the data volume open."""
    return "past the host's page cache (O_DIRECT)" if direct else "through the host's page cache"


def _mover(instance: Instance, opened: Iterable[str]) -> str:
    if VHOST in opened:
        return "vhost-net, in the host's kernel"
    programs = {Path(words[0]).name for pid in instance.host_processes() if (words := process_table.argv(pid))}
    # Its program for processors with AVX2 is another.
    return "the monitor, and passt beside it" if programs & {"passt", "passt.avx2"} else "the monitor"


def prepared(disk: Path, made: guest.Guest | guest.Direct, monitor: str) -> Prepared:
    """Return what guests boot from, with its size on the host's disk; and the program that boots them."""
    files = (disk, made.kernel, made.initramfs) if isinstance(made, guest.Guest) else (disk, made.kernel)
    form = "ext4 file, kernel and initramfs" if isinstance(made, guest.Guest) else "ext4 file and kernel"
    return Prepared(form, sum(map(forms.disk_bytes, files)), files, (monitor,))


def begin(
    spec: LaunchSpec, argv: Sequence[str], within: Sequence[str] = (), pass_fds: Sequence[int] = ()
) -> tuple[Instant, subprocess.Popen[bytes]]:
    """Start a monitor inside the instance's control group; its output goes to the instance's log.

    The start instant is that of the command itself: by then the process is in its groups. ``within``: the command
    prefix that sets up namespaces and mounts before that instant; ``pass_fds``: see `processes.start_held`.
    """
    made_ns = spec.made()
    nothing, procs = subprocess.DEVNULL, spec.group.leaf("tool")
    with instance_console.opened(spec.space.log) as log:
        held = processes.start_held(
            argv,
            stdin=nothing,
            stdout=log,
            stderr=log,
            cgroup_procs=procs,
            within=within,
            pass_fds=pass_fds,
            rest=spec.timed,
        )
    try:
        started = spec.begin(made_ns)
    except BaseException:
        held.give_up()
        raise
    held.go()
    return started, held.process


def data_volume(folder: Path) -> Path:
    """Return an empty filesystem on a sparse file in the folder: the guest's /data."""
    place = folder / VOLUME
    size = min(DATA_BYTES, shutil.disk_usage(folder).free // 2)
    ext4.make(place, size).require(fix=distribution.install("e2fsprogs"))
    return place


def copied(disk: Path, target: Path) -> Path:
    """Return a copy of a disk that a guest may write to, for monitors that have no snapshots that are thrown away."""
    copy = [*processes.WITH_TARE, "cp", "--reflink=auto", "--sparse=always", str(disk), str(target)]
    processes.run(copy, time_limit_s=COPY_LIMIT_S).require(fix=f"free some space below {state.home()}")
    return target


def accept(
    listener: socket.socket, gone: Callable[[], bool], limit_s: float = CONNECT_LIMIT_S, monitor: str = "QEMU"
) -> socket.socket:
    """Return the agent's port, once the machine's monitor has connected it. Raises `PlatformError` when it will not."""
    deadline = until(limit_s)
    listener.settimeout(TURN_S)
    while time.monotonic() < deadline:
        try:
            return listener.accept()[0]
        except TimeoutError:
            if gone():
                fix = "see the console kept in the campaign"
                raise PlatformError(f"{monitor} ended before it connected the agent's port", fix=fix) from None
    raise PlatformError(f"{monitor} has not connected the agent's port within {stretched(limit_s):g} s")
