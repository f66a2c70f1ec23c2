"""One result of many hosts: each host's campaign gives one effect a figure, and a random-effects model merges these.

Nothing is pooled: a host counts once, whatever its number of blocks (`tare.estimates.random_effects`).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tare import lazily
from tare.analysis.comparisons.summaries import LeftOutCampaign, Summary, Why
from tare.analysis.refusals import NoAnswer, RefusalKind
from tare.errors import UsageError
from tare.estimates.intervals import MIN_BLOCKS, Floats, Interval
from tare.estimates.moderated import GUARD, prior_of, squeezed, unbiased_log
from tare.estimates.random_effects import (
    Between,
    Bools,
    Fit,
    Hosts,
    deviations,
    fit,
    odd_hosts,
    prediction,
    shrunk,
)
from tare.model import Design, Direction
from tare.store import CampaignRecord, MetricRecord, WorkloadRecord

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily.LazyModule("scipy.special")

#: The level of a mean's interval, and that of the prediction for a host that was not measured.
MEAN_LEVEL, PREDICTION_LEVEL = 0.95, 0.90
#: The default false-discovery rate of odd hosts.
FALSE_DISCOVERIES = 0.05
#: Number of hosts from which on the variances of a figure borrow from each other.
_MODERATED_FROM = 5
#: A value of a fact is rare that at most this share of usual hosts have.
RARE = 0.2
#: Cells of figures and hosts that are merged at a time.
_CELLS = 500_000
#: The most groups of a fact that are shown.
MAX_GROUPS = 40
#: The text of a fact that a host does not have, and of one that no record of it shows.
NONE, UNKNOWN = "none", "unknown"


@dataclass(frozen=True, slots=True)
class NoResult:
    """A host of a fleet that has no file, with the state that it was left in and the reason."""

    host: str
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class FigureKey:
    """A figure of hosts that may be merged. ``work``: the parameters and the revision that it ran with."""

    platform: str
    workload: str
    metric: str
    unit: str
    direction: Direction
    headline: bool
    work: str


@dataclass(frozen=True, slots=True)
class FleetHost:
    """A host's campaign. ``facts``: of the host and its versions, by name."""

    name: str
    file: str
    campaign: str
    created: float  # UNIX seconds
    baseline: str
    design: Design
    tare_version: str
    boots: frozenset[str]  # ids of the kernel's boots in which it was measured
    facts: Mapping[str, str]
    blocks: int  # the most that a figure of it has


@dataclass(frozen=True, slots=True)
class _Row:
    """A host's effects: ``places`` among the keys, and for each the mean log ratio, its variance and the blocks."""

    host: FleetHost
    places: NDArray[np.int32]
    means: Floats  # worse is positive
    variances: Floats
    blocks: NDArray[np.int32]
    values: Floats  # in the unit: the mean over blocks


@dataclass(slots=True)
class Gathering:
    """Hosts while they are read; of each only its effects are kept, so that 10,000 of them take little memory."""

    rows: list[_Row] = field(default_factory=list)
    keys: dict[FigureKey, int] = field(default_factory=dict)
    left_out: list[LeftOutCampaign] = field(default_factory=list)
    no_result: list[NoResult] = field(default_factory=list)

    def add(self, name: str, summary: Summary, boots: Iterable[str] = ()) -> None:
        """Add a host's campaign, under the host's name."""
        record = summary.record
        works = {
            (workload.name, metric.name): (work, workload, metric)
            for workload in record.workloads
            for work in (_work(workload),)
            for metric in workload.metrics
        }
        kept = [(names, side) for names, side in summary.sides.items() if side.logs.size >= MIN_BLOCKS]
        places = np.empty(len(kept), np.int32)
        worse = np.empty(len(kept))
        for at, ((platform, workload_name, metric_name), _) in enumerate(kept):
            work, workload, metric = works[workload_name, metric_name]
            key = _key(platform, work, workload, metric)
            places[at] = self.keys.setdefault(key, len(self.keys))
            worse[at] = 1.0 if metric.direction is Direction.LOWER else -1.0
        means, variances, blocks = _moments([side.logs for _, side in kept])
        values = np.array([math.nan if side.mean is None else side.mean for _, side in kept])
        host = FleetHost(
            name=name,
            file=summary.name,
            campaign=record.id,
            created=record.created,
            baseline=record.baseline,
            design=record.design,
            tare_version=record.tare_version,
            boots=frozenset(boots),
            facts=facts_of(record),
            blocks=int(blocks.max(initial=0)),
        )
        self.rows.append(_Row(host, places, worse * means, variances, blocks, values))


def _moments(logs: Sequence[Floats]) -> tuple[Floats, Floats, NDArray[np.int32]]:
    """Means, variances and sizes of rows, those of one length together."""
    sizes = np.array([row.size for row in logs], dtype=np.int32)
    means, variances = np.empty(sizes.size), np.empty(sizes.size)
    for size in np.unique(sizes):
        of_size = np.flatnonzero(sizes == size)
        table = np.stack([logs[at] for at in of_size.tolist()])
        means[of_size], variances[of_size] = table.mean(axis=1), table.var(axis=1, ddof=1)
    return means, variances, sizes


def _work(workload: WorkloadRecord) -> str:
    """Return the facts of a workload that must agree for its figures to be merged."""
    return json.dumps([workload.params, workload.revision], sort_keys=True)


def _key(platform: str, work: str, workload: WorkloadRecord, metric: MetricRecord) -> FigureKey:
    headline = workload.metrics[0].name == metric.name
    return FigureKey(platform, workload.name, metric.name, metric.unit, metric.direction, headline, work)


@dataclass(frozen=True, slots=True)
class HostGroup:
    """The hosts that share a value of the fact asked for."""

    value: str
    n_hosts: int
    mean: Interval  # log of how many times worse
    spread: float | None  # SD between hosts, a log
    prediction: Interval | None


@dataclass(frozen=True, slots=True)
class MergedFigure:
    """A figure over all hosts, in logs of how many times worse it is than the baseline.

    The arrays have an element a host of the fleet, NaN where the host does not have the figure. ``shrunk``: the effect
    drawn towards the mean by as much as chance makes of its distance; ``deviations``: from the other hosts, in SDs.
    """

    platform: str
    workload: str
    metric: str
    unit: str
    direction: Direction
    headline: bool
    n_hosts: int
    mean: Interval  # its ends are NaN where there is one host
    spread: float | None  # SD between hosts; None: one host
    prediction: Interval | None
    effects: Floats
    errors: Floats
    blocks: NDArray[np.int32]
    values: Floats  # the platform's figure itself, in the unit
    shrunk: Floats
    shrunk_errors: Floats
    deviations: Floats
    p: Floats
    odd: Bools
    groups: tuple[HostGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class Unlike:
    """A fact in which a host differs from most usual hosts; ``sharing`` of the ``others`` have its value too."""

    fact: str
    value: str
    usual: str
    sharing: int
    others: int


@dataclass(frozen=True, slots=True)
class SharedFact:
    """A value of a fact that most odd hosts have, and hardly any of the usual ones."""

    fact: str
    value: str
    odd: int
    of_odd: int
    usual: int
    of_usual: int


@dataclass(frozen=True, slots=True)
class Fleet:
    """All figures; odd hosts are named at a false-discovery rate of ``rate`` over the whole report."""

    baseline: str
    rate: float
    by: str | None
    hosts: tuple[FleetHost, ...]
    figures: tuple[MergedFigure, ...]
    left_out: tuple[LeftOutCampaign, ...]
    odd_places: tuple[int, ...]
    usual: Mapping[str, Mapping[str, int]]  # by fact: of the hosts that are odd in nothing, how many have which value
    no_result: tuple[NoResult, ...] = ()

    def odd(self) -> Iterator[tuple[int, list[MergedFigure]]]:
        """Each host that is odd in some figure, by its place, with those figures."""
        for place in self.odd_places:
            yield place, [figure for figure in self.figures if figure.odd[place]]

    def unlike(self, place: int) -> list[Unlike]:
        """In what an odd host differs from most hosts that are odd in nothing, the rarest value first.

        Values that more than `RARE` of those have too are left out: they are no candidates for the cause.
        """
        differences = []
        for name, value in self.hosts[place].facts.items():
            values = self.usual.get(name)
            if values is None:
                continue
            most, _ = min(values.items(), key=lambda item: (-item[1], item[0]))
            others = sum(values.values())
            if most != value and values.get(value, 0) <= RARE * others:
                differences.append(Unlike(name, value, most, values.get(value, 0), others))
        return sorted(differences, key=lambda unlike: unlike.sharing)

    def shared(self) -> list[SharedFact]:
        """Return values of at least half of the odd hosts, and of at most `RARE` of the usual; the rarest first."""
        hosts = [self.hosts[place].facts for place in self.odd_places]
        values = Counter(fact for facts in hosts for fact in facts.items())
        shared_facts = []
        for (name, value), count in values.items():
            usual = self.usual.get(name, {})
            others = sum(usual.values())
            if 2 <= count >= len(hosts) / 2 and others and usual.get(value, 0) <= RARE * others:
                shared_facts.append(SharedFact(name, value, count, len(hosts), usual.get(value, 0), others))
        return sorted(shared_facts, key=lambda fact: (fact.usual / fact.of_usual - fact.odd / fact.of_odd, fact.fact))


def facts_of(record: CampaignRecord) -> dict[str, str]:
    """Return the facts of a host by which hosts are grouped and told apart, as short texts."""
    host, cpu = record.host, record.host.get("cpu")
    cpu = cpu if isinstance(cpu, dict) else {}
    tuning = {setting.name: setting.value for setting in record.tuning or () if setting.value is not None}
    facts = {
        "cpu": _text(cpu.get("model")),
        "microcode": _text(cpu.get("microcode")),
        "threads": _text(cpu.get("threads")),
        "smt": _text(cpu.get("smt")),
        "turbo": _text(cpu.get("turbo")),
        "governor": _text(cpu.get("governors") or None),
        "memory": _gib(host.get("memory_bytes")),
        "architecture": _text(host.get("architecture")),
        "virtualization": _text(host.get("virtualised", UNKNOWN), missing=NONE),
        "container": _text(host.get("container", UNKNOWN), missing=NONE),
        "kernel": _text(host.get("kernel")),
        "distribution": _text(host.get("distribution")),
        "thp": _text(host.get("huge_pages")),
        "clock": _text(host.get("clock_source")),
        "cgroup": _text(host.get("cgroup")),
        "security": _text(host.get("security")),
        "filesystem": _text(host.get("filesystem")),
        "client": _text(None if record.client is None else record.client.name, missing=NONE),
        "tare": record.tare_version,
        **{f"tuned:{name}": _text(value) for name, value in tuning.items()},
        **{f"version:{platform.name}": platform.version for platform in record.platforms if platform.version},
    }
    mitigations = host.get("mitigations")
    if isinstance(mitigations, dict):
        facts |= {f"mitigation:{name}": _text(value) for name, value in sorted(mitigations.items())}
    return facts


#: A fact is no longer than this: a file may come from a stranger.
_MAX_TEXT = 200


def _text(value: Any, missing: str = UNKNOWN) -> str:
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    if isinstance(value, bool):
        value = "on" if value else "off"
    text = missing if value is None or value == "" else " ".join(str(value).split())
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"


def _gib(value: Any) -> str:
    """Return a memory's size to the GiB: a kernel of another version keeps a little more of it for itself."""
    return f"{round(value / 2**30)}GiB" if isinstance(value, int) and 0 < value < 2**60 else UNKNOWN


def merge(
    gathering: Gathering,
    *,
    by: str | None = None,
    rate: float = FALSE_DISCOVERIES,
    method: Between = Between.REML,
    each_file: bool = False,
) -> Fleet:
    """Merge the hosts. ``by``: a fact to group them by; ``each_file``: count one machine's files as so many hosts.

    Raises `NoAnswer` where no host is left, and `UsageError` for a fact that no host has or that has too many values.
    """
    left_out = list(gathering.left_out)
    rows = _once(gathering.rows, left_out, each_file=each_file)
    rows = _alike(rows, left_out)
    if not rows:
        raise NoAnswer(RefusalKind.NO_CAMPAIGN)
    keys = _common(rows, list(gathering.keys), left_out)
    hosts = tuple(row.host for row in rows)
    effects, variances, values, blocks = _matrices(rows, keys)
    moderated = _moderated(variances, blocks) / np.maximum(blocks, 1)
    groups = _groups(hosts, by)
    figures = tuple(
        _figures([key for key, _ in keys], Hosts.of(effects, moderated), blocks, values, groups, rate, method)
    )
    odd = np.any([figure.odd for figure in figures], axis=0)
    usual = _usual([host for host, is_odd in zip(hosts, odd, strict=True) if not is_odd])
    odd_places = tuple(np.flatnonzero(odd).tolist())
    no_result = tuple(sorted(gathering.no_result, key=lambda entry: entry.host))
    return Fleet(rows[0].host.baseline, rate, by, hosts, figures, tuple(left_out), odd_places, usual, no_result)


def _usual(hosts: Sequence[FleetHost]) -> dict[str, Counter[str]]:
    """By fact, how many of these hosts have which value."""
    names = dict.fromkeys(name for host in hosts for name in host.facts)
    return {name: Counter(host.facts.get(name, UNKNOWN) for host in hosts) for name in names}


def _once(rows: Sequence[_Row], left_out: list[LeftOutCampaign], *, each_file: bool) -> list[_Row]:
    """Each host once: of a campaign's copies the longest, of a host's campaigns the newest, of a machine one name."""
    kept: dict[str, _Row] = {}
    for row in rows:
        _keep(kept, row.host.campaign, row, Why.SAME_CAMPAIGN, left_out)
    by_name: dict[str, _Row] = {}
    for row in kept.values():
        _keep(by_name, row.host.name, row, Why.SAME_HOST, left_out)
    if each_file:
        return list(by_name.values())
    by_boot: dict[str, _Row] = {}
    kept_rows = []
    for row in sorted(by_name.values(), key=lambda row: row.host.name):
        same = next((by_boot[boot] for boot in row.host.boots if boot in by_boot), None)
        if same is not None:
            left_out.append(LeftOutCampaign(row.host.file, Why.SAME_MACHINE, same.host.name))
            continue
        by_boot |= dict.fromkeys(row.host.boots, row)
        kept_rows.append(row)
    return kept_rows


def _keep(kept: dict[str, _Row], name: str, row: _Row, why: Why, left_out: list[LeftOutCampaign]) -> None:
    """Keep the better of two rows of one name, and say what became of the other."""
    other = kept.get(name)
    if other is None:
        kept[name] = row
        return
    if why is Why.SAME_CAMPAIGN:
        best = max((other, row), key=lambda each: each.host.blocks)
    else:
        best = max((other, row), key=lambda each: (each.host.blocks >= MIN_BLOCKS, each.host.created))
    worse = row if best is other else other
    kept[name] = best
    left_out.append(LeftOutCampaign(worse.host.file, why, best.host.file))


def _alike(rows: Sequence[_Row], left_out: list[LeftOutCampaign]) -> list[_Row]:
    """Return the hosts with blocks enough and with the baseline that most of them have."""
    usable = []
    for row in rows:
        if row.host.design is Design.SEQUENTIAL:
            left_out.append(LeftOutCampaign(row.host.file, Why.SEQUENTIAL))
        elif not row.places.size:
            left_out.append(LeftOutCampaign(row.host.file, Why.TOO_FEW_BLOCKS))
        else:
            usable.append(row)
    if not usable:
        return []
    baseline = _most(row.host.baseline for row in usable)
    kept = [row for row in usable if row.host.baseline == baseline]
    left_out += [
        LeftOutCampaign(row.host.file, Why.BASELINE, row.host.baseline)
        for row in usable
        if row.host.baseline != baseline
    ]
    return kept


def _most(values: Iterable[str]) -> str:
    """Return the most common one; of equally common ones the first by the alphabet."""
    return min(Counter(values).items(), key=lambda item: (-item[1], item[0]))[0]


def _common(
    rows: Sequence[_Row], keys: Sequence[FigureKey], left_out: list[LeftOutCampaign]
) -> list[tuple[FigureKey, int]]:
    """Return the figures that are merged, with their places: of each workload the work that most hosts did."""
    counts = np.zeros(len(keys), dtype=np.int64)
    for row in rows:
        counts[row.places] += 1
    best: dict[tuple[str, str, str], int] = {}
    for place, key in enumerate(keys):
        name = (key.platform, key.workload, key.metric)
        if counts[place] and (name not in best or counts[place] > counts[best[name]]):
            best[name] = place
    chosen = set(best.values())
    other = np.array([place not in chosen for place in range(len(keys))], dtype=np.bool_)
    for row in rows:
        others = dict.fromkeys(keys[place].workload for place in row.places[other[row.places]])
        if others:
            left_out.append(LeftOutCampaign(row.host.file, Why.WORK, ", ".join(others)))
    return [(keys[place], place) for place in sorted(chosen)]


def _matrices(
    rows: Sequence[_Row], keys: Sequence[tuple[FigureKey, int]]
) -> tuple[Floats, Floats, Floats, NDArray[np.int32]]:
    """Effects, variances of a block, values and blocks: a row a figure, a column a host; NaN where there is none."""
    most = max((place for _, place in keys), default=-1) + 1
    most = max(most, max((int(row.places.max()) + 1 for row in rows if row.places.size), default=0))
    to_row = np.full(most, -1, dtype=np.int64)
    to_row[[place for _, place in keys]] = np.arange(len(keys))
    effects, variances, values = (np.full((len(keys), len(rows)), np.nan) for _ in range(3))
    blocks = np.zeros((len(keys), len(rows)), dtype=np.int32)
    for column, row in enumerate(rows):
        target = to_row[row.places]
        merged = target >= 0
        effects[target[merged], column] = row.means[merged]
        variances[target[merged], column] = row.variances[merged]
        values[target[merged], column] = row.values[merged]
        blocks[target[merged], column] = row.blocks[merged]
    return effects, variances, values, blocks


def _moderated(variances: Floats, blocks: NDArray[np.int32]) -> Floats:
    """Variances of a block, each drawn towards those of the same figure on other hosts (`tare.estimates.moderated`)."""
    drawn = variances.copy()
    for at, (row, counts) in enumerate(zip(variances, blocks, strict=True)):
        usable = np.isfinite(row) & (row > 0)
        if usable.sum() < _MODERATED_FROM:
            continue
        own, dfs = row[usable], counts[usable] - 1.0
        logs = unbiased_log(own, dfs)
        beyond_chance = float(logs.var(ddof=1)) - float(special.polygamma(1, dfs / 2).mean())
        prior, prior_df = prior_of(np.array([float(logs.mean())]), np.array([beyond_chance]))
        fits = special.fdtrc(dfs, prior_df, own / prior) >= GUARD
        drawn[at, usable] = np.where(fits, squeezed(own, dfs, prior, prior_df), own)
    return drawn


def _groups(hosts: Sequence[FleetHost], by: str | None) -> list[tuple[str, Bools]]:
    """Return the hosts of each value of a fact; all in one group where none is asked for."""
    if by is None:
        return [("", np.ones(len(hosts), dtype=np.bool_))]
    known = sorted({name for host in hosts for name in host.facts})
    if by not in known:
        shown = ", ".join(name for name in known if ":" not in name)
        raise UsageError(f"no host has a fact {by!r}", fix=f"group by one of: {shown}")
    values = [host.facts.get(by, UNKNOWN) for host in hosts]
    ordered = sorted(Counter(values).items(), key=lambda item: (-item[1], item[0]))
    if len(ordered) > MAX_GROUPS:
        raise UsageError(
            f"the hosts have {len(ordered):,} values of {by}, and {MAX_GROUPS} groups are shown",
            fix="group by another fact",
        )
    return [(value, np.array([each == value for each in values])) for value, _ in ordered]


@dataclass(frozen=True, slots=True)
class _Merged:
    """Some figures merged, a row each."""

    model: Fit
    predicted: tuple[Floats, Floats]
    shrunk: tuple[Floats, Floats]
    deviations: Floats
    p: Floats
    groups: list[tuple[HostGroup, ...]]


def _figures(
    keys: Sequence[FigureKey],
    hosts: Hosts,
    blocks: NDArray[np.int32],
    values: Floats,
    groups: Sequence[tuple[str, Bools]],
    rate: float,
    method: Between,
) -> Iterator[MergedFigure]:
    """Merge some figures at a time, which bounds memory; odd hosts are found over all of them."""
    size = max(1, _CELLS // max(1, hosts.y.shape[1]))
    parts = [
        (start, _merged(hosts.rows(start, start + size), groups, rate, method)) for start in range(0, len(keys), size)
    ]
    odd = odd_hosts(np.concatenate([part.p for _, part in parts]), rate)
    for start, part in parts:
        lows, highs = part.model.interval(MEAN_LEVEL)
        for at, key in enumerate(keys[start : start + size]):
            mean, row = float(part.model.mean[at]), start + at
            yield MergedFigure(
                platform=key.platform,
                workload=key.workload,
                metric=key.metric,
                unit=key.unit,
                direction=key.direction,
                headline=key.headline,
                n_hosts=int(part.model.count[at]),
                mean=Interval(mean, float(lows[at]), float(highs[at])),
                spread=_spread(float(part.model.tau2[at])),
                prediction=_interval(mean, float(part.predicted[0][at]), float(part.predicted[1][at])),
                effects=np.where(hosts.has[row], hosts.y[row], np.nan),
                errors=np.where(hosts.has[row], np.sqrt(hosts.v[row]), np.nan),
                blocks=blocks[row],
                values=values[row],
                shrunk=part.shrunk[0][at],
                shrunk_errors=part.shrunk[1][at],
                deviations=part.deviations[at],
                p=part.p[at],
                odd=odd[row],
                groups=part.groups[at],
            )


def _merged(hosts: Hosts, groups: Sequence[tuple[str, Bools]], rate: float, method: Between) -> _Merged:
    model = fit(hosts, method)
    grouped: list[tuple[HostGroup, ...]] = [() for _ in range(hosts.y.shape[0])]
    if len(groups) > 1 or groups[0][0]:
        grouped = _grouped(hosts, groups, method)
    return _Merged(
        model,
        prediction(hosts, PREDICTION_LEVEL),
        shrunk(hosts, model),
        *_deviations(hosts, [members for _, members in groups], rate),
        grouped,
    )


def _deviations(hosts: Hosts, groups: Sequence[Bools], rate: float) -> tuple[Floats, Floats]:
    """Return each host's distance from the others of its group, with the p-value."""
    far, p = np.full(hosts.y.shape, np.nan), np.full(hosts.y.shape, np.nan)
    for members in groups:
        of_group = deviations(hosts.only(members), rate)
        far, p = (np.where(members, own, kept) for own, kept in zip(of_group, (far, p), strict=True))
    return far, p


def _grouped(hosts: Hosts, groups: Sequence[tuple[str, Bools]], method: Between) -> list[tuple[HostGroup, ...]]:
    """Return the groups of each figure that have the figure."""
    of_figures: list[list[HostGroup]] = [[] for _ in range(hosts.y.shape[0])]
    for value, members in groups:
        own = hosts.only(members)
        model = fit(own, method)
        lows, highs = model.interval(MEAN_LEVEL)
        predicted = prediction(own, PREDICTION_LEVEL)
        for at, figure_groups in enumerate(of_figures):
            if model.count[at]:
                mean = float(model.mean[at])
                figure_groups.append(
                    HostGroup(
                        value,
                        int(model.count[at]),
                        Interval(mean, float(lows[at]), float(highs[at])),
                        _spread(float(model.tau2[at])),
                        _interval(mean, float(predicted[0][at]), float(predicted[1][at])),
                    )
                )
    return [tuple(figure_groups) for figure_groups in of_figures]


def _spread(tau2: float) -> float | None:
    return math.sqrt(tau2) if math.isfinite(tau2) else None


def _interval(point: float, low: float, high: float) -> Interval | None:
    return Interval(point, low, high) if math.isfinite(low) and math.isfinite(high) else None
