"""The start of an instance, by the four definitions that studies use, from one start instant.

The instant is just before the platform's own start command; what a user would have prepared (folders, the bundle, its
network namespace) exists already. From there to:

- ``command``: a first command (`true`) run inside has returned, and its exit status is on the host;
- ``first-byte``: the first byte of the agent's greeting is on the host;
- ``first-datagram``: a UDP datagram that the agent sends is on the host, by the kernel's receive timestamp;
- ``ping``: the instance's own address answers an ICMP echo request; one is sent every millisecond, and where the
  platform chooses the address, from the moment at which it reports it;
- ``answer``: a service of the instance answers, which only instances without an agent have, and which is their
  headline: they run no command.

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
    title = "start of an instance, by four definitions"
    family = Family.STARTUP
    by_default = True
    metrics = (
        Metric("command", "ms", Direction.LOWER, "until a first command has returned"),
        Metric("answer", "ms", Direction.LOWER, "until the first answer from its service"),
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
        seen = {
            "command": marks.command_ns,
            "first-byte": marks.first_byte_ns,
            "first-datagram": marks.datagram_ns,
            "ping": marks.ping_ns,
            "answer": marks.answer_ns,
        }
        for name, value in seen.items():
            if value is not None and value <= 0:
                raise ParseError(f"the start's {name} came {-value} ns before the start")
        figures = {name: value / 1e6 for name, value in seen.items() if value is not None}
        # A part below its clock's resolution is no figure: nothing can be a multiple of it.
        return figures | {name: value / 1e6 for name, value in marks.parts.items() if value > 0}


WORKLOAD = Startup()
