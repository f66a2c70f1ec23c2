"""The small programs of fixed work: what they run, on what, and what is read of them."""

import hashlib
import re

import pytest

from tare.errors import ParseError
from tare.workloads import workload_registry
from tare.workloads.base import Surroundings
from tare.workloads.cpu.gzip import text
from workloads.captures import captured, completed
from workloads.captures import text as output

AROUND = Surroundings(2**30, 1, 2**30, None, None, None)


def parse(name, *results, **params):
    workload = workload_registry.get(name)
    return workload.parse(workload.profiles["quick"] | params, results)


def test_gzip_compresses_the_same_mebibyte_each_time():
    workload = workload_registry.get("gzip")
    plan = workload.plan(workload.profiles["quick"], AROUND)
    assert [command.argv for command in plan.measures] == [("gzip", "-6nkfv", "/data/tare-gzip")]
    (written,) = plan.prepare
    assert len(written.stdin) == 1 << 20
    assert hashlib.sha256(written.stdin).hexdigest()[:16] == "f54d8361a1c04f38"
    assert text(2)[: 1 << 20] == written.stdin
    assert written.stdin.startswith(b"0 squared is 0\n1 squared is 1\n")


def test_gzips_work_is_what_it_compressed_and_its_rate_is_by_the_clock():
    outcome = parse("gzip", captured("gzip", wall_s=0.05))
    assert (outcome.samples, outcome.work) == ({"rate": 20.0}, 1)
    with pytest.raises(ParseError, match="No such file"):
        parse("gzip", captured("gzip-missing-file", code=1))
    with pytest.raises(ParseError, match="12 % smaller"):
        parse("gzip", completed(stderr=output("gzip", ".err").replace("73.5", "12.5")))


def test_sqlites_inserts_are_counted_by_what_is_in_the_file_and_python_alone_is_its_start():
    workload = workload_registry.get("sqlite-insert")
    plan = workload.plan(workload.profiles["quick"], AROUND)
    (start,), (run,) = plan.starts, plan.measures
    assert (start.argv[:3], start.argv[-1], run.argv[-2:]) == (run.argv[:3], "0", ("/data/tare-sqlite/squares", "100"))
    outcome = parse("sqlite-insert", captured("sqlite-insert"))
    seconds = float(re.search(r"([0-9.]+) s", output("sqlite-insert"))[1])
    assert (outcome.samples, outcome.work) == ({"rate": 100 / seconds}, 100)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (captured("sqlite-insert-no-space", code=1), "disk is full"),
        (completed(output("sqlite-insert").replace("354", "355")), "do not have the sum"),
        (captured("sqlite-insert", wall_s=0.01), "of a run of 0.01"),
    ],
)
def test_inserts_that_were_not_all_made_or_took_longer_than_the_run_are_no_figure(result, message):
    with pytest.raises(ParseError, match=message):
        parse("sqlite-insert", result)
    with pytest.raises(ParseError, match="not 50 of"):
        parse("sqlite-insert", captured("sqlite-insert"), inserts=50)
