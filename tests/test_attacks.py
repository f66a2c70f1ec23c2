"""The attacks of `make attack` that run without a sandbox: what is reported, and that they can come through."""

import importlib
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tare.workloads.own import file as application_file

TOP = Path(__file__).parents[1]
ATTACKS = TOP / "scripts" / "attacks"


@pytest.fixture
def attack(monkeypatch):
    """A function that gives one of the attacks' modules by its name; they are forgotten after the test."""
    monkeypatch.syspath_prepend(str(ATTACKS))
    for name in ("findings", "files", "command", "relatives"):
        monkeypatch.setitem(sys.modules, name, None)
        del sys.modules[name]
    return importlib.import_module


def test_open_is_said_with_its_evidence_and_nothing_tried_is_not_closed(attack):
    findings = attack("findings")
    closed, opened, untried = (findings.Finding(name) for name in ("H1", "H2", "H3"))
    closed.attempt("report", "")
    opened.attempt("setup", "")
    opened.attempt("doctor", "uid 0: venv")
    untried.untried.append("QEMU is not installed")
    assert [finding.state for finding in (closed, opened, untried)] == ["closed", "open", "not tried"]
    assert "doctor: uid 0: venv" in opened.line()
    assert "QEMU is not installed" in untried.line()
    assert [findings.exit_code(some) for some in ([closed], [closed, opened, untried], [closed, untried])] == [0, 1, 3]


def test_sqlite_obeys_the_journal_that_is_planted(attack, tmp_path):
    files = attack("files")
    campaign = tmp_path / "campaign.tare"
    with sqlite3.connect(campaign) as db:
        db.execute("CREATE TABLE fact (name TEXT, value TEXT)")
    db.close()
    copy, victim = files.plant(campaign, tmp_path / "planted")
    assert victim.exists()
    db = sqlite3.connect(copy)
    db.execute("SELECT * FROM fact").fetchall()
    db.close()
    assert not victim.exists()


def test_an_application_under_attack_has_no_mistake_that_ends_it_before(attack, tmp_path):
    (tmp_path / "rootfs").mkdir()
    text = attack("relatives")._APPLICATION.format(text="a", ready="(a+)+$", regex="(a)")
    described, mistakes = application_file.parse(text, tmp_path / "0.toml")
    assert mistakes == []
    assert described is not None


def test_another_package_comes_through_where_no_hash_is_asked_for(attack, tmp_path):
    finding, lock = attack("findings").Finding("D"), (TOP / "requirements.lock").read_text()
    attack("relatives")._attack_lock(finding, tmp_path, lock)
    assert (finding.state, finding.untried) == ("closed", [])


def test_what_is_tried_from_inside_comes_through_where_nothing_is_closed():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        orders = f"reach 127.0.0.1:{port} 127.0.0.1:1\nenvironment a-word-of-nobodys\nfork 3\n"
        program = (ATTACKS / "guest.pl").read_text()
        environment = {"PATH": "/usr/bin:/bin", "TOKEN": "a-word-of-nobodys"}
        argv = ["perl", "-e", program]
        asked = subprocess.run(argv, input=orders, env=environment, capture_output=True, text=True, check=True)
    lines = asked.stdout.splitlines()
    assert f"reach\t127.0.0.1:{port}\tit answers" in lines
    assert not any("127.0.0.1:1\t" in line for line in lines)
    assert any(line.startswith("environment\t/proc/") for line in lines)
    assert "forked\t3\tno end" in lines
    ended = [line.split("\t")[0] for line in lines if line.endswith("\ttried")]
    assert ended == ["reach", "environment", "fork"]
