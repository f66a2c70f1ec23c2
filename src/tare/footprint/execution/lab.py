"""Carries out a request for footprints in a lab, for levels that a host in use does not let one count.

The request goes there as data, and is carried out there by the same function as here
(`tare.footprint.execution.counting`), on Debian's stock kernel, or on one that counts its lines; see docs/lab.md.
Nothing else runs on a lab, so that the scope "host" there is what tare and the kernel do.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import tare
from tare.campaign.execution import conduct
from tare.campaign.host_session import image_for
from tare.campaign.plan.plan import make_jobs
from tare.campaign.plan.request import MIN_MEMORY
from tare.errors import HostError, StoreError, TareError, UsageError
from tare.footprint.counters import instructions
from tare.footprint.counters.lines import READINGS, completed
from tare.footprint.exchange.record import numbered_after
from tare.footprint.exchange.request import FootprintRequest, workloads_of
from tare.footprint.exchange.result import FootprintResult
from tare.footprint.execution import wire
from tare.footprint.execution.site import PROFILE
from tare.footprint.execution.walk import Watcher, countable
from tare.footprint.kernel import kmodule
from tare.footprint_model import Footprint
from tare.host.kernel import cpulist
from tare.image import vmlinux
from tare.lab import build, exact, headers, kernel, plugin
from tare.lab import run as lab_run
from tare.lab.run import LabCommand
from tare.model import Level, Progress
from tare.outputs import check_new_campaign
from tare.platforms.parts.machines import vm
from tare.session.frames import STDERR, STDOUT
from tare.store import open_store, read_store, require_file_of
from tare.workloads import registry as workloads
from tare.workloads.base import Params, SliceWorkload

#: What is counted in a lab, unless one is on a host where it can be.
FLAVOUR = "kvm"
MEMORY_BYTES = 4 << 30
CPUS = 2
LINES_FLAVOUR = "lines"  # the same host, whose kernel counts its lines
LIMIT_S = 6 * 3600.0
#: With all functions counted, every look at an emulated HPET takes so long that the kernel finds itself locked up.
KERNEL = ("tsc=reliable", "clocksource=tsc", "nowatchdog")
LAB_MODULE = f"/lab/files/{kmodule.NAME}.ko"
#: Starts a Docker daemon for a command; in a checkout only, which goes into the lab whole.
_DOCKER = "scripts/with_dockerd.py"
_IN_THE_LAB = "in the lab: "
#: Of a machine whose instructions are counted: its folder of results, its first seed where none is given, and slices.
OUT = "out"
FIRST_SEED = 1
_SLICES: Params = {"slice_ms": 10, "rounds": 1, "warmup_ms": 2}


def module(progress: Progress) -> Path:
    """The module that counts functions, for the lab's kernel; built if need be. Raises `ImageError`."""
    return headers.module(build.host(FLAVOUR, progress), kmodule.SOURCE, kmodule.NAME, progress)


def carry_out(
    request: FootprintRequest, file: Path, watcher: Watcher, programs: Sequence[Path] = ()
) -> FootprintResult:
    """Have a lab carry out the request, and put the footprints into ``file``, which may be new.

    ``programs``: files of this host that are to be on PATH there. ``watcher`` gets the progress. What was counted
    before a failure is in the file. Raises `TareError`.
    """
    request.check()
    _check_fits(request)
    require_file_of(file, "what a lab counts comes back as one")
    if not file.exists():
        check_new_campaign(file)
    _check_bits(request, file, watcher.doing)
    if request.level is Level.INSTRUCTIONS:
        return _counted(request, file, watcher, programs)
    output = _LabOutput(watcher)
    compiled = module(watcher.doing) if request.level is Level.FUNCTIONS else None
    results = Path(tempfile.mkdtemp(prefix=".tare-lab-", dir=file.absolute().parent))
    try:
        code = lab_run.run(lab_command(request, results, compiled, programs), output, watcher.doing)
        counted = _taken_in(results, file, request.level, watcher.doing)
        answer = wire.read_answer(results)
    finally:
        shutil.rmtree(results, ignore_errors=True)
    if answer.result is None or code != 0:
        saved = f"; {len(counted)} footprints are in {file}" if counted else ""
        raise HostError(f"counting in the lab ended with {code}{saved}: {answer.error or output.last}", fix=answer.fix)
    return answer.result.model_copy(update={"footprints": counted})


def _counted(request: FootprintRequest, file: Path, watcher: Watcher, programs: Sequence[Path]) -> FootprintResult:
    """Boot a machine a repeat, each with a seed of its own for its kernel's random numbers, and count what it executes.

    What was counted before a failure is in the file. Raises `TareError`.
    """
    compiled = plugin.ensure(watcher.doing)
    host = build.host(FLAVOUR, watcher.doing)
    arguments, symbols = plugin.kernel_facts(vmlinux.ensure(host / "vmlinuz").read_bytes())
    if request.caches:
        arguments["caches"] = "1"
    first = request.seed if request.seed is not None else FIRST_SEED
    answers: list[FootprintResult] = []
    counted: list[Footprint] = []
    for repeat in range(request.repeats):
        watcher.doing(f"machine {repeat + 1} of {request.repeats}")
        output = _LabOutput(watcher)
        results = Path(tempfile.mkdtemp(prefix=".tare-lab-", dir=file.absolute().parent))
        try:
            inner = replace(request, repeats=1, seed=first + repeat, params=_short(request))
            command = replace(lab_command(inner, results / OUT, None, programs), cpus=1)
            command = replace(command, env={instructions.COUNTED: "1"})
            counted_so = exact.Counted(compiled, arguments, symbols, first + repeat, results / exact.LOG)
            code = exact.run(command, counted_so, output, watcher.doing)
            counted += _taken_in(results / OUT, file, request.level, watcher.doing)
            answer = wire.read_answer(results / OUT)
        finally:
            shutil.rmtree(results, ignore_errors=True)
        if answer.result is None or code != 0:
            saved = f"; {len(counted)} footprints are in {file}" if counted else ""
            raise HostError(
                f"counting in the lab ended with {code}{saved}: {answer.error or output.last}", fix=answer.fix
            )
        answers.append(answer.result)
    last = answers[-1]
    return last.model_copy(
        update={
            "footprints": tuple(counted),
            "missed": tuple(missed for answer in answers for missed in answer.missed),
            "warnings": tuple(warning for answer in answers for warning in answer.warnings),
        }
    )


def _short(request: FootprintRequest) -> dict[str, Params]:
    """Parameters of the workloads: counts need no long slices, as each piece of work in them is counted by itself."""
    params = dict(request.params)
    for workload in workloads.choose(workloads_of(request)):
        if isinstance(workload, SliceWorkload):
            params.setdefault(workload.name, {**workload.profiles[PROFILE], **_SLICES})
    return params


def _check_fits(request: FootprintRequest) -> None:
    """Raise `UsageError` for what does not fit into a lab, before it is booted."""
    emulated = [platform.name for platform in conduct.platforms_for(request.platforms) if vm.is_emulated(platform.name)]
    if request.level is Level.INSTRUCTIONS and emulated:
        raise UsageError(
            f"{emulated[0]} is not counted: its guest runs in an emulator, whose own work the figures would be",
            fix="name platforms; the machine has a /dev/kvm, and tells what a guest of it executes (qemu, gvisor-kvm)",
        )
    cpus = range(1 if request.level is Level.INSTRUCTIONS else CPUS)
    for cpu in request.cpus:
        if cpu not in cpus:
            raise UsageError(f"CPU {cpu} is not in the lab", fix=f"give --cpus out of {cpulist.written(cpus)}")
    if not MIN_MEMORY <= request.memory_bytes < MEMORY_BYTES:
        raise UsageError(
            f"an instance cannot have {request.memory_bytes >> 20} MiB in the lab",
            fix=f"give --memory from {MIN_MEMORY >> 20} to less than {MEMORY_BYTES >> 20}",
        )


def lab_command(
    request: FootprintRequest, results: Path, compiled: Path | None, programs: Sequence[Path] = ()
) -> LabCommand:
    """The command that carries out any request, which it reads. ``compiled``: the module that counts functions."""
    argv = ["python3", "-P", "-m", "tare.footprint", str(lab_run.OUT)]
    if _wants_docker(request.platforms) and Path(tare.__file__).parents[2].joinpath(_DOCKER).is_file():
        argv = ["python3", _DOCKER, *argv]
    return LabCommand(
        argv,
        LINES_FLAVOUR if request.level is Level.LINES else FLAVOUR,
        MEMORY_BYTES,
        CPUS,
        time_limit_s=LIMIT_S,
        files=programs if compiled is None else (compiled, *programs),
        results=results,
        kernel=KERNEL,
        env={} if compiled is None else {kmodule.BROUGHT: LAB_MODULE},
        stdin=wire.packed(request),
    )


def _wants_docker(platforms: Sequence[str]) -> bool:
    """Whether Docker's platforms take part: by name, or since none is named and they are among the usual ones."""
    return not platforms or any(name == "all" or name.startswith("docker") for name in platforms)


class _LabOutput:
    """Passes on the lab's output: progress as data on standard output, lines of text on standard error."""

    def __init__(self, watcher: Watcher) -> None:
        self.last = "it said nothing"  # for a lab that ended without an answer
        self._watcher = watcher
        self._parts = {STDOUT: b"", STDERR: b""}

    def __call__(self, channel: int, data: bytes) -> None:
        *lines, self._parts[channel] = (self._parts[channel] + data).split(b"\n")
        for line in lines:
            self._hear(channel, line.decode(errors="replace").strip())

    def _hear(self, channel: int, line: str) -> None:
        if not line or (channel == STDOUT and wire.pass_on(line, self._watcher, _IN_THE_LAB)):
            return
        self.last = line
        self._watcher.doing(f"{_IN_THE_LAB}{line}")


def _taken_in(results: Path, file: Path, level: Level, progress: Progress) -> tuple[Footprint, ...]:
    """Put the lab's footprints into the file. Where that fails they are kept beside it, and the error says where."""
    campaign = results / wire.CAMPAIGN
    if not campaign.exists():
        return ()
    try:
        if level is Level.LINES:
            _complete(campaign, progress)
        elif level is Level.INSTRUCTIONS:
            with open_store(campaign) as store:
                log = results.parent / exact.LOG
                store.replace_footprints(instructions.completed(list(store.footprints()), log))
        return bring(campaign, file)
    except TareError as error:
        folder = Path(tempfile.mkdtemp(prefix=f"{file.stem}-from-lab-", dir=file.absolute().parent))
        results.rename(folder)  # as it is: nothing is copied, and no link is followed
        error.what += f"; what was counted is kept in {folder}"
        raise


def _complete(result: Path, progress: Progress) -> None:
    """Convert the readings of counters that came back from the lab into lines, in its file."""
    counting = kernel.ensure(LINES_FLAVOUR, progress)
    assert counting is not None, "that flavour has a kernel of its own"
    progress("making lines of the counters (some seconds a reading)")
    with open_store(result) as store:
        lines = completed(list(store.footprints()), result.parent / READINGS.name, counting)
        store.replace_footprints(lines)


def bring(result: Path, file: Path) -> tuple[Footprint, ...]:
    """Put the footprints of a file into another one, or move it there if there is none. Raises `StoreError`."""
    with open_store(result) as result_store:  # for writing: that takes in what a killed writer left beside it
        counted, kernel = list(result_store.footprints()), result_store.record.host["kernel"]
        warnings = tuple(event.text for event in result_store.events() if event.level == "warning")
    if file.exists():
        with open_store(file) as store:
            number = numbered_after(store.footprints())
            counted = [number(footprint) for footprint in counted]
            for footprint in counted:
                store.add_footprint(footprint)
            store.add_event("info", f"footprints that came from a lab on Linux {kernel}: {len(counted)}")
            for warning in warnings:
                store.add_event("warning", f"in the lab: {warning}")
    else:
        shutil.move(result, file)
    return tuple(counted)


def _check_bits(request: FootprintRequest, file: Path, progress: Progress) -> None:
    """Raise `StoreError` where the file's campaign has another image than would be counted."""
    if not file.exists():
        return
    jobs = make_jobs(countable(workloads.choose(workloads_of(request)))[0], PROFILE)
    bare = request.level is Level.INSTRUCTIONS  # as `tare.footprint.execution.counting` has it
    image = image_for((job.workload for job in jobs), progress, bare=bare)
    with read_store(file) as store:
        if store.record.image.get("hash") != image.hash:
            raise StoreError(f"{file} is of another image than what would be counted", fix="give a new file with -o")
