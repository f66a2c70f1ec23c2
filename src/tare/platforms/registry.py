"""Finds platforms: the modules of this package, and those that others register."""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
from collections.abc import Iterable, Iterator, Sequence

import tare.platforms
from tare.errors import UsageError
from tare.platforms.base import Platform
from tare.suggest import nearest

GROUP = "tare.platforms"


def all_platforms() -> dict[str, Platform]:
    """Every known platform by name: the baseline first, then by name."""
    found: dict[str, Platform] = {}
    for platform in (*_built_in(), *_registered()):
        if platform.name in found:
            raise UsageError(f"two platforms are called {platform.name!r}", fix="uninstall one of the plugins")
        found[platform.name] = platform
    return dict(sorted(found.items(), key=lambda item: (not item[1].baseline, item[0])))


def choose(names: Sequence[str]) -> list[Platform]:
    """The platforms of these names. Raises `UsageError` that says the nearest names."""
    known = all_platforms()
    for name in names:
        if name not in known:
            raise UsageError(f"there is no platform {name!r}", fix=nearest(name, known))
    return [known[name] for name in dict.fromkeys(names)]


def _built_in() -> Iterator[Platform]:
    for module in pkgutil.iter_modules(tare.platforms.__path__, "tare.platforms."):
        yield from _of(importlib.import_module(module.name))


def _registered() -> Iterator[Platform]:
    for point in importlib.metadata.entry_points(group=GROUP):
        yield from _of(point.load())


def _of(module: object) -> Iterable[Platform]:
    platforms: tuple[Platform, ...] = getattr(module, "PLATFORMS", ())
    return platforms
