"""Debian's package manager: what a release has, what an installation would take, and the installation."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence

from tare.errors import HostError
from tare.host import processes
from tare.model import Progress

UPDATE_LIMIT_S = 600.0
INSTALL_LIMIT_S = 3600.0
_LOCK = ("-o", "DPkg::Lock::Timeout=120")
_REACH = "see that apt-get update works on this host"


def _env() -> dict[str, str]:
    return {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}


def unknown(packages: Sequence[str]) -> frozenset[str]:
    """Packages that no list of this host's has, as they were read last."""
    if not packages:
        return frozenset()
    return frozenset(packages) - candidates(processes.run(["apt-cache", "policy", *packages], env=_env()).text)


def update(tell: Progress) -> None:
    """Read the archive's lists anew. Raises `HostError`."""
    _require_root()
    tell("reading the archive's lists")
    processes.run(["apt-get", "update", "-q", *_LOCK], time_limit_s=UPDATE_LIMIT_S, env=_env()).require(fix=_REACH)


def candidates(policy: str) -> frozenset[str]:
    """The packages with a version to install, in what ``apt-cache policy`` prints."""
    return frozenset(re.findall(r"^(\S+):\n(?:  .*\n)*?  Candidate: (?!\(none\))\S", policy, re.MULTILINE))


def size(packages: Sequence[str]) -> str:
    """What an installation of them takes, as apt says it: "51.2 MB to fetch, 210 MB on the disk"; "" if it does not."""
    argv = ["apt-get", "install", "--assume-no", "--no-install-recommends", "-o", "Debug::NoLocking=1", *packages]
    return parse_size(processes.run(argv, env=_env()).text)


def parse_size(printed: str) -> str:
    """The same from what apt-get prints when it may only say what it would install."""
    fetched = re.search(r"^Need to get (?:[\d.,]+ ?\w+/)?([\d.,]+ ?\w+) of archives", printed, re.MULTILINE)
    taken = re.search(r"^After this operation, ([\d.,]+ ?\w+) of additional disk space", printed, re.MULTILINE)
    if fetched is None or taken is None:
        return ""
    return f"{fetched[1]} to fetch, {taken[1]} on the disk"


def install(packages: Collection[str], tell: Progress) -> None:
    """Install packages without those that are only recommended. Raises `HostError` with the end of apt's output."""
    _require_root()
    argv = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *_LOCK, *sorted(packages)]
    tell(f"installing {' '.join(sorted(packages))}")
    if processes.run(argv, time_limit_s=INSTALL_LIMIT_S, env=_env()).code != 0:
        update(tell)  # the lists may have named versions that the archive does not have any more
        processes.run(argv, time_limit_s=INSTALL_LIMIT_S, env=_env()).require(fix=_REACH)


def _require_root() -> None:
    if os.geteuid() != 0:
        raise HostError("only root can install packages", fix="sudo tare setup; --dry-run says what is missing")
