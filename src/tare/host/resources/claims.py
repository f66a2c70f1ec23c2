"""Names of tare's things on a host: for each kind of resource, the values that each of its facts may have.

Root acts on the journal's entries. So each is checked against this table, when it is written and again when it is
read: no entry, however it came to be, makes tare remove, kill or run what is not tare's. A fact is a name with tare's
label, a path below one of the folders in which tare makes files, or a word from a closed list; never a command.
Plug-ins add kinds of their own (`tare.host.resources.kinds`), whose facts are checked against the same rules and no
others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tare.host.daemons import containerd_access
from tare.host.resources import kinds as plugged
from tare.host.resources.kinds import FactRule, OneOf
from tare.host.resources.resource import Fact, HostResource

#: Runtimes without a daemon that a bundle of tare's may be given to.
OCI_RUNTIMES: Final = ("runc", "crun", "krun", "runsc", "youki")
#: Where runtimes note sandboxes of tare's outside its own folder.
NSPAWN: Final = Path("/run/systemd/nspawn")
LXC_LOCKS: Final = Path("/run/lxc/lock")
#: Where folders are shown to those who may not enter TARE_HOME (`tare.host.filesystems.opened`).
OPENED: Final = Path("/run/tare-open")

#: A part of a path: neither empty nor one that leads elsewhere.
_PART = r"(?!\.{1,2}(?:/|$))[^/\x00-\x1f\x7f]+"
_BELOW = rf"(?:/{_PART})+"
_SANDBOX = r"tare-[A-Za-z0-9][A-Za-z0-9_.-]{0,120}"
_LINK = r"tare[A-Za-z0-9_.-]{1,11}"
_SUBGROUPS = r"(?:/[A-Za-z0-9_][A-Za-z0-9_.@:-]*)*"
#: A slice of tare's, or what is in its delegated scope (`systemd.path_of`, `systemd.scope_of`).
_UNIT = (
    r"tare(?:_[A-Za-z0-9_]+)?\.slice(?:/tare-[A-Za-z0-9_]+\.slice)?"
    rf"(?:/tare(?:[_-][A-Za-z0-9_]+)?\.scope{_SUBGROUPS})?"
)
_GROUP = rf"(?:tare(?:-[A-Za-z0-9_][A-Za-z0-9_.-]*)?{_SUBGROUPS}|{_UNIT})"
_WORK = rf"{{work}}{_BELOW}"
_SHOWN = rf"{OPENED}/{_SANDBOX}(?:{_BELOW})?"
_HEX = r"[0-9a-f]{64}"
_VALUE = r"[A-Za-z0-9_,. -]{0,200}"
_LXD_PLACES = r"(?:/var/lib/(?:lxd|incus)|/var/snap/lxd/common/lxd|/run/incus)"
_LOGS = rf"(?:{_LXD_PLACES}/logs|/var/log/(?:lxd|incus))/{_SANDBOX}"
_LIBVIRT_SOCKET = r"/proc/\d+/root/run/libvirt/libvirt-sock"
_SETTINGS = (
    r"proc/sys/net/ipv4/ip_forward",
    r"proc/sys/net/ipv4/conf/[A-Za-z0-9_.-]{1,15}/forwarding",
    r"proc/sys/net/bridge/bridge-nf-call-(?:iptables|ip6tables|arptables)",
    r"sys/class/net/[A-Za-z0-9_.-]{1,15}/bridge/nf_call_(?:iptables|ip6tables|arptables)",
    r"proc/sys/vm/swappiness",
    r"proc/sys/kernel/(?:nmi_watchdog|numa_balancing|timer_migration|randomize_va_space)",
    r"proc/irq/\d+/smp_affinity_list",
    r"sys/kernel/mm/(?:transparent_hugepage/enabled|ksm/run)",
    r"sys/devices/system/cpu/(?:intel_pstate/no_turbo|cpufreq/boost|cpu\d+/cpufreq/scaling_governor)",
)
_ADDRESS = r"\d{1,3}(?:\.\d{1,3}){3}"
_OTHERS = rf"(?:-m mac ! --mac-source [0-9a-f:]{{17}}|! -s {_ADDRESS})"
_CLIENT = rf"(?:-m mac --mac-source [0-9a-f:]{{17}}|-s {_ADDRESS})"
_OUTSIDE = r"-m comment --comment tare-client"
#: Rules of the packet filter (`fence.rules`, `dhcp.admit`, `outside`): each names tare's bridge, or has tare's comment.
#: The first is of tare up to November 2026.
_RULES = (
    r"FORWARD -[io] tare0 -j ACCEPT",
    r"FORWARD -i tare0 -o tare0 -j ACCEPT",
    r"FORWARD -i tare0 (?:-m conntrack --ctstate DNAT|-p icmp) -j ACCEPT",
    rf"FORWARD -i tare0 {_OTHERS} -j DROP",
    rf"FORWARD -o tare0 ! -d {_ADDRESS} -j DROP",
    rf"INPUT -i tare0 -p (?:tcp --syn|udp) ! --dport [0-9:]+ {_OTHERS} -j DROP",
    rf"INPUT -i tare0 (?:-m conntrack --ctstate ESTABLISHED|-p icmp|{_CLIENT}) -j ACCEPT",
    r"INPUT -i tare0 -p (?:tcp|udp) --dport [0-9:]+ -j ACCEPT",
    r"INPUT -i tare0 -p udp --dport 67 -m mac --mac-source [0-9a-f:]{17} -j ACCEPT",
    r"INPUT -i tare0 -m bpf --bytecode [0-9 ,]{1,200} -j DROP",
    rf"PREROUTING -t raw ! -i lo ! -s {_ADDRESS} -d {_ADDRESS} -p (?:tcp|udp) --dport [0-9:]+ {_OUTSIDE} -j DROP",
    rf"PREROUTING -t nat -s {_ADDRESS} -d {_ADDRESS} -p (?:tcp|udp) --dport [0-9]+ {_OUTSIDE}"
    rf" -j DNAT --to-destination {_ADDRESS}:[0-9]+",
    rf"INPUT -s {_ADDRESS} -d {_ADDRESS} -p (?:tcp|udp) --dport [0-9:]+ {_OUTSIDE} -j ACCEPT",
    rf"FORWARD -i tare0 -d {_ADDRESS} -m conntrack --ctstate ESTABLISHED {_OUTSIDE} -j ACCEPT",
    rf"FORWARD -o tare0 -s {_ADDRESS} -m conntrack --ctstate DNAT {_OUTSIDE} -j ACCEPT",
    rf"FORWARD -i [A-Za-z0-9_.-]{{1,15}} ! -o [A-Za-z0-9_.-]{{1,15}} {_OUTSIDE} -j DROP",
)


@dataclass(frozen=True, slots=True)
class _Each:
    """A list of which every word is one of these."""

    pattern: str


@dataclass(frozen=True, slots=True)
class _All:
    """A list whose words make one of these, with a blank between two."""

    pattern: str


_Rule = str | _Each | _All


@dataclass(frozen=True, slots=True)
class _Claim:
    """The identity of a resource of a kind: facts that it must have, and facts that it may have."""

    must: Mapping[str, _Rule]
    may: Mapping[str, _Rule]


def _claim(may: Mapping[str, _Rule] | None = None, **must: _Rule) -> _Claim:
    return _Claim(must, may or {})


_DOCKER_HOST = rf"|(?:unix://)?{_BELOW}|(?:tcp|https?)://[A-Za-z0-9.:\[\]_-]+"
_TAG = r"tare:[0-9a-f]{12}"
_CONTAINERD = rf"{'|'.join(map(re.escape, containerd_access.SOCKETS))}|{_WORK}"

_NAMED = _claim(name=_SANDBOX)
_CLAIMS: Final[Mapping[str, _Claim]] = {
    "mount": _claim(path=rf"{_WORK}|{_SHOWN}|{NSPAWN}/unix-export/{_SANDBOX}"),
    "folder": _claim(
        {"below": rf"{LXC_LOCKS}|{OPENED.parent}"},
        path=rf"{_WORK}|{_SHOWN}|{NSPAWN}/(?:unix-export|propagate)/{_SANDBOX}|{LXC_LOCKS}(?:{_WORK}|{_SHOWN})|{_LOGS}",
    ),
    "file": _claim(path=rf"{_WORK}|{NSPAWN}/locks/inode-\d+:\d+|{LXC_LOCKS}/\.{_SANDBOX}"),
    "cgroup": _claim(path=_GROUP),
    "netns": _NAMED,
    "link": _claim(name=_LINK),
    "iptables": _claim(rule=_All("|".join(_RULES))),
    "packet-rules": _NAMED,
    "packet-chain": _NAMED,
    "oci": _claim(
        runtime="|".join(OCI_RUNTIMES),
        root=_WORK,
        name=rf"{_SANDBOX}|detect[0-9a-f]+",
        within=r"|without-v2",
    ),
    "container": _claim(
        {
            "id": _HEX,
            "record": _BELOW,  # it is only looked for
            "mounts": _Each(
                rf"{_BELOW}/(?:overlay2?|fuse-overlayfs)/{_PART}/merged|{_BELOW}/rootfs/{_PART}/{_HEX}|{_BELOW}/netns/(?:[0-9a-f]{{12}}|netns-[0-9a-f-]{{36}})"
                rf"|{_BELOW}/(?:containers/(?:{_HEX}|none)|userdata)/mounts/shm"
            ),
        },
        name=_SANDBOX,
        host=_DOCKER_HOST,
    ),
    "podman": _claim(name=_SANDBOX, group=_GROUP),
    "docker-image": _claim(tag=_TAG, host=_DOCKER_HOST),
    "containerd": _claim(socket=_CONTAINERD, name=_SANDBOX),
    "pod": _claim({"ids": _Each(_HEX)}, socket=_CONTAINERD, name=_SANDBOX),
    "cluster-pod": _claim(namespace=r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name=_SANDBOX, group=_GROUP),
    "containerd-image": _claim(socket=_CONTAINERD, tag=rf"localhost/{_TAG}"),
    "podman-image": _claim(tag=rf"(?:localhost/)?{_TAG}"),
    "lxd": _claim(
        client="lxc|incus",
        folder=rf"|{_WORK}|{_SHOWN}",
        socket=rf"|{_LXD_PLACES}/unix\.socket",
        settings=rf"{_WORK}|{_SHOWN}",
        what="container|storage|image",
        name=_SANDBOX,
        own="0|1",
        group=rf"|{_GROUP}",
    ),
    "dockerd": _claim(
        bridge="0|1",
        rules="0|1",
        forwarding="0|1",
        policy="|ACCEPT|DROP",
        mounts=_Each(rf"/(?:var/lib|run)/docker(?:{_BELOW})?"),
        boot=r"[0-9a-f-]{36}",
    ),
    "domain": _claim(
        # Without a host and a transport: some run a command that the URI names.
        uri=rf"(?:qemu|lxc|xen)(?:\+unix)?:///(?:system|session)?(?:\?socket={_BELOW})?",
        name=_SANDBOX,
        socket=rf"|{_LIBVIRT_SOCKET}",
    ),
    "loop": _claim(file=_WORK),
    "xen": _NAMED,
    "module": _claim(name="tare_fcount"),
    "setting": _claim(
        path=rf"{{root}}/(?:{'|'.join(_SETTINGS)})", former=_VALUE, written=_VALUE, boot=r"[0-9a-f-]{36}"
    ),
}


#: The same for the rules that plug-ins give for their own kinds.
_RULES_OF_PLUGINS: Final[Mapping[FactRule, str]] = {
    FactRule.SANDBOX: _SANDBOX,
    FactRule.LINK: _LINK,
    FactRule.GROUP: _GROUP,
    FactRule.PLACE: _WORK,
    FactRule.PROCESS: r"[1-9]\d{0,9} \d{1,19} [0-9a-f-]{36}",
}


def of(kind: str) -> _Claim | None:
    """Return the facts of a kind: of tare's own by the table, of a plug-in's (with a colon) as registered.

    None: unknown.
    """
    if ":" not in kind:
        return _CLAIMS.get(kind)
    registered = plugged.registered().get(kind)
    if registered is None:
        return None
    return _Claim(_patterns(registered.must), _patterns(registered.may))


def _patterns(rules: Mapping[str, FactRule | OneOf]) -> dict[str, _Rule]:
    return {
        name: "|".join(map(re.escape, rule.words)) if isinstance(rule, OneOf) else _RULES_OF_PLUGINS[rule]
        for name, rule in rules.items()
    }


def kinds() -> frozenset[str]:
    """Return the kinds of resources that are tare's own, without those of plug-ins."""
    return frozenset(_CLAIMS)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The folders of tare's resources. ``home``: `state.home`; ``root``: below it are the kernel's settings."""

    home: Path
    root: Path = Path("/")


def fault(resource: HostResource, bounds: Bounds) -> str | None:
    """Return why a resource cannot be tare's, in words that follow "it"; None when it can be. A pure function."""
    claim = of(resource.kind)
    if claim is None and ":" in resource.kind:
        return f"names a {resource.kind!r}, which no plug-in that is installed here registers"
    if claim is None:
        return f"names a {resource.kind!r}, which this version of tare does not know"
    rules = {**claim.must, **claim.may}
    missing, unknown = claim.must.keys() - resource.facts.keys(), resource.facts.keys() - rules.keys()
    if missing or unknown:
        return f"does not tell what a {resource.kind} is told by: {', '.join(sorted(missing | unknown))}"
    for name, value in resource.facts.items():
        if not _fits(value, rules[name], bounds):
            return f"names a {resource.kind} that is not tare's: {name} {str(value)[:200]!r}"
    return None


def _fits(value: Fact, rule: _Rule, bounds: Bounds) -> bool:
    if isinstance(rule, _Each):
        return isinstance(value, list) and all(_matches(word, rule.pattern, bounds) for word in value)
    if isinstance(rule, _All):
        return isinstance(value, list) and _matches(" ".join(value), rule.pattern, bounds)
    return not isinstance(value, list) and _matches(str(value), rule, bounds)


def _matches(text: str, pattern: str, bounds: Bounds) -> bool:
    places = {"{work}": re.escape(str(bounds.home / "work")), "{root}": re.escape(str(bounds.root).rstrip("/"))}
    for place, path in places.items():
        pattern = pattern.replace(place, path)
    return re.fullmatch(pattern, text) is not None
