"""Finds platforms: the modules of this package, and those that others register.

A platform that only exists with an argument (a host to reach, an image to boot) is chosen as ``FAMILY:ARGUMENT``; the
module names in ``FAMILIES`` who makes it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType

import tare.platforms
from tare.errors import UsageError
from tare.platforms.base import Platform
from tare.plugins import with_plugins
from tare.suggest import nearest

GROUP = "tare.platforms"


def all_platforms() -> dict[str, Platform]:
    """Every known platform by name: the baseline first, then by name.

    A plug-in that does not load, has no platforms, or takes a name that is taken is left out (`tare.plugins`).
    """
    found = with_plugins(_built_in(), GROUP, _usable)
    return dict(sorted(found.items(), key=lambda item: (not item[1].baseline, item[0])))


def choose(names: Sequence[str]) -> list[Platform]:
    """The platforms of these names. Raises `UsageError` that says the nearest names."""
    known = all_platforms()
    return [_one(name, known) for name in dict.fromkeys(names)]


def families() -> dict[str, Callable[[str], Platform]]:
    """What makes a platform from the argument in ``FAMILY:ARGUMENT``, by family."""
    found: dict[str, Callable[[str], Platform]] = {}
    for module in _modules():
        named: Mapping[str, Callable[[str], Platform]] = getattr(module, "FAMILIES", {})
        found |= named
    return found


def offers() -> list[dict[str, str]]:
    """What `tare doctor` and `tare list` say of each family: how it is named, and what to name."""
    return [
        {
            "name": f"{family}:{getattr(maker, 'argument', 'ARGUMENT')}",
            "title": str(getattr(maker, "summary", family)),
            "asks": str(getattr(maker, "asks", f"name one: -p {family}:ARGUMENT")),
        }
        for family, maker in sorted(families().items())
    ]


def _one(name: str, known: Mapping[str, Platform]) -> Platform:
    if name in known:
        return known[name]
    family, separator, argument = name.partition(":")
    makers = families()
    if separator and argument and family in makers:
        return makers[family](argument)
    raise UsageError(f"there is no platform {name!r}", fix=nearest(name, [*known, *(f"{one}:" for one in makers)]))


def _built_in() -> Iterator[Platform]:
    for module in _modules():
        yield from _of(module)


def _usable(module: object) -> Sequence[Platform]:
    """The ``PLATFORMS`` of a plug-in's module. Raises `UsageError` where they are none."""
    platforms = _of(module)
    if not platforms or not all(isinstance(platform, Platform) for platform in platforms):
        raise UsageError("has no PLATFORMS that are each a tare.platforms.base.Platform: see docs/add-a-platform.md")
    if any(platform.baseline for platform in platforms):
        raise UsageError("names a baseline, and there is one")
    return platforms


def _modules() -> Iterator[ModuleType]:
    for module in pkgutil.iter_modules(tare.platforms.__path__, "tare.platforms."):
        yield importlib.import_module(module.name)


def _of(module: object) -> Sequence[Platform]:
    platforms: tuple[Platform, ...] = getattr(module, "PLATFORMS", ())
    return platforms
