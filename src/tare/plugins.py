"""What others register under an entry point group. A plug-in that is broken is left out, and ends nothing."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from tare.clean import say
from tare.errors import Failed, UsageError, attempt


class _Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Named)

#: What was said once is not said again: the registries are asked many times.
_said: set[str] = set()


def with_plugins(own: Iterable[T], group: str, named: Callable[[object], Sequence[T]]) -> dict[str, T]:
    """Ours and then those of the group's plug-ins, by name.

    ``named`` gives what a module names, and raises `UsageError` for what cannot be used; its message goes on after the
    plug-in's name. A plug-in of which something fails is left out, with one line on standard error that says whose it
    is.
    """
    known = {one.name: one for one in own}
    for point in importlib.metadata.entry_points(group=group):
        taken = attempt(partial(_take, point, named, known))
        if isinstance(taken, Failed):
            _say(f"{_whose(point, group)} is left out: it {_why(taken)} (fix: repair or uninstall it)")
        else:
            known |= taken
    return known


def _take(
    point: importlib.metadata.EntryPoint, named: Callable[[object], Sequence[T]], known: dict[str, T]
) -> dict[str, T]:
    module = attempt(point.load)
    if isinstance(module, Failed):
        raise UsageError(f"does not load: {module.reason}")
    found = {one.name: one for one in named(module)}
    for name in (name for name in found if name in known):
        raise UsageError(f"names {name!r}, which there is already")
    return found


def _whose(point: importlib.metadata.EntryPoint, group: str) -> str:
    package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown package"
    return f"the plug-in {point.name!r} of {package} ({group}: {point.value})"


def _why(failed: Failed) -> str:
    return failed.reason if failed.expected else f"fails: {failed.reason}"


def _say(line: str) -> None:
    if line not in _said:
        _said.add(line)
        say(" ".join(line.split()), error=True)  # before any command has a console
