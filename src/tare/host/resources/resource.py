"""A thing that tare made on a host: its kind, and the facts for its remover."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tare.host import systemd

#: A value that describes a resource; JSON has a form for it.
Fact = str | int | list[str]

#: Facts that only a remover needs: they are not shown.
UNSAID = frozenset({"id", "record", "mounts", "written", "boot"})

_SHARED_KINDS = frozenset({"iptables", "module", "setting"})
_SHARED_GROUPS = ("tare", "tare/client")
_SHARED_NAMES = frozenset(
    {
        *(("cgroup", name) for name in _SHARED_GROUPS),
        *(("cgroup", systemd.path_of(name)) for name in _SHARED_GROUPS),
        *(("link", "tare0"), ("link", "tarec0"), ("netns", "tare-client")),
        *(("link", "tareprobe"), ("netns", "tare-probe")),
    }
)


@dataclass(frozen=True, slots=True)
class HostResource:
    """Something on the host that carries tare's label: its kind, and what its remover must know."""

    kind: str
    facts: Mapping[str, Fact]

    def __str__(self) -> str:
        values = (str(value) for name, value in self.facts.items() if value != "" and name not in UNSAID)
        return f"{self.kind} {' '.join(values)}"


def is_shared(resource: HostResource) -> bool:
    """Return True if every session has it under the same name, so that a running one may use what a dead one made."""
    return (
        resource.kind in _SHARED_KINDS
        or (resource.kind, resource.facts.get("path", resource.facts.get("name"))) in _SHARED_NAMES
    )
