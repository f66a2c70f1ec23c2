"""The workloads of the network beside iperf3-tcp and udp-rtt: what they run, read and refuse, and damaged outputs."""

import json
import re
import socket
import subprocess

import pytest

from tare.errors import HostError, ParseError
from tare.image import image_build
from tare.workloads import workload_registry
from tare.workloads.base import Side, Surroundings
from workloads import test_mutations as damage
from workloads.captures import captured, completed, text

AROUND = Surroundings(2**30, 1, 2**40, "192.0.2.3", 20107, 5201, ping="192.0.2.3")
NOWHERE = Surroundings(2**30, 1, 2**40, None, None, 5201, no_ping="it has no network")
OMIT = {"time_s": 2, "omit_s": 1}
SECOND = {"time_s": 1, "omit_s": 0}
#: Every good capture: workload, parameters, the outputs of its measures.
GOOD = [
    ("iperf3-udp", {}, ["iperf3-udp-to", "iperf3-udp-from"]),
    ("iperf3-udp", {}, ["iperf3-udp-to-gvisor", "iperf3-udp-from-gvisor"]),
    ("iperf3-udp", OMIT, ["iperf3-udp-to-omit", "iperf3-udp-from-omit"]),
    ("iperf3-jitter", {}, ["iperf3-jitter-to", "iperf3-jitter-from"]),
    ("iperf3-jitter", {}, ["iperf3-jitter-to-gvisor", "iperf3-jitter-from-gvisor"]),
    ("iperf3-udp-1g", {}, ["iperf3-udp-1g-to", "iperf3-udp-1g-from"]),
    ("iperf3-tcp-1g", {}, ["iperf3-tcp-1g-to", "iperf3-tcp-1g-from"]),
    ("iperf3-streams", SECOND, ["iperf3-streams-to", "iperf3-streams-from"]),
    ("iperf3-streams", SECOND, ["iperf3-streams-to-gvisor", "iperf3-streams-from-gvisor"]),
    ("ping-rtt", {}, ["ping-rtt"]),
    ("ping-rtt", {}, ["ping-rtt-lossy"]),
    ("ping-rtt", {}, ["ping-rtt-gvisor"]),
    ("ping-rtt", {}, ["ping-rtt-uml"]),
    ("tcp-rr", {}, ["tcp-rr"]),
    ("tcp-rr", {}, ["tcp-rr-gvisor"]),
    ("tcp-crr", {}, ["tcp-crr"]),
    ("tcp-crr", {}, ["tcp-crr-gvisor"]),
]
EACH = [
    pytest.param(name, params, captures, at, id=captures[at])
    for name, params, captures in GOOD
    for at in range(len(captures))
]


def parse(name, params, *results):
    workload = workload_registry.get(name)
    return workload.parse({**workload.profiles["quick"], **params}, results)


def plan(name, profile="quick", around=AROUND):
    workload = workload_registry.get(name)
    return workload.plan(workload.profiles[profile], around)


def clients(planned):
    assert all(command.side is Side.CLIENT for command in planned.measures)
    return [" ".join(command.argv) for command in planned.measures]


# Plans


def test_udp_as_fast_as_it_goes_and_slowly():
    forth = "iperf3 -c 192.0.2.3 -p 20107 -J -t {} -O {} --connect-timeout 5000 -u -b {} -l 1448"
    for name, profile, settings in [
        ("iperf3-udp", "quick", (1, 0, "0M")),
        ("iperf3-udp", "full", (10, 2, "0M")),
        ("iperf3-jitter", "quick", (1, 0, "1M")),
        ("iperf3-jitter", "full", (10, 0, "1M")),
    ]:
        planned = plan(name, profile)
        assert clients(planned) == [forth.format(*settings), f"{forth.format(*settings)} -R"]
        assert [server.argv for server in planned.servers] == [server.argv for server in plan("iperf3-tcp").servers]


def test_a_gigabit_is_the_most_that_is_sent():
    assert "-b 1000M -R" in clients(plan("iperf3-tcp-1g"))[1]
    assert "-u -b 1000M -l 1448" in clients(plan("iperf3-udp-1g"))[0]
    [to, back] = [captured(f"iperf3-tcp-1g-{way}") for way in ("to", "from")]
    with pytest.raises(ParseError, match="another test than was asked"):
        parse("iperf3-tcp", {**SECOND, "time_s": 3, "omit_s": 1}, to, back)


def test_streams_are_four():
    assert [line.split(" --connect-timeout 5000 ")[1] for line in clients(plan("iperf3-streams"))] == [
        "-P 4",
        "-P 4 -R",
    ]


def test_ping_asks_for_ten_seconds_in_full():
    assert clients(plan("ping-rtt")) == ["ping -n -c 20 -i 0.1 -W 1 -s 56 192.0.2.3"]
    assert clients(plan("ping-rtt", "full")) == ["ping -n -c 10 -i 1.0 -W 1 -s 56 192.0.2.3"]


def test_what_cannot_be_pinged_is_refused_with_the_platforms_reason():
    with pytest.raises(HostError, match="it cannot be pinged: it has no network"):
        plan("ping-rtt", around=NOWHERE)


@pytest.mark.parametrize("name", ["iperf3-udp", "iperf3-jitter", "iperf3-streams", "tcp-rr", "tcp-crr"])
def test_without_a_network_they_are_refused(name):
    with pytest.raises(HostError, match="needs an instance with a network") as refused:
        plan(name, around=NOWHERE)
    assert name in refused.value.fix


def test_what_echoes_by_itself_is_asked_on_one_connection_only():
    around = Surroundings(2**30, 1, 2**40, "192.0.2.3", 20107, 5201, services={"tcp-echo": 7})
    planned = plan("tcp-rr", around=around)
    assert planned.servers == ()
    assert planned.measures[0].argv[4] == "7"
    assert len(plan("tcp-crr", around=around).servers) == 1, "which no black box runs: it ends no connection by itself"


# Figures


@pytest.mark.parametrize(
    ("to", "back", "params"),
    [(*captures, params) for name, params, captures in GOOD if name == "iperf3-udp"],
)
def test_udp_takes_the_receivers_figures(to, back, params):
    outcome = parse("iperf3-udp", params, captured(to), captured(back))
    work = 0
    for name, way in ((to, "to-instance"), (back, "from-instance")):
        end = json.loads(text(name))["end"]
        got, sent = end["sum_received"], end["sum_sent"]
        assert outcome.samples[way] == got["bits_per_second"] / 1e6
        assert outcome.samples[f"jitter-{way}"] == pytest.approx(got["jitter_ms"] * 1000)
        assert outcome.samples[f"arrived-{way}"] == pytest.approx(min(100, 100 * got["bytes"] / sent["bytes"]))
        work += got["bytes"] / 2**20 * (1.5 if params else 1)
    assert outcome.work == pytest.approx(work)


def test_what_arrived_is_not_what_iperf3_says_was_lost_when_seconds_are_omitted():
    """iperf3 3.12 counts what was lost in the omitted seconds, and not what was sent in them."""
    end = json.loads(text("iperf3-udp-to-omit"))["end"]
    outcome = parse("iperf3-udp", OMIT, captured("iperf3-udp-to-omit"), captured("iperf3-udp-from-omit"))
    arrived = end["sum_received"]["bytes"] / 1448
    assert arrived + end["sum"]["lost_packets"] > 1.05 * end["sum"]["packets"]
    assert outcome.samples["arrived-to-instance"] == pytest.approx(100 * arrived / end["sum"]["packets"])


def test_jitter_has_no_bandwidth():
    outcome = parse("iperf3-jitter", {}, captured("iperf3-jitter-to"), captured("iperf3-jitter-from"))
    names = ["arrived-from-instance", "arrived-to-instance", "jitter-from-instance", "jitter-to-instance"]
    assert sorted(outcome.samples) == names
    assert outcome.samples["arrived-to-instance"] == 100


def test_the_streams_are_summed():
    outcome = parse("iperf3-streams", SECOND, captured("iperf3-streams-to"), captured("iperf3-streams-from"))
    end = json.loads(text("iperf3-streams-to"))["end"]
    total = sum(stream["receiver"]["bits_per_second"] for stream in end["streams"])
    assert outcome.samples["to-instance"] == pytest.approx(total / 1e6, rel=1e-3)


def test_ping():
    outcome = parse("ping-rtt", {}, captured("ping-rtt"))
    assert outcome.samples == {
        "min": 34.0, "average": 40.0, "max": 47.0, "mdev": 3.0, "median": pytest.approx(40.5), "arrived": 100.0,
    }  # fmt: skip
    assert "cpu-cost" not in [metric.name for metric in workload_registry.get("ping-rtt").all_metrics]


def test_ping_that_loses_some():
    samples = parse("ping-rtt", {}, captured("ping-rtt-lossy")).samples
    assert (samples["arrived"], samples["average"], samples["max"]) == (80.0, 36.0, 44.0)


@pytest.mark.parametrize(
    ("capture", "figures"),
    [
        ("ping-rtt-slow", (350.258, 350.284, 350.369, 0.030)),
        ("ping-rtt-slower", (1400.234, 1400.261, 1400.418, 0.038)),
    ],
)
def test_answers_that_come_after_the_next_request_are_measured(capture, figures):
    """Of a TUN that answered 0.35 s and 1.4 s late: ping says how many requests were under way at once (pipe)."""
    assert ", pipe " in text(capture)
    samples = parse("ping-rtt", {}, captured(capture)).samples
    names = ("min", "average", "max", "mdev")
    assert tuple(samples[name] for name in names) == pytest.approx(tuple(1e3 * figure for figure in figures))
    assert samples["arrived"] == 100
    assert samples["median"] == pytest.approx(1e3 * figures[1], abs=500), "whole milliseconds are what ping shows"


def test_a_round_trip_that_ping_shows_as_nothing_is_less_than_it_shows():
    whole = text("ping-rtt").replace("time=0.034 ms", "time=0.000 ms").replace("= 0.034/", "= 0.000/")
    times = [float(time) for time in re.findall(r"time=([0-9.]+) ms", whole)]
    mean = sum(times) / len(times)
    mdev = (sum(time * time for time in times) / len(times) - mean * mean) ** 0.5
    whole = re.sub(r"0\.000/[0-9.]+/([0-9.]+)/[0-9.]+ ms", rf"0.000/{mean:.3f}/\1/{mdev:.3f} ms", whole)
    samples = parse("ping-rtt", {}, completed(whole)).samples
    assert "min" not in samples
    assert samples["average"] == pytest.approx(1e3 * mean, abs=0.5)
    none = re.sub(r"time=[0-9.]+ ms", "time=0.000 ms", re.sub(r"= [0-9./]+ ms", "= 0.000/0.000/0.000/0.000 ms", whole))
    with pytest.raises(ParseError, match=r"ping reports an average time of 0\.000"):
        parse("ping-rtt", {}, completed(none))


def test_tcp_requests():
    assert parse("tcp-rr", {}, captured("tcp-rr")).samples == {"rate": 45314.572, "median": 15.613, "p99": 61.221}
    assert parse("tcp-crr", {}, captured("tcp-crr")).work == 11047


# Refusals


@pytest.mark.parametrize(
    ("name", "capture", "ended", "message"),
    [
        ("iperf3-udp", "iperf3-udp-no-server", {"code": 1}, "iperf3 failed: unable to connect to server"),
        (
            "iperf3-udp",
            "iperf3-udp-server-killed",
            {"code": 1},
            "iperf3 failed: unable to write to stream socket: Connection refused",
        ),
        ("iperf3-udp", "iperf3-udp-too-large", {"code": 1}, "block size invalid"),
        ("iperf3-udp", "iperf3-udp-from", {}, "another test than was asked"),
        ("iperf3-udp", "iperf3-jitter-to", {}, "another test than was asked: .*target_bitrate=1000000"),
        ("iperf3-udp", "iperf3-to", {}, "something else than a report"),
        ("iperf3-jitter", "iperf3-udp-to", {}, "another test than was asked"),
        ("iperf3-streams", "iperf3-to", {}, "another test than was asked: .*num_streams=1"),
        ("iperf3-streams", "iperf3-udp-to", {}, "something else than a report"),
    ],
)
def test_iperf3_is_refused_and_shown(name, capture, ended, message):
    with pytest.raises(ParseError, match=message):
        parse(name, {}, captured(capture, **ended), captured("iperf3-udp-from"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda end: end["sum_received"].update(bytes=0, bits_per_second=0.0), "moved nothing"),
        (lambda end: end["sum_received"].update(lost_packets=0), "contradicts itself on datagrams"),
        (lambda end: end["sum_received"].update(jitter_ms=1.5), "contradicts itself on jitter"),
        (lambda end: end["sum_received"].pop("jitter_ms"), "jitter_ms"),
        (lambda end: end["sum_received"].update(bytes=3 * 10**8, bits_per_second=2.4e9 / 1.000198), "received 3000"),
    ],
)
def test_udp_reports_that_are_not_whole(change, message):
    report = json.loads(text("iperf3-udp-to"))
    change(report["end"])
    with pytest.raises(ParseError, match=message):
        parse("iperf3-udp", {}, completed(json.dumps(report)), captured("iperf3-udp-from"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda report: report["end"]["streams"].pop(), "3 streams and not 4"),
        (lambda report: report["intervals"][0]["streams"].pop(), "3 streams and not 4"),
        (lambda report: report["end"]["streams"][0]["receiver"].update(bytes=1), "the sum of its streams"),
    ],
)
def test_streams_that_are_not_whole(change, message):
    report = json.loads(text("iperf3-streams-to"))
    change(report)
    with pytest.raises(ParseError, match=message):
        parse("iperf3-streams", SECOND, completed(json.dumps(report)), captured("iperf3-streams-from"))


@pytest.mark.parametrize(
    ("capture", "ended", "params", "message"),
    [
        ("ping-rtt-silent", {"code": 1}, {}, "ended with 1: .*100% packet loss"),
        ("ping-rtt-silent", {}, {}, "printed 3 lines and not 4: .*100% packet loss"),
        ("ping-rtt-no-route", {"code": 2}, {}, "ended with 2: ping: connect: Network is unreachable"),
        ("ping-rtt-wrong-option", {"code": 1}, {}, "invalid argument: '20x'"),
        ("ping-rtt-interrupted", {}, {}, "sent 10 requests and not 20"),
        ("ping-rtt", {}, {"interval_s": 0.2}, "sent 20 requests and not 10"),
        ("tcp-rr", {}, {}, "strange line"),
    ],
)
def test_ping_is_refused_and_shown(capture, ended, params, message):
    with pytest.raises(ParseError, match=message):
        parse("ping-rtt", params, captured(capture, **ended))


@pytest.mark.parametrize(
    ("of", "to", "message"),
    [
        ("icmp_seq=7", "icmp_seq=6", "answers to 1, 2, 3, 4, 5, 6, 6, 8"),
        ("icmp_seq=20 ", "icmp_seq=21 ", "answers to .* of 20 requests"),
        ("64 bytes from 127.0.0.1: icmp_seq=3", "64 bytes from 127.0.0.2: icmp_seq=3", "strange line"),
        ("icmp_seq=3 ttl=64 time=0.045 ms", "icmp_seq=3 ttl=64 time=0.045 ms (DUP!)", "strange line.*DUP"),
        ("64 bytes from 127.0.0.1: icmp_seq=3 ", "From 127.0.0.1 icmp_seq=3 Destination Host Unreachable ", "strange"),
        ("20 received, 0%", "19 received, 5%", "counts 19 answers, and shows 20"),
        ("20 received, 0%", "20 received, 5%", "contradicts itself on what was lost"),
        ("0.034/0.040/", "0.034/0.140/", "contradicts itself on avg"),
        ("/0.003 ms", "/0.030 ms", "contradicts itself on mdev"),
        ("(127.0.0.1)", "(127.0.0.2)", "ping asked 127.0.0.1, 127.0.0.2"),
    ],
)
def test_ping_that_contradicts_itself(of, to, message):
    assert of in text("ping-rtt")
    with pytest.raises(ParseError, match=message):
        parse("ping-rtt", {}, completed(text("ping-rtt").replace(of, to)))


@pytest.mark.parametrize(
    ("name", "capture", "message"),
    [
        ("tcp-rr", "tcp-rr-no-server", "ended with 111: connect: Connection refused"),
        ("tcp-crr", "tcp-crr-no-server", "ended with 111: connect: Connection refused"),
        ("tcp-rr", "tcp-rr-server-killed", "the answer to request 35056 is not the request: 0 bytes"),
        ("tcp-crr", "tcp-crr-server-killed", "the answer to request 7779 is not the request: 0 bytes"),
    ],
)
def test_tcp_requests_without_an_answer(name, capture, message):
    with pytest.raises(ParseError, match=message):
        parse(name, {}, captured(capture, code=111))


@pytest.mark.parametrize("name", ["iperf3-udp", "iperf3-jitter", "iperf3-streams", "ping-rtt", "tcp-rr", "tcp-crr"])
def test_the_number_of_results_must_be_the_plans(name):
    with pytest.raises(ParseError, match="planned, 3 results came"):
        parse(name, {}, *[captured("tcp-rr")] * 3)


# Damaged outputs


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "params", "captures", "at"), EACH)
def test_cut_off_anywhere(name, params, captures, at):
    damage.test_cut_off_anywhere(name, params, captures, at)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "params", "captures", "at"), EACH)
def test_a_line_that_is_missing_or_twice(name, params, captures, at):
    damage.test_a_line_that_is_missing_or_twice(name, params, captures, at)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "params", "captures", "at"), EACH)
def test_one_other_digit_is_seen_or_below_the_tools_rounding(name, params, captures, at):
    damage.test_one_other_digit_is_seen_or_below_the_tools_rounding(name, params, captures, at)


# The agent's own servers and clients; what is no answer to them, its own tests have (agent/src/exchange)


@pytest.fixture
def served():
    """Starts servers of the agent's on loopback: kind and size to a port."""
    running = []

    def start(kind, size, port=None):
        if port is None:
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
        argv = [image_build.agent_path(), "answer", kind, str(port), str(size)]
        running.append(subprocess.Popen(argv, stdout=subprocess.PIPE))
        assert running[-1].stdout.readline() == b"serving\n"
        return port

    def stop():
        while running:
            process = running.pop()
            process.kill()
            process.communicate()

    start.stop = stop
    yield start
    stop()


def ask(kind, port, size, *more):
    argv = [image_build.agent_path(), "ask", kind, "127.0.0.1", str(port), "0.1", "0.01", str(size), *more]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return completed(done.stdout, stderr=done.stderr, code=done.returncode)


EXCHANGES = [("udp-rtt", "udp"), ("tcp-rr", "tcp"), ("tcp-crr", "tcp-each"), ("http-get", "http")]


@pytest.mark.thorough
@pytest.mark.parametrize("size", [64, 9000])
@pytest.mark.parametrize(("name", "kind"), EXCHANGES)
def test_what_the_agent_serves_and_asks_is_what_the_workload_reads(served, name, kind, size):
    page = ["/"] if kind == "http" else []
    outcome = parse(name, {"time_s": 0.1, "size": size}, ask(kind, served(kind, size), size, *page))
    assert outcome.work >= 1


@pytest.mark.parametrize(("name", "kind"), EXCHANGES)
def test_the_plan_starts_the_agents_server_inside_and_its_client_outside(name, kind):
    planned = plan(name)
    [server], [client] = planned.servers, planned.measures
    assert server.argv[1:4] == ("answer", kind, "5201")
    assert client.argv[1:5] == ("ask", kind, "192.0.2.3", "20107")
    assert (server.side, client.side) == (Side.INSTANCE, Side.CLIENT)


def test_a_client_that_was_not_answered_ends_with_the_reason(served):
    port = served("tcp", 64)
    served.stop()
    with pytest.raises(ParseError, match="connect: Connection refused"):
        parse("tcp-rr", {"time_s": 0.1}, ask("tcp", port, 64))


def test_a_server_can_be_started_again_on_its_port(served):
    """After `tcp-crr` its connections wait on the server's side: the next server must get the port all the same."""
    port = served("tcp-each", 64)
    assert parse("tcp-crr", {"time_s": 0.1}, ask("tcp-each", port, 64)).work >= 1
    served.stop()
    assert served("tcp-each", 64, port=port) == port


def test_a_box_is_asked_for_its_own_page_and_for_nothing_that_it_has_not():
    lacks = {"udp-echo": "no `udp` in [answers] of the box's file"}
    around = Surroundings(2**30, 1, 2**40, "192.0.2.3", 20107, 5201, services={"http": 80}, lacks=lacks, http_path="/a")
    planned = plan("http-get", around=around)
    assert planned.servers == ()
    assert (planned.measures[0].argv[4], planned.measures[0].argv[-1]) == ("80", "/a")
    with pytest.raises(HostError, match=r"udp-rtt asks another service: no `udp` in \[answers\]"):
        plan("udp-rtt", around=around)
