"""The network stack by the packet and by the KiB, over the loopback inside the instance: no wire, no other machine.

One thread sends and receives, so that no switch between tasks is in the figure. By the packet: one byte, a datagram to
oneself, or a segment there and one back. By the KiB: 16 KiB at a time in the same way; a packet's share is in it.
"""

from __future__ import annotations

from tare.workloads.kernel.unit import unit_cost

WORKLOADS = (
    unit_cost("net-udp-packet", "UDP over loopback: datagrams of 1 byte, sent and received", "udp-packet", "packet"),
    unit_cost("net-udp-kib", "UDP over loopback: datagrams of 16 KiB, sent and received", "udp-kib", "KiB"),
    unit_cost("net-tcp-packet", "TCP over loopback: segments of 1 byte, sent and received", "tcp-packet", "packet"),
    unit_cost("net-tcp-kib", "TCP over loopback: 16 KiB at a time, sent and received", "tcp-kib", "KiB"),
)
