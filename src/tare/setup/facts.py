"""What a host has of what is asked for, and which distribution it is: read, never changed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tare.host import processes, state

OS_RELEASE = Path("/etc/os-release")


@dataclass(frozen=True, slots=True)
class Distribution:
    """``apt``: whether its packages have Debian's names and come by apt."""

    name: str
    apt: bool


def distribution() -> Distribution:
    """The distribution of this host, by os-release(5)."""
    text = OS_RELEASE.read_text(errors="replace") if OS_RELEASE.is_file() else ""
    return parse_distribution(text, apt_there=processes.find("apt-get") is not None)


def parse_distribution(os_release: str, *, apt_there: bool) -> Distribution:
    """The same from the file's text; Debian itself, or what says that it is like Debian, such as Ubuntu."""
    values = {key: value.strip("\"'") for key, value in re.findall(r"^([A-Z_]+)=(.*)$", os_release, re.MULTILINE)}
    family = {values.get("ID", ""), *values.get("ID_LIKE", "").split()}
    by_apt = apt_there and not family.isdisjoint({"debian", "ubuntu"})
    return Distribution(values.get("PRETTY_NAME") or "this distribution", by_apt)


def present(words: Iterable[str]) -> frozenset[str]:
    """Those of the words (`tare.setup.components.Need`) that hold for this host."""
    return frozenset(word for word in words if _holds(word))


def _holds(word: str) -> bool:
    kind, separator, rest = word.partition(":")
    if separator:
        argv = ["python3", "-c", f"import {rest}"] if kind == "python3" else ["runsc", "flags"]
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
