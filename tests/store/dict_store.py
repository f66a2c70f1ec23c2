"""A store of the plainest kind, for tests: dictionaries and lists of a process, by name, gone with it.

It shows that what is outside of `tare.store` wants a `Store` and no file, and `test_store_contract.py` that the
contract says all that is wanted of one.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, field, fields
from typing import IO

import polars as pl

from tare.errors import StoreError
from tare.footprint_model import Footprint, Surface
from tare.model import CampaignStatus, CpuTick, InstanceTick, Status, Tick, Trial, TrialKey
from tare.store import OUTPUT_CAP, RESUMED, CampaignRecord, Event, Output, Segment, Store, Telemetry
from tare.store.durations import with_turns
from tare.store.protocol import Location
from tare.store.row_rules import COLUMNS
from tare.store.segments import estimated
from tare.store.shared_copy import ShareSummary


@dataclass
class _Kept:
    record: CampaignRecord
    mark: str | None
    status: CampaignStatus = CampaignStatus.PLANNED
    schedule: list[TrialKey] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    attachments: list[tuple[str, bytes]] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    footprints: list[Footprint] = field(default_factory=list)
    surfaces: list[Surface] = field(default_factory=list)
    written: bool = False


class DictBackend:
    """Campaigns by name."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def create(self, location: Location, record: CampaignRecord, marked: Callable[[str], str] | None = None) -> Store:
        if self.exists(location):
            raise StoreError(f"{location} exists")
        text = record.model_dump_json()
        self._kept[str(location)] = _Kept(record, marked(text) if marked is not None else None, written=True)
        return DictStore(str(location), self._there(location), writes=True)

    def open(self, location: Location) -> Store:
        kept = self._there(location)
        if kept.written:
            raise StoreError(f"{location} is being written by another run")
        kept.written = True
        return DictStore(str(location), kept, writes=True)

    def exists(self, location: Location) -> bool:
        return str(location) in self._kept

    def share(self, location: Location, out: IO[bytes], **_names: Iterable[str]) -> ShareSummary:
        raise StoreError(f"{location}: no copy is made of it")

    def read(self, location: Location) -> Store:
        return DictStore(str(location), self._there(location), writes=False)

    def _there(self, location: Location) -> _Kept:
        if not self.exists(location):
            raise StoreError(f"{location} does not exist")
        return self._kept[str(location)]


class DictStore:
    """See `tare.store.protocol.Store`."""

    unknown_fields = ()

    def __init__(self, location: str, kept: _Kept, *, writes: bool) -> None:
        self.location, self.name = location, location.rpartition("/")[2]
        self.record, self.record_text, self.mark = kept.record, kept.record.model_dump_json(), kept.mark
        self._kept, self._writes = kept, writes
        self._working = False

    def __enter__(self) -> DictStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._writes:
            self._kept.written = False

    # --- writing -------------------------------------------------------------------------------------------

    def _to_write(self) -> _Kept:
        if not self._writes:
            raise StoreError(f"{self.location} is only read")
        if self._working:
            last = self._kept.segments[-1]
            self._kept.segments[-1] = Segment(last.began, time.time(), last.boot)
        return self._kept

    @contextmanager
    def working(self, boot: str | None = None) -> Iterator[None]:
        now = time.time()
        self._to_write().segments.append(Segment(now, now, boot))
        self._working = True
        try:
            yield
        finally:
            self._to_write()
            self._working = False

    def set_status(self, status: CampaignStatus) -> None:
        self._to_write().status = status

    def add_event(self, level: str, text: str) -> None:
        self._to_write().events.append(Event(time.time(), level, text))

    def add_attachment(self, name: str, data: bytes) -> None:
        self._to_write().attachments.append((name, data))

    def plan_block(self, block: int, keys: Sequence[TrialKey]) -> None:
        for key in keys:
            self._require_known(key)
            if key.block != block:
                raise StoreError(f"{key} does not belong to block {block}")
        if set(keys) & set(self._kept.schedule):
            raise StoreError(f"the schedule of block {block}: is in the file already")
        self._to_write().schedule.extend(keys)

    def commit_trials(self, trials: Sequence[Trial], telemetry: Sequence[Tick] = ()) -> None:
        kept = self._to_write()
        for trial in trials:
            self._require_whole(trial)
        kept.trials.extend(trials)
        kept.ticks.extend(telemetry)

    def _require_known(self, key: TrialKey) -> None:
        if key.arm not in self.record.all_arms() or key.workload not in {
            workload.name for workload in self.record.workloads
        }:
            raise StoreError(f"{key} is not of this campaign: its record does not name it")

    def _require_whole(self, trial: Trial) -> None:
        self._require_known(trial.key)
        label = f"trial {trial.key.workload} on {trial.key.arm} in block {trial.key.block}"
        metrics = self._metrics(trial.key.workload)
        for sample in trial.samples:
            if sample.metric not in metrics:
                raise StoreError(f"metric {sample.metric} is not in the campaign's record")
        rounds = [(sample.metric, sample.round) for sample in trial.samples]
        if trial.key in self.done() or len(set(rounds)) < len(rounds):
            raise StoreError(f"{label}: is in the file already, or has the same round twice")
        if (trial.status is Status.OK) != (trial.reason is None):
            raise StoreError(f"{label}: is not valid")

    def _metrics(self, workload: str) -> list[str]:
        return [metric.name for record in self.record.workloads if record.name == workload for metric in record.metrics]

    def add_footprint(self, footprint: Footprint) -> None:
        self._to_write().footprints.append(footprint)

    def add_surface(self, surface: Surface) -> None:
        self._to_write().surfaces.append(surface)

    # --- reading -------------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        live, self._kept = self._kept, copy.deepcopy(self._kept)
        try:
            yield
        finally:
            self._kept = live

    @property
    def status(self) -> CampaignStatus:
        return self._kept.status

    def segments(self) -> list[Segment]:
        trials = [(trial.started, trial.started + trial.wall_ns / 1e9) for trial in self._kept.trials]
        resumed = [event.at for event in self._kept.events if event.text == RESUMED]
        return list(self._kept.segments) or estimated(trials, resumed)

    def events(self) -> list[Event]:
        return list(self._kept.events)

    def attachments(self) -> list[tuple[str, bytes]]:
        return list(self._kept.attachments)

    def schedule(self) -> list[TrialKey]:
        return list(self._kept.schedule)

    def done(self) -> set[TrialKey]:
        return {trial.key for trial in self._kept.trials}

    def outputs(self, key: TrialKey) -> dict[str, Output]:
        kept = (trial.outputs for trial in self._kept.trials if trial.key == key)
        return {name: Output(data[:OUTPUT_CAP], len(data)) for outputs in kept for name, data in outputs.items()}

    def samples(self, first: int = 0, end: int | None = None) -> pl.DataFrame:
        rows = [
            (*_key(trial.key), sample.metric, sample.round, sample.value)
            for trial in self._kept.trials
            if trial.status is Status.OK and first <= trial.key.block < (math.inf if end is None else end)
            for sample in self._in_order(trial)
        ]
        return self._frame(rows, "block workload platform replica metric round value")

    def _in_order(self, trial: Trial) -> list:
        metrics = self._metrics(trial.key.workload)
        return sorted(trial.samples, key=lambda sample: (metrics.index(sample.metric), sample.round))

    def trials(self) -> pl.DataFrame:
        by_seq = sorted(self._kept.trials, key=lambda trial: trial.seq)
        clocks = [(None,) * 4 if trial.clock is None else astuple(trial.clock) for trial in by_seq]
        rows = [(*_facts(trial).values(), *clock) for trial, clock in zip(by_seq, clocks, strict=True)]
        names = f"{_TRIAL} clock_offset_ns clock_offset_error_ns clock_rate_low clock_rate_high"
        return with_turns(self._frame(rows, names), self.segments())

    def slices(self) -> pl.DataFrame:
        rows = [
            (*_key(trial.key), *asdict(turn).values())
            for trial in self._kept.trials
            for turn in sorted(trial.slices, key=lambda turn: turn.round)
        ]
        names = "block workload platform replica round position start_ns wall_ns cpu_ns daemon_cpu_ns late_ns"
        return self._frame(rows, names)

    def telemetry(self) -> Telemetry:
        host = [field.name for field in fields(Tick) if field.name not in {"cpus", "instances"}]
        numbered = list(enumerate(self._kept.ticks, 1))
        instances = " ".join(field.name for field in fields(InstanceTick) if field.name != "arm")
        return Telemetry(
            self._frame(
                [(n, *(getattr(tick, name) for name in host)) for n, tick in numbered], " ".join(["tick", *host])
            ),
            self._frame(
                [(n, *asdict(cpu).values()) for n, tick in numbered for cpu in tick.cpus],
                " ".join(["tick", *(field.name for field in fields(CpuTick))]),
            ),
            self._frame(
                [
                    (n, instance.arm.platform, instance.arm.replica, *list(asdict(instance).values())[1:])
                    for n, tick in numbered
                    for instance in tick.instances
                ],
                f"tick platform replica {instances}",
            ),
        )

    def rows(self) -> Iterator[dict[str, object]]:
        for trial in sorted(self._kept.trials, key=lambda trial: trial.seq):
            for sample in self._in_order(trial):
                yield _facts(trial) | {"metric": sample.metric, "round": sample.round, "value": sample.value}
            if not trial.samples:
                yield _facts(trial) | {"metric": None, "round": None, "value": None}

    def footprints(self) -> Iterator[Footprint]:
        yield from self._kept.footprints

    def surfaces(self) -> Iterator[Surface]:
        yield from self._kept.surfaces

    def _frame(self, rows: list[tuple], names: str) -> pl.DataFrame:
        """With names as Enums of what the record names, as a cell of a million costs a byte or four."""
        workloads = [workload.name for workload in self.record.workloads]
        enums = {
            "workload": workloads,
            "platform": [arm.platform for arm in self.record.all_arms()],
            "metric": [metric for workload in workloads for metric in self._metrics(workload)],
        }
        kinds: dict = {name: pl.Enum(list(dict.fromkeys(of))) for name, of in enums.items()} | {"replica": pl.Int8}
        schema = {name: kinds[name] if name in kinds else COLUMNS[name].kind for name in names.split()}
        return pl.DataFrame(rows, schema=schema, orient="row")


_TRIAL = "seq block workload platform replica status reason started wall_ns cpu_ns daemon_cpu_ns steal pressure load"


def _key(key: TrialKey) -> tuple[int, str, str, int]:
    return key.block, key.workload, key.arm.platform, key.arm.replica


def _facts(trial: Trial) -> dict[str, object]:
    block, workload, platform, replica = _key(trial.key)
    facts = {
        "block": block,
        "workload": workload,
        "platform": platform,
        "replica": replica,
        "status": trial.status.value,
    }
    return {name: facts[name] if name in facts else getattr(trial, name) for name in _TRIAL.split()}
