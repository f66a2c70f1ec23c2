"""The network stack by the packet and by the KiB, over the loopback inside the instance: no wire, no other machine.

One thread sends and receives, so that no switch between tasks is in the figure. By the packet: one byte, a datagram to
oneself, or a segment there and one back. By the KiB: 16 KiB at a time in the same way; a packet's share is in it.

The loopback is that of a network namespace of its own, where the agent may make one: who has the host's network, as
native, would have the host's packet rules and its tracking of connections in the way of each packet.
"""

from __future__ import annotations

from tare.workloads.kernel.unit import unit_cost

WORKLOADS = (
    unit_cost("net-udp-packet", "UDP over loopback: datagrams of 1 byte, sent and received", "udp-packet", "packet", 2),
    unit_cost("net-udp-kib", "UDP over loopback: datagrams of 16 KiB, sent and received", "udp-kib", "KiB", 2),
    unit_cost("net-tcp-packet", "TCP over loopback: segments of 1 byte, sent and received", "tcp-packet", "packet", 2),
    unit_cost("net-tcp-kib", "TCP over loopback: 16 KiB at a time, sent and received", "tcp-kib", "KiB", 2),
)
