"""Requests and answers over TCP, one at a time, from the client's side: on one connection, and with one for each.

TCP loses nothing: a connection that is refused or reset, or is silent for 5 s, ends the trial with that as its reason.

What netperf calls TCP_RR and TCP_CRR (Giallorenzo 2021, Related Work, has others' figures of the kind); here the
image's perl asks and answers (`exchange` says why). `tcp-rr` is the cost of a small message each way, `tcp-crr` that
of a connection with one request: three packets to open it, the request, the answer, and its end, which the server
begins, as a web server without keep-alive does. So it is the server's side that waits in TIME_WAIT, and the client does
not run out of ports. An instance without an agent is asked on one connection, if it has an echo service.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.model import Family
from tare.workloads.base import Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.network import exchange

#: The name of the echo service that an instance without an agent may have.
SERVICE = "tcp-echo"
#: Echoes; closes a connection after so many bytes, 0: when the client does.
SERVER = """
use strict; use Socket qw(:DEFAULT IPPROTO_TCP TCP_NODELAY);
my ($port, $most) = @ARGV;
$SIG{PIPE} = "IGNORE";
socket(my $s, PF_INET, SOCK_STREAM, 0) or die "socket: $!";
setsockopt($s, SOL_SOCKET, SO_REUSEADDR, 1) or die "setsockopt: $!";
bind($s, sockaddr_in($port, INADDR_ANY)) or die "bind: $!";
listen($s, SOMAXCONN) or die "listen: $!";
$| = 1; print "serving\\n";
while (1) {
    accept(my $c, $s) or next;
    setsockopt($c, IPPROTO_TCP, TCP_NODELAY, 1);
    my ($data, $echoed) = ("", 0);
    until ($most and $echoed >= $most) {
        sysread($c, $data, 65536) or last;
        while (length $data) {
            my $some = syswrite($c, $data) or last;
            substr($data, 0, $some) = "";
            $echoed += $some;
        }
        last if length $data;
    }
    close($c);
}
"""
_HEAD = """
use strict; use Socket qw(:DEFAULT IPPROTO_TCP TCP_NODELAY); use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);
my ($host, $port, $seconds, $warm_up, $size) = @ARGV;
$SIG{PIPE} = "IGNORE";
my $where = sockaddr_in($port, inet_aton($host));
my ($number, $lost, @took) = (0, 0);
sub opened {
    socket(my $s, PF_INET, SOCK_STREAM, 0) or die "socket: $!";
    setsockopt($s, IPPROTO_TCP, TCP_NODELAY, 1) or die "setsockopt: $!";
    setsockopt($s, SOL_SOCKET, $_, pack("l!l!", 5, 0)) or die "setsockopt: $!" for SO_RCVTIMEO, SO_SNDTIMEO;
    connect($s, $where) or die "connect: $!";
    return $s;
}
sub answered {
    my ($s, $until_its_end) = @_;
    my $asked = pack("Q", ++$number) . "x" x ($size - 8);
    (syswrite($s, $asked) // die "request $number: $!") == $size or die "request $number did not go at once";
    my $got = "";
    while ($until_its_end or length $got < $size) {
        sysread($s, $got, $size + 1, length $got) // die "no answer to request $number: $!" or last;
    }
    $got eq $asked or die "the answer to request $number is not the request: ", length $got, " bytes";
}
"""
ON_ONE = (
    _HEAD
    + """
my $s = opened();
my $begin = clock_gettime(CLOCK_MONOTONIC) + $warm_up;
my $end = $begin + $seconds;
while (1) {
    my $at = clock_gettime(CLOCK_MONOTONIC);
    last if $at >= $end;
    answered($s, 0);
    push @took, clock_gettime(CLOCK_MONOTONIC) - $at if $at >= $begin;
}
"""
)
ON_EACH = (
    _HEAD
    + """
my $begin = clock_gettime(CLOCK_MONOTONIC) + $warm_up;
my $end = $begin + $seconds;
while (1) {
    my $at = clock_gettime(CLOCK_MONOTONIC);
    last if $at >= $end;
    my $s = opened();
    answered($s, 1);
    close($s);
    push @took, clock_gettime(CLOCK_MONOTONIC) - $at if $at >= $begin;
}
"""
)


class TcpRr(RunWorkload):
    """Parameters: ``time_s`` in seconds, ``warmup_s`` before it, and the ``size`` of request and answer in bytes."""

    name = "tcp-rr"
    title = "TCP requests and answers, one at a time, on one connection"
    family = Family.NETWORK
    metrics = exchange.METRICS
    work_unit = "request"
    packages = ("perl",)
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"time_s": 0.5, "warmup_s": 0.1, "size": 64},
        "full": {"time_s": 10.0, "warmup_s": 1.0, "size": 64},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        return exchange.plan(self.name, params, around, (SERVER, "0"), ON_ONE + exchange.TELL, SERVICE)

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        return exchange.read(params, results)


class TcpCrr(TcpRr):
    """Parameters: as of one connection. What is timed begins before the connection and ends with its end."""

    name = "tcp-crr"
    title = "TCP requests and answers, one at a time, a connection for each"

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        return exchange.plan(self.name, params, around, (SERVER, str(params["size"])), ON_EACH + exchange.TELL)


WORKLOADS = (TcpRr(), TcpCrr())
