"""What is dropped from page caches before what is measured, what a trial holds its files to, and figures in rounds."""

import subprocess
from dataclasses import replace
from types import SimpleNamespace

import pytest

from campaign.fakes import FakeLauncher, FakeRun, Quiet, a_plan, a_record
from tare.campaign.execution import caches
from tare.campaign.execution.runner import Runner
from tare.campaign.execution.runs import run_trial
from tare.campaign.plan.campaign_plan import WorkloadJob
from tare.errors import UnsupportedError
from tare.host.filesystems import roots
from tare.host.kernel.owner import boot_id
from tare.model import Resources
from tare.platforms.base import Address
from tare.session import ClockOffset
from tare.store import create_store
from tare.workloads.base import Command, Drop, Outcome, RunPlan

MIB = 2**20
GUEST = RunPlan(measures=(), drop=Drop.GUEST)
BOTH = RunPlan(measures=(), drop=Drop.BOTH)


class Box:
    """An instance whose commands are processes of this host, in its data folder."""

    def __init__(self, data):
        self.ran = []
        self.data = data
        hello = SimpleNamespace(image="0" * 64)
        self.session = SimpleNamespace(
            execute=self._execute, dead=None, hello=hello, sync_clock=lambda _: ClockOffset(0, 0)
        )
        space, image = SimpleNamespace(data=data), SimpleNamespace(application=None)
        spec = SimpleNamespace(resources=Resources((0,), MIB), space=space, image=image)
        address = Address(None, 0, 0, ping=None)
        self.instance = SimpleNamespace(spec=spec, address=address)
        self.no_direct_io = ""

    def cpu_ns(self):
        """Seven for each command, whatever it was."""
        return 7 * len(self.ran)

    def daemon_cpu_ns(self):
        return None

    def _execute(self, argv, **_):
        self.ran.append(argv[-1] if argv[0] == "echo" else "drop within" if "drop" in argv else argv)
        done = subprocess.run(argv, cwd=self.data, capture_output=True, check=False)
        return SimpleNamespace(
            code=done.returncode,
            stdout=done.stdout,
            stderr=done.stderr,
            wall_ns=1,
            timed_out=False,
            signal=None,
            truncated=False,
            max_rss_bytes=1 << 20,
        )


class Planned(FakeRun):
    """Runs any plan."""

    def __init__(self, plan, outcome=None):
        super().__init__("planned")
        self._plan, self._outcome = plan, outcome or Outcome({"rate": 1.0}, work=1.0)

    def plan(self, params, around):
        return self._plan

    def parse(self, params, results):
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


def echo(word):
    return Command(("echo", word))


@pytest.fixture
def box(disk_path):
    return Box(disk_path)


@pytest.fixture
def dropped(box, monkeypatch):
    """The log of commands, with the host's drops in it."""
    monkeypatch.setattr(roots, "drop_page_cache", lambda folder: box.ran.append(f"drop of {folder.name}"))
    return box.ran


@pytest.mark.parametrize(
    ("drop", "before"),
    [
        (Drop.NONE, []),
        (Drop.HOST, ["drop of {}"]),
        (Drop.GUEST, ["drop within"]),
        (Drop.BOTH, ["drop within", "drop of {}"]),
    ],
)
def test_before_each_measure_is_dropped_what_was_asked_the_guests_first(box, dropped, drop, before):
    plan = RunPlan(measures=(echo("one"), echo("two")), prepare=(echo("ready"),), cleanup=(echo("end"),), drop=drop)
    run_trial(Planned(plan), {}, box, None)
    before = [line.format(box.data.name) for line in before]
    assert dropped == ["ready", *before, "one", *before, "two", "end"]


def test_what_dropping_takes_is_not_the_works(box):
    plan = RunPlan(measures=(echo("one"), echo("two")), drop=Drop.GUEST)
    measured = run_trial(Planned(plan), {}, box, None)
    assert (measured.cpu_ns, measured.daemon_cpu_ns) == (2 * 7, None)


def test_on_the_hosts_kernel_a_guest_drops_its_files_and_no_others(box, tmp_path):
    own, foreign = box.data / "own", tmp_path / "foreign"
    for file in (own, foreign):
        file.write_bytes(b"x" * MIB)
    caches.drop(GUEST, box)
    assert roots.cached_share(own.parent, own.name) == 0
    assert own.read_bytes() == b"x" * MIB
    assert roots.cached_share(foreign.parent, foreign.name) == 1


def _knob(monkeypatch, file):
    monkeypatch.setattr(caches, "_WITHIN", caches._WITHIN.replace("/proc/sys/vm/drop_caches", str(file)))


def test_a_kernel_of_its_own_drops_all(box, monkeypatch, tmp_path):
    knob = tmp_path / "knob"
    knob.write_text("0\n")
    _knob(monkeypatch, knob)
    monkeypatch.setattr(caches, "boot_id", lambda: "of another kernel")
    caches.drop(GUEST, box)
    assert knob.read_text() == "3\n"
    monkeypatch.setattr(caches, "boot_id", boot_id)
    knob.write_text("0\n")
    caches.drop(GUEST, box)
    assert knob.read_text() == "0\n", "this is the host's kernel"


@pytest.fixture
def keeping(box, monkeypatch):
    """An instance whose kernel cannot drop anything, with a file."""
    _knob(monkeypatch, "/proc/no-such-file")
    (box.data / "file").write_bytes(b"x" * MIB)
    return box


@pytest.mark.parametrize("plan", [GUEST, RunPlan(measures=(), drop=Drop.GUEST, fetched=("file",)), BOTH])
def test_a_kernel_that_cannot_drop_is_unsupported(keeping, plan):
    with pytest.raises(
        UnsupportedError, match="what the guest caches cannot be dropped: its kernel has no /proc/no-suc"
    ):
        caches.drop(plan, keeping)


def test_a_kernel_that_cannot_drop_has_no_cache_where_the_host_finds_all_in_its_own_again(keeping):
    plan = replace(BOTH, measures=(Command(("cat", "file")),), fetched=("file",))
    run_trial(Planned(plan), {}, keeping, None)
    with pytest.raises(UnsupportedError, match="its kernel has no"):
        run_trial(Planned(replace(plan, measures=(echo("out of another cache"),))), {}, keeping, None)
    with pytest.raises(UnsupportedError, match="its kernel has no"):
        run_trial(Planned(replace(plan, fetched=("file", "of a guest's own disk"))), {}, keeping, None)


def test_a_file_that_should_have_passed_the_cache_by_must_not_be_in_it(box):
    (box.data / "file").write_bytes(b"x" * MIB)
    plan = RunPlan(measures=(echo("one"),), cleanup=(echo("end"),), uncached=("file", "of a guest's own disk"))
    with pytest.raises(
        UnsupportedError, match=r"goes through the host's page cache all the same, where now 100% of the"
    ):
        run_trial(Planned(plan), {}, box, None)
    assert box.ran[-1] == "end"
    run_trial(Planned(replace(plan, drop=Drop.HOST)), {}, box, None)


@pytest.mark.parametrize(("requests", "told"), [(1, True), (2000, False)])
def test_a_few_requests_that_went_through_the_cache_are_told_by_the_few_pages_that_they_left(box, requests, told):
    (box.data / "file").write_bytes(b"x" * 8 * MIB)
    one = Command(("dd", "if=file", "of=/dev/null", "bs=4k", "skip=1000", "count=1", "status=none"))
    plan = RunPlan(measures=(one,), drop=Drop.HOST, uncached=("file",))
    workload = Planned(plan, Outcome({"rate": 1.0}, work=float(requests)))
    if told:
        with pytest.raises(UnsupportedError, match=r"where now less than 1% of the file is"):
            run_trial(workload, {}, box, None)
    else:
        run_trial(workload, {}, box, None)
    assert 0 < roots.cached_share(box.data, "file") < 0.01, "as little as this was taken for a stray access"


def test_a_preparation_says_what_the_platform_cannot_do(box):
    refuse = Command(("sh", "-c", "echo first >&2; echo the root is read-only >&2; exit 69"))
    plan = RunPlan(measures=(echo("one"),), prepare=(refuse,), cleanup=(echo("end"),))
    with pytest.raises(UnsupportedError, match=r"^the root is read-only$"):
        run_trial(Planned(plan), {}, box, None)
    assert box.ran[-1] == "end"
    assert "one" not in box.ran


def _campaign(tmp_path, workload):
    plan = a_plan(1, others=())
    plan = replace(plan, jobs=(WorkloadJob(workload, {}),))
    with create_store(tmp_path / "fake.tare", a_record(plan)) as store:
        Runner(plan, store, FakeLauncher(), None, Quiet()).run()
        return store.trials(), store.samples()


def test_what_is_unsupported_is_so_in_the_store(tmp_path):
    trials, samples = _campaign(tmp_path, Planned(RunPlan(measures=(echo("x"),)), UnsupportedError("no such thing")))
    assert set(trials["status"]) == {"unsupported"}
    assert set(trials["reason"]) == {"no such thing"}
    assert samples.height == 0


def test_a_series_is_samples_in_rounds(tmp_path):
    outcome = Outcome({}, work=1.0, series={"rate": (3.0, None, 5.0)})
    _, samples = _campaign(tmp_path, Planned(RunPlan(measures=(echo("x"),)), outcome))
    first = samples.filter((samples["metric"] == "rate") & (samples["replica"] == 0)).sort("round")
    assert list(zip(first["round"], first["value"], strict=True)) == [(0, 3.0), (2, 5.0)]
