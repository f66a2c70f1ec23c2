"""Runs a campaign: block after block, each trial in the store before the next begins."""

from __future__ import annotations

import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tare.campaign.execution.block import BlockRunner, CampaignWatcher
from tare.campaign.execution.faults import Faults
from tare.campaign.execution.outages import Outages
from tare.campaign.instances.client import LoadClient
from tare.campaign.instances.launcher import InstanceLauncher
from tare.campaign.plan.campaign_plan import CampaignPlan
from tare.campaign.plan.interim import Interim
from tare.campaign.plan.schedule import BlockSchedule, schedule_block
from tare.campaign.plan.stopping import is_look, next_workloads
from tare.campaign.telemetry.sampler import Sampler
from tare.errors import Failed, attempt
from tare.host.kernel.owner import boot_id
from tare.model import Arm, Mode, TrialKey
from tare.store import Store, block_durations, workload_seconds
from tare.workloads.base import Workload


def _planned_so(block: int, known: Container[TrialKey], workload: Workload, arm: Arm) -> bool:
    """Return True if an arm runs a workload in a block that was planned before."""
    return TrialKey(block, workload.name, arm) in known


@dataclass(slots=True)
class Runner:
    """One campaign under way."""

    plan: CampaignPlan
    store: Store
    launcher: InstanceLauncher
    client: LoadClient
    watcher: CampaignWatcher
    sampler: Sampler | None = None
    _faults: Faults = field(init=False)
    _interim: Interim = field(init=False)
    _places: dict[TrialKey, int] = field(init=False)  # of planned trials in the schedule
    _outages: Outages = field(init=False)
    _blocks: BlockRunner = field(init=False)

    def __post_init__(self) -> None:
        self._faults = Faults(self.store, self.watcher.fault)
        self._interim = Interim(self.store)
        self._places = {key: place for place, key in enumerate(self.store.schedule())}
        parts = (self.plan, self.store, self.launcher, self.client, self.watcher, self._interim, self.sampler)
        self._outages = Outages(self._faults, self.launcher, self.watcher.doing)
        self._blocks = BlockRunner(*parts, self._faults, self._outages)

    def run(self) -> None:
        """Run until the plan's blocks are done, its time is over, or all intervals are as narrow as was asked for.

        Trials that are in the store already are not run again.
        """
        with self.store.working(boot_id()):
            try:
                self._sampled()
            finally:
                if self.launcher.disk.failed is not None:
                    self._faults.keep("the watch over the host's disk", self.launcher.disk.failed)

    def _sampled(self) -> None:
        if self.sampler is None:
            self._run()
            return
        try:
            with self.sampler.sampling(lambda: tuple(self._blocks.running_instances.values()), self.launcher.daemons):
                self._run()
        finally:
            # The readings after the last trial: it ended between two of them.
            committed = attempt(partial(self.store.commit_trials, (), self.sampler.drain()))
            if isinstance(committed, Failed):
                self._faults.keep("the telemetry", committed)
            self._keep_faults_of(self.sampler)

    def _keep_faults_of(self, sampler: Sampler) -> None:
        """Say in the file what the telemetry lacks, and why."""
        if sampler.failed is not None:
            self._faults.keep("the telemetry", sampler.failed)
        for reason, dropped in sampler.dropped.items():
            what = f"the telemetry, without {dropped.count} of {sampler.readings} readings"
            if dropped.fault is not None:
                self._faults.keep(what, dropped.fault)
            else:
                self.store.add_event("warning", f"{what}: {reason}")

    def _run(self) -> None:
        self._blocks.done = self.store.done()
        for arms in self.plan.passes:
            self._pass(arms)

    def _pass(self, arms: tuple[Arm, ...]) -> None:
        durations = self._durations(arms)
        planned = self._planned(arms)
        names = tuple(job.workload.name for job in self.plan.jobs)
        block = 0
        while block in planned or self.plan.more_blocks(block, sum(durations.values()), 0.0):
            if block not in planned and (is_look(block) or block == self.plan.look_at):
                looked = attempt(partial(self._look, sum(durations.values())))
                if isinstance(looked, Failed):  # without the widths no workload has enough blocks: all go on
                    self._faults.keep("a look at the intervals", looked)
                else:
                    self._note_change(block, names, looked)
                    names = looked
                if not names:
                    break
            takes = self._expected(names, durations, planned)
            if block not in planned and not self.plan.more_blocks(block, sum(durations.values()), takes):
                break
            taking_part = self._taking_part(arms)
            if block not in planned and not taking_part:
                self.store.add_event("info", f"ended after {block} blocks: no platform is left to be compared")
                break
            # A block that was planned before is gone through as it was planned.
            block_arms, names = planned.get(block, (taking_part, names))
            self._show_progress(arms, block, durations)
            schedule = self._schedule(block, block_arms, names)
            if block not in planned:
                planned[block] = block_arms, names
                self.store.plan_block(block, schedule.trials())
                self._places |= {key: len(self._places) + at for at, key in enumerate(schedule.trials())}
            began = time.monotonic()
            if self._blocks.run(schedule, self._places):
                durations[block] = durations.get(block, 0.0) + time.monotonic() - began
            self._interim.estimates.close(block)
            block += 1

    def _schedule(self, block: int, arms: tuple[Arm, ...], names: tuple[str, ...]) -> BlockSchedule:
        """Return the schedule of a block.

        Of one that was planned before, with exactly the trials that it was planned with.
        """
        plan = self.plan
        jobs = [(job.workload, job.rounds) for job in plan.jobs if job.workload.name in names]
        known = {key for key in self._places if key.block == block and key.arm in arms}
        takes_part = partial(_planned_so, block, known) if known else plan.takes_part
        return schedule_block(plan.seed, block, arms, jobs, plan.design, in_order=plan.in_order, takes_part=takes_part)

    def _durations(self, arms: Sequence[Arm]) -> dict[int, float]:
        """Seconds of work so far, by block of a pass."""
        trials = self._interim.trials()
        if len(self.plan.passes) > 1:
            [arm] = arms
            trials = trials.filter((trials["platform"] == arm.platform) & (trials["replica"] == arm.replica))
        return block_durations(trials)

    def _expected(
        self,
        names: tuple[str, ...],
        durations: Mapping[int, float],
        planned: Mapping[int, tuple[tuple[Arm, ...], tuple[str, ...]]],
    ) -> float:
        """Seconds that a block of these workloads takes: as the longest of them so far, or as its parts took."""
        same = [seconds for block, seconds in durations.items() if block in planned and planned[block][1] == names]
        if same or not durations:
            return max(same, default=0.0)
        by_workload = workload_seconds(self._interim.trials())
        starts = {job.workload.name for job in self.plan.jobs if job.workload.mode is Mode.START}
        return sum(by_workload.get(name, 0.0) for name in {*names, *starts})

    def _taking_part(self, arms: Sequence[Arm]) -> tuple[Arm, ...]:
        """Return the arms of a pass whose platforms are not left out; none where they leave nothing to be compared."""
        remaining = tuple(arm for arm in arms if arm.platform not in self._outages.left_out)
        baseline = self.plan.baseline.name
        alone = all(arm.platform == baseline for arm in remaining) and any(arm.platform != baseline for arm in arms)
        return () if alone else remaining

    def _planned(self, arms: Sequence[Arm]) -> dict[int, tuple[tuple[Arm, ...], tuple[str, ...]]]:
        """Return the arms and workloads of each block of a pass that is already scheduled, in the plan's order."""
        keys_of: dict[int, list[TrialKey]] = {}
        for key in self._places:
            if key.arm in arms:
                keys_of.setdefault(key.block, []).append(key)
        names = [job.workload.name for job in self.plan.jobs]
        planned = {}
        for block, keys in keys_of.items():
            block_arms, workloads = {key.arm for key in keys}, {key.workload for key in keys}
            planned[block] = (
                tuple(arm for arm in arms if arm in block_arms),
                tuple(name for name in names if name in workloads),
            )
        return planned

    def _look(self, spent_s: float) -> tuple[str, ...]:
        """Return the workloads that the next blocks run; none when all intervals are as narrow as was asked for."""
        names = tuple(job.workload.name for job in self.plan.jobs)
        if not self.plan.targets:
            return names
        self.watcher.doing("looking at the widths of the intervals")
        estimates = self._interim.estimates.known(without=self._outages.left_out)
        seconds = workload_seconds(self._interim.trials())
        margins = {job.workload.name: job.margin for job in self.plan.jobs}
        left_s = None if self.plan.budget_s is None else self.plan.budget_s - spent_s
        chosen = next_workloads(estimates, self.plan.targets, margins, seconds, left_s)
        return tuple(name for name in names if name in chosen)

    def _note_change(self, block: int, before: Sequence[str], after: Sequence[str]) -> None:
        """Record in the file why later blocks have fewer workloads."""
        if not after:
            self.store.add_event("info", f"enough after {block} blocks: there is no interval left to be narrowed")
        elif before != after:
            self.store.add_event("info", f"after {block} blocks, what goes on: {', '.join(after)}")

    def _show_progress(self, arms: tuple[Arm, ...], block: int, durations: dict[int, float]) -> None:
        passes = self.plan.passes
        at = passes.index(arms)
        spent = sum(durations.values())
        block_s = spent / len(durations) if durations else None
        if self.plan.blocks is not None:
            to_come = self.plan.blocks * (len(passes) - at) - block
            left_s = None if block_s is None else block_s * to_come
            self.watcher.block(at * self.plan.blocks + block, spent, left_s, self._interim)
        else:
            budget = (self.plan.budget_s or 0.0) / len(passes)
            self.watcher.block(block, spent, max(0.0, budget * (len(passes) - at) - spent), self._interim)
