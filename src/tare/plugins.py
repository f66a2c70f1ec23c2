"""Plug-ins that others register under an entry point group. A broken one is left out, and ends nothing."""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from tare.errors import Failed, UsageError, attempt
from tare.safe_text import say

#: The packages whose plug-ins are used, with commas between; where it is not set: all that are installed.
ALLOWED: Final = "TARE_PLUGINS"


class _Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Named)
Declared = TypeVar("Declared")

#: Messages that were printed: the registries are read many times, and print each message once.
_said: set[str] = set()
#: The package that registered something, with its version, by group and name.
_packages: dict[tuple[str, str], str] = {}


def with_plugins(
    own: Iterable[T], group: str, named: Callable[[object], Sequence[T]], *, prefixed: bool = False
) -> dict[str, T]:
    """Ours and then those of the group's plug-ins, by name.

    ``named`` gives what a module names, and raises `UsageError` for what cannot be used; its message goes on after the
    plug-in's name. A plug-in of which something fails is left out, with one line on standard error that says whose it
    is. ``prefixed``: each name must begin with that of the plug-in's package and a colon.
    """
    by_name = {item.name: item for item in own}
    for point in _installed(group):
        taken = attempt(partial(_take, point, named, by_name, prefixed=prefixed))
        if isinstance(taken, Failed):
            say_once(f"{_whose(point, group)} is left out: it {_why(taken)} (fix: repair or uninstall it)")
        else:
            by_name |= taken
            _packages.update({(group, name): _package(point) for name in taken})
    return by_name


def declared(module: object, name: str, kind: type[Declared]) -> Sequence[Declared]:
    """Return the list that a module has under ``name``; () if it has none. Raises `UsageError` for anything else."""
    listed = getattr(module, name, ())
    if not isinstance(listed, list | tuple):
        raise UsageError(f"has {name} that is no list", fix=f"{name} = ({kind.__name__}(...),)")
    for item in listed:
        if not isinstance(item, kind):
            raise UsageError(f"has a {type(item).__name__} in {name}", fix=f"{kind.__module__}.{kind.__name__}")
    return listed


def package_of(group: str, name: str) -> str:
    """Return the package of what was registered under this name, as "tare-dd 1.0"; "" for what is tare's own."""
    return _packages.get((group, name), "")


def distribution(point: importlib.metadata.EntryPoint) -> str:
    """Return the name of an entry point's package as registries compare it: lower case, with dashes.

    "" where none tells.
    """
    return re.sub(r"[-_.]+", "-", point.dist.name).lower() if point.dist is not None else ""


def say_once(line: str) -> None:
    """Print a line about a plug-in on standard error, the first time only."""
    if line not in _said:
        _said.add(line)
        say(" ".join(line.split()), error=True)  # before any command has a console


def _installed(group: str) -> Iterator[importlib.metadata.EntryPoint]:
    """Yield the group's entry points of the packages that are allowed, in one order wherever they are installed."""
    allowed = os.environ.get(ALLOWED)
    points = importlib.metadata.entry_points(group=group)
    for point in sorted(points, key=lambda point: (distribution(point), point.name)):
        if allowed is None or distribution(point) in allowed.split(","):
            yield point


def _take(
    point: importlib.metadata.EntryPoint,
    named: Callable[[object], Sequence[T]],
    registered: dict[str, T],
    *,
    prefixed: bool,
) -> dict[str, T]:
    module = attempt(point.load)
    if isinstance(module, Failed):
        raise UsageError(f"does not load: {module.reason}")
    taken: dict[str, T] = {}
    for item in named(module):
        if item.name in registered:
            raise UsageError(f"names {item.name!r}, which there is already")
        if item.name in taken:
            raise UsageError(f"names {item.name!r} twice")
        if prefixed and not item.name.startswith(f"{distribution(point)}:"):
            raise UsageError(f"names {item.name!r}, which does not begin with {distribution(point)}:")
        taken[item.name] = item
    return taken


def _whose(point: importlib.metadata.EntryPoint, group: str) -> str:
    package = _package(point) or "an unknown package"
    return f"the plug-in {point.name!r} of {package} ({group}: {point.value})"


def _package(point: importlib.metadata.EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else ""


def _why(failed: Failed) -> str:
    return failed.reason if failed.expected else f"fails: {failed.reason}"
