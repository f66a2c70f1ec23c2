"""Changes that dockerd makes to a host and leaves when it ends: a bridge, packet rules, forwarding, mounts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tare.host import processes
from tare.host.kernel import host_text, mounts
from tare.host.kernel.links import links

#: Dockerd binds its root to itself there, and keeps namespaces.
PLACES = (Path("/var/lib/docker"), Path("/run/docker"))
_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
_BRIDGE = "docker0"


@dataclass(frozen=True, slots=True)
class Traces:
    """Traces of dockerd on a host."""

    bridge: bool  # docker0
    rules: bool  # Docker's, in the packet filter.
    forwarding: str  # "0" or "1"
    policy: str  # Of the packet filter's chain FORWARD; "" without a packet filter.
    mounts: frozenset[str]

    @classmethod
    def read(cls, places: Collection[Path] = PLACES) -> Self:
        """Read the present traces. ``places``: mounts below these are dockerd's."""
        rules = _rules("filter")
        policy = next((rule.split()[2] for rule in rules if rule.startswith("-P FORWARD ")), "")
        points = frozenset(
            point for point in mounts.points() if any(Path(point).is_relative_to(place) for place in places)
        )
        has_rules = any("DOCKER" in rule for rule in rules)
        return cls(_BRIDGE in links(), has_rules, host_text.said(_FORWARDING), policy, points)

    def restore(self, places: Collection[Path] = PLACES) -> None:
        """Restore the state in this object. Raises `HostError`.

        An earlier docker0 stays, with its rules, because another daemon may own it.
        """
        for point in sorted(type(self).read(places).mounts - self.mounts, reverse=True):  # Inner mounts first.
            processes.run(["umount", point]).require()
        if self.bridge or self.rules:
            return
        if _BRIDGE in links():
            processes.run(["ip", "link", "delete", _BRIDGE]).require()
        if self.policy:
            for table in ("filter", "nat"):
                _remove_rules(table)
            processes.run(["iptables", "-w", "-P", "FORWARD", self.policy]).require()
        if host_text.said(_FORWARDING) != self.forwarding:
            _FORWARDING.write_text(self.forwarding)

    def facts(self) -> Mapping[str, str | list[str]]:
        """Return the traces as facts of a journal's entry."""
        return {
            "bridge": str(int(self.bridge)),
            "rules": str(int(self.rules)),
            "forwarding": self.forwarding,
            "policy": self.policy,
            "mounts": sorted(self.mounts),
        }

    @classmethod
    def of(cls, facts: Mapping[str, object]) -> Self:
        """Create the traces from the output of `facts`."""
        points = facts["mounts"]
        assert isinstance(points, list)
        return cls(
            facts["bridge"] == "1",
            facts["rules"] == "1",
            str(facts["forwarding"]),
            str(facts["policy"]),
            frozenset(map(str, points)),
        )


def _remove_rules(table: str) -> None:
    rules = _rules(table)
    chains = [rule.split()[1] for rule in rules if rule.startswith("-N DOCKER")]
    for rule in rules:
        if rule.startswith("-A ") and ("DOCKER" in rule or "docker0" in rule):
            processes.run(["iptables", "-w", "-t", table, "-D", *rule.split()[1:]]).require()
    for chain in chains:
        processes.run(["iptables", "-w", "-t", table, "-X", chain]).require()


def _rules(table: str) -> list[str]:
    if processes.find("iptables") is None:
        return []
    return processes.run(["iptables", "-w", "-t", table, "-S"]).text.splitlines()
