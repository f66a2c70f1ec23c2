"""Shared libraries of programs, by the paths that this host's loader uses."""

from __future__ import annotations

from collections.abc import Mapping

from tare.host import processes

_LIMIT_S = 20.0


def linked(program: str) -> Mapping[str, str | None]:
    """Return the files that a program is linked with, by name: None for a missing file. Empty for a static program."""
    listed = processes.run(["ldd", program], time_limit_s=_LIMIT_S)
    return parse_ldd(listed.text) if listed.code == 0 else {}


def parse_ldd(text: str) -> Mapping[str, str | None]:
    """Parse ``ldd``: ``NAME => PATH (ADDRESS)``, ``PATH (ADDRESS)`` for the loader, and libraries without a file."""
    files: dict[str, str | None] = {}
    for line in text.splitlines():
        name, arrow, target = line.strip().partition(" => ")
        file = (target if arrow else name).split(" (")[0].strip()
        if file.startswith("/"):
            files[name if arrow else file] = file
        elif target.startswith("not found"):
            files[name] = None
    return files
