"""What the lab's parts are made of, and the hashes that their caches go by."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass
from importlib import resources

from tare.errors import UsageError
from tare.suggest import nearest


@dataclass(frozen=True, slots=True)
class Root:
    """A root filesystem that mmdebstrap makes. ``newer``: a suite whose packages are preferred, or ""."""

    suite: str
    newer: str
    packages: tuple[str, ...]
    left_out: tuple[str, ...]

    @property
    def hash(self) -> str:
        """16 hexadecimal digits over all of it."""
        text = json.dumps([self.suite, self.newer, self.packages, self.left_out])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The emulator, and a host by flavour."""

    emulator: Root
    hosts: dict[str, Root]
    disk_bytes: int

    def headers(self, kernel: str) -> Root:
        """What builds modules for a kernel of the hosts' suite; the headers' package depends on its compiler."""
        one = next(iter(self.hosts.values()))
        return Root(one.suite, "", ("make", f"linux-headers-{kernel}"), one.left_out)

    def host(self, flavour: str) -> Root:
        """The host of a flavour. Raises `UsageError`."""
        if flavour not in self.hosts:
            raise UsageError(f"the lab has no flavour {flavour!r}", fix=nearest(flavour, self.hosts))
        return self.hosts[flavour]


def load() -> Recipe:
    """The recipe that comes with tare."""
    data = tomllib.loads(resources.files("tare.lab").joinpath("recipe.toml").read_text())
    suite, left_out = data["suite"], tuple(data["left_out"])
    common = data["common"]["packages"]
    hosts = {
        name: Root(suite, "", tuple(sorted([*common, *flavour["packages"]])), left_out)
        for name, flavour in data["flavour"].items()
    }
    newer = data["emulator"]
    return Recipe(Root(suite, newer["suite"], tuple(newer["packages"]), left_out), hosts, data["disk"] << 20)
