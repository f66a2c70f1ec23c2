"""What a host has of what is asked for, and whether it has apt: read, never changed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from tare.host import distribution, processes, state


def has_apt() -> bool:
    """Whether packages come by apt: on Debian, and on what says that it is like it, such as Ubuntu."""
    return distribution.family(distribution.here()) is distribution.DEBIAN and processes.find("apt-get") is not None


def present(words: Iterable[str]) -> frozenset[str]:
    """Which of the words hold for this host; what each means: `tare.setup.components.Need`."""
    return frozenset(word for word in words if _holds(word))


def _holds(word: str) -> bool:
    kind, separator, rest = word.partition(":")
    if separator:
        argv = ["python3", "-I", "-c", f"import {rest}"] if kind == "python3" else ["runsc", "flags"]
        done = processes.run(argv) if processes.find(kind) is not None else None
        return done is not None and (done.code == 0 if kind == "python3" else rest in done.text)
    if word.startswith(("/", "bin/")):
        return (state.home_if_any() / word).exists()  # an absolute path stays itself
    if word.startswith("$"):
        return bool(os.environ.get(word[1:]))
    program, separator, least = word.partition(">=")
    if processes.find(program) is None:
        return False
    return not separator or _version(processes.run([program, "--version"]).text) >= _version(least)


def _version(text: str) -> tuple[int, ...]:
    """The first number with a point in a text: (1, 95, 0) in ``cargo 1.95.0 (f2d3ce0bd 2026-03-21)``."""
    first = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in first[0].split(".")) if first else ()
