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
#: Nothing of the host's goes: Debian's docker.io, for one, would take the place of Docker's own packages.
_CHOICE = ("--no-install-recommends", "--no-remove")
#: What apt says where something would.
_REMOVES = "remove is disabled"
_REACH = "see that apt-get update works on this host"


def _env() -> dict[str, str]:
    return {**processes.kept(*processes.DOWNLOADS), "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}


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
    """What an installation of them takes, by apt; "" if it does not say. Raises `HostError` where any would go."""
    argv = ["apt-get", "install", "--assume-no", *_CHOICE, "-o", "Debug::NoLocking=1", *packages]
    done = processes.run(argv, env=_env())
    _require_kept(done)
    return parse_size(done.text)


def parse_size(printed: str) -> str:
    """The result of `size` from what apt-get prints when it may only say what it would do.

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
    """Install packages without those that are only recommended. Raises `HostError` with the end of apt's output."""
    _require_root()
    argv = ["apt-get", "install", "-y", "-q", *_CHOICE, *_LOCK, *sorted(packages)]
    tell(f"installing {' '.join(sorted(packages))}")
    done = processes.run(argv, time_limit_s=INSTALL_LIMIT_S, env=_env())
    _require_kept(done)
    if done.code != 0:
        update(tell)  # the lists may have named versions that the archive does not have any more
        processes.run(argv, time_limit_s=INSTALL_LIMIT_S, env=_env()).require(fix=_REACH)


def _require_kept(done: processes.Finished) -> None:
    """Raise `HostError` where apt was to install what takes another package's place."""
    printed = (done.stdout + done.stderr).decode(errors="replace")
    if done.code != 0 and _REMOVES in printed:
        going = re.search(r"^The following packages will be REMOVED:\n((?:  .*\n)+)", printed, re.MULTILINE)
        names = " ".join(going[1].split()) if going else "packages of this host's"
        raise HostError(f"that would remove {names}", fix="name with --with what is wanted, and not what replaces them")


def _require_root() -> None:
    if os.geteuid() != 0:
        raise HostError("only root can install packages", fix="sudo tare setup; --dry-run says what is missing")
