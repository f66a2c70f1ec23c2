"""How a host installs what is missing: its distribution's command, with its own names of the packages."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

OS_RELEASE = Path("/etc/os-release")


@dataclass(frozen=True, slots=True)
class Distribution:
    """A family of distributions: its command, and its names of packages where they are not Debian's."""

    install: str
    lean: str = ""  # the option by which only what is needed comes along
    again: str = ""  # the command that installs what is there once more; empty: `install` does
    names: Mapping[str, str | None] | None = None  # by Debian's; None: it has no such package


DEBIAN = Distribution("apt-get install", "--no-install-recommends", "apt-get install --reinstall")
#: Fedora, RHEL, CentOS Stream, Rocky, Alma; some of these are in EPEL.
FEDORA = Distribution(
    "dnf install",
    "--setopt=install_weak_deps=False",
    "dnf reinstall",
    {
        "busybox-static": "busybox",
        "docker.io": "moby-engine",
        "iproute2": "iproute",
        "iptables": "iptables-nft",
        "libbpf-dev": "libbpf-devel",
        "libbpf1": "libbpf",
        "libc6-dev": "glibc-devel",
        "libvirt-clients": "libvirt-client",
        "libvirt-daemon-system": "libvirt-daemon",
        "lxd": None,
        "lxd-client": None,
        "mount": "util-linux",
        "openssh-client": "openssh-clients",
        "qemu-system-x86": "qemu-kvm",
        "qemu-utils": "qemu-img",
        "uidmap": "shadow-utils",
        "user-mode-linux": None,
        "xen-system-amd64": "xen",
        "xen-utils-4.17": "xen-runtime",
    },
)


def install(*packages: str, lean: bool = False, again: bool = False) -> str:
    """The command that installs packages, which have Debian's names, on this host; or that it has none of that name.

    ``lean``: without what is only recommended; ``again``: they are there, and broken.
    """
    return command(_here(), packages, lean=lean, again=again)


def owner(program: str) -> str:
    """What installs a program of which the package is not known here."""
    known = _here()
    return f"{known.install if known else 'install'} the package that has {program}"


def command(family: Distribution | None, packages: Sequence[str], *, lean: bool = False, again: bool = False) -> str:
    """The same for a distribution; None: one that is not known here."""
    if family is None:
        return f"install what Debian calls {' '.join(packages)}"
    names = [(family.names or {}).get(package, package) for package in packages]
    absent = [package for package, name in zip(packages, names, strict=True) if name is None]
    if absent:
        return f"this distribution has no {' '.join(absent)} (Debian has)"
    words = [family.again if again and family.again else family.install, family.lean if lean else ""]
    return " ".join(filter(None, (*words, *dict.fromkeys(map(str, names)))))


def family(os_release: str) -> Distribution | None:
    """The family that a host's os-release(5) names; None where it is none of those here."""
    values = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line and not line.startswith("#"))
    words = f"{values.get('ID', '')} {values.get('ID_LIKE', '')}".replace('"', "").replace("'", "").split()
    known = {"debian": DEBIAN, "ubuntu": DEBIAN, "fedora": FEDORA, "rhel": FEDORA, "centos": FEDORA}
    return next((known[word] for word in words if word in known), None)


@functools.cache
def _here() -> Distribution | None:
    try:
        return family(OS_RELEASE.read_text())
    except OSError:
        return None
