"""What a user can do wrong: one clear line with the fix, exit code 2, nothing done."""

import json
import sqlite3
import subprocess
import sys

import pytest

from tare.platforms import platform_registry as platforms
from tare.workloads import workload_registry as workloads


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "what", "fix"),
    [
        (("run", "-p", "dokcer"), "there is no platform 'dokcer'", "docker"),
        (("run", "-w", "sysbench-cup"), "there is no workload 'sysbench-cup'", "sysbench-cpu"),
        (("run", "--profile", "quik"), "there is no profile 'quik'", "quick"),
        (("run", "--time", "soon"), "'soon' is not a time", "5m"),
        (("run", "--blocks", "0"), "0 blocks", "10 or more"),
        (("run", "--cpus", "one"), "'one' is not a list of CPUs", "2,3"),
        (("run", "--cpus", "4096"), "CPU 4096", "--cpus"),
        (("run", "--memory", "1"), "1 MiB", "--memory"),
        (("run", "--resume", "x.tare", "--blocks", "3"), "--resume", "alone"),
        (("run", "--resume", "x.tare", "--tune"), "--resume", "alone"),
        (("export", "nowhere.tare", "--format", "csv", "--table", "telemetry"), "nowhere.tare", "fix:"),
        (("run", "--resume", "nowhere.tare"), "nowhere.tare", "fix:"),
        (("report", "nowhere.tare"), "nowhere.tare", "fix:"),
        (("export", "nowhere.tare", "--format", "csv"), "nowhere.tare", "fix:"),
        (("export", "nowhere.tare", "--format", "csv", "--table", "footprints"), "nowhere.tare", "fix:"),
        (("report", "nowhere.tare", "--weights", "none.toml"), "none.toml", "fix:"),
        (("report", "nowhere.tare", "--functions", "none.csv"), "none.csv", "fix:"),
    ],
)
def test_it_is_one_line_with_the_fix(tare, tmp_path, arguments, what, fix):
    done = tare(*arguments)
    assert done.returncode == 2, done.stderr
    assert what in done.stderr
    assert fix in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"not a database at all, but long enough to look at" * 20])
def test_a_file_that_is_no_campaign_is_said_and_left_alone(tare, tmp_path, content):
    file = tmp_path / "odd.tare"
    file.write_bytes(content)
    for arguments in (("report", "odd.tare"), ("run", "--resume", "odd.tare"), ("run", "-o", "odd.tare")):
        done = tare(*arguments)
        assert done.returncode == 2, done.stderr
        assert "odd.tare" in done.stderr
        assert file.read_bytes() == content


def test_somebody_elses_database_is_said_and_left_alone(tare, tmp_path):
    file = tmp_path / "other.tare"
    with sqlite3.connect(file) as database:
        database.execute("create table recipes (name text)")
    database.close()
    before = file.read_bytes()
    done = tare("report", "other.tare")
    assert done.returncode == 2
    assert "other.tare" in done.stderr
    assert file.read_bytes() == before


@pytest.mark.host  # to find out what runs here, a campaign has the host to itself
def test_a_daemon_that_does_not_answer_is_said_when_docker_was_asked_for(tare, tmp_path):
    done = tare("run", "-p", "docker", "--blocks", "1", env={"DOCKER_HOST": f"unix://{tmp_path}/none.sock"})
    assert done.returncode == 2
    assert "the Docker daemon does not answer" in done.stderr
    assert "fix: start dockerd" in done.stderr


def test_doctor_of_a_platform_that_there_is_not_says_the_nearest(tare):
    done = tare("doctor", "gvisr")
    assert done.returncode == 2
    assert "there is no platform 'gvisr'" in done.stderr


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "tare", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip()


def test_lists_are_for_scripts_too(tare):
    by_kind = {"platforms": platforms.all_platforms(), "workloads": workloads.all_workloads()}
    for kind, names in by_kind.items():
        answer = json.loads(tare("list", kind, "--json").stdout)
        assert answer["schema"] == "tare.list/1"
        assert [item["name"] for item in answer["items"]] == list(names)
    metrics = json.loads(tare("list", "metrics", "--json").stdout)["items"]
    assert {"workload": "primes", "name": "cpu-cost", "unit": "ns/event", "better": "lower"}.items() <= next(
        item.items() for item in metrics if item["workload"] == "primes" and item["name"] == "cpu-cost"
    )


@pytest.mark.host  # it really tries them all, daemons of its own included
def test_doctor_says_of_every_platform_whether_it_runs_here_or_the_fix(tare, tmp_path):
    done = tare("doctor", "--json", env={"DOCKER_HOST": f"unix://{tmp_path}/none.sock"}, time_limit_s=280)
    answer = json.loads(done.stdout)
    assert answer["schema"] == "tare.doctor/1"
    rows = {row["name"]: row for row in answer["platforms"]}
    assert set(rows) == set(platforms.all_platforms())
    assert rows["docker"]["available"] is False
    for row in rows.values():
        assert row["version"] if row["available"] else row["reason"]
    assert all(check["advice"] for check in answer["checks"] if check["state"] != "ok")


@pytest.mark.parametrize("command", ["doctor", "list", "run", "report", "export", "clean"])
def test_every_command_has_help_with_examples(tare, command):
    text = tare(command, "--help").stdout
    assert "xample" in text
    assert f"tare {command}" in text
