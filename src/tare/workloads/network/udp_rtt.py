"""Requests and answers over UDP, one at a time, from the client's side: how many a second, and how long each took.

In an instance with an agent a program of the image echoes; one without (a unikernel) echoes by itself, if it has that
service. The client is the same program for all. A request that is lost is waited for a second and counted
as lost, not as slow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.model import Family
from tare.workloads.base import Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.network import exchange

#: The name of the echo service that an instance without an agent may have.
SERVICE = "udp-echo"
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
"""


class UdpRtt(RunWorkload):
    """Parameters: ``time_s`` in seconds, ``warmup_s`` before it, and the ``size`` of a datagram in bytes."""

    name = "udp-rtt"
    title = "UDP requests and answers, one at a time"
    family = Family.NETWORK
    by_default = True
    metrics = exchange.METRICS
    work_unit = "request"
    packages = ("perl",)
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"time_s": 0.2, "warmup_s": 0.05, "size": 64, "rounds": 3},
        "full": {"time_s": 10.0, "warmup_s": 1.0, "size": 64, "rounds": 1},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        return exchange.plan(self.name, params, around, (SERVER,), CLIENT + exchange.TELL, SERVICE)

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        return exchange.read(params, results)


WORKLOAD = UdpRtt()
