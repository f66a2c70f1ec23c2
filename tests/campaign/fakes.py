"""A campaign without sandboxes and without a clock: for the schedule, the store and what follows, for nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from tare.campaign.instances.disk_watch import DiskWatch
from tare.campaign.instances.launcher import DEFAULT, HostCpus, RunningInstance
from tare.campaign.plan.campaign_plan import CampaignPlan, WorkloadJob
from tare.errors import PlatformError, SessionError
from tare.host.cgroup_files import MemoryKills
from tare.model import Arm, Direction, Family, Metric, Mode, Resources
from tare.platforms.base import Address, Availability, Platform, Prepared
from tare.session import ClockOffset
from tare.store import CampaignRecord, MetricRecord, PlatformRecord, ResourceRecord, WorkloadRecord
from tare.workloads.base import Command, Outcome, RunPlan, RunWorkload, StartMarks, StartWorkload


class FakePlatform(Platform):
    """A name, and nothing behind it."""

    def __init__(self, name: str, *, baseline: bool = False) -> None:
        self.name = name
        self.title = f"fake {name}"
        self.network_path = "none"
        self._baseline = baseline

    @property
    def baseline(self) -> bool:
        return self._baseline

    def detect(self) -> Availability:
        return Availability(True, version="0")

    def prepare(self, image: object) -> Prepared:
        return Prepared("nothing", 0)

    def launch(self, spec: object, cleanup: object) -> None:
        raise AssertionError("a fake platform is started by the fake launcher")


class FakeRun(RunWorkload):
    """Runs ``work NAME`` once."""

    title = "a fake run"
    family = Family.CPU
    metrics = (Metric("rate", "events/s", Direction.HIGHER, "rate"),)
    work_unit = "event"
    profiles = {"quick": {"time": 1}, "full": {"time": 1}}

    def __init__(self, name: str) -> None:
        self.name = name

    def plan(self, params, around):
        return RunPlan(measures=(Command(("work", self.name)),))

    def parse(self, params, results):
        return Outcome({"rate": float(results[0].stdout)}, work=10.0)


class FakeFresh(FakeRun):
    """The same, on an instance that nothing else has run in."""

    fresh = True


class FakeStart(StartWorkload):
    """The marks, as they are."""

    name = "start"
    title = "a fake start"
    family = Family.STARTUP
    metrics = (Metric("command", "ms", Direction.LOWER, "command"),)
    work_unit = "start"
    profiles = {"quick": {}, "full": {}}

    def read(self, marks):
        return {"command": marks.command_ns / 1e6}


@dataclass
class FakeClock:
    """The clock inside a fake instance: each time that it is read, ten seconds have passed outside."""

    rate: float = 0.0  # by how much it runs too fast
    at_ns: int = 0

    def sync_clock(self, _exchanges=8):
        self.at_ns += 10_000_000_000
        return ClockOffset(round(self.rate * self.at_ns), 50_000, self.at_ns)


@dataclass
class FakeLauncher:
    """Writes down what happened, in order, and fails where it is told to."""

    log: list[str] = field(default_factory=list)
    refuse: set[str] = field(default_factory=set)  # arms that do not start
    die: dict[str, int] = field(default_factory=dict)  # arm -> the how-manieth command kills the instance
    living: set[str] = field(default_factory=set)
    daemons: set[str] = field(default_factory=set)
    least: int = 0  # bytes of memory that an instance takes to come up
    resources: Resources = field(default_factory=lambda: Resources((0,), 1 << 30))
    image: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(root="/nowhere"))
    disk: DiskWatch = field(default_factory=DiskWatch)
    work: Path = Path("/")
    numbers: int = 0  # instances that live
    most: int = 0  # of them at once
    given: int = 0  # numbers for instances
    rates: dict[str, float] = field(default_factory=dict)  # arm -> by how much the clock inside runs too fast
    kills: int = 0  # of an instance's processes for want of memory, when it dies
    client: None = None  # no machine but this one loads anything
    host_cpus: HostCpus = field(default_factory=lambda: HostCpus((0,), (0,)))

    def number(self):
        self.given += 1
        return self.given - 1

    def group(self, number):
        return f"tare/fake{number}"

    def start(self, platform, arm, *, measured, terms=DEFAULT):
        assert platform.name == arm.platform
        if terms.gate is not None:
            terms.gate()
        memory = f" with {terms.memory_bytes >> 20} MiB" if terms.memory_bytes else ""
        ports = " with its port" if platform.publishes and terms.published else ""
        self.log.append(f"start {arm}{' measured' if measured else ''}{memory}{ports}")
        if terms.memory_bytes and terms.memory_bytes < self.least:
            raise PlatformError(f"{arm} does not come up with {terms.memory_bytes >> 20} MiB", console=b"oom")
        if str(arm) in self.refuse:
            raise PlatformError(f"{arm} does not want to", console=b"no, no")
        self.living.add(str(arm))
        self.numbers += 1
        self.most = max(self.most, self.numbers)
        marks = StartMarks(1, 2_000_000, None, None, {"ping_ns": "no address"}) if measured else None
        live = FakeLive(self, arm, marks, terms)
        live.reachable = terms.published or not platform.publishes
        return live


class FakeLive(RunningInstance):
    def __init__(self, launcher, arm, marks, terms=DEFAULT):
        self.launcher = launcher
        self.memory_bytes = terms.memory_bytes or launcher.resources.memory_bytes
        self.command_ns = 2_000_000
        self.arm = arm
        self.marks = marks
        self.dirty = []
        self.reachable = True
        self.own_kernel = False
        clock = FakeClock(launcher.rates.get(str(arm), 0.0))
        self.session = SimpleNamespace(
            execute=self._execute, dead=None, hello=SimpleNamespace(image="0" * 64), sync_clock=clock.sync_clock,
            ping=lambda: 0,
        )  # fmt: skip
        spec = SimpleNamespace(
            id="0x0",
            image=SimpleNamespace(application=None),
            resources=Resources((0,), 1 << 30),
            space=SimpleNamespace(data="/"),
            group=SimpleNamespace(
                close=lambda: None,
                memory_kills=lambda: MemoryKills.known(self._killed, at_limit=True, limit_bytes=1 << 30),
                refused_processes=lambda _: 0,
                limits=dict,
            ),
        )
        address = Address(None, 0, 0, ping=None, no_ping="no network")
        started = SimpleNamespace(monotonic_ns=launcher.most)
        self.instance = SimpleNamespace(
            spec=spec, address=address, started=started, accounted=True, daemons=(), client=""
        )
        self.instance.host_processes = list
        self.ran = 0
        self._killed = self._kills_told = 0

    def cpu_ns(self):
        return 1000 * self.ran

    def console(self):
        return b"its last words"

    def daemon_cpu_ns(self):
        return None

    def stop(self):
        self.launcher.log.append(f"stop {self.arm}")
        self.launcher.living.discard(str(self.arm))
        self.launcher.numbers -= 1

    def _execute(self, argv, **_):
        if argv[0] == "sh":  # what it is kept in by
            return SimpleNamespace(code=0, stdout=b"== /proc/self/uid_map\n0 0 4294967295\n")
        self.ran += 1
        self.launcher.log.append(f"{argv[1]} on {self.arm}")
        if self.launcher.die.get(str(self.arm)) == self.ran:
            del self.launcher.die[str(self.arm)]
            self._killed += self.launcher.kills
            self.session.dead = SessionError("the stream ended")
            raise self.session.dead
        code = 1 if argv[0] == "fail" else 0
        return SimpleNamespace(
            code=code,
            stdout=b"42.0",
            stderr=b"",
            wall_ns=1,
            timed_out=False,
            signal=None,
            truncated=False,
            max_rss_bytes=1 << 20,
        )


@dataclass
class Quiet:
    """A watcher that keeps what it was told; it can raise at a given trial, as a Ctrl-C would."""

    trials: list = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    interrupt_after: int | None = None

    def block(self, number, spent_s, left_s, interim):
        pass

    def planned(self, trials):
        pass

    def tick(self, tick):
        pass

    def doing(self, what):
        pass

    def fault(self, line):
        self.faults.append(line)

    def trial(self, trial):
        self.trials.append(trial)
        if self.interrupt_after is not None and len(self.trials) >= self.interrupt_after:
            raise KeyboardInterrupt


def a_plan(
    blocks: int = 2, *, others: tuple[str, ...] = ("runc", "docker"), more: tuple[RunWorkload, ...] = ()
) -> CampaignPlan:
    platforms = (FakePlatform("native", baseline=True), *(FakePlatform(name) for name in others))
    jobs = tuple(WorkloadJob(workload, {}) for workload in (FakeStart(), FakeRun("alpha"), FakeRun("beta"), *more))
    return CampaignPlan("quick", 11, platforms, jobs, Resources((0,), 1 << 30), blocks, None)


def a_record(plan: CampaignPlan) -> CampaignRecord:
    return CampaignRecord(
        id="00000000-0000-4000-8000-000000000000",
        created=0.0,
        tare_version="0",
        seed=plan.seed,
        profile=plan.profile,
        baseline="native",
        arms=[(arm.platform, arm.replica) for arm in plan.arms],
        platforms=[
            PlatformRecord(name=platform.name, title=platform.title, version="0") for platform in plan.platforms
        ],
        workloads=[
            WorkloadRecord(
                name=job.workload.name,
                title=job.workload.title,
                family=job.workload.family,
                mode=Mode(job.workload.mode),
                margin=job.workload.margin,
                work_unit=job.workload.work_unit,
                params={},
                metrics=[
                    MetricRecord(name=metric.name, unit=metric.unit, direction=metric.direction, title=metric.title)
                    for metric in job.workload.all_metrics
                ],
            )
            for job in plan.jobs
        ],
        resources=ResourceRecord(cpus=[0], memory_bytes=1 << 30),
        host={},
        image={"hash": "0"},
        agent_hash="0",
        blocks=plan.blocks,
    )


__all__ = ["Arm", "FakeLauncher", "Quiet", "a_plan", "a_record"]
