"""Walk over everything to be counted: each platform's start, each workload on it, and the idle host.

A repeat visits all platforms and the idle host in random order, and the workloads on each platform in random order. The
counter gets each instance's control group before the group exists. Two kinds of windows are counted:

- START opens when tare has prepared everything and is about to run the platform's own start command
  (`tare.platforms.base.LaunchSpec.begin`). It closes when the agent has run a first command.
- STEADY covers the part of a workload that is measured. For a run: its measured commands, without preparation, clean-up
  and the end of its servers. For slices: the probe, from its first allocation to its last slice.

If a counter counts its own readings, each repeat also takes some empty readings on the idle host.

A dead instance is replaced before the next workload, and a workload that needs a fresh instance gets one. These starts
are not counted, so a repeat has one start.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from tare.campaign.execution.runs import run_trial
from tare.campaign.execution.slices import run_slices
from tare.campaign.instances.client import LoadClient
from tare.campaign.instances.launcher import PARENT_GROUP, InstanceLauncher, RunningInstance, StartOptions, stop_all
from tare.campaign.plan.campaign_plan import WorkloadJob
from tare.campaign.plan.schedule import Stage
from tare.errors import Failed, ParseError, UnsupportedError, attempt
from tare.features.kernel.exchange.result import Missed, Skipped
from tare.footprint_model import EMPTY, IDLE, UNITS, Counter, Footprint, HitCounts, Phase, Scope
from tare.host.cgroup import path_of
from tare.model import Arm, Level
from tare.platforms.base import Platform
from tare.workloads.base import RunWorkload, SliceWorkload, StartWorkload, Workload

#: Name of a group that is never created, because the idle host has no instance.
NO_GROUP = f"{PARENT_GROUP}/{IDLE}"
#: Empty readings in a repeat. One is not enough: three quarters of the lines that it runs have other hits in the next.
EMPTIES = 3


@dataclass(frozen=True, slots=True)
class Route:
    """Plan of a walk, decided before anything runs."""

    platforms: tuple[Platform, ...]
    jobs: tuple[WorkloadJob, ...]
    repeats: int
    idle_s: float  # Duration of the idle window in each repeat. 0: no idle window, and no empty reading.
    seed: int

    def stops(self, repeat: int) -> list[tuple[Platform | None, tuple[WorkloadJob, ...]]]:
        """Return a repeat's platforms in order, each with its workloads in order. None stands for the idle host."""
        generator = random.Random(f"tare/footprint/{self.seed}/{repeat}")
        hosts: list[Platform | None] = [*self.platforms, *([None] if self.idle_s > 0 else [])]
        order = generator.sample(hosts, len(hosts))
        return [(platform, self._jobs(generator) if platform is not None else ()) for platform in order]

    @property
    def steps(self) -> int:
        """Return the number of windows to count."""
        return self.repeats * (len(self.platforms) * (1 + len(self.jobs)) + (self.idle_s > 0))

    def _jobs(self, generator: random.Random) -> tuple[WorkloadJob, ...]:
        order = generator.sample(self.jobs, len(self.jobs))
        # Each of these costs an instance, so they come last, as in a campaign.
        return tuple(sorted(order, key=lambda job: _fresh(job.workload)))


class WalkWatcher(Protocol):
    """Receiver of a walk's progress."""

    def doing(self, what: str) -> None:
        """Report that something starts that may take a while."""

    def step(self, done: int, of: int, missed: int) -> None:
        """Report that ``done`` of ``of`` windows are over, with ``missed`` footprints missing so far."""


def countable(workloads: Iterable[Workload]) -> tuple[list[Workload], list[Skipped]]:
    """Return the workloads that a walk can run, and the others with the reason."""
    usable: list[Workload] = []
    skipped: list[Skipped] = []
    for workload in workloads:
        if isinstance(workload, RunWorkload | SliceWorkload):
            usable.append(workload)
        elif isinstance(workload, StartWorkload):
            skipped.append(Skipped(workload.name, "the start of every platform is counted anyway"))
        else:
            skipped.append(Skipped(workload.name, "it starts instances of its own, and one at a time is counted"))
    return usable, skipped


@dataclass(slots=True)
class Walk:
    """One walk in progress."""

    route: Route
    counter: Counter
    launcher: InstanceLauncher
    client: LoadClient
    watcher: WalkWatcher
    # Called with resources that could not be removed, and with tracebacks of internal errors.
    warn: Callable[[str], None]
    _done: int = 0
    _missed_count: int = 0

    def run(self) -> Generator[Footprint | Missed, None, None]:
        """Count everything in turn. Close the iterator to stop an instance that is still running.

        Raises `HostError` if this host does not allow counting. A failure of a platform or a workload yields a
        `Missed`, and the walk continues.
        """
        try:
            for repeat in range(self.route.repeats):
                for platform, jobs in self.route.stops(repeat):
                    yield from self._visit(platform, jobs, repeat) if platform else self._idle(repeat)
        finally:
            self.counter.stop()

    def _idle(self, repeat: int) -> Iterator[Footprint]:
        self._announce("the idle host", repeat)
        self.counter.start(path_of(NO_GROUP))
        window = _Window(self.counter)
        window.open()
        time.sleep(self.route.idle_s)
        window.close()
        yield from window.footprints(IDLE, Phase.STEADY, None, repeat, (Scope.HOST,))
        for _ in range(EMPTIES if self.counter.reads_itself else 0):
            window.open()
            window.close()
            yield from window.footprints(EMPTY, Phase.STEADY, None, repeat, (Scope.HOST,))
        self._step()

    def _visit(self, platform: Platform, jobs: Sequence[WorkloadJob], repeat: int) -> Iterator[Footprint | Missed]:
        after = self._done + 1 + len(jobs)
        running: RunningInstance | None = None
        try:
            running, outcomes = self._start(platform, None, repeat)
            yield from outcomes
            self._step()
            for job in jobs if running is not None else ():
                if running is None or not running.usable or _fresh(job.workload):
                    self._end(running)
                    running = None
                    running, outcomes = self._start(platform, job, repeat)
                yield from outcomes if running is None else self._work(platform, job, running, repeat)
                self._step()
        finally:
            self._end(running)
            self._done = after  # Includes the workloads of a platform that did not start.

    def _start(
        self, platform: Platform, job: WorkloadJob | None, repeat: int
    ) -> tuple[RunningInstance | None, list[Footprint] | list[Missed]]:
        """Start an instance. Return it, and what was counted or the reasons why nothing was.

        ``job``: the workload to start it for; None: count the start itself.
        """
        self._announce(f"starting {platform.name}", repeat)
        number = self.launcher.number()
        window = _Window(self.counter)
        self.counter.start(self.launcher.group(number))
        running = attempt(partial(self._launch, platform, window, StartOptions(gate=window.open, number=number)))
        if isinstance(running, Failed):
            return None, [self._missed(platform, job, repeat, running)]
        try:
            window.close()
        except BaseException:
            self._end(running)
            raise
        return running, list(window.footprints(platform.name, Phase.START, None, repeat, _scopes(running)))

    def _launch(self, platform: Platform, window: _Window, terms: StartOptions) -> RunningInstance:
        if platform.elsewhere:
            raise UnsupportedError("it runs on another host, whose kernel is not seen from here")
        window.open()
        return self.launcher.start(platform, Arm(platform.name), measured=False, terms=terms)

    def _missed(self, platform: Platform, job: WorkloadJob | None, repeat: int, failed: Failed) -> Missed:
        """Return the reason why a footprint is missing. Report the traceback of an internal error as a warning."""
        if not failed.expected:
            self.warn(failed.traceback.decode())
        self._missed_count += 1
        return Missed(platform.name, job.workload.name if job else None, repeat, failed.reason)

    def _work(
        self, platform: Platform, job: WorkloadJob, running: RunningInstance, repeat: int
    ) -> Iterator[Footprint | Missed]:
        workload = job.workload
        self._announce(f"{workload.name} on {platform.name}", repeat)
        window = _Window(self.counter)
        ran = attempt(partial(self._run, job, running, window))
        # The output does not matter here: on an emulated host a tool may contradict itself, but it has run.
        if isinstance(ran, Failed) and not (isinstance(ran.error, ParseError) and window.closed):
            yield self._missed(platform, job, repeat, ran)
            return
        units = ran if isinstance(ran, int) and self.counter.level is Level.INSTRUCTIONS else 0
        for footprint in window.footprints(platform.name, Phase.STEADY, workload.name, repeat, _scopes(running)):
            yield footprint.model_copy(update={"hits": {**footprint.hits, UNITS: units}}) if units else footprint

    def _run(self, job: WorkloadJob, running: RunningInstance, window: _Window) -> int:
        """Run the job. Return its units of work, or 0 if its pieces report them."""
        workload = job.workload
        if isinstance(workload, RunWorkload):
            return round(run_trial(workload, job.params, running, self.client, window.open, window.close).outcome.work)
        assert isinstance(workload, SliceWorkload), "no other kind is on the route"
        arm = running.arm
        stage = Stage(workload.name, workload.mode, (arm,), ((arm,),) * job.rounds)
        window.open()
        sliced = run_slices(workload, job.params, stage, {arm: running})[arm]
        window.close()
        if sliced.error is not None:
            raise sliced.error
        return 0

    def _end(self, running: RunningInstance | None) -> None:
        for failed in stop_all([running] if running is not None else []):
            self.warn(failed.reason)

    def _announce(self, activity: str, repeat: int) -> None:
        self.watcher.doing(f"{activity}, repeat {repeat + 1} of {self.route.repeats}")

    def _step(self) -> None:
        self._done += 1
        self.watcher.step(self._done, self.route.steps, self._missed_count)


@dataclass(slots=True)
class _Window:
    """A span of time, and the counts in it."""

    counter: Counter
    _began: float = 0.0
    _seconds: float = 0.0
    _counts: HitCounts = field(default_factory=lambda: HitCounts(hits={}))

    @property
    def closed(self) -> bool:
        """Return True if the window was closed."""
        return self._seconds > 0

    def open(self) -> None:
        """Start to count. A second call restarts from zero."""
        self.counter.reset()
        self._began = time.monotonic()

    def close(self) -> None:
        """Close the window, and read its counts."""
        self._seconds = time.monotonic() - self._began
        self._counts = self.counter.read()

    def footprints(
        self, platform: str, phase: Phase, workload: str | None, repeat: int, scopes: Sequence[Scope]
    ) -> Iterator[Footprint]:
        counts = self._counts
        # Not every counter distinguishes groups.
        for scope in (counted for counted in scopes if counted in counts.hits):
            yield Footprint(
                level=self.counter.level,
                scope=scope,
                platform=platform,
                phase=phase,
                workload=workload,
                repeat=repeat,
                seconds=self._seconds,
                hits={name: hits for name, hits in counts.hits[scope].items() if hits > 0},
                lost=counts.lost,
                known=counts.known,
            )


def _scopes(running: RunningInstance) -> tuple[Scope, ...]:
    """Return both scopes, or only the host's if the instance's processes are not in its control group on this host."""
    return tuple(Scope) if running.instance.accounted else (Scope.HOST,)


def _fresh(workload: Workload) -> bool:
    return isinstance(workload, RunWorkload) and workload.fresh
