"""The times of one start: its marks by four definitions, and the parts that the time to the first byte is made of."""

from __future__ import annotations

from typing import Protocol

from tare.platforms.base import Instance
from tare.platforms.watchers.marks import Datagram
from tare.session import Session
from tare.timeouts import stretched
from tare.workloads.base import StartMarks

#: After the first command has returned, the datagram and the ping have this long to come.
MARK_LIMIT_S = 3.0
NO_AGENT = "it is a black box: no agent runs inside"


class Greeting(Protocol):
    """The part of an agent's hello that is about its own start, in ns."""

    @property
    def clock_ns(self) -> int: ...
    @property
    def began_ns(self) -> int: ...
    @property
    def uptime_ns(self) -> int: ...
    @property
    def userspace_ns(self) -> int | None: ...


def marks(instance: Instance, session: Session, datagram: Datagram, command_ns: int, *, own_kernel: bool) -> StartMarks:
    """Return the marks of a start in ns from the start command, or why one is missing."""
    reasons = {"answer_ns": "it brings no service of its own: the agent serves what is asked"}
    # The watcher's thread and the session see the same byte; the earlier of the two times is nearer to it.
    first = min(instance.first_byte.wait(time_limit_s=MARK_LIMIT_S) or session.first_byte_ns, session.first_byte_ns)
    sent = None
    if instance.address.host is None:
        reasons["datagram_ns"] = instance.address.no_ping
    else:
        sent = datagram.wait((session.hello.beacon or "").encode(), time_limit_s=MARK_LIMIT_S)
        if sent is None:
            reasons["datagram_ns"] = f"no datagram reached the host within {stretched(MARK_LIMIT_S):.0f} s"
    began = instance.started
    pinged = _pinged(instance, reasons)
    first_byte_ns = first - began.monotonic_ns
    made_of = parts(first_byte_ns, session.hello, own_kernel=own_kernel)
    if not made_of:
        reasons["parts"] = "the clock inside says that more time passed than the host's does"
    return StartMarks(
        first_byte_ns=first_byte_ns,
        command_ns=command_ns,
        datagram_ns=None if sent is None else sent - began.realtime_ns,
        ping_ns=pinged,
        reasons=reasons,
        parts=made_of,
        made_ns=began.made_ns,
    )


def marks_from_outside(instance: Instance, answered_ns: int) -> StartMarks:
    """Return the marks of a start without an agent.

    ``answered_ns``: when its services first answered, on the host's clock.
    """
    reasons = dict.fromkeys(("first_byte_ns", "command_ns", "datagram_ns", "parts"), NO_AGENT)
    pinged = _pinged(instance, reasons)
    answer = answered_ns - instance.started.monotonic_ns
    return StartMarks(None, None, None, pinged, reasons, answer_ns=answer, made_ns=instance.started.made_ns)


def _pinged(instance: Instance, reasons: dict[str, str]) -> int | None:
    if instance.ping is None:
        reasons["ping_ns"] = instance.address.no_ping
        return None
    at = instance.ping.wait(time_limit_s=MARK_LIMIT_S)
    if at is None:
        reasons["ping_ns"] = f"{instance.address.ping} did not answer within {stretched(MARK_LIMIT_S):.0f} s"
        return None
    return at - instance.started.monotonic_ns


def parts(first_byte_ns: int, hello: Greeting, *, own_kernel: bool) -> dict[str, int]:
    """Split the time to the first byte into parts, in ns.

    ``agent``: from the agent's start to its greeting. ``kernel`` and ``userspace``, where a kernel was booted for the
    instance: by that kernel's uptime, which begins when the kernel has set up its clock; userspace is split off where
    a boot script reported when it began. ``runtime``: the rest, the platform's own work on the host before the guest's
    kernel or the agent. Only durations cross between the clocks, so their offsets do not matter. Empty when the parts
    are longer than the whole.
    """
    agent = hello.clock_ns - hello.began_ns
    durations = {"agent": agent}
    booted = 0
    if own_kernel:
        booted = hello.uptime_ns
        userspace = hello.userspace_ns
        durations["kernel"] = booted if userspace is None else userspace
        if userspace is not None:
            durations["userspace"] = booted - userspace
    runtime = first_byte_ns - booted - agent
    if runtime < 0 or any(part < 0 for part in durations.values()):
        return {}
    return {"runtime": runtime, **durations}
