"""What br_netfilter costs a round trip on tare's bridge: why it is off for the time of a campaign.

Two network namespaces on a bridge in a third one, which has dockerd's rules of the packet filter. One asks and the
other answers, by UDP, 1 byte, in one thread: the CPU time is that of both ways through both stacks and the bridge. In
slices of 20 ms with the module's settings on and off in random order, and off once more for the noise.

    .venv/bin/python bench/bench_bridge.py [ROUNDS]
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import random
import socket
import statistics
import subprocess
import sys
import time

from tare.host import processes

SETUP = """\
ip link add br0 type bridge && ip link set br0 up && ip link set lo up
for side in left right; do
    ip netns add bench$side
    ip link add $side type veth peer name eth0 netns bench$side
    ip link set $side master br0 up
done
ip -n benchleft addr add 192.0.2.1/24 dev eth0 && ip -n benchleft link set eth0 up
ip -n benchright addr add 192.0.2.2/24 dev eth0 && ip -n benchright link set eth0 up
modprobe br_netfilter 2>/dev/null || :
iptables -t nat -N DOCKER; iptables -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
iptables -t nat -A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
iptables -A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
echo; while read -r value; do echo $value >/proc/sys/net/bridge/bridge-nf-call-iptables; echo; done
"""
SLICE_S = 0.02
_NEW_NETWORK = 0x40000000


def main() -> None:
    """Print the cost of a round trip, off and on."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    # A /run and a /sys of their own, so that the namespaces' names and files are nobody else's.
    apart = ["unshare", "--net", "--mount", "sh", "-ec", 'mount -t tmpfs none /run; exec sh -ec "$1"', "sh", SETUP]
    holder = processes.start(apart, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with contextlib.ExitStack() as after:
        after.callback(processes.end, holder)
        if not holder.stdout.read(1):
            raise SystemExit("the bridge cannot be made")
        asker, answerer = ends(holder.pid)
        costs = {"off": [], "on": [], "off again": []}
        for _ in range(rounds):
            for name in random.sample(list(costs), len(costs)):
                holder.stdin.write(b"1\n" if name == "on" else b"0\n")
                holder.stdout.read(1)
                costs[name].append(round_trip_ns(asker, answerer))
    off = statistics.median(costs["off"])
    print("| br_netfilter | CPU time of a round trip | more than off |")
    print("| --- | --- | --- |")
    for name, ns in costs.items():
        print(f"| {name} | {statistics.median(ns) / 1e3:.2f} µs | {'' if name == 'off' else more(ns, costs['off'])} |")
    assert off > 0


def ends(pid: int) -> tuple[socket.socket, socket.socket]:
    """A socket in either namespace, each the other's partner."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    pair = []
    for name in ("benchleft", "benchright"):
        enter(os.open(f"/proc/{pid}/root/run/netns/{name}", os.O_RDONLY))
        pair.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    enter(home)
    asker, answerer = pair
    answerer.bind(("192.0.2.2", 7))
    asker.bind(("192.0.2.1", 7))
    asker.connect(("192.0.2.2", 7))
    answerer.connect(("192.0.2.1", 7))
    return asker, answerer


def round_trip_ns(asker: socket.socket, answerer: socket.socket) -> float:
    """CPU time of a question and its answer, over a slice."""
    turns, until, began = 0, time.monotonic() + SLICE_S, time.process_time_ns()
    while time.monotonic() < until:
        for _ in range(10):
            asker.send(b"?")
            answerer.send(answerer.recv(1))
            asker.recv(1)
        turns += 10
    return (time.process_time_ns() - began) / turns


def more(costs: list[float], base: list[float]) -> str:
    """The mean of the rounds' differences, with its 95 % interval."""
    differences = [(cost - off) / 1e3 for cost, off in zip(costs, base, strict=True)]
    middle, half = statistics.mean(differences), 1.96 * statistics.stdev(differences) / math.sqrt(len(differences))
    return f"{middle:+.2f} µs ({middle - half:+.2f} to {middle + half:+.2f})"


def enter(namespace: int) -> None:
    """Go over to a network namespace; sockets stay in theirs."""
    if ctypes.CDLL(None, use_errno=True).setns(namespace, _NEW_NETWORK) != 0:
        raise SystemExit(f"a network namespace cannot be entered: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main()
