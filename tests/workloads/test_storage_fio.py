"""The workloads of fio: their commands, the figures of captured runs, and the refusals."""

import json
import re

import pytest

from tare.errors import HostError, ParseError, UnsupportedError
from tare.workloads import workload_registry
from tare.workloads.base import Drop, Surroundings
from tare.workloads.output import ROUNDING
from tare.workloads.storage import fio
from tare.workloads.storage.seq_sizes import SIZES
from workloads import test_mutations as damage
from workloads.captures import captured, completed, text

GIB = 2**30
ROOMY = Surroundings(GIB, 1, 100 * GIB, None, None, None)
COMMON = (
    "fio --output-format=json+ --eta=never --name={} --thread=1 --clocksource=clock_gettime --invalidate=0 "
    "--fallocate=none --lat_percentiles=1 --clat_percentiles=0 --percentile_list=50.0:99.0:99.9 --disk_util=0 "
)
SECOND = {"time_s": 1}
READS = [f"fio-read-{size}" for size in SIZES]
WRITES = [f"fio-write-{size}" for size in SIZES]
CAPTURED_SIZE = {"size_mib": 64}

#: Captures that are damaged: workload, parameters, the outputs of its measures.
GOOD = [
    ("fio-randread", SECOND, ["fio-randread"]),
    ("fio-randwrite-buffered", {}, ["fio-randwrite-buffered-gvisor"]),
    ("seq-read-sizes", CAPTURED_SIZE, READS),
    ("seq-write-sizes", CAPTURED_SIZE, WRITES),
]
# Damage is done to the first output: what reads one reads them all.
FIRST = [pytest.param(name, params, captures, 0, id=captures[0]) for name, params, captures in GOOD]


def plan(name, around=ROOMY, profile="quick", **params):
    workload = workload_registry.get(name)
    return workload.plan({**workload.profiles[profile], **params}, around)


def parse(name, params, *results):
    workload = workload_registry.get(name)
    return workload.parse({**workload.profiles["quick"], **params}, results)


def lines(commands):
    return [" ".join(command.argv) for command in commands]


def job(capture, way):
    return json.loads(text(capture))["jobs"][0][way]


def test_random_reads_go_past_the_cache_over_real_data():
    planned = plan("fio-randread")
    assert lines(planned.prepare) == [
        COMMON.format("layout") + "--filename=fio-random --size=128m --rw=read --bs=1m --create_only=1"
    ]
    assert lines(planned.measures) == [
        COMMON.format("random")
        + "--filename=fio-random --size=128m --rw=randread --bs=4k --ioengine=psync --iodepth=1 "
        "--direct=1 --runtime=2 --time_based=1 --norandommap=1"
    ]
    assert lines(planned.cleanup) == ['sh -c rm -f "$@" rm fio-random']
    assert planned.drop is Drop.HOST
    assert planned.uncached == ("fio-random",)
    assert "--size=1024m" in plan("fio-randread", profile="full").measures[0].argv
    assert "--runtime=30" in plan("fio-randwrite", profile="full").measures[0].argv


def test_more_requests_at_once_take_an_engine_that_can():
    argv = plan("fio-randread", iodepth=4).measures[0].argv
    assert {"--ioengine=libaio", "--iodepth=4"} <= set(argv)


def test_buffered_requests_find_their_file_in_the_cache():
    planned = plan("fio-randwrite-buffered", Surroundings(GIB // 4, 1, 100 * GIB, None, None, None))
    assert {"--rw=randwrite", "--direct=0", "--size=64m"} <= set(planned.measures[0].argv), "a quarter of 256 MiB"
    assert (planned.drop, planned.uncached) == (Drop.NONE, ())
    assert lines(planned.prepare)[1:] == ['sh -c cat "$1" >/dev/null cat fio-random']
    with pytest.raises(
        HostError, match=r"a file of 32 MiB is more than a quarter of the memory limit, which is 64 MiB"
    ):
        plan("fio-randread-buffered", Surroundings(GIB // 16, 1, 100 * GIB, None, None, None))


@pytest.mark.parametrize(
    ("name", "drop"),
    [
        ("seq-read-sizes", Drop.BOTH),
        ("seq-read-sizes-guest", Drop.GUEST),
        ("seq-read-sizes-host", Drop.HOST),
        ("seq-read-sizes-warm", Drop.NONE),
    ],
)
def test_a_read_by_size_drops_what_its_name_says_before_each(name, drop):
    planned = plan(name)
    assert planned.drop is drop
    assert planned.fetched == ("seq-sizes",)
    assert lines(planned.prepare)[1:] == ['sh -c cat "$1" >/dev/null cat seq-sizes']
    assert lines(planned.measures) == [
        COMMON.format("read") + f"--filename=seq-sizes --size=128m --ioengine=psync --rw=read --bs={size}"
        for size in SIZES
    ]
    # The study's gigabyte is only cached where four fit into the memory.
    assert "--size=256m" in plan(name, profile="full").measures[0].argv
    assert "--size=1024m" in plan(name, Surroundings(4 * GIB, 1, 100 * GIB, None, None, None), "full").measures[0].argv


def test_a_write_by_size_makes_the_file_and_flushes_it():
    planned = plan("seq-write-sizes")
    assert lines(planned.measures) == [
        COMMON.format("write")
        + "--filename=seq-sizes --size=256m --ioengine=psync --unlink=1 --rw=write --end_fsync=1 "
        f"--bs={size}"
        for size in SIZES
    ]
    assert planned.drop is Drop.NONE
    assert "--size=1024m" in plan("seq-write-sizes", profile="full").measures[0].argv


@pytest.mark.parametrize("name", ["fio-randread", "fio-randwrite-buffered", "seq-read-sizes", "seq-write-sizes"])
def test_a_small_disk_has_smaller_files_and_a_full_one_is_refused(name):
    sizes = workload_registry.get(name).profiles["quick"]
    small = Surroundings(GIB, 1, sizes["size_mib"] * 2**20, None, None, None)
    assert f"--size={sizes['size_mib'] // 2}m" in plan(name, small).measures[0].argv
    least = sizes["least_mib"]
    with pytest.raises(HostError, match=f"a file of {least} MiB needs {2 * least} MiB free.*has {2 * least - 1}") as no:
        plan(name, Surroundings(GIB, 1, 2 * least * 2**20 - 1, None, None, None))
    assert "free disk space" in no.value.fix


@pytest.mark.parametrize(
    ("name", "params", "capture", "way"),
    [
        ("fio-randread", SECOND, "fio-randread", "read"),
        ("fio-randread", {**SECOND, "iodepth": 4}, "fio-randread-deep", "read"),
        ("fio-randwrite", SECOND, "fio-randwrite", "write"),
        ("fio-randread-buffered", SECOND, "fio-randread-buffered", "read"),
        ("fio-randwrite-buffered", {}, "fio-randwrite-buffered-gvisor", "write"),
        ("fio-randwrite-buffered", {}, "fio-randwrite-buffered-uml", "write"),
    ],
)
def test_random_requests(name, params, capture, way):
    outcome = parse(name, params, captured(capture))
    shown = job(capture, way)
    percentiles = shown["lat_ns"]["percentile"]
    assert outcome.samples == {
        "iops": pytest.approx(shown["iops"], rel=0.001),
        "p50": percentiles["50.000000"] / 1000,
        "p99": percentiles["99.000000"] / 1000,
        "p99-9": percentiles["99.900000"] / 1000,
    }
    assert outcome.work == shown["total_ios"]
    assert list(outcome.samples) == [metric.name for metric in workload_registry.get(name).metrics]


def test_reads_by_size_are_rated_by_the_time_in_them():
    outcome = parse("seq-read-sizes", CAPTURED_SIZE, *map(captured, READS))
    assert list(outcome.samples) == [f"read-{size}" for size in SIZES]
    for capture, rate in zip(READS, outcome.samples.values(), strict=True):
        shown = job(capture, "read")
        # fio's own rate is by a clock of milliseconds, rounded up, which also has its work between requests.
        assert rate >= shown["bw_bytes"] / 2**20
        assert rate == pytest.approx(64 / (shown["lat_ns"]["mean"] * shown["total_ios"] / 1e9))
    assert outcome.work == 5 * 64


def test_writes_by_size_are_rated_with_their_flush():
    outcome = parse("seq-write-sizes", CAPTURED_SIZE, *map(captured, WRITES))
    rates = [64 / (job(capture, "write")["runtime"] / 1000) for capture in WRITES]
    assert list(outcome.samples.values()) == rates
    assert list(outcome.samples) == [f"write-{size}" for size in SIZES]


@pytest.mark.parametrize(
    ("params", "result", "message"),
    [
        ({}, captured("fio-randread"), "another job than was asked.*'runtime': '1'.*not.*'runtime': '2'"),
        (SECOND, captured("fio-interrupted"), r"something else than a report .*: fio: terminating on signal 2 \|"),
        (SECOND, captured("fio-interrupted", code=128), r"ended with 128: fio: terminating on signal 2 \|"),
        (SECOND, completed(text("fio-interrupted").partition("signal 2\n")[2]), r"ended after \d+ ms, 1 s were asked"),
        (SECOND, captured("fio-killed", signal=9), "killed by signal 9: no output"),
        (SECOND, captured("fio-killed"), "something else than a report"),
        (SECOND, captured("fio-wrong-option", code=1), "unrecognized option '--norandommaps=1'"),
        (SECOND, captured("fio-no-space", code=1), "No space left on device"),
        (SECOND, captured("fio-no-space"), "something else than a report.*No space left on device"),
        (SECOND, captured("fio-randwrite"), "another job than was asked"),
        (SECOND, captured("fio-randread-deep"), "another job than was asked"),
        (SECOND, captured("fio-randread-buffered"), "another job than was asked"),
        (SECOND, completed(text("fio-randread").replace('"short_ios" : 0', '"short_ios" : 3', 1)), "cut short"),
        (SECOND, completed(text("fio-randread").replace('"error" : 0', '"error" : 5', 1)), "with error 5"),
    ],
)
def test_other_runs_are_refused_and_shown(params, result, message):
    with pytest.raises(ParseError, match=message):
        parse("fio-randread", params, result)


@pytest.mark.parametrize("middle", ["8`32", "", "-8", "8" * 5_000])
def test_a_bucket_of_no_number_is_refused(middle):
    whole = text("fio-randread")
    buckets = re.search(r'"bins" : \{\s*"(\d+)"', whole)
    damaged = whole[: buckets.start(1)] + middle + whole[buckets.end(1) :]
    with pytest.raises(ParseError, match=r"something else than a report|a number of 100 digits or more"):
        parse("fio-randread", SECOND, completed(damaged))


def test_a_filesystem_without_direct_io_is_unsupported():
    with pytest.raises(
        UnsupportedError, match="does not support direct I/O: fio says that it does not support O_DIRECT"
    ):
        parse("fio-randread", SECOND, captured("fio-no-direct", code=1))


def test_runs_that_are_missing_or_of_other_sizes_are_refused():
    with pytest.raises(ParseError, match="5 runs of fio were planned, 4 results came"):
        parse("seq-read-sizes", CAPTURED_SIZE, *map(captured, READS[1:]))
    with pytest.raises(ParseError, match="one run of fio was planned, 0 results came"):
        parse("fio-randread", SECOND)
    with pytest.raises(ParseError, match="fio moved 64 MiB a run"):
        parse("seq-read-sizes", {"size_mib": 32}, *map(captured, READS))
    with pytest.raises(ParseError, match="another job than was asked"):
        parse("seq-read-sizes", CAPTURED_SIZE, *map(captured, reversed(READS)))


def test_a_percentile_at_the_end_of_fios_histogram_is_no_figure():
    damaged = re.sub(r'("99\.900000" : )\d+', r"\g<1>17112760320", text("fio-randread"))
    with pytest.raises(ParseError, match=r"fio tells no latency above 17\.1 s, and one of its percentiles is there"):
        parse("fio-randread", SECOND, completed(damaged))


def test_a_percentile_is_the_first_bucket_that_reaches_it():
    bins = [(10, 50), (20, 49), (30, 1)]
    assert [fio._percentile(bins, rank) for rank in (1, 50, 50.1, 99, 99.9, 100)] == [10, 10, 20, 20, 30, 30]
    assert fio._percentile(bins, 101) is None


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "params", "captures", "at"), FIRST)
def test_cut_off_anywhere(name, params, captures, at):
    whole = text(captures[at])
    good = damage.outcome_of(name, params, captures)
    assert good is not None
    # JSON that ends early is none: only the line end after it may go.
    cuts = [*range(0, len(whole), 7), *range(len(whole) - 40, len(whole))]
    accepted = [end for end in cuts if damage.outcome_of(name, params, captures, at, whole[:end]) is not None]
    assert accepted == [end for end in cuts if end >= len(whole.rstrip())]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "params", "captures", "at"), FIRST)
def test_a_line_that_is_missing_or_twice(name, params, captures, at):
    damage.test_a_line_that_is_missing_or_twice(name, params, captures, at)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "params", "captures", "at"), FIRST)
def test_one_other_digit_is_seen_or_below_the_tools_rounding(name, params, captures, at):
    whole = text(captures[at])
    good = damage.outcome_of(name, params, captures)
    # Most digits are those of a histogram, which are all read alike: every third tells as much in a third of the time.
    for place in [match.start() for match in re.finditer(r"\d", whole)][::3]:
        for digit in ("0", "9"):
            changed = whole[:place] + digit + whole[place + 1 :]
            outcome = damage.outcome_of(name, params, captures, at, changed)
            if outcome is not None:
                near = pytest.approx(good.samples, rel=3 * ROUNDING)
                assert outcome.samples == near, changed[max(0, place - 40) : place + 20]
                assert outcome.work == good.work
