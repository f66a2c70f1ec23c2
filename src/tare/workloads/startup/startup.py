"""The start of an instance, by the four definitions that studies use, from prepared; and from nothing.

Prepared is all that can be made while no process of the sandbox's runs: its root, its network where the platform does
not make that by itself in every start, a bundle or a disk, a container's record in a daemon. The start instant is just
before the platform's own start command on that. From there to:

- ``command``: a first command (`true`) run inside has returned, and its exit status is on the host;
- ``from-nothing``: the same, and before it the time in which all that was made. tare's own journal, control group and
  waiting between the two are left out;
- ``first-byte``: the first byte of the agent's greeting is on the host;
- ``first-datagram``: a UDP datagram that the agent sends is on the host, by the kernel's receive timestamp;
- ``ping``: the instance's own address answers an ICMP echo request; one is sent every millisecond, and where the
  platform chooses the address, from the moment at which it reports it;
- ``answer``: a service of the instance answers, which only instances without an agent have, and which is their
  headline: they run no command; ``answer-from-nothing`` is the same with the making.

The parts of the time to the first byte, where they can be distinguished: ``runtime`` (the platform's own work), and
``kernel`` and ``userspace`` of a guest that boots one, and ``agent``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Metric
from tare.workloads.base import Params, StartMarks, StartWorkload


class Startup(StartWorkload):
    """No parameters. Every metric is in ms; one that a platform cannot show is left out."""

    name = "startup"
    title = "start of an instance, from prepared and from nothing, by four definitions"
    family = Family.STARTUP
    by_default = True
    metrics = (
        Metric("command", "ms", Direction.LOWER, "from prepared until a first command has returned"),
        Metric("from-nothing", "ms", Direction.LOWER, "and with making root, network, container", headline=True),
        Metric("answer", "ms", Direction.LOWER, "until the first answer from its service"),
        Metric("answer-from-nothing", "ms", Direction.LOWER, "and with making disk and network"),
        Metric("first-byte", "ms", Direction.LOWER, "until the agent's first byte arrives"),
        Metric("first-datagram", "ms", Direction.LOWER, "until a UDP datagram from inside arrives"),
        Metric("ping", "ms", Direction.LOWER, "until the instance's address answers ping"),
        Metric("runtime", "ms", Direction.LOWER, "of the first byte's time: the platform's own work"),
        Metric("kernel", "ms", Direction.LOWER, "of it: the guest's kernel"),
        Metric("userspace", "ms", Direction.LOWER, "of it: the guest's userspace before the agent"),
        Metric("agent", "ms", Direction.LOWER, "of it: the agent"),
    )
    work_unit = "start"
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {}, "full": {}}

    def read(self, marks: StartMarks) -> dict[str, float]:
        times_ns = {
            "command": marks.command_ns,
            "from-nothing": _sum(marks.made_ns, marks.command_ns),
            "first-byte": marks.first_byte_ns,
            "first-datagram": marks.datagram_ns,
            "ping": marks.ping_ns,
            "answer": marks.answer_ns,
            "answer-from-nothing": _sum(marks.made_ns, marks.answer_ns),
        }
        for name, value in times_ns.items():
            if value is not None and value <= 0:
                raise ParseError(f"the start's {name} came {-value} ns before the start")
        figures = {name: value / 1e6 for name, value in times_ns.items() if value is not None}
        # A part below its clock's resolution is no figure: nothing can be a multiple of it.
        return figures | {name: value / 1e6 for name, value in marks.parts.items() if value > 0}


def _sum(made_ns: int | None, mark_ns: int | None) -> int | None:
    return None if made_ns is None or mark_ns is None else made_ns + mark_ns


WORKLOAD = Startup()
