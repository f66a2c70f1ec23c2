"""Runs the trials of a block: each gets its row, even where a platform, a workload or a guest fails."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from tare.campaign.execution.circumstances import TrialClock
from tare.campaign.execution.cold import drop_start_files
from tare.campaign.execution.density import ApartResult
from tare.campaign.execution.faults import Faults
from tare.campaign.execution.outages import Outages
from tare.campaign.execution.own_instances import run_apart
from tare.campaign.execution.runs import Measured, Run, RunResults, ready, together
from tare.campaign.execution.slices import Sliced, run_slices
from tare.campaign.instances import inside_clock
from tare.campaign.instances.client import LoadClient
from tare.campaign.instances.launcher import InstanceLauncher, RunningInstance, StartOptions, stop_all
from tare.campaign.instances.pool import InstancePool
from tare.campaign.plan.campaign_plan import CampaignPlan, WorkloadJob
from tare.campaign.plan.interim import Interim
from tare.campaign.plan.schedule import BlockSchedule, Stage
from tare.campaign.telemetry.sampler import Sampler
from tare.errors import Failed, HostError, ParseError, PlatformError, SessionError, UnsupportedError, attempt
from tare.host.filesystems import roots, volumes
from tare.model import NOT_SEEN, Arm, ClockFacts, Mode, Sample, Status, Tick, Trial, TrialKey
from tare.platforms.base import Platform
from tare.store import Store, unreadable
from tare.workloads.apart import ApartWorkload
from tare.workloads.base import RunWorkload, SliceWorkload, StartWorkload
from tare.workloads.workload_contract import checked


class CampaignWatcher(Protocol):
    """Receives the progress of a campaign, for a terminal."""

    def block(self, number: int, spent_s: float, left_s: float | None, interim: Interim) -> None:
        """Note that a block begins; ``interim``: the trials and estimates of the blocks before it."""

    def planned(self, trials: Sequence[TrialKey]) -> None:
        """Note the trials of a block that begins, in order."""

    def doing(self, what: str) -> None:
        """Note an activity that may take a while."""

    def tick(self, tick: Tick) -> None:
        """Note a reading of the telemetry. Its thread calls this, so it must return at once."""

    def trial(self, trial: Trial) -> None:
        """Note that a trial is in the store."""

    def fault(self, line: str) -> None:
        """Report a fault in the code of a platform or workload, or a platform that is left out; once each."""


@dataclass(slots=True)
class BlockRunner:
    """Runs blocks one after the other, with fresh instances in each."""

    plan: CampaignPlan
    store: Store
    launcher: InstanceLauncher
    client: LoadClient
    watcher: CampaignWatcher
    interim: Interim
    sampler: Sampler | None
    faults: Faults
    outages: Outages
    running_instances: dict[Arm, RunningInstance] = field(default_factory=dict)
    done: set[TrialKey] = field(default_factory=set)
    _seq: Mapping[TrialKey, int] = field(default_factory=dict)

    def run(self, schedule: BlockSchedule, seq: Mapping[TrialKey, int]) -> bool:
        """Run a block's missing trials; ``seq``: their places in the whole schedule. False when none is missing.

        Raises `HostError` where the disk of the instances is full before it begins.
        """
        missing = [key for key in schedule.trials() if key not in self.done]
        if not missing:
            return False
        self._require_space()
        self._seq = seq
        self.watcher.planned(missing)
        try:
            self._start_arms(schedule, missing)
            for stage in schedule.stages:
                arms = [key.arm for key in missing if key.workload == stage.workload and key not in self.done]
                if stage.mode is Mode.RUN:
                    self._run_stage(schedule.block, stage, arms)
                elif stage.mode is Mode.SLICES:
                    self._slice_stage(schedule.block, stage, arms)
                elif stage.fresh:  # cold starts, and what starts instances of its own
                    self._stage_apart(schedule.block, stage, arms)
        finally:
            self._stop_all()
        return True

    def _require_space(self) -> None:
        """On a full disk all trials to come would fail; between blocks nothing of an instance's is on it."""
        work = self.launcher.work
        if self.outages.disk_full or roots.full(work) is not None:
            message = (
                f"the disk of {work} is full: the campaign ends before its next block, and what was measured is kept"
            )
            raise HostError(message, fix=f"free {volumes.MIN_FREE >> 30} GiB there, and inodes (df -i)")

    def _stop_all(self) -> None:
        self.watcher.doing("stopping the block's instances")
        self._end(self.running_instances.values())
        self.running_instances.clear()

    def _end(self, running_instances: Iterable[RunningInstance]) -> None:
        for failed in stop_all(running_instances):
            self.faults.keep("the end of an instance", failed)

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
            clock = self._clock()
            # A start that is measured publishes no ports; who needs one later gets an instance with them.
            published = not keys and self._has_clients
            running = attempt(partial(self._start, arm, measured=bool(keys), published=published))
            if isinstance(running, Failed):
                self._commit([self._not_started(clock, key, running) for key in keys])
            else:
                self._commit([self._started(key, running, clock) for key in keys])

    @property
    def _has_clients(self) -> bool:
        """True if some workload has a client that calls the instances of a block."""
        jobs = (job for job in self.plan.jobs if job.workload.mode is Mode.RUN)
        return any(job.has_client for job in jobs)

    def _start(self, arm: Arm, *, measured: bool, published: bool) -> RunningInstance:
        platform = self._platform(arm)
        self.outages.require(platform)
        try:
            running = self.launcher.start(platform, arm, measured=measured, terms=StartOptions(published=published))
        except Exception as error:
            if isinstance(error, PlatformError):
                self._keep_console(arm, error.console)
            self.outages.failed(platform, Failed(error))
            raise
        self.outages.started(platform)
        self.running_instances[arm] = running
        return running

    def _started(self, key: TrialKey, running: RunningInstance, clock: TrialClock) -> Trial:
        workload = self._job(key.workload).workload
        assert isinstance(workload, StartWorkload)
        assert running.marks is not None, "the start was measured"
        marks = running.marks

        def read() -> tuple[tuple[Sample, ...], int | None]:
            samples = [Sample(name, value) for name, value in workload.read(marks).items()]
            return checked(workload, self._known(key, samples)), running.cpu_ns()

        figures = attempt(read)
        if isinstance(figures, Failed):
            return self._failed(clock, key, figures)
        samples, cpu_ns = figures
        unseen = "\n".join(f"{mark}: {reason}" for mark, reason in marks.reasons.items())
        outputs = {NOT_SEEN: unseen.encode()} if unseen else {}
        return clock.ended(key, self._seq[key], samples, cpu_ns=cpu_ns, daemon_cpu_ns=None, outputs=outputs)

    def _known(self, key: TrialKey, samples: Iterable[Sample]) -> tuple[Sample, ...]:
        """Return the figures that the campaign's record names, which an older tare may have begun."""
        workload = next(entry for entry in self.store.record.workloads if entry.name == key.workload)
        names = {metric.name for metric in workload.metrics}
        return tuple(sample for sample in samples if sample.metric in names)

    def _alive(self, arm: Arm, job: WorkloadJob) -> RunningInstance:
        """Return the arm's instance of this block; a fresh one when it was lost, or has no port where a client calls.

        Raises `TareError` when it does not start.
        """
        # Without an agent, only looking at an instance shows that it has ended.
        self._drop_unusable(arm, published=job.has_client)
        running = self.running_instances.get(arm)
        fresh = job.workload.mode is Mode.RUN and getattr(job.workload, "fresh", False)
        published = job.has_client if fresh else self._has_clients
        return running if running is not None else self._start(arm, measured=False, published=published)

    def _drop_unusable(self, arm: Arm, *, published: bool = False) -> None:
        """End the arm's instance if it is lost or dirty, so that the next trial gets a fresh one.

        ``published``: the next trial's has to publish its port.
        """
        running = self.running_instances.get(arm)
        if running is None or (running.usable and (running.reachable or not published)):
            return
        del self.running_instances[arm]
        if running.session.dead is not None:
            self._keep_console(arm, running.console())
        for failed in running.dirty:
            self.faults.keep(f"the clean-up after a trial on {arm}, which is started anew", failed)
        self._end([running])

    def _why_lost(self, arm: Arm, error: SessionError) -> str:
        """Return the reason for a lost instance: the end of the platform's daemon, where that is the cause."""
        daemon_failure = attempt(self._platform(arm).daemon_failure)
        if daemon_failure is None or isinstance(daemon_failure, Failed):
            return str(error)
        return str(PlatformError(f"{daemon_failure.what}: {error.what}", fix=daemon_failure.fix))

    def _keep_console(self, arm: Arm, console: bytes) -> None:
        if console:
            self.store.add_attachment(f"console of {arm}", console)

    # Runs

    def _run_stage(self, block: int, stage: Stage, arms: Sequence[Arm]) -> None:
        job = self._job(stage.workload)
        if stage.rounds:
            self.watcher.doing(f"{stage.workload} on all in turn")
            self._commit(self._run_rounds(job, block, arms, stage.rounds))
            return
        for arm in arms:
            if stage.fresh:
                self._stop_all()
            self.watcher.doing(f"{stage.workload} on {arm}")
            self._commit(self._run_rounds(job, block, [arm], [[arm]]))

    def _run_rounds(
        self, job: WorkloadJob, block: int, arms: Sequence[Arm], rounds: Sequence[Sequence[Arm]]
    ) -> list[Trial]:
        """One run of each arm in each round. After a failed run an arm has no more runs, and a failed trial."""
        keys = {arm: TrialKey(block, job.workload.name, arm) for arm in arms}
        ended: dict[Arm, Trial] = {}
        with contextlib.ExitStack() as cleaning:
            clock, ready_to_run = self._prepare(job, keys, ended, cleaning)
            runs: dict[Arm, list[Measured]] = {arm: [] for arm in ready_to_run}
            for arm in (arm for order in rounds for arm in order if arm in runs):
                if arm in ended or (
                    runs[arm] and not self.running_instances[arm].usable
                ):  # an instance that is not usable has no more rounds
                    continue
                measured = attempt(partial(_run_once, job, ready_to_run[arm]))
                if isinstance(measured, Failed):
                    ended[arm] = self._failed(clock, keys[arm], measured)
                else:
                    runs[arm].append(measured)
        for arm in arms:
            self._drop_unusable(arm)
        return [ended[arm] if arm in ended else self._ran(clock, key, runs[arm]) for arm, key in keys.items()]

    def _prepare(
        self, job: WorkloadJob, keys: Mapping[Arm, TrialKey], ended: dict[Arm, Trial], cleaning: contextlib.ExitStack
    ) -> tuple[TrialClock, dict[Arm, Run]]:
        """Prepare the workload in each arm's instance; the trials of arms where that fails are added to ``ended``.

        All missing instances are started first, so that none starts while trials run.
        """
        workload = job.workload
        assert isinstance(workload, RunWorkload)
        clock = self._clock()
        running_instances: dict[Arm, RunningInstance] = {}
        for arm, key in keys.items():
            running = attempt(partial(self._alive, arm, job))
            if isinstance(running, Failed):
                ended[arm] = self._not_started(clock, key, running)
            else:
                running_instances[arm] = running
        clock = self._clock()
        prepared: dict[Arm, Run] = {}
        for arm, running in running_instances.items():
            run = attempt(partial(cleaning.enter_context, ready(workload, job.params, running, self.client)))
            if isinstance(run, Failed):
                ended[arm] = self._failed(clock, keys[arm], run)
            else:
                prepared[arm] = run
        return clock, prepared

    def _ran(self, clock: TrialClock, key: TrialKey, runs: Sequence[Measured]) -> Trial:
        return self._worked(clock, key, together(runs))

    def _worked(self, clock: TrialClock, key: TrialKey, result: RunResults | ApartResult) -> Trial:
        trial = clock.ended(
            key,
            self._seq[key],
            self._known(key, result.samples),
            cpu_ns=result.cpu_ns,
            daemon_cpu_ns=result.daemon_cpu_ns,
            outputs=result.outputs,
        )
        return self._timed(trial, result.clock)

    def _timed(self, trial: Trial, clock: ClockFacts | None) -> Trial:
        """Return the trial with the clock inside that timed it.

        Failed, with its figures, where that clock was wrong.
        """
        trial = replace(trial, clock=clock)
        wrong = inside_clock.why_wrong(clock, self._job(trial.key.workload).margin)
        return trial if wrong is None else replace(trial, status=Status.FAILED, reason=wrong)

    # With instances of their own

    def _stage_apart(self, block: int, stage: Stage, arms: Sequence[Arm]) -> None:
        job = self._job(stage.workload)
        for arm in arms:
            key = TrialKey(block, stage.workload, arm)
            self._stop_all()
            self.watcher.doing(f"{stage.workload} on {arm}")
            self._commit([self._start_cold(key) if stage.mode is Mode.START else self._run_apart(job, key)])

    def _start_cold(self, key: TrialKey) -> Trial:
        clock = self._clock()
        dropped = attempt(partial(drop_start_files, self._platform(key.arm), self.launcher.image))
        if isinstance(dropped, Failed):
            return self._failed(clock, key, dropped)
        clock = self._clock()
        running = attempt(partial(self._start, key.arm, measured=True, published=False))
        return (
            self._not_started(clock, key, running)
            if isinstance(running, Failed)
            else self._started(key, running, clock)
        )

    def _run_apart(self, job: WorkloadJob, key: TrialKey) -> Trial:
        workload = job.workload
        assert isinstance(workload, ApartWorkload)
        clock, keep = self._clock(), partial(self._keep_console, key.arm)
        warn = partial(self.faults.keep, f"the end of an instance of {key.arm}")
        pool = InstancePool(
            self._platform(key.arm),
            key.arm,
            self.launcher,
            warn,
            keep,
            published=job.has_client,
            progress=self.watcher.doing,
        )
        result = attempt(partial(run_apart, workload, job.params, pool, self.client))
        if isinstance(result, Failed):
            if isinstance(result.error, PlatformError):
                keep(result.error.console)
            return self._failed(clock, key, result)
        return self._worked(clock, key, result)

    # Slices

    def _slice_stage(self, block: int, stage: Stage, arms: Sequence[Arm]) -> None:
        if not arms:
            return
        job = self._job(stage.workload)
        assert isinstance(job.workload, SliceWorkload)
        self.watcher.doing(f"{stage.workload} on all in turn")
        clock = self._clock(stage)
        trials: list[Trial] = []
        running_instances: dict[Arm, RunningInstance] = {}
        for arm in arms:
            running = attempt(partial(self._alive, arm, job))
            if isinstance(running, Failed):
                trials.append(self._not_started(clock, TrialKey(block, stage.workload, arm), running))
            else:
                running_instances[arm] = running
        clock = self._clock(stage)
        ran = (
            attempt(partial(run_slices, job.workload, job.params, stage, running_instances, self.plan.extra))
            if running_instances
            else {}
        )
        sliced_by = dict.fromkeys(running_instances, Sliced(error=ran.error)) if isinstance(ran, Failed) else ran
        for arm, sliced in sliced_by.items():
            trials.append(self._sliced(clock, TrialKey(block, stage.workload, arm), sliced))
            self._drop_unusable(arm)
        self._commit(trials)

    def _sliced(self, clock: TrialClock, key: TrialKey, sliced: Sliced) -> Trial:
        if sliced.error is not None:
            return self._failed(clock, key, Failed(sliced.error))
        trial = clock.ended(
            key,
            self._seq[key],
            sliced.samples,
            cpu_ns=sliced.cpu_ns,
            daemon_cpu_ns=sliced.daemon_cpu_ns,
            slices=sliced.slices,
        )
        return self._timed(trial, sliced.clock)

    # Common

    def _commit(self, trials: Sequence[Trial]) -> None:
        if not trials:
            return
        trials = [_kept(trial) for trial in trials]
        ticks = self.sampler.drain() if self.sampler is not None else ()
        committed = attempt(partial(self.store.commit_trials, trials, ticks))
        if isinstance(committed, Failed):
            without = attempt(partial(self.store.commit_trials, (), ticks))
            if isinstance(without, Failed):
                self.faults.keep("the telemetry", without)
            trials = [self._commit_alone(trial) for trial in trials]
        for trial in trials:
            self.done.add(trial.key)
            self.interim.add(trial)
            self.watcher.trial(trial)

    def _commit_alone(self, trial: Trial) -> Trial:
        """Write one trial, as a failed one where it cannot be written as it is."""
        committed = attempt(partial(self.store.commit_trials, (trial,)))
        if isinstance(committed, Failed):
            self.faults.report(str(trial.key), committed)
            trial = _bare(trial, committed.reason, committed.outputs)
            self.store.commit_trials((trial,))
        return trial

    def _clock(self, stage: Stage | None = None) -> TrialClock:
        """Return a clock for the CPUs that the work is on: of slices in turn that is one."""
        resources = self.plan.resources
        in_turn = stage is not None and not stage.at_once
        return TrialClock.begin((resources.probe_cpu,) if in_turn else resources.cpus)

    def _failed(self, clock: TrialClock, key: TrialKey, failed: Failed) -> Trial:
        """Return the row of a trial that failed.

        It is unsupported where the host or the platform lacks something for it.
        """
        error = failed.error
        self.faults.report(f"{key.workload} on {key.arm}", failed)
        reason = self._why_lost(key.arm, error) if isinstance(error, SessionError) else failed.reason
        running = self.running_instances.get(key.arm)
        if running is not None and (killed := running.killed()):
            reason = f"{killed}: {reason}"
        unsupported = isinstance(error, HostError | UnsupportedError)
        status = Status.UNSUPPORTED if unsupported else Status.FAILED
        return clock.failed(key, self._seq[key], reason, status=status, outputs=failed.outputs)

    def _not_started(self, clock: TrialClock, key: TrialKey, failed: Failed) -> Trial:
        """Return the row of a trial whose instance did not start: failed, not unsupported."""
        return replace(self._failed(clock, key, failed), status=Status.FAILED)

    def _job(self, workload: str) -> WorkloadJob:
        return next(job for job in self.plan.jobs if job.workload.name == workload)

    def _platform(self, arm: Arm) -> Platform:
        return next(platform for platform in self.plan.platforms if platform.name == arm.platform)


def _run_once(job: WorkloadJob, run: Run) -> Measured:
    measured = run()
    if job.rounds and measured.outcome.series:
        raise ParseError(f"{job.workload.name} has rounds of its own, and cannot be run in rounds")
    return measured


def _kept(trial: Trial) -> Trial:
    """Return the trial, or a failed one with the reason if it has a number that no file can store."""
    problem = unreadable(trial)
    return trial if problem is None else _bare(trial, f"beyond what a file keeps: {problem}", trial.outputs)


def _bare(trial: Trial, reason: str, outputs: Mapping[str, bytes]) -> Trial:
    """Return a failed trial without figures."""
    return replace(
        trial, status=Status.FAILED, reason=reason, samples=(), slices=(), cpu_ns=None, daemon_cpu_ns=None,
        clock=None, outputs=outputs,
    )  # fmt: skip
