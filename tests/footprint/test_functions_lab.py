"""What goes into a lab that counts, and what comes back from it."""

import pytest
from typer.testing import CliRunner

import fake_campaign
from tare.cli import app
from tare.errors import UsageError
from tare.footprint import conduct, lab
from tare.footprint.model import Footprint, Level, Phase, Scope
from tare.footprint.order import Order
from tare.store import open_store, read_store

ORDERS = [
    Order([], [], Level.FUNCTIONS),
    Order(
        ["native", "docker"], ["primes", "cpu"], Level.FUNCTIONS, repeats=2, idle_s=2.5, seed=7, cpus=(0, 1),
        memory_bytes=512 << 20,
    ),
]  # fmt: skip


def footprint(repeat):
    return Footprint(
        level=Level.FUNCTIONS, scope=Scope.HOST, platform="native", phase=Phase.START, workload=None, repeat=repeat,
        seconds=1.5, hits={"do_mmap": 3, "veth_xmit [veth]": 1}, known=35000,
    )  # fmt: skip


def written(path, *counted, warning=None):
    fake_campaign.write(path, fake_campaign.Shape(blocks=1))
    with open_store(path) as store:
        for one in counted:
            store.add_footprint(one)
        if warning:
            store.add_event("warning", warning)
    return path


@pytest.mark.parametrize("order", ORDERS)
def test_the_command_in_the_lab_means_the_same_order(order, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(conduct, "begin", lambda order, file, watcher, told: asked.append((order, file)))
    done = CliRunner().invoke(app, ["footprint", *lab.words(order), "--here", "-o", str(tmp_path / "x.tare")])
    assert done.exit_code == 0, done.output
    assert asked == [(order, tmp_path / "x.tare")]


def test_without_here_a_lab_is_sent_for_and_within_one_not_again(monkeypatch, tmp_path):
    sent = []

    def count(order, file, progress, programs):
        sent.extend([order.level, *programs])
        return lab.Brought((footprint(0),), ("no footprint of kata: /dev/kvm is missing",))

    monkeypatch.setattr(lab, "count", count)
    monkeypatch.setattr(conduct, "begin", lambda order, *_: sent.append("here"))
    monkeypatch.delenv("TARE_LAB", raising=False)
    words = ["footprint", "--level", "functions", "-o", str(tmp_path / "x.tare")]
    program = tmp_path / "firecracker"
    program.touch()
    done = CliRunner().invoke(app, [*words, "--file", str(program)])
    assert done.exit_code == 0, done.output
    assert "no footprint of kata: /dev/kvm is missing" in done.output
    monkeypatch.setenv("TARE_LAB", "kvm")
    assert CliRunner().invoke(app, words).exit_code == 0
    assert sent == [Level.FUNCTIONS, program, "here"]


def test_programs_go_into_the_lab_beside_the_module_and_nowhere_else(tmp_path):
    programs = [tmp_path / "firecracker", tmp_path / "jailer"]
    assert lab._sent(Order(level=Level.LINES), tmp_path, None, programs).files == tuple(programs)
    functions = lab._sent(Order(level=Level.FUNCTIONS), tmp_path, tmp_path / "m.ko", programs)
    assert functions.files == (tmp_path / "m.ko", *programs)
    words = ["footprint", "--level", "functions", "--here", "--file", str(programs[0]), "-o", str(tmp_path / "x.tare")]
    refused = CliRunner().invoke(app, words)
    assert isinstance(refused.exception, UsageError)
    assert not (tmp_path / "x.tare").exists()


@pytest.mark.parametrize(
    ("platforms", "wanted"),
    [([], True), (["all"], True), (["runc", "docker-gvisor"], True), (["runc", "gvisor"], False)],
)
def test_a_docker_daemon_is_started_there_for_who_wants_one(platforms, wanted, tmp_path):
    order = lab._sent(Order(platforms, level=Level.FUNCTIONS), tmp_path, tmp_path / "tare_fcount.ko")
    assert ("scripts/with_dockerd.py" in order.argv) == wanted
    assert order.argv[:2] == ["env", "TARE_FCOUNT=/lab/files/tare_fcount.ko"]
    assert order.files == (tmp_path / "tare_fcount.ko",)
    assert "clocksource=tsc" in order.kernel


def test_what_comes_back_is_the_file_where_there_is_none(tmp_path):
    result = written(tmp_path / "there.tare", footprint(0), footprint(1), warning="no footprint of kata: no KVM")
    brought = lab.bring(result, tmp_path / "here.tare")
    assert brought.footprints == (footprint(0), footprint(1))
    assert brought.warnings == ("no footprint of kata: no KVM",)
    assert not result.exists()
    with read_store(tmp_path / "here.tare") as store:
        assert list(store.footprints()) == [footprint(0), footprint(1)]


def test_what_comes_back_is_added_to_a_file_that_is_there(tmp_path):
    here = written(tmp_path / "here.tare", footprint(0))
    lab.bring(written(tmp_path / "there.tare", footprint(1), warning="no footprint of kata: no KVM"), here)
    with read_store(here) as store:
        assert list(store.footprints()) == [footprint(0), footprint(2)], "repeats go on: they are others, not again"
        said = [event.text for event in store.events()]
    assert "in the lab: no footprint of kata: no KVM" in said
    assert "footprints that came from a lab on Linux 6.1.0-fake: 1" in said


def test_the_last_words_of_a_lab_are_kept_whatever_pieces_they_come_in():
    said = []
    heard = lab._Heard(said.append)
    for channel, data in ((2, b"starting na"), (1, b"a table\n"), (2, b"tive\ntare: no disk (fix: free some)\n\n")):
        heard(channel, data)
    assert said[0] == "in the lab: starting native"
    assert heard.last == "tare: no disk (fix: free some)"
