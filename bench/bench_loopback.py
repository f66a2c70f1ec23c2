"""What the packet filter of a network namespace costs on its loopback: why Docker's is faster than the host's own.

native is in the host's network namespace, where dockerd has put rules; a container's own namespace has none. Here are
fresh namespaces that differ in such rules alone, and this script's own (run it beside a Docker daemon):

- clean, twice: nothing, so that the second shows the noise;
- chains: the chains of a filter, whose rules ask for no connection's state;
- state: one rule of FORWARD that does, which turns connection tracking on for every packet of the namespace;
- nat: dockerd's rules of the table nat, which need it too;
- exempt: the same, with the connections exempt from tracking, which the rules for it cost as much again.

Exchanges through both ends of a UDP and of a TCP connection over 127.0.0.1, 1 byte and 16 KiB, in slices of 20 ms of
all namespaces in random order; CPU time of an exchange, as a ratio to clean in the same round (mean of the logs, 95 %).

    scripts/own-host NAME scripts/with-dockerd .venv/bin/python bench/bench_loopback.py [ROUNDS]
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
from pathlib import Path

from tare.host import processes

SETUPS = {
    "clean": "true",
    "clean again": "true",
    "chains": "iptables -N DOCKER; iptables -A FORWARD -j DOCKER; iptables -P FORWARD DROP",
    "state": "iptables -A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
    "nat": (
        "iptables -t nat -N DOCKER; iptables -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER;"
        " iptables -t nat -A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER;"
        " iptables -t nat -A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE"
    ),
}
SETUPS["exempt"] = f"{SETUPS['nat']}; " + "; ".join(
    f"iptables -t raw -A {chain} lo -j CT --notrack" for chain in ("PREROUTING -i", "OUTPUT -o")
)
OWN = "this host's"
SLICE_S = 0.02
SIZES = (1, 16_384)
_NEW_NETWORK = 0x40000000


def main() -> None:
    """Print a row an exchange."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with contextlib.ExitStack() as after:
        pairs = {OWN: pairs_of_sockets()}
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        for name, setup in SETUPS.items():
            holder = processes.start(
                ["unshare", "--net", "sh", "-ec", f"ip link set lo up; {setup}; echo; read _"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            after.callback(processes.end, holder)
            if not holder.stdout.read(1):
                raise SystemExit(f"the namespace {name} cannot be made")
            enter(os.open(f"/proc/{holder.pid}/ns/net", os.O_RDONLY))
            pairs[name] = pairs_of_sockets()
            enter(home)
        rules = processes.run(["iptables-save"]).text.count("\n-A ")
        print(f"{rules} rules in this host's filter; load {Path('/proc/loadavg').read_text().split()[0]}")
        others = [name for name in pairs if name != "clean"]
        print(f"| exchange | clean | {' | '.join(others)} |")
        print("| --- " * (2 + len(others)) + "|")
        for kind in range(2):
            for size in SIZES:
                print(
                    row(("UDP", "TCP")[kind], size, {name: by_kind[kind] for name, by_kind in pairs.items()}, rounds),
                    flush=True,
                )


def row(kind, size, ends, rounds) -> str:
    """Measure one exchange in all namespaces in turn."""
    data = bytes(size)
    costs = {name: [] for name in ends}
    for _ in range(rounds):
        for name in random.sample(list(ends), len(ends)):
            sender, receiver = ends[name]
            costs[name].append(exchange_ns(sender, receiver, data))
    cells = [ratio(costs[name], costs["clean"]) for name in ends if name != "clean"]
    clean = statistics.median(costs["clean"]) / 1e3
    return f"| {kind}, {size:,} B | {clean:.2f} µs | {' | '.join(cells)} |"


def exchange_ns(sender, receiver, data) -> float:
    """CPU time of one message from one end to the other, over a slice."""
    turns, until, began = 0, time.monotonic() + SLICE_S, time.process_time_ns()
    while time.monotonic() < until:
        for _ in range(20):
            sender.send(data)
            left = len(data)
            while left:
                left -= len(receiver.recv(left))
        turns += 20
    return (time.process_time_ns() - began) / turns


def ratio(costs, clean) -> str:
    """The mean of the rounds' ratios in percent, with its 95 % interval."""
    logs = [math.log(cost / base) for cost, base in zip(costs, clean, strict=True)]
    middle, half = statistics.mean(logs), 1.96 * statistics.stdev(logs) / math.sqrt(len(logs))
    low, point, high = (100 * math.expm1(value) for value in (middle - half, middle, middle + half))
    return f"{point:+.1f} % ({low:+.1f} to {high:+.1f})"


def pairs_of_sockets():
    """A UDP and a TCP connection over the loopback of the present namespace, both ends of each."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect(receiver.getsockname())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        caller = socket.create_connection(listener.getsockname())
        answerer, _ = listener.accept()
    caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return (sender, receiver), (caller, answerer)


def enter(namespace) -> None:
    """Go over to a network namespace; sockets stay in theirs."""
    if ctypes.CDLL(None, use_errno=True).setns(namespace, _NEW_NETWORK) != 0:
        raise SystemExit(f"a network namespace cannot be entered: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main()
