"""Lab in which a plug-in of the emulator counts every instruction, with the same result in each run on any host.

Everything that could make two runs differ is removed. The machine has one processor, a clock driven only by
instructions, no hardware random numbers, no disk, no network and no input. Its disks are memory (NVDIMMs): the host's
and the payload's are mapped files that are never written. The third holds a tar of the input, and the fourth receives a
tar of the results. Until the machine ends, only a serial line carries output.
"""

from __future__ import annotations

import io
import lzma
import os
import re
import secrets
import shlex
import shutil
import subprocess
import tarfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from tare.errors import PlatformError
from tare.features.kernel.lab import forwarded_run as lab_run
from tare.features.kernel.lab import headers, lab_build, lab_machine, payload
from tare.features.kernel.lab.forwarded_run import LabCommand
from tare.features.kernel.lab.lab_machine import MachineParts
from tare.host import cgroup, processes, state
from tare.host.kernel import pinning
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.image import guest
from tare.model import Progress, Resources
from tare.platforms.parts.machines import vm
from tare.session.frames import STDOUT
from tare.timeouts import stretched, until

#: Required alignment of a disk in memory.
ALIGN = 2 << 20
RESULTS_BYTES = 256 << 20
#: Size limit of writes to the machine's disks, which are copied in memory.
WRITTEN_BYTES = 2 << 30
#: Start of the machine's clock, which must be the same in each run.
BEGAN = "2036-01-01T00:00:00"
#: Added to `machine.LINUX`. The kernel mixes all of its arguments into its random numbers: its only source here.
WORDS = ("tsc=reliable", "clocksource=tsc", "nowatchdog")
MODULES = ("libnvdimm", "nfit", "nd_pmem", "crc32c_generic", "ext4")
_ENDED = re.compile(rb"^tare: ended with (\d+)\r?\n?$", re.MULTILINE)
_TURN_S = 0.2
#: The machine's output: read limit at once, and bytes kept for its end.
MAX_AT_ONCE, LAST_BYTES = 1 << 20, 1 << 16
MODULE_CAP = 16 << 20
LOG, SYMBOLS = "counts.log", "symbols"
#: A q35 machine's memory below the gap for devices, and the size from which memory is split at the gap.
LOW_BYTES, UNSPLIT_BYTES = 2 << 30, 0xB0000000
_START = """\
code=125
if /lab/prepare.sh {flavour}; then
    cd /lab/checkout
    env {environment} {argv} </lab/stdin
    code=$?
fi
tar -C /lab/out -cf "$1" .
sync
echo "tare: ended with $code"
sleep 1 # until the line is out
exec busybox poweroff -f
"""


@dataclass(frozen=True, slots=True)
class Counted:
    """Options of a counted machine: the plug-in with its arguments, the seed, and the place of the plug-in's log."""

    plugin: Path
    arguments: Mapping[str, str]
    symbols: str  # Of the machine's kernel: "ADDRESS NAME" a line.
    seed: int
    log: Path


@dataclass(frozen=True, slots=True)
class Exact:
    """The facts that decide the command line, with the disks in memory in the machine's order."""

    kernel: Path
    initramfs: Path
    disks: Sequence[Path]
    results: Path
    memory_bytes: int
    seed: int
    console: Path
    output: Path
    plugin: Path
    arguments: Mapping[str, str]  # For the plug-in.
    words: Sequence[str] = ()


def command(exact: Exact, home: Path) -> list[str]:
    """Return the command inside the emulator's root. ``home``: TARE_HOME, which has another path in that root."""

    def inside(path: Path) -> str:
        return lab_machine.seen_inside(path, home)

    memory: list[str] = []
    for number, disk in enumerate((*exact.disks, exact.results)):
        shared = "share=on" if disk == exact.results else "share=off,readonly=on,rom=off"
        backend = f"memory-backend-file,id=disk{number},mem-path={inside(disk)},size={disk.stat().st_size},{shared}"
        memory += ["-object", backend, "-device", f"nvdimm,id=nvdimm{number},memdev=disk{number}"]
    arguments = "".join(f",{name}={value}" for name, value in exact.arguments.items())
    words = [lab_machine.LINUX, *WORDS, f"tare.seed={exact.seed}", *exact.words]
    return [
        vm.PROGRAM,
        *("-accel", f"tcg,thread=single,tb-size={lab_machine.TRANSLATED_MIB}", "-cpu", "max,-rdrand,-rdseed"),
        *("-smp", "1", "-icount", "shift=0,sleep=off", "-rtc", f"base={BEGAN},clock=vm", "-seed", str(exact.seed)),
        *("-M", "q35,nvdimm=on,hpet=off", "-m", f"{exact.memory_bytes >> 20}M,slots=8,maxmem=64G"),
        *("-nodefaults", "-display", "none", "-no-reboot"),
        *("-serial", f"file:{inside(exact.console)}", "-serial", f"file:{inside(exact.output)}"),
        *memory,
        *("-kernel", inside(exact.kernel), "-initrd", inside(exact.initramfs)),
        *("-append", f"console=ttyS0 {' '.join(words)}"),
        *("-plugin", f"{inside(exact.plugin)}{arguments}"),
    ]


def run(lab_command: LabCommand, counted: Counted, output: lab_run.Output, progress: Progress) -> int:
    """Run a command in a counted machine, and return its exit code.

    Copies the files in the machine's /lab/out into the command's folder of results. Raises `TareError`.
    """
    lab_command.check()
    parts = lab_run.ensure(lab_command.flavour, progress)
    label = f"exact{secrets.token_hex(3)}"
    space = state.work() / label
    group = cgroup.named(f"tare-{label}")
    with CleanupStack() as owned:
        owned.own(removers.folder(space), removers.control_group(group.path))
        space.mkdir()
        room = lab_command.memory_bytes + WRITTEN_BYTES + lab_machine.MONITOR_BYTES
        group.create(Resources(tuple(sorted(pinning.usable())), room))
        exact = _laid_out(lab_command, parts, counted, space)
        progress(f"counting every instruction of a machine, seed {counted.seed}")
        process = lab_machine.start(command(exact, state.home()), parts.emulator, space, group)
        try:
            printed = _watched(process, exact.output, output, limit_s=lab_command.time_limit_s)
        finally:
            # The machine keeps no data, so it need not be shut down.
            processes.end(process)
        code = _code(printed, [exact.console, space / "qemu.log"])
        shutil.copyfile(space / LOG, counted.log)
        if lab_command.results is not None:
            lab_run.unpack(exact.results, lab_command.results, lab_command.expected)
    return code


def _laid_out(lab_command: LabCommand, parts: MachineParts, counted: Counted, space: Path) -> Exact:
    """Write everything that the machine needs into its folder."""
    disk = parts.host / "disk.ext4"
    payload_file = _aligned(parts.payload)
    initramfs, inputs, results = space / "initramfs", space / "given.tar", space / "results"
    init = resources.files("tare.features.kernel.lab").joinpath("exact.sh").read_bytes()
    modules = _modules(disk, parts.host, space / "modules")
    initramfs.write_bytes(guest.pack(init, guest.busybox_path(), modules))
    inputs.write_bytes(_given(lab_command))
    results.touch()
    os.truncate(results, RESULTS_BYTES)
    _aligned(inputs)
    (space / SYMBOLS).write_text(counted.symbols)
    files = {"log": space / LOG, "symbols": space / SYMBOLS}
    arguments = {name: lab_machine.seen_inside(file, state.home()) for name, file in files.items()}
    arguments["low"] = str(LOW_BYTES if lab_command.memory_bytes >= UNSPLIT_BYTES else UNSPLIT_BYTES)
    return Exact(
        kernel=parts.host / "vmlinuz",
        initramfs=initramfs,
        disks=(disk, payload_file, inputs),
        results=results,
        memory_bytes=lab_command.memory_bytes,
        seed=counted.seed,
        console=space / "console.log",
        output=space / "output",
        plugin=counted.plugin,
        arguments={**counted.arguments, **arguments},
        words=lab_command.kernel,
    )


def _aligned(disk: Path) -> Path:
    """Return the file, extended to the alignment of a disk in memory if needed. Its contents stay the same."""
    size = disk.stat().st_size
    if size % ALIGN:
        os.truncate(disk, size + ALIGN - size % ALIGN)
    return disk


def _modules(disk: Path, host: Path, folder: Path) -> list[Path]:
    """Extract the modules for disks in memory from the host's disk, in the order in which they load."""
    folder.mkdir()
    release, _ = headers.release(host)
    tree = f"/usr/lib/modules/{release}"

    def taken(name: str) -> bytes:
        argv = ["debugfs", "-R", f"cat {tree}/{name}", str(disk)]
        return processes.run(argv, output_cap=MODULE_CAP).require().stdout

    order = lab_build.loading_order(taken("modules.dep").decode(), MODULES)
    modules = []
    for number, name in enumerate(order):
        file = folder / f"{number:02d}-{Path(name).name.removesuffix('.xz')}"
        packed = taken(name)
        file.write_bytes(lzma.decompress(packed) if name.endswith(".xz") else packed)
        modules.append(file)
    return modules


def _given(lab_command: LabCommand) -> bytes:
    """Return a tar of the contents of /lab: tare's code, the files, the command with its standard input."""
    environment = {**lab_run.ENV, **lab_command.env, "TARE_LAB": lab_command.flavour}
    words = {
        "flavour": shlex.quote(lab_command.flavour),
        "environment": " ".join(shlex.quote(f"{name}={value}") for name, value in environment.items()),
        "argv": shlex.join(lab_command.argv),
    }
    prepare = resources.files("tare.features.kernel.lab").joinpath("prepare.sh").read_bytes()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        _add(tar, "checkout.tar", payload.code())
        _add(tar, "prepare.sh", prepare, 0o755)
        _add(tar, "start.sh", _START.format(**words).encode(), 0o755)
        _add(tar, "stdin", lab_command.stdin)
        for file in lab_command.files:
            _add(tar, f"files/{file.name}", file.read_bytes(), 0o755 if file.stat().st_mode & 0o111 else 0o644)
    return packed.getvalue()


def _add(tar: tarfile.TarFile, name: str, contents: bytes, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(contents), mode
    tar.addfile(info, io.BytesIO(contents))


def _watched(process: subprocess.Popen[bytes], file: Path, output: lab_run.Output, *, limit_s: float) -> bytes:
    """Forward the machine's output until it ends or exceeds its time. Return the last bytes. Raises `PlatformError`."""
    end = until(limit_s)
    last = b""
    place = 0
    while True:
        over = process.poll() is not None
        if file.exists():
            with file.open("rb") as printed:
                printed.seek(place)
                new = printed.read(MAX_AT_ONCE)
            place += len(new)
            last = (last + new)[-LAST_BYTES:]
            if new:
                output(STDOUT, _ENDED.sub(b"", new))
        if over:
            return last
        if time.monotonic() > end:
            raise PlatformError(f"the machine was ended at its limit of {stretched(limit_s):.0f} s", console=last)
        time.sleep(_TURN_S)


def _code(printed: bytes, logs: Sequence[Path]) -> int:
    """Return the command's exit code, from the machine's last line. Raises `PlatformError` if it is missing."""
    ended = _ENDED.search(printed)
    if ended is not None:
        return int(ended[1])
    console = b"".join(log.read_bytes()[-65536:] for log in logs if log.exists()) + printed
    lines = console.decode(errors="replace").strip().splitlines()[-3:]
    tail = " | ".join(line.strip()[:300] for line in lines) or "nothing"
    raise PlatformError(f"the machine did not get to its end; its console ends: {tail}", console=console)
