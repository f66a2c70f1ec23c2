"""The distribution of this host, and its way to install packages: its command, with its own package names."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.host.kernel import host_text

OS_RELEASE = Path("/etc/os-release")
#: The other families' names of Debian's packages.
NAMES = Path(__file__).with_name("packages.toml")


@dataclass(frozen=True, slots=True)
class DistributionFamily:
    """Distributions with one package manager, and one set of names."""

    name: str  # As in the table of names.
    install: str
    lean: str = ""  # The option that omits recommended packages.
    again: str = ""  # The command that reinstalls a package; empty: `install` does it.
    besides: str = ""  # What may have to be set up first.


DEBIAN = DistributionFamily("debian", "apt-get install", "--no-install-recommends", "apt-get install --reinstall")
FEDORA = DistributionFamily("fedora", "dnf install", "--setopt=install_weak_deps=False", "dnf reinstall")
RHEL = DistributionFamily("rhel", FEDORA.install, FEDORA.lean, FEDORA.again, besides="some of these are in EPEL")
SUSE = DistributionFamily("suse", "zypper install", "--no-recommends", "zypper install --force")
ARCH = DistributionFamily("arch", "pacman -S")
ALPINE = DistributionFamily("alpine", "apk add", again="apk fix --reinstall")
#: By the words of ``ID`` and ``ID_LIKE``; the first match counts. Oracle's and Amazon's claim to be like Fedora, but
#: Oracle's is RHEL, and Amazon's has packages of its own.
_FAMILIES = {
    "amzn": None,
    "debian": DEBIAN,
    "ubuntu": DEBIAN,
    "fedora": FEDORA,
    "rhel": RHEL,
    "centos": RHEL,
    "ol": RHEL,
    "suse": SUSE,
    "opensuse": SUSE,
    "sles": SUSE,
    "arch": ARCH,
    "alpine": ALPINE,
}


def install(*packages: str, lean: bool = False, again: bool = False) -> str:
    """Return the command that installs packages (Debian's names) on this host; in words if it is unknown.

    ``lean``: without recommended packages; ``again``: reinstall broken packages.
    """
    return command(family(here()), packages, lean=lean, again=again)


def owner(program: str) -> str:
    """Describe how to install a program of an unknown package: the host's command and the program's name."""
    host_family = family(here())
    return f"{host_family.install if host_family else 'install'} the package that has {program}"


def command(of: DistributionFamily | None, packages: Sequence[str], *, lean: bool = False, again: bool = False) -> str:
    """Return the command or words of `install` for a family of distributions; None: an unknown family."""
    names = {package: name_of(package, of) for package in packages}
    absent = [package for package, name in names.items() if name == ""]
    if absent:
        return f"this distribution has no {' '.join(absent)} (Debian has)"
    known_names = dict.fromkeys(name for name in names.values() if name)
    unknown = [package for package, name in names.items() if name is None]
    parts = [f"install what Debian calls {' '.join(unknown)}"] if unknown else []
    if of is not None and known_names:
        words = (of.again if again and of.again else of.install, of.lean if lean else "", *known_names)
        parts.insert(0, " ".join(filter(None, words)))
    return ", and ".join(parts)


def name_of(package: str, of: DistributionFamily | None) -> str | None:
    """Return a family's name of a Debian package; "": it has none; None: unknown."""
    if of is None or of is DEBIAN:
        return package if of else None
    names = _names().get(package, {})
    return names if isinstance(names, str) else names.get(of.name)


def family(os_release: Mapping[str, str]) -> DistributionFamily | None:
    """Return the family that a host's os-release(5) names, or None if it is unknown."""
    words = f"{os_release.get('ID', '')} {os_release.get('ID_LIKE', '')}".split()
    return next((_FAMILIES[word] for word in words if word in _FAMILIES), None)


def title(os_release: Mapping[str, str]) -> str:
    """Return the distribution's name and version."""
    return os_release.get("PRETTY_NAME") or os_release.get("NAME") or "Linux"


def parse(os_release: str) -> dict[str, str]:
    """Return the values in the text of an os-release(5), without their quotes."""
    assignments = re.findall(r"^\s*(\w+)=([\"']?)(.*?)\2\s*$", os_release, re.MULTILINE)
    return {name: value for name, _, value in assignments}


@functools.cache
def here() -> dict[str, str]:
    """Return the values of this host's os-release(5); empty if it cannot be read."""
    return parse(host_text.said(OS_RELEASE))


@functools.cache
def _names() -> dict[str, str | dict[str, str]]:
    return tomllib.loads(NAMES.read_text(encoding="utf-8"))
