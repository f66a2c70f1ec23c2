"""Code of the workloads of requests and answers: the form of their clients' figures, and its reader.

Clients and servers are commands of the agent's (`agent/src/exchange`), so that every instance with an agent has them:
blocking sockets, a system call each way, and no interpreter between them. Of the tools for this (netperf, sockperf,
qperf, wrk) none is in the image, and netperf is not in Debian's main section.
"""

from __future__ import annotations

from collections.abc import Sequence

from tare.errors import HostError, ParseError
from tare.model import Direction, Metric
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, Side, Surroundings
from tare.workloads.output import agree, positive, read_lines, text_of

#: With a larger share of lost requests the figures do not describe the platform.
MAX_LOST = 0.01
GRACE_S = 15.0
#: The time first, and in tables what a platform adds to it: a ratio of round trips is of the wire and the host as much
#: as of the platform, and holds for no other.
METRICS = (
    Metric("median", "us", Direction.LOWER, "half of the answers came within, asked for one at a time"),
    Metric("rate", "requests/s", Direction.HIGHER, "answers a second", headline=True),
    Metric("p99", "us", Direction.LOWER, "99 of 100 answers came within, asked for one at a time"),
)
#: The agent's own program, inside and in the client's root: `answer` serves, `ask` is the client.
AGENT = "/usr/local/bin/tare-agent"
GRAMMAR = (
    r"answered (?P<answered>[0-9]+)", r"lost (?P<lost>[0-9]+)", r"seconds (?P<seconds>[0-9]+\.[0-9]{6})",
    r"rate (?P<rate>[0-9]+\.[0-9]{3})", r"mean (?P<mean>[0-9]+\.[0-9]{3}) us",
    r"median (?P<median>[0-9]+\.[0-9]{3}) us", r"p99 (?P<p99>[0-9]+\.[0-9]{3}) us",
    r"sum (?P<sum>[0-9]+)", "end",
)  # fmt: skip


def plan(
    name: str, params: Params, around: Surroundings, kind: str, service: str | None = None, more: Sequence[str] = ()
) -> RunPlan:
    """Return the server in the instance, and the client at the other side.

    ``kind``: the agent's name of the exchange. ``service``: the name under which an instance may serve this itself;
    then that is asked, and no server is started. ``more``: further arguments of the client. Raises `HostError` where
    the instance has no network, or neither an agent nor this service.
    """
    if around.address is None or around.port is None or around.instance_port is None:
        raise HostError(f"{name} needs an instance with a network", fix=f"leave out {name} on this platform")
    time_s = float(params["time_s"]) + float(params["warmup_s"])
    if service is not None and service in around.lacks:
        raise HostError(f"{name} asks another service: {around.lacks[service]}")
    service_port = around.services.get(service) if service is not None else None
    size = str(params["size"])
    served = server(around, kind, size, time_limit_s=time_s + 2 * GRACE_S)
    port = service_port if service_port is not None else around.port
    ask = (kind, around.address, str(port), str(params["time_s"]), str(params["warmup_s"]), size, *more)
    measure = Command((AGENT, "ask", *ask), side=Side.CLIENT, time_limit_s=time_s + GRACE_S, cwd="/")
    return RunPlan(servers=() if service_port is not None else (served,), measures=(measure,))


def server(around: Surroundings, kind: str, size: str = "64", *, time_limit_s: float) -> Command:
    """Return the server of an exchange, on the port that the client calls."""
    argv = (AGENT, "answer", kind, str(around.instance_port), size, around.listen)
    return Command(argv, time_limit_s=time_limit_s, ready=b"serving")


def read(params: Params, results: Sequence[Completed]) -> Outcome:
    """Return the figures of `METRICS`, from what the client printed. Raises `ParseError`."""
    if len(results) != 1:
        raise ParseError(f"one client was planned, {len(results)} results came")
    output = text_of(results[0])
    fields = read_lines("the client", output, GRAMMAR)
    if int(fields["sum"]) != sum(output[: output.index("sum ")].encode()):
        raise ParseError("the client's figures do not have the sum that it sent with them")
    answered, lost, seconds = int(fields["answered"]), int(fields["lost"]), float(fields["seconds"])
    rate, median, p99 = (positive("the client", name, fields[name]) for name in ("rate", "median", "p99"))
    mean = positive("the client", "a mean", fields["mean"])
    if lost > MAX_LOST * (answered + lost):
        raise ParseError(f"{lost} of {answered + lost} requests were not answered")
    if seconds < 0.9 * float(params["time_s"]):
        raise ParseError(f"the client ended after {seconds:.2f} s, {params['time_s']} s were asked for")
    agree("the client", "requests a second", answered / positive("the client", "a time", seconds), rate)
    if median > p99 or mean * answered > 1e6 * seconds * 1.02:
        raise ParseError(f"the client contradicts itself: mean {mean}, median {median}, p99 {p99} us")
    return Outcome({"rate": rate, "median": median, "p99": p99}, work=answered)
