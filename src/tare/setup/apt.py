"""Debian's package manager: a release's packages, the size of an installation, and the installation."""

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
#: No installed package may be removed: Debian's docker.io, for example, would replace Docker's own packages.
_CHOICE = ("--no-install-recommends", "--no-remove")
#: apt's message if an installation would remove a package.
_REMOVES = "remove is disabled"
_REACH = "see that apt-get update works on this host"


def _env() -> dict[str, str]:
    return {**processes.kept(*processes.DOWNLOADS), "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}


def unknown(packages: Sequence[str]) -> frozenset[str]:
    """Return the packages that are missing from this host's lists, as last read."""
    if not packages:
        return frozenset()
    return frozenset(packages) - candidates(processes.run(["apt-cache", "policy", *packages], env=_env()).text)


def update(tell: Progress) -> None:
    """Update the package lists. Raises `HostError`."""
    _require_root()
    tell("reading the archive's lists")
    processes.run(["apt-get", "update", "-q", *_LOCK], time_limit_s=UPDATE_LIMIT_S, env=_env()).require(fix=_REACH)


def candidates(policy: str) -> frozenset[str]:
    """Return the packages with an installable version, from the output of ``apt-cache policy``."""
    return frozenset(re.findall(r"^(\S+):\n(?:  .*\n)*?  Candidate: (?!\(none\))\S", policy, re.MULTILINE))


def size(packages: Sequence[str]) -> str:
    """Return the size of an installation, from apt; "" if unknown. Raises `HostError` if it would remove a package."""
    argv = ["apt-get", "install", "--assume-no", *_CHOICE, "-o", "Debug::NoLocking=1", *packages]
    done = processes.run(argv, env=_env())
    _require_kept(done)
    return parse_size(done.text)


def parse_size(printed: str) -> str:
    """Parse the result of `size` from the output of apt-get's simulation.

    For example "27 packages, 22.1 MB to fetch, 80.5 MB on the disk".
    """
    packages = re.search(r"^(\d+) upgraded, (\d+) newly installed", printed, re.MULTILINE)
    fetched = re.search(r"^Need to get (?:[\d.,]+ ?\w+/)?([\d.,]+ ?\w+) of archives", printed, re.MULTILINE)
    taken = re.search(r"^After this operation, ([\d.,]+ ?\w+) of additional disk space", printed, re.MULTILINE)
    if packages is None or fetched is None or taken is None:
        return ""
    newer = f" ({packages[1]} of them newer than what is here)" if packages[1] != "0" else ""
    count = int(packages[1]) + int(packages[2])
    return f"{count} package{'s' * (count > 1)}{newer}, {fetched[1]} to fetch, {taken[1]} on the disk"


def install(packages: Collection[str], tell: Progress) -> None:
    """Install packages without recommended packages. Raises `HostError` with the end of apt's output."""
    _require_root()
    argv = ["apt-get", "install", "-y", "-q", *_CHOICE, *_LOCK, *sorted(packages)]
    tell(f"installing {' '.join(sorted(packages))}")
    done = processes.run(argv, time_limit_s=INSTALL_LIMIT_S, env=_env())
    _require_kept(done)
    if done.code != 0:
        update(tell)  # The lists may have named versions that the archive no longer has.
        processes.run(argv, time_limit_s=INSTALL_LIMIT_S, env=_env()).require(fix=_REACH)


def _require_kept(done: processes.Finished) -> None:
    """Raise `HostError` if the installation would replace another package."""
    printed = (done.stdout + done.stderr).decode(errors="replace")
    if done.code != 0 and _REMOVES in printed:
        going = re.search(r"^The following packages will be REMOVED:\n((?:  .*\n)+)", printed, re.MULTILINE)
        names = " ".join(going[1].split()) if going else "packages of this host's"
        raise HostError(f"that would remove {names}", fix="name with --with what is wanted, and not what replaces them")


def _require_root() -> None:
    if os.geteuid() != 0:
        raise HostError("only root can install packages", fix="sudo tare setup; --dry-run says what is missing")
