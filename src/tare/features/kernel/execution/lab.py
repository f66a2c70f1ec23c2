"""Execution of footprint requests in a lab, for levels that a host in use cannot count.

The request is sent to the lab as data, and carried out there by the same function as here
(`tare.features.kernel.execution.counting`). The lab runs Debian's stock kernel, or a kernel that counts its lines; see
docs/lab.md. Nothing else runs in a lab, so the scope "host" there holds only tare and the kernel.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import tare
from tare.campaign.execution import provenance, run_campaign
from tare.campaign.host_session import image_for
from tare.campaign.plan.campaign_plan import make_jobs
from tare.campaign.plan.campaign_request import MIN_MEMORY
from tare.errors import HostError, StoreError, TareError, UsageError
from tare.features.kernel.counters import exact_counts
from tare.features.kernel.counters.source_lines import READINGS, completed
from tare.features.kernel.exchange.count_request import FootprintRequest, workloads_of
from tare.features.kernel.exchange.repeats import numbered_after
from tare.features.kernel.exchange.result import FootprintResult
from tare.features.kernel.execution import wire
from tare.features.kernel.execution.count_setup import PROFILE
from tare.features.kernel.execution.walk import WalkWatcher, countable
from tare.features.kernel.lab import exact, headers, kernel, lab_build, plugin
from tare.features.kernel.lab import forwarded_run as lab_run
from tare.features.kernel.lab.forwarded_run import LabCommand
from tare.features.kernel.reading import kmodule
from tare.footprint_model import Footprint
from tare.host.kernel import cpulist
from tare.image import vmlinux
from tare.model import Level, Progress
from tare.outputs import check_new_campaign
from tare.platforms.parts.machines import vm
from tare.session.frames import STDERR, STDOUT
from tare.store import MAX_LOG_BYTES, Store, create_store, log_of, open_store, read_store, require_file_of
from tare.workloads import workload_registry as workloads
from tare.workloads.base import Params, SliceWorkload

#: Default flavour of the lab.
FLAVOUR = "kvm"
MEMORY_BYTES = 4 << 30
CPUS = 2
LINES_FLAVOUR = "lines"  # The same host, with a kernel that counts its lines.
LIMIT_S = 6 * 3600.0
#: Reading an emulated HPET while all functions are counted is so slow that the kernel would report a lockup.
KERNEL = ("tsc=reliable", "clocksource=tsc", "nowatchdog")
LAB_MODULE = f"/lab/files/{kmodule.NAME}.ko"
#: Starts a Docker daemon for a command. Only in a checkout, which goes into the lab as a whole.
_DOCKER = "scripts/with_dockerd.py"
_IN_THE_LAB = "in the lab: "
#: For a machine whose instructions are counted: its folder of results, its default first seed, and its slices.
OUT = "out"
FIRST_SEED = 1
#: Files accepted from a lab, by name, with a limit in bytes. A lab may run hostile code, and SQLite obeys files that
#: lie beside its own.
_EXPECTED = {
    wire.CAMPAIGN: 8 << 30,
    log_of(Path(wire.CAMPAIGN)).name: MAX_LOG_BYTES,
    wire.ANSWER: wire.MAX_ANSWER_BYTES,
    f"{READINGS.name}/*.tar.gz": 1 << 30,
}
_SLICES: Params = {"slice_ms": 10, "rounds": 1, "long_rounds": 0, "warmup_ms": 2}


def module(progress: Progress) -> Path:
    """Return the module that counts functions in the lab's kernel. Build it if it is missing. Raises `ImageError`."""
    return headers.module(lab_build.host(FLAVOUR, progress), kmodule.SOURCE, kmodule.NAME, progress)


def carry_out(
    request: FootprintRequest, file: Path, watcher: WalkWatcher, programs: Sequence[Path] = (), agreed: str = ""
) -> FootprintResult:
    """Carry out the request in a lab, and store the footprints in ``file``, which may be new.

    ``programs``: files of this host to add to PATH there. ``watcher`` gets the progress. ``agreed``: see
    `tare.campaign.execution.provenance.require_added`. After a failure, the file holds what was counted before. Raises
    `TareError`.
    """
    request.check()
    _check_fits(request)
    require_file_of(file, "what a lab counts comes back as one")
    if not file.exists():
        check_new_campaign(file)
    _check_bits(request, file, watcher.doing)
    if request.level is Level.INSTRUCTIONS:
        return _counted(request, file, watcher, programs, agreed)
    output = _LabOutput(watcher)
    compiled = module(watcher.doing) if request.level is Level.FUNCTIONS else None
    results = Path(tempfile.mkdtemp(prefix=".tare-lab-", dir=file.absolute().parent))
    try:
        code = lab_run.run(lab_command(request, results, compiled, programs), output, watcher.doing)
        counted = _taken_in(results, file, request.level, agreed, watcher.doing)
        answer = wire.read_answer(results)
    finally:
        shutil.rmtree(results, ignore_errors=True)
    if answer.result is None or code != 0:
        saved = f"; {len(counted)} footprints are in {file}" if counted else ""
        raise HostError(f"counting in the lab ended with {code}{saved}: {answer.error or output.last}", fix=answer.fix)
    return answer.result.model_copy(update={"footprints": counted})


def _counted(
    request: FootprintRequest, file: Path, watcher: WalkWatcher, programs: Sequence[Path], agreed: str
) -> FootprintResult:
    """Boot one machine for each repeat, each with its own random seed for the kernel, and count what it executes.

    After a failure, the file holds what was counted before. Raises `TareError`.
    """
    compiled = plugin.ensure(watcher.doing)
    host = lab_build.host(FLAVOUR, watcher.doing)
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
            command = replace(command, env={exact_counts.COUNTED: "1"})
            counted_so = exact.Counted(compiled, arguments, symbols, first + repeat, results / exact.LOG)
            code = exact.run(command, counted_so, output, watcher.doing)
            counted += _taken_in(results / OUT, file, request.level, agreed, watcher.doing)
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
    """Return workload parameters with short slices: each piece of work is counted by itself."""
    params = dict(request.params)
    for workload in workloads.choose(workloads_of(request)):
        if isinstance(workload, SliceWorkload):
            own = workload.profiles[PROFILE]
            params.setdefault(workload.name, {key: _SLICES.get(key, value) for key, value in own.items()})
    return params


def _check_fits(request: FootprintRequest) -> None:
    """Raise `UsageError` for a request that a lab cannot carry out, before it boots."""
    emulated = [
        platform.name for platform in run_campaign.platforms_for(request.platforms) if vm.is_emulated(platform.name)
    ]
    if request.level is Level.INSTRUCTIONS and emulated:
        raise UsageError(
            f"{emulated[0]} is not counted: its guest runs in an emulator, whose own work would be counted",
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
    """Return the lab command that reads and carries out any request. ``compiled``: the module that counts functions."""
    argv = ["python3", "-P", "-m", "tare.features.kernel", str(lab_run.OUT)]
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
        expected=_EXPECTED,
        kernel=KERNEL,
        env={} if compiled is None else {kmodule.BROUGHT: LAB_MODULE},
        stdin=wire.packed(request),
    )


def _wants_docker(platforms: Sequence[str]) -> bool:
    """Return True if Docker's platforms take part: named, or among the usual ones if no platform is named."""
    return not platforms or any(name == "all" or name.startswith("docker") for name in platforms)


class _LabOutput:
    """Forwards the lab's output: progress as data on standard output, lines of text on standard error."""

    def __init__(self, watcher: WalkWatcher) -> None:
        self.last = "it said nothing"  # The default, for a lab that ended without an answer.
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


def _taken_in(results: Path, file: Path, level: Level, agreed: str, progress: Progress) -> tuple[Footprint, ...]:
    """Store the lab's footprints in the file. On failure, keep them beside it; the error names the place."""
    campaign = results / wire.CAMPAIGN
    if not campaign.exists():
        return ()
    try:
        with read_store(campaign) as came:
            counted = _completed(list(came.footprints()), results, level, progress)
            return bring(came, counted, file, agreed)
    except TareError as error:
        folder = Path(tempfile.mkdtemp(prefix=f"{file.stem}-from-lab-", dir=file.absolute().parent))
        results.rename(folder)  # Rename the folder as it is, so that nothing is copied and no link is followed.
        error.what += f"; what was counted is kept in {folder}"
        raise


def _completed(counted: list[Footprint], results: Path, level: Level, progress: Progress) -> list[Footprint]:
    """Return the footprints with data that exists only outside the lab: source lines, or the emulator's counts."""
    if level is Level.INSTRUCTIONS:
        return list(exact_counts.completed(counted, results.parent / exact.LOG))
    if level is not Level.LINES:
        return counted
    counting = kernel.ensure(LINES_FLAVOUR, progress)
    assert counting is not None, "that flavour has a kernel of its own"
    progress("making lines of the counters (some seconds a reading)")
    return list(completed(counted, results / READINGS.name, counting))


def bring(came: Store, counted: Sequence[Footprint], file: Path, agreed: str = "") -> tuple[Footprint, ...]:
    """Copy the footprints of a lab's file into one of ours, which may be new. The lab's file is only read.

    ``agreed``: see `tare.campaign.execution.provenance.require_added`. Raises `StoreError`.
    """
    if not file.exists():
        return _into_new(came, counted, file)
    with open_store(file) as store:
        provenance.require_added(store, agreed)
        number = numbered_after(store.footprints())
        counted = [number(footprint) for footprint in counted]
        for footprint in counted:
            store.add_footprint(footprint)
        kernel = came.record.host.get("kernel", "of an unknown version")
        store.add_event("info", f"footprints that came from a lab on Linux {kernel}: {len(counted)}")
        for warning in (event.text for event in came.events() if event.level == "warning"):
            store.add_event("warning", f"in the lab: {warning}")
    return tuple(counted)


def _into_new(came: Store, counted: Sequence[Footprint], file: Path) -> tuple[Footprint, ...]:
    with create_store(file, came.record, provenance.mark_of_lab) as store:
        for footprint in counted:
            store.add_footprint(footprint)
        for event in came.events():
            store.add_event(event.level, event.text)
        for name, data in came.attachments():
            store.add_attachment(name, data)
        store.set_status(came.status)
    return tuple(counted)


def _check_bits(request: FootprintRequest, file: Path, progress: Progress) -> None:
    """Raise `StoreError` if the file's campaign uses another image than the one to be counted."""
    if not file.exists():
        return
    jobs = make_jobs(countable(workloads.choose(workloads_of(request)))[0], PROFILE)
    bare = request.level is Level.INSTRUCTIONS  # Must agree with `tare.features.kernel.execution.counting`.
    image = image_for((job.workload for job in jobs), progress, bare=bare)
    with read_store(file) as store:
        if store.record.image.get("hash") != image.hash:
            raise StoreError(f"{file} is of another image than the one to be counted", fix="give a new file with -o")
