"""`tare calibrate`: runs campaigns whose true results are known, and shows how well they are recovered."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.analysis.calibration import injected, longer_trust, trust
from tare.analysis.refusals import NoAnswer
from tare.campaign import known_results as campaigns
from tare.campaign.execution import run_campaign
from tare.campaign.plan.interim import Interim
from tare.cli.choices import NEIGHBOURS, Load
from tare.cli.consent import agreed
from tare.cli.console import Console, emit
from tare.cli.report import to_read
from tare.errors import UsageError
from tare.host import own_namespaces, state
from tare.host.facts import machine_facts
from tare.host.tuning import load
from tare.model import Tick, Trial, TrialKey
from tare.outputs import check_new_campaign, written
from tare.report.campaign.calibration_views import (
    LATEST_CALIBRATION,
    LONGER_S,
    condition,
    injection,
    render,
)
from tare.report.model.calibration_models import CalibrationReport, ConditionReport, InjectedReport
from tare.report.sentences.numbers import span
from tare.store import read_store

#: The file of the campaign with added work.
ADDED = "added.tare"


@dataclass(frozen=True, slots=True)
class CalibrationRequest:
    """The options of one calibration."""

    comparisons: int
    under: Load
    platforms: Sequence[str]
    blocks: int  # of the part with added work; 0: that part is left out
    folder: Path | None  # None: a new one below TARE_HOME
    trusted: bool = False  # the caller vouches for existing files


def run_calibration(request: CalibrationRequest, *, as_json: bool) -> None:
    """Measure what the folder lacks, and show the results so far even if interrupted. Raises `TareError`."""
    own_namespaces.enter(state.home())
    folder = request.folder or state.home() / "calibration" / time.strftime("%Y%m%d-%H%M%S")
    console = Console(stderr=True)
    _check(request, folder, console)
    conditions: list[ConditionReport] = []
    added_work: list[InjectedReport] = []
    whole = False
    try:
        for kind in _kinds(request.under):
            try:
                _compare_baseline(folder, kind, request, console)
            finally:
                conditions += _conditions(folder, kind)
        if request.blocks:
            added_work += _added(folder, request, console)
        whole = True
    finally:
        if conditions:
            _show(_report(conditions, added_work), folder, whole=whole, as_json=as_json)
        if not whole:
            console.print(f"the file keeps all; continue: tare calibrate -o {folder}", markup=False, soft_wrap=True)


def _check(request: CalibrationRequest, folder: Path, console: Console) -> None:
    """Check platforms and output files before anything is measured. Raises `UsageError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}", fix="give another folder with -o") from error
    planned = [_file(folder, kind) for kind in _kinds(request.under)]
    if request.blocks:
        planned.append(folder / ADDED)
    for file in planned:
        if not file.exists():
            check_new_campaign(file)
    if request.blocks and not (folder / ADDED).exists():
        run_campaign.check_runs_here(request.platforms, lambda message: console.print(message, markup=False))


def _report(conditions: list[ConditionReport], added_work: list[InjectedReport]) -> CalibrationReport:
    return CalibrationReport(
        machine=machine_facts.gather().machine,
        at=time.time(),
        workload=campaigns.WORKLOAD,
        conditions=conditions,
        injected=added_work,
    )


def _show(report: CalibrationReport, folder: Path, *, whole: bool, as_json: bool) -> None:
    text = report.model_dump_json(indent=2, by_alias=True)
    if as_json:
        emit(text)
    else:
        out = to_read()
        out.print(render(report))
        out.print(f"campaigns: {folder}", markup=False, soft_wrap=True)
    if whole:
        with written(state.home() / LATEST_CALIBRATION) as file:
            file.write(text)


def _file(folder: Path, kind: Load) -> Path:
    return folder / f"{kind}.tare"


def _kinds(under: Load) -> tuple[Load, ...]:
    return (Load.QUIET, Load.LOADED) if under is Load.BOTH else (under,)


def _compare_baseline(folder: Path, kind: Load, request: CalibrationRequest, console: Console) -> None:
    """Compare the baseline with itself, until the file has all comparisons."""
    file, comparisons = _file(folder, kind), request.comparisons
    lines = ProgressLines(console, campaigns.blocks_for(comparisons))
    with load.busy(NEIGHBOURS) if kind is Load.LOADED else contextlib.nullcontext():
        if file.exists():
            console.print(f"{kind}: {file} is there", markup=False)
            _go_on(file, request, lines)
        else:
            console.print(f"{kind}: the baseline against itself, {comparisons} times", markup=False)
            campaigns.same_with_same(file, comparisons, lines)


def _conditions(folder: Path, kind: Load) -> Iterator[ConditionReport]:
    """Results of the comparisons under a load, also of an interrupted campaign; none without a complete comparison."""
    file = _file(folder, kind)
    if not file.exists():
        return
    with read_store(file) as store:
        trials = store.trials()
        if trials["block"].n_unique() < campaigns.BLOCKS:
            return
        # Time between blocks counts too, since a user waits for it; a pause before a resume does not.
        block_s = sum(segment.seconds for segment in store.segments()) / trials["block"].n_unique()
        record, samples = store.record, store.samples()
    with contextlib.suppress(NoAnswer):  # no complete comparison: arms failed, or an interrupt
        metrics = trust(record, samples, block_s, campaigns.BLOCKS)
        longer = longer_trust(record, samples, block_s, LONGER_S)
        yield from (condition(kind.value, metric, longer) for metric in metrics)


def _go_on(file: Path, request: CalibrationRequest, lines: ProgressLines) -> None:
    if not campaigns.is_whole(file):
        campaigns.go_on(file, lines, lines.warn, agreed(file, trusted=request.trusted))


def _added(folder: Path, request: CalibrationRequest, console: Console) -> list[InjectedReport]:
    file, platforms, blocks = folder / ADDED, request.platforms, request.blocks
    lines = ProgressLines(console, blocks)
    if file.exists():
        console.print(f"added work: {file} is there", markup=False)
        _go_on(file, request, lines)
    else:
        console.print(f"added work: native, {', '.join(platforms)}, {blocks} blocks", markup=False)
        campaigns.with_added_work(file, platforms, blocks, lines)
    with read_store(file) as store:
        return [
            injection(addition) for addition in injected(store.record, store.samples(), campaigns.added(store.record))
        ]


class ProgressLines:
    """Progress as lines, at most one every 20 seconds: redrawing would disturb what is calibrated."""

    EVERY_S = 20.0

    def __init__(self, console: Console, blocks: int) -> None:
        self._console = console
        self._blocks = blocks
        self._printed_at = time.monotonic()

    def block(self, number: int, spent_s: float, left_s: float | None, interim: Interim) -> None:  # noqa: ARG002
        """A block begins."""
        now = time.monotonic()
        if now - self._printed_at >= self.EVERY_S and left_s is not None:
            self._printed_at = now
            self._console.print(f"  block {number} of {self._blocks}, about {span(left_s)} left", markup=False)

    def planned(self, trials: Sequence[TrialKey]) -> None:
        """A block's trials; not printed."""

    def tick(self, tick: Tick) -> None:
        """A reading of the telemetry; not printed."""

    def doing(self, what: str) -> None:
        """An activity begins; not printed, since there are too many."""

    def warn(self, text: str) -> None:
        """Print a warning that concerns the figures."""
        self._console.print(f"  {text}", markup=False, soft_wrap=True)

    def trial(self, trial: Trial) -> None:
        """A trial is in the store."""

    def fault(self, line: str) -> None:
        """A part failed by a fault in its code, and the campaign goes on."""
        self._console.print(f"  {line}", markup=False)
