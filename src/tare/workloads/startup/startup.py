"""How long a platform takes to start, by four definitions from one start instant.

The instant is just before the platform's own start command (``docker run``'s create and start, ``runc run`` ...);
what a user would have prepared (folders, the bundle, its network namespace) is there already.

- ``command``: a first command (``true``) has run inside and its exit status is on the host;
- ``first-byte``: the first byte that the agent writes arrives on the host;
- ``first-datagram``: a UDP datagram that the agent sends when it starts has reached the host, by the kernel's receive
  timestamp;
- ``ping``: the instance's own address answers an echo request; one is sent every millisecond, for Docker from the
  moment at which it says the address. Platforms without an address of their own have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.model import Direction, Family, Metric
from tare.workloads.base import Params, StartMarks, StartWorkload


class Startup(StartWorkload):
    """Milliseconds from the start instant."""

    name: ClassVar[str] = "startup"
    title: ClassVar[str] = "start-up by four definitions"
    family: ClassVar[Family] = Family.STARTUP
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("command", "ms", Direction.LOWER, "Until a first command has returned"),
        Metric("first-byte", "ms", Direction.LOWER, "Until the agent's first byte"),
        Metric("first-datagram", "ms", Direction.LOWER, "Until the first UDP datagram reaches the host"),
        Metric("ping", "ms", Direction.LOWER, "Until the address answers ping"),
    )
    work_unit: ClassVar[str] = "start"
    needs_network: ClassVar[bool] = True
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {}, "full": {}}

    def read(self, marks: StartMarks) -> dict[str, float]:
        """Milliseconds by metric; marks that were not seen are left out."""
        seen = {
            "command": marks.command_ns,
            "first-byte": marks.first_byte_ns,
            "first-datagram": marks.datagram_ns,
            "ping": marks.ping_ns,
        }
        return {name: mark / 1e6 for name, mark in seen.items() if mark is not None}


WORKLOAD = Startup()
