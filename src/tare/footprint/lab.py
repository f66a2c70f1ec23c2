"""Footprints that a host in use does not let one count: counted in a lab, and brought back into a file here.

The lab runs the same command, in it, on Debian's stock kernel, or on one that counts its lines; see docs/lab.md. It is
a host with nobody else's work on it, so that what everybody does is what tare does and the kernel by itself.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tare
from tare.campaign.host_session import image_for
from tare.campaign.order import LEAST_MEMORY
from tare.campaign.plan import make_jobs
from tare.errors import HostError, StoreError, TareError, UsageError
from tare.footprint import kmodule
from tare.footprint.lines import READINGS, completed
from tare.footprint.model import Footprint, Level
from tare.footprint.order import WORKLOADS, Order
from tare.footprint.record import numbered_after
from tare.footprint.site import PROFILE
from tare.footprint.walk import countable
from tare.lab import build, headers, kernel
from tare.lab import run as lab_run
from tare.model import Progress
from tare.outputs import check_new_campaign
from tare.session.frames import STDERR
from tare.store import open_store, read_store
from tare.workloads import registry as workloads

#: What is counted in a lab, unless one is on a host where it can be.
FLAVOUR = "kvm"
MEMORY_BYTES = 4 << 30
CPUS = 2
LINES_FLAVOUR = "lines"  # the same host, whose kernel counts its lines
LIMIT_S = 6 * 3600.0
#: With all functions counted, every look at an emulated HPET takes so long that the kernel finds itself locked up.
KERNEL = ("tsc=reliable", "clocksource=tsc", "nowatchdog")
LAB_MODULE = f"/lab/files/{kmodule.NAME}.ko"
_RESULT = "footprint.tare"
#: Starts a Docker daemon for a command; in a checkout only, which goes into the lab whole.
_DOCKER = "scripts/with_dockerd.py"


def module(progress: Progress) -> Path:
    """The module that counts functions, for the lab's kernel; built if need be. Raises `ImageError`."""
    return headers.module(build.host(FLAVOUR, progress), kmodule.SOURCE, kmodule.NAME, progress)


@dataclass(frozen=True, slots=True)
class Brought:
    """What came out of a lab: footprints, and a line for each thing that has none."""

    footprints: tuple[Footprint, ...]
    warnings: tuple[str, ...]


def count(order: Order, file: Path, progress: Progress, programs: Sequence[Path] = ()) -> Brought:
    """Have a lab count, and put the footprints into ``file``, new or there already.

    ``programs``: files of this host that are to be on PATH there. ``progress`` is told what is said there. What was
    counted until something failed is in the file. Raises `TareError`.
    """
    order.check()
    assert not order.params, "the command has no words for them"
    _check_fits(order)
    if not file.exists():
        check_new_campaign(file)
    _check_bits(order, file, progress)
    heard = _Heard(progress)
    with tempfile.TemporaryDirectory(prefix=".tare-lab-", dir=file.absolute().parent) as scratch:
        result = Path(scratch, _RESULT)
        compiled = module(progress) if order.level is Level.FUNCTIONS else None
        code = lab_run.run(_sent(order, result.parent, compiled, programs), heard, progress)
        brought = _taken_in(result, file, order.level, progress) if result.exists() else Brought((), ())
    if code != 0:
        kept = f"; {len(brought.footprints)} footprints are in {file}" if brought.footprints else ""
        raise HostError(f"counting in the lab ended with {code}{kept}: {heard.last}")
    return brought


def _check_fits(order: Order) -> None:
    """What the lab would find out once it is booted."""
    for cpu in order.cpus:
        if cpu not in range(CPUS):
            raise UsageError(
                f"CPU {cpu} is not in the lab", fix=f"give --cpus out of {','.join(map(str, range(CPUS)))}"
            )
    if not LEAST_MEMORY <= order.memory_bytes < MEMORY_BYTES:
        raise UsageError(
            f"an instance cannot have {order.memory_bytes >> 20} MiB in the lab",
            fix=f"give --memory from {LEAST_MEMORY >> 20} to less than {MEMORY_BYTES >> 20}",
        )


def _taken_in(result: Path, file: Path, level: Level, progress: Progress) -> Brought:
    """Put what came into the file. Where that fails, hours of counting are kept beside it, and the error says where."""
    try:
        if level is Level.LINES:
            _complete(result, progress)
        return bring(result, file)
    except TareError as error:
        kept = Path(tempfile.mkdtemp(prefix=f"{file.stem}-from-lab-", dir=file.absolute().parent))
        shutil.copytree(result.parent, kept, dirs_exist_ok=True)
        error.what += f"; what was counted is kept in {kept}"
        raise


class _Heard:
    """Passes on what is said in the lab, a line at a time; what it prints at the end is printed here."""

    def __init__(self, progress: Progress) -> None:
        self.last = "it said nothing"
        self._progress = progress
        self._part = b""

    def __call__(self, channel: int, data: bytes) -> None:
        if channel != STDERR:
            return
        *lines, self._part = (self._part + data).split(b"\n")
        for line in lines:
            self.last = line.decode(errors="replace").strip() or self.last
            self._progress(f"in the lab: {self.last}")


def _sent(order: Order, results: Path, compiled: Path | None, programs: Sequence[Path] = ()) -> lab_run.Order:
    argv = ["tare", "footprint", *words(order), "--here", "-o", f"/lab/out/{_RESULT}"]
    if _wants_docker(order.platforms) and Path(tare.__file__).parents[2].joinpath(_DOCKER).is_file():
        argv = ["python3", _DOCKER, *argv]
    flavour, files = (LINES_FLAVOUR, ()) if compiled is None else (FLAVOUR, (compiled,))
    if compiled is not None:
        argv = ["env", f"{kmodule.BROUGHT}={LAB_MODULE}", *argv]
    return lab_run.Order(
        argv,
        flavour,
        MEMORY_BYTES,
        CPUS,
        time_limit_s=LIMIT_S,
        files=(*files, *programs),
        results=results,
        kernel=KERNEL,
    )


def _complete(result: Path, progress: Progress) -> None:
    """Make lines of the readings that came back beside the file."""
    counting = kernel.ensure(LINES_FLAVOUR, progress)
    assert counting is not None, "that flavour has a kernel of its own"
    progress("making lines of the counters (some seconds a reading)")
    with open_store(result) as there:
        lines = completed(list(there.footprints()), result.parent / READINGS.name, counting)
        there.replace_footprints(lines)


def words(order: Order) -> list[str]:
    """The order as words of the command; where the file is, and a subnet, are matters of this host."""
    said = [word for name in order.platforms for word in ("--platform", name)]
    said += [word for name in order.workloads for word in ("--workload", name)]
    said += ["--level", order.level.value, "--repeats", str(order.repeats), "--idle", f"{order.idle_s:g}s"]
    said += ["--memory", str(order.memory_bytes >> 20)]
    if order.seed is not None:
        said += ["--seed", str(order.seed)]
    if order.cpus:
        said += ["--cpus", ",".join(map(str, order.cpus))]
    return said


def _wants_docker(platforms: Sequence[str]) -> bool:
    """The usual platforms, which are meant when none is named, have Docker among them."""
    return not platforms or any(name == "all" or name.startswith("docker") for name in platforms)


def bring(result: Path, file: Path) -> Brought:
    """Put the footprints of a file into another one, or make that of it. Raises `StoreError`."""
    with open_store(result) as there:  # for writing: that takes in what a killed writer left beside it
        found, kernel = list(there.footprints()), there.record.host["kernel"]
        warnings = tuple(event.text for event in there.events() if event.level == "warning")
    if file.exists():
        with open_store(file) as here:
            number = numbered_after(here.footprints())
            for one in found:
                here.add_footprint(number(one))
            here.add_event("info", f"footprints that came from a lab on Linux {kernel}: {len(found)}")
            for warning in warnings:
                here.add_event("warning", f"in the lab: {warning}")
    else:
        shutil.move(result, file)
    return Brought(tuple(found), warnings)


def _check_bits(order: Order, file: Path, progress: Progress) -> None:
    """Figures and footprints of one file are of the same bits."""
    if not file.exists():
        return
    jobs = make_jobs(countable(workloads.choose(order.workloads or WORKLOADS))[0], PROFILE)
    image = image_for((job.workload for job in jobs), progress)
    with read_store(file) as there:
        if there.record.image.get("hash") != image.hash:
            raise StoreError(f"{file} is of another image than what would be counted", fix="give a new file with -o")
