"""Facts about a host: the requested components that it has, and if it has apt. Read only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from tare.host import distribution, processes, state


def has_apt() -> bool:
    """Return True if packages come by apt: on Debian, and on systems that declare themselves like it (Ubuntu)."""
    return distribution.family(distribution.here()) is distribution.DEBIAN and processes.find("apt-get") is not None


def present(words: Iterable[str]) -> frozenset[str]:
    """Return the words that hold for this host. For their meaning see `tare.setup.components.Need`."""
    return frozenset(word for word in words if _holds(word))


def _holds(word: str) -> bool:
    kind, separator, rest = word.partition(":")
    if separator:
        argv = ["python3", "-I", "-c", f"import {rest}"] if kind == "python3" else ["runsc", "flags"]
        done = processes.run(argv) if processes.find(kind) is not None else None
        return done is not None and (done.code == 0 if kind == "python3" else rest in done.text)
    if word.startswith(("/", "bin/")):
        return (state.home_if_any() / word).exists()  # An absolute path is not changed by this.
    if word.startswith("$"):
        return bool(os.environ.get(word[1:]))
    program, separator, least = word.partition(">=")
    if processes.find(program) is None:
        return False
    return not separator or _version(processes.run([program, "--version"]).text) >= _version(least)


def _version(text: str) -> tuple[int, ...]:
    """Return the first dotted number in a text: (1, 95, 0) in ``cargo 1.95.0 (f2d3ce0bd 2026-03-21)``."""
    first = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in first[0].split(".")) if first else ()
