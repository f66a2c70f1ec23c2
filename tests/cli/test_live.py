"""A campaign as it is seen while it runs: what follows, noise and its cause, lines of JSON, and what Ctrl-C does."""

import io
import itertools
import json
import os
import signal
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

import fake_campaign
from campaign.fakes import FakeLauncher, FakeRun, a_plan, a_record
from tare.analysis.quality.contamination import windows
from tare.analysis.quality.noise import Noise, noise
from tare.campaign.execution.runner import Runner
from tare.campaign.plan.interim import Interim
from tare.cli import run
from tare.cli.choices import ProgressOptions, ProgressStyle
from tare.cli.console import Console as Plain
from tare.cli.progress import CampaignDisplay, sparkline
from tare.cli.watchers import FIRST_INTERRUPT, CombinedWatcher, JsonLines, Stopping
from tare.model import Arm, TrialKey
from tare.report.sentences.noise_words import cause
from tare.store import create_store, open_store, read_store

DISTURBED = (
    fake_campaign.Disturbance("foreign-cpu", 2.0, 4.0, 0.4),
    fake_campaign.Disturbance("steal", 6.0, 7.0, 0.25),
    fake_campaign.Disturbance("swap", 8.0, 9.0, 900),
    fake_campaign.Disturbance("memory-pressure", 8.0, 9.0, 0.3),
)
SHAPE = replace(
    fake_campaign.Shape(), blocks=3, workloads=("sysbench-cpu", "startup"), telemetry=True, disturbed=DISTURBED
)
TICKS = list(fake_campaign.ticks(SHAPE, 3 * 2 * 6))  # blocks, workloads, arms


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    with read_store(fake_campaign.write(tmp_path_factory.mktemp("live") / "x.tare", SHAPE)) as store:
        yield store


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=120, force_terminal=True)


def test_noise_is_what_the_report_sees_of_the_same_readings(campaign):
    frame = windows(campaign.telemetry(), [1])
    now = [noise(before, after, [1]) for before, after in itertools.pairwise(TICKS)]
    assert [window.steal for window in now] == pytest.approx(frame["steal"].to_list(), abs=2e-3)  # it is counted in ms
    assert [window.foreign for window in now] == pytest.approx(frame["foreign-cpu"].to_list(), abs=1e-6)
    assert [window.memory for window in now] == pytest.approx(frame["memory-pressure"].to_list(), abs=1e-5)
    assert [window.swapped for window in now] == pytest.approx(frame["swap"].to_list(), abs=3)
    assert max(window.foreign for window in now) == pytest.approx(0.4)
    assert {window.cpu for window in now} == {1}


def test_a_first_reading_and_unknown_cpus_are_no_noise():
    assert noise(TICKS[1], TICKS[0], [1]) is None
    assert noise(TICKS[0], TICKS[1], [7]) is None


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (Noise(0.0, 0.04, 1, 0.0, 0.0), ""),
        (Noise(0.0, 0.12, 1, 0.0, 0.0), "other programs use 12 % of the measured CPUs, most on CPU 1"),
        (
            Noise(0.3, 0.06, None, None, 0.0),
            "the hypervisor below takes 30 % of the time; other programs use 6 % of the measured CPUs",
        ),
        (
            Noise(0.0, None, None, 0.2, 900),
            "memory is short: tasks wait for it in 20 % of the time; the host swaps 900 pages a second",
        ),
    ],
)
def test_the_cause_that_weighs_most_comes_first(now, words):
    assert cause(now) == words


def test_a_sparkline_has_a_bar_a_value():
    assert sparkline([0.0, 0.5, 1.0, 9.0], 1.0) == "▁▅██"
    assert sparkline([1.0], 0.0) == ""


def test_the_display_says_what_runs_what_follows_and_what_disturbs(console, campaign):
    shown = CampaignDisplay(console)
    interim = Interim(campaign)
    for number in range(3):
        shown.block(number, 1.0, 90.0, interim)
        interim.estimates.close(number)
    keys = [TrialKey(0, name, Arm("runc")) for name in ("startup", "primes", "stream", "udp-rtt")]
    shown.planned(keys)
    shown.trial(SimpleNamespace(key=keys[0], status="ok"))
    shown.doing("primes on runc")
    for tick in TICKS[6:11]:
        shown.tick(tick)
    out = io.StringIO()
    Console(file=out, width=140).print(shown._render())
    text = out.getvalue()
    assert "now   primes on runc  (1 of 4 trials of this block)" in text
    assert "next  stream, udp-rtt\n" in text
    assert "40 %: other programs use 40 % of the measured CPUs, most on CPU 1" in text
    assert " figures; half of the intervals within ±" in text
    assert "about 1 min 3" in text or "about 1 min 2" in text


def test_progress_is_an_object_a_line(campaign, capsys, monkeypatch):
    shown = JsonLines(Plain(stderr=True))
    shown.block(0, 0.0, None, Interim(campaign))
    shown.planned([TrialKey(0, "primes", Arm("runc"))])
    shown.doing("primes on \x1b[31mrunc")
    shown.trial(
        SimpleNamespace(
            key=TrialKey(0, "primes", Arm("runc", 1)),
            status=SimpleNamespace(value="failed"),
            reason="it broke",
            wall_ns=2_500_000_000,
        )
    )
    for tick in TICKS[7:9]:
        shown.tick(tick)
    shown.warn("the clock changed")
    shown.fault("a fault")
    shown.ended("complete", "x.tare")
    captured = capsys.readouterr().err
    lines = [json.loads(line) for line in captured.splitlines()]
    assert [line["event"] for line in lines] == [
        "block",
        "planned",
        "doing",
        "trial",
        "noise",
        "warning",
        "fault",
        "ended",
    ]
    facts = {"block": 1, "workload": "primes", "platform": "runc", "replica": 1, "status": "failed", "wall_s": 2.5}
    assert lines[3] | {"at": 0} == {"event": "trial", "at": 0, "reason": "it broke", **facts}
    assert lines[4]["foreign_cpu"] == 0.4
    assert "\x1b" not in captured


@pytest.mark.parametrize("there", [True, False])
def test_the_last_object_names_the_file_that_is_there(there, tmp_path, capsys):
    file = tmp_path / "x.tare"
    if there:
        file.touch()
    watched = run._watched(Plain(stderr=True), file, ProgressOptions(ProgressStyle.JSON, metrics=None))
    with pytest.raises(KeyboardInterrupt), watched:
        interrupted()
    last = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert last | {"at": 0} == {
        "event": "ended",
        "at": 0,
        "status": "interrupted",
        "file": str(file) if there else None,
    }


# --- Ctrl-C --------------------------------------------------------------------------------------------------


def interrupted():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0)  # the handler runs between two instructions


def test_before_the_first_block_an_interrupt_passes_at_once():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Stopping(lambda _: None):
        interrupted()
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_interrupt_ends_now():
    lines = []
    with Stopping(lines.append) as stopping:
        stopping.measuring()
        interrupted()
        assert lines == [FIRST_INTERRUPT]
        with pytest.raises(KeyboardInterrupt):
            interrupted()


class Pressing(FakeRun):
    """A run in the middle of which somebody presses Ctrl-C."""

    def parse(self, params, results):
        interrupted()
        return super().parse(params, results)


def test_the_first_interrupt_lets_the_trial_end_and_the_campaign_goes_on_later(tmp_path):
    plan = a_plan(1, more=(Pressing("pressed"),))
    launcher, lines = FakeLauncher(), []
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        with pytest.raises(KeyboardInterrupt), Stopping(lines.append) as stopping:
            Runner(plan, store, launcher, None, CombinedWatcher([Silent()], stopping)).run()
        kept = store.trials()
        assert lines == [FIRST_INTERRUPT]
        assert launcher.living == set()
        assert kept.filter(kept["workload"] == "pressed")["status"].to_list()[:1] == ["ok"]
        assert 0 < kept.height < len(store.schedule())
    quiet = a_plan(1, more=(FakeRun("pressed"),))
    with open_store(tmp_path / "x.tare") as store:
        Runner(quiet, store, FakeLauncher(), None, Silent()).run()
        assert store.done() == set(store.schedule())


class Silent:
    def __getattr__(self, name):
        return lambda *_: None
