"""Every workload on captured output of the real tools: the figures, and the refusals."""

import json
from dataclasses import replace

import pytest

from tare.errors import ParseError
from tare.workloads import workload_registry
from tare.workloads.base import Surroundings
from workloads.captures import CAPTURED_WITH, captured, completed, text

SEQWR = {"total_mib": 256, "time_s": 2}
IPERF_QUICK = {"time_s": 1, "omit_s": 0}
IPERF_OMIT = {"time_s": 2, "omit_s": 1}


def parse(name, params, *results):
    workload = workload_registry.get(name)
    return workload.parse({**workload.profiles["quick"], **CAPTURED_WITH.get(name, {}), **params}, results)


@pytest.mark.parametrize(
    ("capture", "params", "events", "seconds"),
    [
        ("sysbench-cpu", {}, 3364, 1.0001),
        ("sysbench-cpu-gvisor", {}, 4453, 1.0005),
        ("sysbench-cpu-two-threads", {"threads": 2}, 5488, 1.0016),
        ("sysbench-cpu-events", {"events": 300}, 300, 0.7402),
    ],
)
def test_sysbench_cpu_has_the_rate_of_the_total_time(capture, params, events, seconds):
    outcome = parse("sysbench-cpu", params, captured(capture))
    assert outcome.samples == {"events-per-second": events / seconds}
    assert outcome.work == events


def test_as_many_threads_are_read_as_the_command_was_asked_for():
    done = captured("sysbench-cpu-two-threads")
    two_threads = replace(done, argv=("sysbench", "cpu", "--threads=2", "--events=0", "run"))
    assert parse("sysbench-cpu-threads", {"events": 0}, two_threads).work == 5488
    with pytest.raises(ParseError, match="sysbench ran 2 threads and not 3"):
        parse("sysbench-cpu-threads", {"events": 0}, replace(done, argv=("sysbench", "cpu", "--threads=3", "run")))
    with pytest.raises(ParseError, match="sysbench ended after"):  # so many events for each of two threads
        parse("sysbench-cpu-threads", {"time_s": 2}, two_threads)


@pytest.mark.parametrize(
    ("capture", "params", "moved", "seconds"),
    [
        ("sysbench-memory", {}, 23_083, 1.0012),
        ("sysbench-memory-gvisor", {}, 31_377, 1.0004),
        ("sysbench-memory-total", {"total_mib": 2048}, 2048, 0.6915),
    ],
)
def test_sysbench_memory_has_the_rate_of_the_total_time(capture, params, moved, seconds):
    outcome = parse("sysbench-memory", params, captured(capture))
    assert outcome.work == pytest.approx(moved, rel=1e-3)
    assert outcome.samples == {"throughput": outcome.work / seconds}


@pytest.mark.parametrize(
    ("workload", "capture"), [("sysbench-cpu", "sysbench-cpu-events"), ("sysbench-memory", "sysbench-memory-total")]
)
def test_a_run_that_ended_before_its_time_and_its_work_is_refused(workload, capture):
    params = {"sysbench-cpu": {"events": 301}, "sysbench-memory": {"total_mib": 2048, "block_kib": 1024}}[workload]
    report = text(capture).replace("events:              2048", "events:              2047")
    with pytest.raises(ParseError, match=r"ended after 0\.\d+ s|contradicts"):
        parse(workload, params, completed(report, wall_s=0.8))


def test_sysbench_fileio_read_has_the_rate_of_the_total_time():
    outcome = parse("sysbench-fileio-seqrd", {}, captured("sysbench-fileio-seqrd-gvisor"))
    assert outcome.samples["throughput"] == pytest.approx(256 / 0.4934, rel=1e-5)
    assert outcome.work == 256, "one pass over the files"
    outcome = parse("sysbench-fileio-seqrd", {}, captured("sysbench-fileio-seqrd"))
    assert outcome.samples["throughput"] == pytest.approx(256 / 0.0537, rel=1e-5), "4719 by sysbench's own late clock"
    by_time = parse("sysbench-fileio-seqrd", {"passes": 0, "time_s": 1}, captured("sysbench-fileio-seqrd-by-time"))
    assert by_time.work > 256


#: How long the command took whose report was late.
LATE_S = 0.218


def test_sysbench_may_be_late_with_its_report():
    # 0.1818 s in total, and rates that are of 0.1878 s: beside two others on the CPU, or just so, 5 of 100 are like it.
    outcome = parse("sysbench-fileio-seqrd", {}, captured("sysbench-fileio-seqrd-late", wall_s=LATE_S))
    assert outcome.samples["throughput"] == pytest.approx(256 / 0.1818), "1363 by the late clock"
    assert outcome.work == 256


@pytest.mark.parametrize(
    ("wall_s", "damage"),
    [
        (0.183, {}),  # later than the command's own end
        (LATE_S, {"87256.67": "174513.34", "1363.39": "2726.78"}),  # twice the rate
        (LATE_S, {"87256.67": "43628.33", "1363.39": "681.69"}),  # half of it
        (LATE_S, {"events:              16384": "events:              32768"}),
        (LATE_S, {" 0.1818s": " 0.3636s"}),
    ],
)
def test_sysbench_that_contradicts_itself_is_refused(wall_s, damage):
    report = text("sysbench-fileio-seqrd-late")
    for figure, other in damage.items():
        assert figure in report
        report = report.replace(figure, other)
    with pytest.raises(ParseError, match=r"sysbench contradicts itself on (requests|events): "):
        parse("sysbench-fileio-seqrd", {}, completed(report, wall_s=wall_s))


@pytest.mark.parametrize(
    ("workload", "figures"),
    [("sysbench-cpu", ["3361.65"]), ("sysbench-memory", ["23055.84"])],
)
def test_sysbench_that_reports_another_rate_is_refused(workload, figures):
    for factor in (0.5, 0.9, 1.1, 2):
        report = text(workload)
        for figure in figures:
            report = report.replace(figure, f"{float(figure) * factor:.2f}")
        with pytest.raises(ParseError, match="sysbench contradicts itself on"):
            parse(workload, {}, completed(report, wall_s=1.02))


def test_sysbench_fileio_write():
    outcome = parse("sysbench-fileio-seqwr", SEQWR, captured("sysbench-fileio-seqwr-gvisor"))
    assert outcome.samples == {"throughput": 103.18, "fsyncs-per-second": 8479.11}
    assert outcome.work == pytest.approx(13_300 * 16 / 1024, rel=1e-5), "what was written, to the request"
    outcome = parse("sysbench-fileio-seqwr", SEQWR, captured("sysbench-fileio-seqwr"))
    assert outcome.samples == {"throughput": 56.43, "fsyncs-per-second": 4667.62}


@pytest.mark.parametrize(
    ("to", "back", "params"),
    [
        ("iperf3-to", "iperf3-from", IPERF_QUICK),
        ("iperf3-to-gvisor", "iperf3-from-gvisor", IPERF_QUICK),
        ("iperf3-to-omit", "iperf3-from-omit", IPERF_OMIT),
    ],
)
def test_iperf3_takes_the_receivers_figure_and_counts_the_omitted_bytes_as_work(to, back, params):
    outcome = parse("iperf3-tcp", params, captured(to), captured(back))
    reports = [json.loads(text(name)) for name in (to, back)]
    assert outcome.samples == {
        "to-instance": reports[0]["end"]["sum_received"]["bits_per_second"] / 1e6,
        "from-instance": reports[1]["end"]["sum_received"]["bits_per_second"] / 1e6,
    }
    moved = sum(interval["sum"]["bytes"] for report in reports for interval in report["intervals"])
    assert outcome.work == moved / 2**20
    omitted = [interval for report in reports for interval in report["intervals"] if interval["sum"]["omitted"]]
    assert bool(omitted) == (params["omit_s"] > 0)


def test_iperf3_says_that_it_listens_as_the_plan_expects():
    plan = workload_registry.get("iperf3-tcp").plan(IPERF_QUICK, Surroundings(2**30, 1, 2**30, "192.0.2.3", 5201, 5201))
    assert plan.servers[0].ready in text("iperf3-server").encode()


def test_udp_rtt():
    outcome = parse("udp-rtt", {}, captured("udp-rtt"))
    assert outcome.samples == {"rate": 13326.642, "median": 71.536, "p99": 121.48}
    assert outcome.work == 13327


def damaged(of, to):
    """The captured output with one figure changed, and the sum that goes with it."""
    figures = text("udp-rtt").split("sum ")[0].replace(of, to)
    assert to in figures
    return completed(f"{figures}sum {sum(figures.encode())}\nend\n")


@pytest.mark.parametrize(
    ("result", "params", "message"),
    [
        (captured("udp-rtt-no-server", code=111), {}, r"ended with 111: .*no answer to \d+ requests"),
        (captured("udp-rtt-no-server"), {}, "printed 0 lines and not"),
        (captured("udp-rtt"), {"time_s": 2.0}, "ended after 1.00 s, 2.0 s were asked for"),
        (damaged("lost 0", "lost 200"), {}, "200 of 13527 requests were not answered"),
        (damaged("rate 13", "rate 23"), {}, "contradicts itself on requests a second"),
        (damaged("median 71", "median 171"), {}, "contradicts itself: mean"),
        (damaged("mean 74", "mean 84"), {}, "contradicts itself: mean"),
        (completed(text("udp-rtt").replace("median 71.536", "median 71.537")), {}, "do not have the sum"),
    ],
)
def test_udp_rtt_is_refused_and_shown(result, params, message):
    with pytest.raises(ParseError, match=message):
        parse("udp-rtt", params, result)


KILLED = {"signal": 9}
FAILED = {"code": 1}


@pytest.mark.parametrize(
    ("workload", "capture", "ended", "params", "message"),
    [
        ("sysbench-cpu", "sysbench-cpu-wrong-option", FAILED, {}, "invalid option: --cpu-max-primes=10000"),
        ("sysbench-cpu", "sysbench-cpu-killed", KILLED, {}, r"killed by signal 9: sysbench 1.* \| Threads started!"),
        ("sysbench-cpu", "sysbench-cpu-killed", {"timed_out": True}, {}, "ended at its time limit, after 1.0 s"),
        ("sysbench-cpu", "sysbench-cpu-killed", {}, {}, "printed 7 lines and not 21"),
        ("sysbench-cpu", "sysbench-cpu-two-threads", {}, {}, "ran 2 threads and not 1"),
        ("sysbench-cpu", "sysbench-cpu", {}, {"max_prime": 20_000}, "primes to 10000, not 20000"),
        ("sysbench-cpu", "sysbench-cpu", {}, {"time_s": 10}, r"ended after 1\.\d+ s, 10.0 s were asked for"),
        ("sysbench-cpu", "sysbench-memory", {}, {}, "strange line"),
        ("sysbench-memory", "sysbench-memory-no-memory", FAILED, {}, "Failed to allocate buffer"),
        ("sysbench-memory", "sysbench-memory-no-memory", {}, {}, "strange line.*Failed to allocate"),
        ("sysbench-memory", "sysbench-memory-total-reached", {}, {}, "strange line.*total size: 1024MiB"),
        ("sysbench-memory", "sysbench-memory", {}, {"block_kib": 1}, "blocks of 1024 KiB, not write of 1 KiB"),
        (
            "sysbench-fileio-seqrd",
            "sysbench-fileio-seqrd-missing-files",
            FAILED,
            {},
            "Did you forget to run the prepare",
        ),
        ("sysbench-fileio-seqrd", "sysbench-fileio-seqrd-missing-files", {}, {}, "strange line.*Cannot open file"),
        ("sysbench-fileio-seqrd", "sysbench-fileio-seqwr", {}, {}, "strange line.*sequential write"),
        ("sysbench-fileio-seqrd", "sysbench-fileio-seqrd", {}, {"passes": 0}, "ended after 0.0537 s"),
        ("sysbench-fileio-seqrd", "sysbench-fileio-seqrd", {}, {"total_mib": 128}, "files of 256 MiB, 128 were"),
        ("sysbench-fileio-seqwr", "sysbench-fileio-seqwr-no-space", FAILED, {}, "No space left on device"),
        ("sysbench-fileio-seqwr", "sysbench-fileio-seqwr-no-space", {}, {}, "strange line.*No space left on device"),
        ("sysbench-fileio-seqwr", "sysbench-fileio-seqrd", {}, {}, "strange line.*sequential read"),
    ],
)
def test_sysbench_is_refused_and_shown(workload, capture, ended, params, message):
    with pytest.raises(ParseError, match=message):
        parse(workload, params, captured(capture, **ended))


@pytest.mark.parametrize(
    ("capture", "ended", "message"),
    [
        ("iperf3-no-server", {}, "iperf3 failed: unable to connect to server: Connection refused"),
        ("iperf3-no-server", FAILED, "iperf3 failed: unable to connect"),
        ("iperf3-busy", {}, "iperf3 failed: the server is busy running a test"),
        ("iperf3-server-killed", {}, "iperf3 failed: control socket has closed unexpectedly"),
        ("iperf3-terminated", {}, "iperf3 failed: interrupt - the client has terminated"),
        ("iperf3-killed", KILLED, "killed by signal 9: no output"),
        ("iperf3-killed", {}, "something else than a report.*no output"),
        ("iperf3-wrong-option", FAILED, "unrecognized option '--no-such-option'"),
        ("iperf3-from", {}, "another test than was asked"),
        ("iperf3-to-omit", {}, "another test than was asked"),
    ],
)
def test_iperf3_is_refused_and_shown(capture, ended, message):
    with pytest.raises(ParseError, match=message):
        parse("iperf3-tcp", IPERF_QUICK, captured(capture, **ended), captured("iperf3-from"))
    if capture != "iperf3-from":
        with pytest.raises(ParseError, match=message):
            parse("iperf3-tcp", IPERF_QUICK, captured("iperf3-to"), captured(capture, **ended))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda report: report["intervals"].clear(), "intervals"),
        (lambda report: report["intervals"][0]["sum"].pop("omitted"), "omitted"),
        (lambda report: report["end"]["sum_received"].update(bits_per_second="fast"), "bits_per_second"),
        (lambda report: report["end"]["sum_received"].update(bytes=0, bits_per_second=0.0), "moved nothing"),
        (lambda report: report["end"]["sum_received"].update(bits_per_second=1e9), "contradicts itself on bits"),
        (lambda report: report["end"]["sum_sent"].update(bytes=10**9, bits_per_second=8e9), "contradicts itself"),
        (lambda report: report["start"]["test_start"].update(num_streams=2), "another test"),
        (lambda report: report["start"]["test_start"].update(protocol="UDP"), "another test"),
    ],
)
def test_iperf3_reports_that_are_not_whole(change, message):
    report = json.loads(text("iperf3-to"))
    change(report)
    with pytest.raises(ParseError, match=message):
        parse("iperf3-tcp", IPERF_QUICK, completed(json.dumps(report)), captured("iperf3-from"))


def test_a_short_iperf3_test_is_no_figure():
    report = text("iperf3-to").replace('"duration":\t1', '"duration":\t30')
    with pytest.raises(ParseError, match="30 s were asked for"):
        parse("iperf3-tcp", {"time_s": 30, "omit_s": 0}, completed(report), captured("iperf3-from"))


@pytest.mark.parametrize("name", ["sysbench-cpu", "sysbench-memory", "sysbench-fileio-seqrd", "sysbench-fileio-seqwr"])
def test_the_number_of_results_must_be_the_plans(name):
    for results in ([], [captured(name), captured(name)]):
        with pytest.raises(ParseError, match="one run of sysbench was planned"):
            parse(name, {}, *results)


def test_iperf3_needs_both_results():
    with pytest.raises(ParseError, match="two runs of iperf3 were planned, 1 results came"):
        parse("iperf3-tcp", IPERF_QUICK, captured("iperf3-to"))


def test_output_that_is_not_text():
    with pytest.raises(ParseError, match="not text"):
        parse("sysbench-cpu", {}, completed(b"\xff\xfe\x00"))
