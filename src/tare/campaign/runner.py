"""Runs a campaign: block after block, each trial in the store before the next begins."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from tare.campaign.apart import run_apart
from tare.campaign.brood import Brood
from tare.campaign.clock import TrialClock
from tare.campaign.cold import drop_start_files
from tare.campaign.instances import Live, Nursery, stop_all
from tare.campaign.plan import Job, Plan
from tare.campaign.runs import Client, outputs_of, run_trial, samples_of
from tare.campaign.sampler import Sampler
from tare.campaign.schedule import BlockSchedule, Stage, schedule_block
from tare.campaign.slices import run_slices
from tare.campaign.stopping import Widths, is_look, still_wanted
from tare.errors import HostError, PlatformError, SessionError, TareError, UnsupportedError
from tare.model import Arm, Mode, Sample, Status, Trial, TrialKey
from tare.platforms.base import Platform
from tare.store.durations import block_durations, workload_seconds
from tare.store.store import Store
from tare.workloads.apart import ApartWorkload
from tare.workloads.base import RunWorkload, SliceWorkload, StartWorkload


class Watcher(Protocol):
    """Is told what goes on; for progress on a terminal."""

    def block(self, number: int, spent_s: float, left_s: float | None) -> None:
        """A block begins."""

    def doing(self, what: str) -> None:
        """Something begins that may take longer than a moment."""

    def trial(self, trial: Trial) -> None:
        """A trial is in the store."""


@dataclass(slots=True)
class Runner:
    """One campaign under way."""

    plan: Plan
    store: Store
    nursery: Nursery
    client: Client
    watcher: Watcher
    widths: Widths | None = None  # how well each workload is known by now; None: nobody looks
    sampler: Sampler | None = None
    _lives: dict[Arm, Live] = field(default_factory=dict)
    _done: set[TrialKey] = field(default_factory=set)
    _seq: dict[TrialKey, int] = field(default_factory=dict)

    def run(self) -> None:
        """Go on until the plan's blocks are done, its time is over, or all is known as well as it was to be.

        Trials that are in the store stay.
        """
        if self.sampler is None:
            self._run()
            return
        try:
            with self.sampler.sampling(lambda: tuple(self._lives.values()), self.nursery.daemons):
                self._run()
        finally:
            # What was read after the last trial: the window that it ended in.
            self.store.commit_trials((), self.sampler.drain())
            if self.sampler.failed is not None:
                self.store.add_event("warning", self.sampler.failed)

    def _run(self) -> None:
        self._done = self.store.done()
        for arms in self.plan.passes:
            self._pass(arms)

    def _pass(self, arms: tuple[Arm, ...]) -> None:
        durations = self._durations(arms)
        planned = self._planned(arms)
        wanted = tuple(job.workload.name for job in self.plan.jobs)
        block = 0
        while block in planned or self.plan.more_blocks(
            block, sum(durations.values()), max(durations.values(), default=0)
        ):
            if block not in planned and is_look(block):
                before, wanted = wanted, self._look(sum(durations.values()))
                self._tell_change(block, before, wanted)
                if not wanted:
                    break
            wanted = planned.get(block, wanted)
            self._tell(arms, block, durations)
            jobs = [(job.workload, job.rounds) for job in self.plan.jobs if job.workload.name in wanted]
            plan = self.plan
            schedule = schedule_block(plan.seed, block, arms, jobs, plan.design, in_order=plan.in_order)
            if block not in planned:
                self.store.plan_block(block, schedule.trials())
            self._seq = {key: seq for seq, key in enumerate(self.store.schedule()) if key.block == block}
            began = time.monotonic()
            ran = self._run_block(schedule)
            if ran:
                durations[block] = durations.get(block, 0.0) + time.monotonic() - began
            block += 1

    def _durations(self, arms: Sequence[Arm]) -> dict[int, float]:
        """Seconds of each block of a pass so far."""
        trials = self.store.trials()
        if len(self.plan.passes) > 1:
            [arm] = arms
            trials = trials.filter((trials["platform"] == arm.platform) & (trials["replica"] == arm.replica))
        return block_durations(trials)

    def _planned(self, arms: Sequence[Arm]) -> dict[int, tuple[str, ...]]:
        """The workloads of each block of a pass that was planned before, in the plan's order."""
        there: dict[int, set[str]] = {}
        for key in self.store.schedule():
            if key.arm in arms:
                there.setdefault(key.block, set()).add(key.workload)
        names = [job.workload.name for job in self.plan.jobs]
        return {block: tuple(name for name in names if name in some) for block, some in there.items()}

    def _look(self, spent_s: float) -> tuple[str, ...]:
        """The workloads that the next blocks run; none when all are known as well as they were to be."""
        names = tuple(job.workload.name for job in self.plan.jobs)
        if self.widths is None or not self.plan.targets:
            return names
        self.watcher.doing("looking at the widths of the intervals")
        widths, seconds = self.widths(self.store), workload_seconds(self.store.trials())
        margins = {job.workload.name: job.margin for job in self.plan.jobs}
        missing = {name: widths[name].missing(target, margins[name]) for name, target in self.plan.targets.items()}
        left_s = None if self.plan.budget_s is None else self.plan.budget_s - spent_s
        chosen = still_wanted(missing, seconds, left_s)
        return tuple(name for name in names if name in chosen)

    def _tell_change(self, block: int, before: Sequence[str], wanted: Sequence[str]) -> None:
        """Keep in the file why later blocks have fewer workloads."""
        if not wanted:
            self.store.add_event("info", f"enough after {block} blocks: there is no interval left to be narrowed")
        elif before != wanted:
            self.store.add_event("info", f"after {block} blocks, what goes on: {', '.join(wanted)}")

    def _tell(self, arms: tuple[Arm, ...], block: int, durations: dict[int, float]) -> None:
        passes = self.plan.passes
        at = passes.index(arms)
        spent = sum(durations.values())
        each = spent / len(durations) if durations else None
        if self.plan.blocks is not None:
            to_come = self.plan.blocks * (len(passes) - at) - block
            self.watcher.block(at * self.plan.blocks + block, spent, None if each is None else each * to_come)
        else:
            budget = (self.plan.budget_s or 0.0) / len(passes)
            self.watcher.block(block, spent, max(0.0, budget * (len(passes) - at) - spent))

    def _run_block(self, schedule: BlockSchedule) -> bool:
        missing = [key for key in schedule.trials() if key not in self._done]
        if not missing:
            return False
        try:
            self._start_arms(schedule, missing)
            for stage in schedule.stages:
                arms = [key.arm for key in missing if key.workload == stage.workload and key not in self._done]
                if stage.mode is Mode.RUN:
                    self._run_stage(schedule.block, stage, arms)
                elif stage.mode is Mode.SLICES:
                    self._slice_stage(schedule.block, stage, arms)
                elif stage.fresh:  # cold starts, and what starts instances of its own
                    self._stage_apart(schedule.block, stage, arms)
        finally:
            self._stop_all()
        return True

    def _stop_all(self) -> None:
        self.watcher.doing("stopping the block's instances")
        for error in stop_all(self._lives.values()):
            self.store.add_event("warning", str(error))
        self._lives.clear()

    # Starts

    def _start_arms(self, schedule: BlockSchedule, missing: Sequence[TrialKey]) -> None:
        alone = {stage.workload for stage in schedule.stages if stage.fresh}
        needed = {key.arm for key in missing if key.workload not in alone}
        measuring = [stage.workload for stage in schedule.stages if stage.mode is Mode.START and not stage.fresh]
        for arm in schedule.launch_order:
            if arm not in needed:
                continue
            keys = [TrialKey(schedule.block, name, arm) for name in measuring]
            keys = [key for key in keys if key in missing]
            self.watcher.doing(f"starting {arm}")
            clock = TrialClock.begin(self.plan.resources.cpus)
            try:
                live = self._start(arm, measured=bool(keys))
            except TareError as error:
                self._commit([clock.failed(key, self._seq[key], str(error)) for key in keys])
                continue
            self._commit([self._start_trial(key, live, clock) for key in keys])

    def _start(self, arm: Arm, *, measured: bool) -> Live:
        try:
            live = self.nursery.start(self._platform(arm), arm, measured=measured)
        except PlatformError as error:
            self._keep_console(arm, error.console)
            raise
        self._lives[arm] = live
        return live

    def _start_trial(self, key: TrialKey, live: Live, clock: TrialClock) -> Trial:
        workload = self._job(key.workload).workload
        assert isinstance(workload, StartWorkload)
        assert live.marks is not None, "the start was measured"
        samples = tuple(Sample(name, value) for name, value in workload.read(live.marks).items())
        unseen = "\n".join(f"{mark}: {reason}" for mark, reason in live.marks.reasons.items())
        outputs = {"not seen": unseen.encode()} if unseen else {}
        return clock.ended(key, self._seq[key], samples, cpu_ns=live.cpu_ns(), daemon_cpu_ns=None, outputs=outputs)

    def _alive(self, arm: Arm) -> Live:
        """The arm's instance of this block; a fresh one when it died. Raises `TareError` when it does not start."""
        self._bury(arm)  # what has no agent is only seen to be gone when it is looked at
        live = self._lives.get(arm)
        return live if live is not None else self._start(arm, measured=False)

    def _bury(self, arm: Arm) -> None:
        """End an instance that is lost, so that the arm's next trial gets a fresh one. One that is not stays."""
        live = self._lives.get(arm)
        if live is not None and live.session.dead is not None:
            del self._lives[arm]
            self._keep_console(arm, live.console())
            for error in stop_all([live]):
                self.store.add_event("warning", str(error))

    def _why_lost(self, arm: Arm, error: SessionError) -> str:
        """What is said of a lost instance: the daemon's end, where that is why."""
        ailment = self._platform(arm).ailment()
        return str(PlatformError(f"{ailment.what}: {error.what}", fix=ailment.fix) if ailment else error)

    def _keep_console(self, arm: Arm, console: bytes) -> None:
        if console:
            self.store.add_attachment(f"console of {arm}", console)

    # Runs

    def _run_stage(self, block: int, stage: Stage, arms: Sequence[Arm]) -> None:
        job = self._job(stage.workload)
        for arm in arms:
            key = TrialKey(block, stage.workload, arm)
            if stage.fresh:
                self._stop_all()
            self.watcher.doing(f"{stage.workload} on {arm}")
            self._commit([self._run_one(job, key)])

    def _run_one(self, job: Job, key: TrialKey) -> Trial:
        assert isinstance(job.workload, RunWorkload)
        clock = TrialClock.begin(self.plan.resources.cpus)
        seq = self._seq[key]
        try:
            live = self._alive(key.arm)
        except TareError as error:  # whatever a start lacks, the workload is not what is unsupported
            return clock.failed(key, seq, str(error))
        clock = TrialClock.begin(self.plan.resources.cpus)
        try:
            measured = run_trial(job.workload, job.params, live, self.client)
        except (HostError, UnsupportedError) as error:
            return clock.failed(key, seq, str(error), status=Status.UNSUPPORTED, outputs=error.outputs)
        except SessionError as error:
            self._bury(key.arm)
            return clock.failed(key, seq, self._why_lost(key.arm, error))
        except TareError as error:
            return clock.failed(key, seq, str(error), outputs=error.outputs)
        samples = samples_of(measured.outcome)
        if measured.outcome.work > 0 and measured.cpu_ns is not None:
            samples.append(Sample("cpu-cost", measured.cpu_ns / measured.outcome.work))
        outputs = outputs_of(measured.results)
        return clock.ended(
            key, seq, tuple(samples), cpu_ns=measured.cpu_ns, daemon_cpu_ns=measured.daemon_cpu_ns, outputs=outputs
        )

    # With instances of their own

    def _stage_apart(self, block: int, stage: Stage, arms: Sequence[Arm]) -> None:
        job = self._job(stage.workload)
        for arm in arms:
            key = TrialKey(block, stage.workload, arm)
            self._stop_all()
            self.watcher.doing(f"{stage.workload} on {arm}")
            self._commit([self._start_cold(key) if stage.mode is Mode.START else self._run_apart(job, key)])

    def _start_cold(self, key: TrialKey) -> Trial:
        clock, seq = TrialClock.begin(self.plan.resources.cpus), self._seq[key]
        try:
            drop_start_files(self._platform(key.arm), self.nursery.image)
        except HostError as error:
            return clock.failed(key, seq, str(error), status=Status.UNSUPPORTED)
        clock = TrialClock.begin(self.plan.resources.cpus)
        try:
            live = self._start(key.arm, measured=True)
        except TareError as error:
            return clock.failed(key, seq, str(error))
        return self._start_trial(key, live, clock)

    def _run_apart(self, job: Job, key: TrialKey) -> Trial:
        assert isinstance(job.workload, ApartWorkload)
        clock, seq = TrialClock.begin(self.plan.resources.cpus), self._seq[key]
        warn, keep = partial(self.store.add_event, "warning"), partial(self._keep_console, key.arm)
        brood = Brood(self._platform(key.arm), key.arm, self.nursery, warn, keep)
        try:
            told = run_apart(job.workload, job.params, brood, self.client)
        except (HostError, UnsupportedError) as error:
            return clock.failed(key, seq, str(error), status=Status.UNSUPPORTED)
        except SessionError as error:
            return clock.failed(key, seq, self._why_lost(key.arm, error))
        except PlatformError as error:
            self._keep_console(key.arm, error.console)
            return clock.failed(key, seq, str(error))
        except TareError as error:
            return clock.failed(key, seq, str(error))
        return clock.ended(
            key, seq, told.samples, cpu_ns=told.cpu_ns, daemon_cpu_ns=told.daemon_cpu_ns, outputs=told.outputs
        )

    # Slices

    def _slice_stage(self, block: int, stage: Stage, arms: Sequence[Arm]) -> None:
        if not arms:
            return
        job = self._job(stage.workload)
        assert isinstance(job.workload, SliceWorkload)
        self.watcher.doing(f"{stage.workload} on all in turn")
        clock = TrialClock.begin(self.plan.resources.cpus)
        trials: list[Trial] = []
        lives: dict[Arm, Live] = {}
        for arm in arms:
            try:
                lives[arm] = self._alive(arm)
            except TareError as error:
                key = TrialKey(block, stage.workload, arm)
                trials.append(clock.failed(key, self._seq[key], str(error)))
        clock = TrialClock.begin(self.plan.resources.cpus)
        sliced_by = run_slices(job.workload, job.params, stage, lives, self.plan.extra) if lives else {}
        for arm, sliced in sliced_by.items():
            key = TrialKey(block, stage.workload, arm)
            if sliced.error is not None:
                why = str(sliced.error)
                if isinstance(sliced.error, SessionError):
                    self._bury(arm)
                    why = self._why_lost(arm, sliced.error)
                status = Status.UNSUPPORTED if isinstance(sliced.error, HostError | UnsupportedError) else Status.FAILED
                trials.append(clock.failed(key, self._seq[key], why, status=status))
                continue
            trials.append(
                clock.ended(
                    key,
                    self._seq[key],
                    sliced.samples,
                    cpu_ns=sliced.cpu_ns,
                    daemon_cpu_ns=sliced.daemon_cpu_ns,
                    slices=sliced.slices,
                )
            )
        self._commit(trials)

    # Common

    def _commit(self, trials: Sequence[Trial]) -> None:
        if not trials:
            return
        self.store.commit_trials(trials, self.sampler.drain() if self.sampler is not None else ())
        for trial in trials:
            self._done.add(trial.key)
            self.watcher.trial(trial)

    def _job(self, workload: str) -> Job:
        return next(job for job in self.plan.jobs if job.workload.name == workload)

    def _platform(self, arm: Arm) -> Platform:
        return next(platform for platform in self.plan.platforms if platform.name == arm.platform)
