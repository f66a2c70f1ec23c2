"""Requests and answers over UDP, one at a time, from the client's side: how many a second, and how long each took.

What has an agent echoes by a program of the image's in the instance; what has none (a unikernel) echoes by itself, if
it says that it does. The client is the same program for all. A request that is lost is waited for a second and counted
as lost, not as slow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import HostError, ParseError
from tare.model import Direction, Family, Metric
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Side, Surroundings
from tare.workloads.output import agree, positive, read_lines, text_of

#: The service by which an instance says that it echoes datagrams itself.
SERVICE = "udp-echo"
#: More than this lost, and the rest is no picture of the platform.
MOST_LOST = 0.01
GRACE_S = 15.0
SERVER = """
use strict; use Socket;
socket(my $s, PF_INET, SOCK_DGRAM, 0) or die "socket: $!";
bind($s, sockaddr_in($ARGV[0], INADDR_ANY)) or die "bind: $!";
$| = 1; print "serving\\n";
my $data;
while (defined(my $from = recv($s, $data, 65535, 0))) { send($s, $data, 0, $from) }
"""
CLIENT = """
use strict; use Socket; use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);
my ($host, $port, $seconds, $warm_up, $size) = @ARGV;
socket(my $s, PF_INET, SOCK_DGRAM, 0) or die "socket: $!";
connect($s, sockaddr_in($port, inet_aton($host))) or die "connect: $!";
my ($number, $lost, $got, @took) = (0, 0);
my $begin = clock_gettime(CLOCK_MONOTONIC) + $warm_up;
my $end = $begin + $seconds;
while (1) {
    my $at = clock_gettime(CLOCK_MONOTONIC);
    last if $at >= $end;
    my $asked = pack("Q", ++$number) . "x" x ($size - 8);
    my $answered = 0;
    if (send($s, $asked, 0)) {
        while (1) {
            my $ready = ""; vec($ready, fileno($s), 1) = 1;
            my $left = 1 - (clock_gettime(CLOCK_MONOTONIC) - $at);
            last if $left <= 0 or select($ready, undef, undef, $left) < 1;
            defined(recv($s, $got, 65535, 0)) or last;
            $answered = $got eq $asked and last;
        }
    }
    next if $at < $begin;
    if ($answered) { push @took, clock_gettime(CLOCK_MONOTONIC) - $at } else { $lost++ }
}
my $spent = clock_gettime(CLOCK_MONOTONIC) - $begin;
@took = sort { $a <=> $b } @took;
my $count = @took;
die "no answer to $lost requests" unless $count;
my $sum = 0; $sum += $_ for @took;
my $said = sprintf "answered %d\\nlost %d\\nseconds %.6f\\nrate %.3f\\nmean %.3f us\\nmedian %.3f us\\np99 %.3f us\\n",
    $count, $lost, $spent, $count / $spent,
    1e6 * $sum / $count, 1e6 * $took[int($count / 2)], 1e6 * $took[int($count * 0.99)];
print $said, "sum ", unpack("%32C*", $said), "\\nend\\n"; # nothing else would show a median that was damaged
"""
GRAMMAR = (
    r"answered (?P<answered>[0-9]+)", r"lost (?P<lost>[0-9]+)", r"seconds (?P<seconds>[0-9]+\.[0-9]{6})",
    r"rate (?P<rate>[0-9]+\.[0-9]{3})", r"mean (?P<mean>[0-9]+\.[0-9]{3}) us",
    r"median (?P<median>[0-9]+\.[0-9]{3}) us", r"p99 (?P<p99>[0-9]+\.[0-9]{3}) us",
    r"sum (?P<sum>[0-9]+)", "end",
)  # fmt: skip


class UdpRtt(RunWorkload):
    """Parameters: ``time_s`` in seconds, ``warmup_s`` before it, and the ``size`` of a datagram in bytes."""

    name = "udp-rtt"
    title = "UDP requests and answers, one at a time"
    family = Family.NETWORK
    by_default = True
    metrics = (
        Metric("rate", "requests/s", Direction.HIGHER, "answers a second"),
        Metric("median", "us", Direction.LOWER, "half of the answers came within"),
        Metric("p99", "us", Direction.LOWER, "99 of 100 answers came within"),
    )
    work_unit = "request"
    packages = ("perl",)
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"time_s": 1.0, "warmup_s": 0.2, "size": 64},
        "full": {"time_s": 10.0, "warmup_s": 1.0, "size": 64},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        if around.address is None or around.port is None or around.instance_port is None:
            raise HostError("udp-rtt needs an instance with a network", fix="leave out udp-rtt on this platform")
        time_s = float(params["time_s"]) + float(params["warmup_s"])
        own = around.services.get(SERVICE)
        serve = ("perl", "-e", SERVER, str(around.instance_port))
        server = Command(serve, time_limit_s=time_s + 2 * GRACE_S, ready=b"serving")
        port = own if own is not None else around.port
        ask = (around.address, str(port), str(params["time_s"]), str(params["warmup_s"]), str(params["size"]))
        client = Command(("perl", "-e", CLIENT, *ask), side=Side.CLIENT, time_limit_s=time_s + GRACE_S, cwd="/")
        return RunPlan(servers=() if own is not None else (server,), measures=(client,))

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        if len(results) != 1:
            raise ParseError(f"one client was planned, {len(results)} results came")
        said = text_of(results[0])
        told = read_lines("the client", said, GRAMMAR)
        if int(told["sum"]) != sum(said[: said.index("sum ")].encode()):
            raise ParseError("the client's figures do not have the sum that it sent with them")
        answered, lost, seconds = int(told["answered"]), int(told["lost"]), float(told["seconds"])
        rate, median, p99 = (positive("the client", name, told[name]) for name in ("rate", "median", "p99"))
        mean = positive("the client", "a mean", told["mean"])
        if lost > MOST_LOST * (answered + lost):
            raise ParseError(f"{lost} of {answered + lost} requests were not answered")
        if seconds < 0.9 * float(params["time_s"]):
            raise ParseError(f"the client ended after {seconds:.2f} s, {params['time_s']} s were asked for")
        agree("the client", "requests a second", answered / positive("the client", "a time", seconds), rate)
        if median > p99 or mean * answered > 1e6 * seconds * 1.02:
            raise ParseError(f"the client contradicts itself: mean {mean}, median {median}, p99 {p99} us")
        return Outcome({"rate": rate, "median": median, "p99": p99}, work=answered)


WORKLOAD = UdpRtt()
