"""DBENCH: its commands, the figures of captured runs, and the refusals."""

import dataclasses
import re
import subprocess

import pytest

from tare.errors import ParseError, UnsupportedError
from tare.workloads import workload_registry
from tare.workloads.base import UNSUPPORTED_CODE, Drop, Surroundings
from tare.workloads.storage import dbench_report
from tare.workloads.storage.dbench import CLIENTS, ROOM_MIB
from workloads import test_mutations as damage
from workloads.captures import captured, completed, text

AROUND = Surroundings(2**30, 1, 2**40, None, None, None)
PLAIN = [f"dbench-{clients}" for clients in CLIENTS]
OSYNC = [f"dbench-osync-{clients}" for clients in CLIENTS]
UML = [f"dbench-uml-{clients}" for clients in CLIENTS]
GOOD = [("dbench", {}, PLAIN), ("dbench-osync", {}, OSYNC), ("dbench", {}, UML)]
FIRST = [pytest.param(name, params, captures, 0, id=captures[0]) for name, params, captures in GOOD]


def plan(name, profile="quick", **params):
    workload = workload_registry.get(name)
    return workload.plan({**workload.profiles[profile], **params}, AROUND)


def parse(name, results, **params):
    workload = workload_registry.get(name)
    return workload.parse({**workload.profiles["quick"], **params}, results)


@pytest.mark.parametrize(
    ("name", "folder", "option"),
    [
        ("dbench", "/data", ""),
        ("dbench-fsync", "/data", "-F "),
        ("dbench-osync", "/data", "-s "),
        ("dbench-root", "/var/tmp", ""),
        ("dbench-fsync-root", "/var/tmp", "-F "),
        ("dbench-osync-root", "/var/tmp", "-s "),
    ],
)
def test_one_two_four_and_eight_clients(name, folder, option):
    planned = plan(name, "full")
    assert [" ".join(command.argv[3:]) for command in planned.measures] == [
        f"dbench -t 180 -c /usr/share/dbench/client.txt -D {folder}/tare-dbench {option}{clients}"
        for clients in (1, 2, 4, 8)
    ]
    assert planned.cleanup[0].argv[-1] == planned.prepare[1].argv[-2] == f"{folder}/tare-dbench"
    assert planned.drop is Drop.NONE


def prepare(folder, room=ROOM_MIB):
    """Run the preparation on this host, for another folder."""
    argv = plan("dbench").prepare[1].argv
    return subprocess.run([*argv[:-2], folder, str(room)], capture_output=True, text=True, check=False)


def test_the_place_is_made(tmp_path):
    done = prepare(str(tmp_path / "var" / "tare-dbench"), room=1)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "var" / "tare-dbench").is_dir()


def test_a_place_that_cannot_be_written_or_is_full_is_unsupported_with_the_reason(tmp_path):
    done = prepare("/proc/tare-dbench")
    assert done.returncode == UNSUPPORTED_CODE
    assert re.fullmatch(r"mkdir: cannot create directory .*/proc/tare-dbench.*: .*\n", done.stderr)
    done = prepare(str(tmp_path), room=10**9)
    assert done.returncode == UNSUPPORTED_CODE
    assert re.fullmatch(rf"{tmp_path} has \d+ MiB free, and 1000000000 are needed\n", done.stderr)


@pytest.mark.parametrize(
    ("starts", "code", "output", "times"),
    [
        ([0], 0, "Throughput", 1),
        ([1, 1, 0], 0, "Throughput", 3),
        ([1] * 20, 1, "failed to use the barrier semaphore in child 7", 12),
        ([2, 0], 2, "another failure", 1),
    ],
)
def test_a_start_that_lost_its_semaphore_is_made_again(tmp_path, starts, code, output, times):
    """With a program in dbench's place that ends as it is told, and leaves a client that ends after it."""
    (tmp_path / "starts").write_text("".join(f"{start}\n" for start in starts))
    (tmp_path / "dbench").write_text(
        """#!/bin/sh
        read -r code <starts; sed -i 1d starts; echo "$*" >>ran
        case $code in
            0) echo Throughput ;;
            1)
                echo "failed to use the barrier semaphore in child 7"
                (while kill -0 $$ 2>>killed; do /bin/sleep 0.01; done) &
                ;;
            *) echo "another failure" ;;
        esac
        exit $code
        """
    )
    (tmp_path / "sleep").write_text("#!/bin/sh\n")
    for program in ("dbench", "sleep"):
        (tmp_path / program).chmod(0o755)
    argv = plan("dbench").measures[0].argv
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (code, f"{output}\n")
    assert (tmp_path / "ran").read_text().splitlines() == [" ".join(argv[4:])] * times


def test_a_platform_whose_clients_always_come_too_late_is_unsupported():
    stderr = b"failed to use the barrier semaphore in child 1\n"
    late = dataclasses.replace(captured("dbench-1"), stdout=stderr, exit_code=1)
    with pytest.raises(UnsupportedError, match="too late for its semaphore, in each of 12 starts"):
        parse("dbench", [*map(captured, PLAIN[:3]), late])


@pytest.mark.parametrize(("name", "captures"), [("dbench", PLAIN), ("dbench-osync", OSYNC), ("dbench", UML)])
def test_throughput_and_the_longest_operation_by_clients(name, captures):
    outcome = parse(name, list(map(captured, captures)))
    matches = [
        re.search(r"^Throughput (\S+) MB/sec.*max_latency=(\S+) ms$", text(capture), re.MULTILINE)
        for capture in captures
    ]
    rates, latencies = ([float(match[group]) for match in matches] for group in (1, 2))
    assert [outcome.samples[f"clients-{clients}"] for clients in CLIENTS] == rates
    assert [outcome.samples[f"latency-{clients}"] for clients in CLIENTS] == latencies
    assert outcome.work == pytest.approx(2 * sum(rates))
    assert list(outcome.samples) == [metric.name for metric in workload_registry.get(name).metrics]


def test_a_run_with_a_warm_up():
    long = captured("dbench-ten-seconds-2")
    report = dbench_report.read(long)
    assert (report.seconds, report.clients, report.rate, report.latency_ms) == (10, 2, 127.114, 448.558)
    assert text("dbench-ten-seconds-2").count(" MB/sec  warmup ") == 1
    results = [captured("dbench-1"), long, *map(captured, PLAIN[2:])]
    with pytest.raises(ParseError, match=r"something else than was asked.*seconds=10"):
        parse("dbench", results)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (captured("dbench-killed", signal=9), "killed by signal 9"),
        (captured("dbench-killed"), "half a report"),
        (captured("dbench-wrong-option", code=1), "unknown option"),
        (captured("dbench-no-load", code=1), r"error opening '/usr/share/dbench/clients\.txt'"),
        (
            captured("dbench-no-space", code=1),
            r"ended with 1: .*write failed on handle 9942 \(No space left on device\)",
        ),
        (captured("dbench-no-space"), r"strange line: .*No space left on device"),
        (captured("dbench-too-short"), "measured no whole second"),
        (captured("dbench-2"), "something else than was asked.*clients=2"),
        (captured("dbench-osync-1"), "something else than was asked.*sync=True"),
        (completed(text("dbench-1").replace("client.txt", "other.txt")), "something else than was asked.*other.txt"),
        (completed(""), "printed nothing"),
    ],
)
def test_other_runs_are_refused_and_shown(result, message):
    with pytest.raises(ParseError, match=message):
        parse("dbench", [result, *map(captured, PLAIN[1:])])


def test_runs_that_are_missing_are_refused():
    with pytest.raises(ParseError, match="4 runs of dbench were planned, 3 results came"):
        parse("dbench", list(map(captured, PLAIN[1:])))


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "params", "captures", "at"), FIRST)
def test_cut_off_anywhere(name, params, captures, at):
    damage.test_cut_off_anywhere(name, params, captures, at)


@pytest.mark.parametrize(("name", "params", "captures", "at"), FIRST)
def test_a_line_that_is_missing_or_twice(name, params, captures, at):
    damage.test_a_line_that_is_missing_or_twice(name, params, captures, at)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "params", "captures", "at"), FIRST)
def test_one_other_digit_is_seen_or_below_the_tools_rounding(name, params, captures, at):
    damage.test_one_other_digit_is_seen_or_below_the_tools_rounding(name, params, captures, at)
