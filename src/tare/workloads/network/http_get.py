"""Pages asked for over HTTP, one at a time and a connection for each, from the client's side.

For guests that answer nothing else, as many unikernels do, and for what stands in front of every web service: three
packets to open the connection, the request, the page, and its end, which the server begins (HTTP/1.0). An instance with
an agent serves a page by the image's perl; one without is asked for its own, whose size and contents are its own, so
such figures compare platforms only where they serve the same page. What is timed ends when the page is whole: by its
Content-Length, or else by the connection's end. An answer that is an error ends the trial with its first line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.model import Family
from tare.workloads.base import Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.network import exchange

#: The name of the service that an instance without an agent may have.
SERVICE = "http"
#: Serves one page of so many bytes to whatever is asked.
SERVER = """
use strict; use Socket qw(:DEFAULT IPPROTO_TCP TCP_NODELAY);
my ($port, $size) = @ARGV;
$SIG{PIPE} = "IGNORE";
my $page = "HTTP/1.0 200 OK\\r\\nContent-Length: $size\\r\\nConnection: close\\r\\n\\r\\n" . "x" x $size;
socket(my $s, PF_INET, SOCK_STREAM, 0) or die "socket: $!";
setsockopt($s, SOL_SOCKET, SO_REUSEADDR, 1) or die "setsockopt: $!";
bind($s, sockaddr_in($port, INADDR_ANY)) or die "bind: $!";
listen($s, SOMAXCONN) or die "listen: $!";
$| = 1; print "serving\\n";
while (1) {
    accept(my $c, $s) or next;
    setsockopt($c, IPPROTO_TCP, TCP_NODELAY, 1);
    my $asked = "";
    until ($asked =~ /\\r\\n\\r\\n/) { sysread($c, $asked, 4096, length $asked) or last }
    syswrite($c, $page) if $asked =~ m{^GET /};
    close($c);
}
"""
CLIENT = """
use strict; use Socket qw(:DEFAULT IPPROTO_TCP TCP_NODELAY); use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);
my ($host, $port, $seconds, $warm_up, $size, $path) = @ARGV;
$SIG{PIPE} = "IGNORE";
my $where = sockaddr_in($port, inet_aton($host));
my $asked = "GET $path HTTP/1.0\\r\\nHost: $host\\r\\n\\r\\n";
my ($number, $lost, @took) = (0, 0);
sub whole {
    my ($got) = @_;
    my ($head, $body) = split /\\r\\n\\r\\n/, $got, 2;
    return defined $body && $head =~ /^content-length: *([0-9]+)/mi && length $body >= $1;
}
my $begin = clock_gettime(CLOCK_MONOTONIC) + $warm_up;
my $end = $begin + $seconds;
while (1) {
    my $at = clock_gettime(CLOCK_MONOTONIC);
    last if $at >= $end;
    $number++;
    socket(my $s, PF_INET, SOCK_STREAM, 0) or die "socket: $!";
    setsockopt($s, IPPROTO_TCP, TCP_NODELAY, 1) or die "setsockopt: $!";
    setsockopt($s, SOL_SOCKET, $_, pack("l!l!", 5, 0)) or die "setsockopt: $!" for SO_RCVTIMEO, SO_SNDTIMEO;
    connect($s, $where) or die "connect: $!";
    (syswrite($s, $asked) // die "request $number: $!") == length $asked or die "request $number did not go at once";
    my ($got, $more) = ("", 1);
    until (!$more or whole($got)) { $more = sysread($s, $got, 65536, length $got) // die "no page $number: $!" }
    my $took = clock_gettime(CLOCK_MONOTONIC) - $at;
    close($s);
    my ($first) = split /\\r?\\n/, $got;
    $first =~ m{^HTTP/1\\.[01] [23][0-9][0-9]} or die "page $number is none: ", substr($first // "", 0, 80);
    $more or $got =~ /\\r\\n\\r\\n/ && $got !~ /^content-length:/mi or die "page $number is not whole";
    push @took, $took if $at >= $begin;
}
"""


class HttpGet(RunWorkload):
    """Parameters: ``time_s`` in seconds, ``warmup_s`` before it, and the ``size`` in bytes of the page of perl's."""

    name = "http-get"
    title = "pages over HTTP, one at a time, a connection for each"
    family = Family.NETWORK
    metrics = exchange.METRICS
    work_unit = "page"
    packages = ("perl",)
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"time_s": 0.5, "warmup_s": 0.1, "size": 1024},
        "full": {"time_s": 10.0, "warmup_s": 1.0, "size": 1024},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        server, client = (SERVER, str(params["size"])), CLIENT + exchange.TELL
        return exchange.plan(self.name, params, around, server, client, SERVICE, (around.http_path,))

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        return exchange.read(params, results)


WORKLOAD = HttpGet()
