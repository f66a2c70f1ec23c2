"""Sentences of the manifest, held to what an instance shows while it runs: its network, its data's cache, its daemon.

A network path is words with commas between them. `READINGS` has what must be seen where a path says so, `UNREAD` why
nothing is read for the others.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tare.campaign.execution.caches import FETCHED, STRAY
from tare.campaign.instances.launcher import RunningInstance
from tare.contract.bench import Bench, promise
from tare.contract.leftovers import packet_rules
from tare.host import processes
from tare.host.facts import posture
from tare.host.filesystems import roots
from tare.host.kernel import process_table
from tare.host.network.bridge import TUN
from tare.host.network.fence import BRIDGE
from tare.platforms import platform_contract
from tare.platforms.base import AGENT, NO_NETWORK, Observed, Platform
from tare.platforms.parts.machines import vm

LIMIT_S = 120.0
WRITTEN = 8 << 20
#: Writes a number of bytes to the data volume until they are on its disk.
WRITE = (
    "dd",
    "if=/dev/urandom",
    "of=/data/manifest-holds",
    "bs=1M",
    f"count={WRITTEN >> 20}",
    "conv=fsync",
    "status=none",
)
#: Of a disk of its own the same past the caches of its own kernel, and back.
PAST_ITS_CACHE = (
    (*WRITE, "oflag=direct"),
    ("dd", "if=/data/manifest-holds", "of=/dev/null", "bs=64k", "iflag=direct", "status=none"),
)
#: The drivers of its links.
DRIVERS = 'for link in /sys/class/net/*/device/driver; do basename "$(readlink -f "$link")"; done'


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """The network of an instance, as it shows it."""

    on_hosts: bool  # whether the process that its programs are like has the host's network namespace
    plugged: frozenset[str] = frozenset()  # bridges of the host that links of its are ports of
    addressed: bool = False  # whether a link in its network namespace has an IPv4 address, lo left out
    programs: frozenset[str] = frozenset()  # of its processes on the host
    words: frozenset[str] = frozenset()  # of their command lines
    tun: bool = False  # whether one of them has the device open that makes TAPs
    published: bool = False  # whether the host's packet filter, or a proxy of its own, hands its port on
    drivers: frozenset[str] = frozenset()  # of the links that it sees itself


def _runs(*names: str) -> Callable[[NetworkFacts], bool]:
    """Return True if a program of it begins with one of these names: a build for newer processors has more letters."""
    return lambda network: any(program.startswith(names) for program in network.programs)


#: By the words of a path: whether it is so.
READINGS: Mapping[str, Callable[[NetworkFacts], bool]] = {
    "host stack": lambda network: network.on_hosts,
    "published port (NAT)": lambda network: network.published,
    "published port (rootlessport)": _runs("rootlessport"),
    "published port (pasta)": _runs("pasta"),
    "slirp4netns": _runs("slirp4netns"),
    "passt": _runs("passt"),
    "QEMU's user-mode network (slirp)": lambda network: any(word.startswith("user,id=") for word in network.words),
    "TAP": lambda network: network.tun,
    "veth": lambda network: not network.on_hosts,
    "virtio-net": lambda network: "virtio_net" in network.drivers,
    "the guest's virtio-net": lambda network: "virtio_net" in network.drivers,
    "virtio-net-pci": lambda network: any(word.startswith("virtio-net-pci,") for word in network.words),
    # Netstack takes the address of the namespace's link over.
    "gVisor's netstack": lambda network: _runs("runsc")(network) and not network.addressed,
    # On the host's own network, where nothing is the instance's, runsc's option shows it.
    "sockets by pass-through": lambda network: (
        "--network=host" in network.words if network.on_hosts else network.addressed
    ),
    "UML's vector device": lambda network: any(word.startswith("vec0:transport=tap") for word in network.words),
}
#: The others, and why nothing is read for them.
UNREAD: Mapping[str, str] = {
    "client": "it is tare's own",
    "bridge": "what is behind it is held to be plugged into it",
    "vif (netback, netfront)": "a guest of Xen's is no process of the host's",
    NO_NETWORK: "that nothing is reached is a promise of its own (network-both-ways)",
    "none": "it starts no instance",
}
#: The network behind this is in a guest, and not visible from here.
_INTO_GUEST = "virtio-net"


def pieces(path: str) -> list[tuple[str, str]]:
    """The words of a network path that can be read from this host, each with the word before it."""
    words = re.split(r", (?![^(]*\))", path)
    if _INTO_GUEST in words[:-1]:
        words = words[: words.index(_INTO_GUEST)]
    return list(zip(words, ["", *words], strict=False))


def bridge_of(before: str) -> str:
    """The bridge of the host that a link is plugged into, by the word before it in a path; "": into none."""
    if before == "bridge":
        return BRIDGE
    return "" if before in READINGS or before in UNREAD else before


def contradictions(path: str, seen: NetworkFacts) -> list[str]:
    """The words of a network path that what was seen contradicts."""
    wrong = []
    for word, before in pieces(path):
        unplugged = word in {"veth", "TAP"} and bridge_of(before) not in {"", *seen.plugged}
        if unplugged or (word in READINGS and not READINGS[word](seen)):
            wrong.append(word)
    return wrong


def manifest_holds(bench: Bench) -> None:
    """What the manifest says of its network path, the cache of its data and its daemon is so."""
    platform, running = bench.platform, bench.running
    observed = platform_contract.observed(platform, running.instance, lambda path: _inside(running, ["cat", path]))
    if platform.daemon:
        names = {Path(argv[0]).name for argv in process_table.command_lines().values()}
        # Of Xen's there are two makes, xenstored and oxenstored.
        runs = any(name.endswith(platform.daemon) for name in names)
        promise(runs, f"no {platform.daemon} runs, and it is said to be its daemon")
    if platform.elsewhere:
        return
    network = look(platform, running)
    wrong = contradictions(observed.network_path, network)
    promise(not wrong, f"the network path says {', '.join(wrong)}, and that is not so: {network}")
    if platform.has_agent:
        _cache(platform, running, observed)


def look(platform: Platform, running: RunningInstance) -> NetworkFacts:
    """Return the network of a running instance, as it shows it."""
    spec = running.instance.spec
    pids = running.instance.host_processes()
    commands = [argv for pid in pids if (argv := process_table.argv(pid))]
    pid = posture.foremost(pids, Path(AGENT).name)
    on_hosts = pid is None or _namespace(pid) == _namespace(os.getpid())
    host = _links([])
    links = [] if on_hosts else _links(["nsenter", f"--net=/proc/{pid}/ns/net", "--"])
    peers = {link["link_index"] for link in links if link.get("linkinfo", {}).get("info_kind") == "veth"}
    masters = {link.get("master") for link in host if link["ifindex"] in peers or spec.id in link["ifname"]}
    drivers = _inside(running, ["sh", "-c", DRIVERS]) if platform.has_agent else ""
    programs = frozenset(Path(argv[0]).name for argv in commands)
    return NetworkFacts(
        on_hosts=on_hosts,
        plugged=frozenset(filter(None, masters)),
        addressed=any(_addressed(link) for link in links),
        programs=programs,
        words=frozenset(word for argv in commands for word in argv),
        tun=any(str(TUN) in process_table.open_files(pid) for pid in pids),
        published="docker-proxy" in programs or _handed_on(spec.port),
        drivers=frozenset(drivers.split()),
    )


def _cache(platform: Platform, running: RunningInstance, observed: Observed) -> None:
    """Write to the data volume, and look whether the host's page cache has it."""
    folder = running.instance.spec.space.data
    own_volume = not platform.shares_data
    if own_volume:
        roots.drop_page_cache(folder)
    for argv in PAST_ITS_CACHE if own_volume else [WRITE]:
        done = running.session.execute(list(argv), time_limit_s=LIMIT_S)
        why = done.stderr.decode(errors="replace").strip()[-200:]
        promise(done.code == 0, f"the data volume cannot be written and read: {why}")
    counted = roots.cached_bytes(folder, vm.VOLUME if own_volume else "manifest-holds")
    running.session.execute(["rm", "-f", "/data/manifest-holds"], time_limit_s=LIMIT_S)
    if counted is None:
        promise(own_volume, "/data is said to be the host's folder, which has not what was written to it")
        return  # its file is somewhere else, as in a jail
    has = f"of {WRITTEN} bytes that were written the host's page cache has {counted[0]}"
    cache = observed.disk_cache
    promise(cache_is(cache, counted[0]), f"its data's cache is said to be {cache!r}, and {has}")
    if own_volume:
        through = counted[0] > WRITTEN * STRAY
        promise(bool(platform.no_direct_io) == through, f"{has}, past its own caches")
        opened = observed.facts.get(vm.OPENED)
        promise(
            opened is None or opened == vm.opened_how(direct=not through), f"its disk is opened {opened}, and {has}"
        )


def cache_is(described: str, cached_bytes: int) -> bool:
    """Return True if the stated cache of a data volume agrees with the host's share of `WRITTEN` bytes."""
    return cached_bytes <= WRITTEN * STRAY if described == vm.DIRECT_DISK_CACHE else cached_bytes >= WRITTEN * FETCHED


def _inside(running: RunningInstance, argv: list[str]) -> str:
    done = running.session.execute(argv, time_limit_s=LIMIT_S)
    return done.stdout.decode(errors="replace").strip() if done.code == 0 else ""


def _namespace(pid: int) -> str:
    return str(Path(f"/proc/{pid}/ns/net").readlink())


def _links(within: list[str]) -> list[dict[str, Any]]:
    finished = processes.run([*within, "ip", "-json", "-details", "address"], time_limit_s=LIMIT_S).require()
    links: list[dict[str, Any]] = json.loads(finished.text)
    return links


def _addressed(link: Mapping[str, Any]) -> bool:
    addresses: Iterable[Mapping[str, Any]] = link.get("addr_info", ())
    return link["ifname"] != "lo" and any(address.get("family") == "inet" for address in addresses)


def _handed_on(port: int) -> bool:
    """Return True if the host's packet filter has a rule for packets to this port."""
    if any(f"--dport {port} " in f"{rule} " for rule in packet_rules()):
        return True
    # Netavark and Docker may have tables of nftables' own, which iptables does not show.
    if processes.find("nft") is None:
        return False
    return re.search(rf"\bdport {port}\b", processes.run(["nft", "list", "ruleset"]).text) is not None
