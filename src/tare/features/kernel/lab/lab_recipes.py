"""Recipes of the lab's parts, and the hashes that identify them in their caches."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from tare.errors import UsageError
from tare.suggest import nearest

#: The version of Debian 12, and of every flavour.
PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class Root:
    """A root filesystem that mmdebstrap makes. ``newer``: a suite whose packages are preferred, or ""."""

    suite: str
    newer: str
    packages: tuple[str, ...]
    left_out: tuple[str, ...]
    hook: str = ""  # A shell script that gets the root's folder after the installation.

    @property
    def hash(self) -> str:
        """16 hexadecimal digits over the whole recipe."""
        text = json.dumps([self.suite, self.newer, self.packages, self.left_out, *([self.hook] if self.hook else [])])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel built from source: packages of source, compiler and tools, and about how many files it has."""

    name: str
    source: str
    compiler: str
    packages: tuple[str, ...]
    objects: int


@dataclass(frozen=True, slots=True)
class LabRecipe:
    """The emulator, and the hosts by flavour."""

    emulator: Root
    plugin: Root  # For compiling the emulator's plug-in.
    hosts: dict[str, Root]
    disk_bytes: int
    # By flavour: the host, and the kernel built for it.
    variants: dict[str, tuple[str, Kernel]] = field(default_factory=dict)
    stock: dict[str, Root] = field(default_factory=dict)  # Whole systems with their own init.
    pythons: dict[str, tuple[int, int]] = field(default_factory=dict)  # Of the stock hosts; all others have `PYTHON`.

    def headers(self, kernel: str) -> Root:
        """Return the root for building modules for a kernel of the hosts' suite.

        The package of the headers depends on their compiler.
        """
        host = next(iter(self.hosts.values()))
        return Root(host.suite, "", ("make", f"linux-headers-{kernel}"), host.left_out)

    def host(self, name: str) -> Root:
        """Return the root of a flavour's host, or of a stock host. Raises `UsageError`."""
        self.require(name)
        return self.stock[name] if name in self.stock else self.hosts[name]

    def flavours(self) -> list[str]:
        """Return the names of all kinds of labs: hosts, and hosts with a kernel of tare's."""
        return [*self.hosts, *self.variants]

    def require(self, name: str) -> None:
        """Raise `UsageError` for a name that is neither a flavour nor a stock host."""
        if name not in [*self.flavours(), *self.stock]:
            fix = nearest(name, [*self.flavours(), *self.stock])
            raise UsageError(f"the lab has no flavour and no host {name!r}", fix=fix)

    def python(self, name: str) -> tuple[int, int]:
        """Return the version of Python on a host."""
        return self.pythons.get(name, PYTHON)

    def resolved(self, flavour: str) -> tuple[str, Kernel | None]:
        """Return a flavour's host by name, and the kernel built for it, or None if the host has its own."""
        return self.variants.get(flavour, (flavour, None))


def load() -> LabRecipe:
    """Return the recipe that is part of tare."""
    data = _data()
    suite, left_out = data["suite"], tuple(data["left_out"])
    common = data["common"]["packages"]
    flavours = data["flavour"]
    hosts = {
        name: Root(suite, "", tuple(sorted([*common, *flavour["packages"]])), left_out)
        for name, flavour in flavours.items()
        if "packages" in flavour
    }
    variants = {
        name: (flavour["host"], _kernel(flavour["kernel"], data["kernel"][flavour["kernel"]]))
        for name, flavour in flavours.items()
        if "kernel" in flavour
    }
    newer = data["emulator"]
    emulator = Root(suite, newer["suite"], tuple(newer["packages"]), left_out)
    finish = resources.files("tare.features.kernel.lab").joinpath("stock.sh").read_text()
    stock = {
        name: Root(facts["suite"], "", tuple(facts["packages"]), left_out, f"host={name}\n{finish}")
        for name, facts in data["stock"].items()
    }
    pythons = {name: (facts["python"][0], facts["python"][1]) for name, facts in data["stock"].items()}
    plugin = Root(suite, "", tuple(data["plugin"]["packages"]), left_out)
    return LabRecipe(emulator, plugin, hosts, data["disk"] << 20, variants, stock, pythons)


def _kernel(name: str, facts: dict[str, Any]) -> Kernel:
    return Kernel(name, facts["source"], facts["compiler"], tuple(facts["packages"]), facts["objects"])


def build_root(kernel: Kernel, versions: Mapping[str, str]) -> Root:
    """Return the root for building a kernel, with source and compiler of these versions."""
    data = _data()
    pinned = [f"{name}={version}" for name, version in sorted(versions.items())]
    return Root(data["suite"], "", tuple(sorted([*kernel.packages, *pinned])), tuple(data["left_out"]))


def _data() -> dict[str, Any]:
    return tomllib.loads(resources.files("tare.features.kernel.lab").joinpath("recipe.toml").read_text())
