"""The shared libraries of programs, by the paths that this host's loader takes."""

from __future__ import annotations

from collections.abc import Mapping

from tare.host import processes

_LIMIT_S = 20.0


def linked(program: str) -> Mapping[str, str | None]:
    """The files that a program is linked with, by name: None for one that is missing. A static program has none."""
    listed = processes.run(["ldd", program], time_limit_s=_LIMIT_S)
    return parse_ldd(listed.text) if listed.code == 0 else {}


def parse_ldd(text: str) -> Mapping[str, str | None]:
    """Read ``ldd``: ``NAME => PATH (ADDRESS)``, only ``PATH (ADDRESS)`` for the loader, and what is in no file."""
    files: dict[str, str | None] = {}
    for line in text.splitlines():
        name, arrow, target = line.strip().partition(" => ")
        file = (target if arrow else name).split(" (")[0].strip()
        if file.startswith("/"):
            files[name if arrow else file] = file
        elif target.startswith("not found"):
            files[name] = None
    return files
