"""What tare made on a host, by kind and by what its remover must know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: A value that describes a resource; JSON has a form for it.
Fact = str | int | list[str]

#: Facts that only a remover needs: they are not shown.
UNSAID = frozenset({"id", "record", "mounts", "written", "boot"})


@dataclass(frozen=True, slots=True)
class HostResource:
    """Something on the host that carries tare's label: its kind, and what its remover must know."""

    kind: str
    facts: Mapping[str, Fact]

    def __str__(self) -> str:
        values = (str(value) for name, value in self.facts.items() if value != "" and name not in UNSAID)
        return f"{self.kind} {' '.join(values)}"
