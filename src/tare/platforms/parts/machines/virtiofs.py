"""virtiofsd: a folder of the host's as a guest's /data, by a daemon beside the machine. It is of two makes."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path

from tare.errors import HostError
from tare.host import distribution, processes

#: On PATH, or where distributions put it: its own package (Debian 13, Fedora), QEMU's (Debian 12).
PLACES = ("virtiofsd", "/usr/libexec/virtiofsd", "/usr/lib/virtiofsd", "/usr/lib/qemu/virtiofsd")
CACHE = "the guest's page cache over the host's (virtiofs, cache=auto)"


@dataclass(frozen=True, slots=True)
class Virtiofsd:
    """The program, and which make it is."""

    program: str
    version: str
    of_qemu: bool  # written in C, part of QEMU up to 7.2; else the one in Rust that came after it


def parse(program: str, shown: str) -> Virtiofsd:
    """Return the make and version of a program, from what it says to ``--version``. Raises `HostError`."""
    words = (shown.splitlines() or [""])[0].split()
    if words[:2] == ["virtiofsd", "version"] and len(words) > 2:
        return Virtiofsd(program, words[2], of_qemu=True)
    if words[:1] == ["virtiofsd"] and len(words) == 2:
        return Virtiofsd(program, words[1], of_qemu=False)
    raise HostError(f"`{program} --version` says {shown[:80]!r}", fix=distribution.install("virtiofsd", again=True))


@functools.cache
def located() -> Virtiofsd:
    """Return the virtiofsd that this host has. Raises `HostError` where there is none."""
    for place in PLACES:
        program = processes.find(place)
        if program is not None and os.access(program, os.X_OK):
            return parse(program, processes.run([program, "--version"], time_limit_s=10).text)
    raise HostError("virtiofsd is not installed", fix=f"{distribution.install('virtiofsd')} (Debian 12: qemu-system)")


def command(daemon: Virtiofsd, folder: Path, listener: int) -> list[str]:
    """Return the daemon's command line, with its own defaults.

    ``listener``: a descriptor of a socket that listens already.
    """
    share = ["-f", "-o", f"source={folder}"] if daemon.of_qemu else [f"--shared-dir={folder}"]
    return [daemon.program, f"--fd={listener}", *share]
