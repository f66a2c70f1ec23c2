"""Finds workloads: the modules below this package and in features' ``workloads``, and those that others register."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import tare.workloads
from tare import lazily
from tare.capacity_model import FILLED
from tare.errors import UsageError
from tare.extensions import feature_modules
from tare.model import Family
from tare.plugins import package_of, with_plugins
from tare.suggest import nearest
from tare.workloads.base import Workload
from tare.workloads.workload_contract import problems

if TYPE_CHECKING:
    from tare.workloads.density import fill
    from tare.workloads.own import own_application
else:
    fill = lazily.LazyModule("tare.workloads.density.fill")
    own_application = lazily.LazyModule("tare.workloads.own.own_application")

GROUP = "tare.workloads"
#: Before the name of a file that describes a user's application.
APPLICATION = "app:"


def all_workloads() -> dict[str, Workload]:
    """Every known workload by name: by family in the order of `Family`, then by name.

    A plug-in that does not load, breaks the contract, or takes a name that is taken is left out (`tare.plugins`).
    """
    workloads = with_plugins(_built_in().values(), GROUP, _usable)
    return dict(sorted(workloads.items(), key=_order))


def _order(item: tuple[str, Workload]) -> tuple[int, str, float]:
    """By family, then by name; the levels of a curve are in the order of their loads."""
    name, workload = item
    place = (name, 0.0) if workload.level is None else (workload.level.curve, workload.level.at)
    return (list(Family).index(workload.family), *place)


def get(name: str) -> Workload:
    """Return the workload of this name. Raises `UsageError` with the nearest names, or for an application's file."""
    if (own_application := _application(name)) is not None:
        return own_application
    if (built_in := _built_in().get(name)) is not None:  # no plug-in has its name, and none is looked for
        return built_in
    by_name = all_workloads()
    if name not in by_name:
        raise UsageError(f"there is no workload {name!r}", fix=nearest(name, by_name, "tare list workloads"))
    return by_name[name]


def recorded(name: str, origin: str) -> Workload:
    """Return the workload of a campaign's record, by its name there and by what it was chosen; "": by its name.

    Raises `UsageError` as `get` does.
    """
    if not origin and name.startswith(APPLICATION):  # of a record from before applications had names of their own
        return own_application.of_file(name.removeprefix(APPLICATION), name=name)
    return get(origin or name)


def package(name: str) -> str:
    """Return the package and its version of the plug-in that has this workload; "" for tare's own."""
    return package_of(GROUP, name)


def choose(names: Sequence[str]) -> list[Workload]:
    """Workloads by name, else by curve, else by family, each once; ``app:FILE`` is what a file describes.

    A family has no levels of curves, which are many: they take part by the curve's name. Raises `UsageError` with the
    nearest names, and for a file that is not as it should be.
    """
    by_name = all_workloads()
    curves = {workload.level.curve for workload in by_name.values() if workload.level}
    chosen: dict[str, Workload] = {}
    for name in names:
        if (own_application := _application(name)) is not None:
            if chosen.get(own_application.name, own_application).origin != own_application.origin:
                problem = f"two files describe an application of the name {own_application.name}"
                raise UsageError(problem, fix="give one of them another name in its file")
            chosen[own_application.name] = own_application
            continue
        named = {name: by_name[name]} if name in by_name else {}
        matching = named or {
            key: candidate for key, candidate in by_name.items() if candidate.level and candidate.level.curve == name
        }
        matching = matching or {
            key: candidate
            for key, candidate in by_name.items()
            if candidate.family.value == name and candidate.level is None
        }
        if not matching:
            raise UsageError(
                f"there is no workload {name!r}", fix=nearest(name, [*by_name, *curves], "tare list workloads")
            )
        chosen |= matching
    return list(chosen.values())


def _application(name: str) -> Workload | None:
    """Return the application that ``app:FILE`` names, what fills the host with it (``fill:FILE``), or None."""
    if name.startswith(FILLED):
        return fill.of_application(own_application.of_file(name.removeprefix(FILLED)))
    return own_application.of_file(name.removeprefix(APPLICATION)) if name.startswith(APPLICATION) else None


@cache
def _built_in() -> dict[str, Workload]:
    """Tare's own by name: they are the same all through a process, and asked for by each trial."""
    return {workload.name: workload for workload in _modules_workloads()}


def _modules_workloads() -> Iterator[Workload]:
    families = pkgutil.iter_modules(tare.workloads.__path__, "tare.workloads.")
    packages = [importlib.import_module(family.name) for family in families if family.ispkg]
    for package in (*packages, *feature_modules("workloads")):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            yield from _named(importlib.import_module(module.name))


def _named(module: object) -> tuple[Any, ...]:
    """Return the workloads of a module; empty for a module that only has what a family's workloads share."""
    workload = getattr(module, "WORKLOAD", None)
    return getattr(module, "WORKLOADS", ()) if workload is None else (workload,)


def _usable(module: object) -> tuple[Workload, ...]:
    """Return the ``WORKLOAD`` or the ``WORKLOADS`` of a plug-in's module. Raises `UsageError` for a broken contract."""
    named = _named(module)
    if not named or not all(isinstance(workload, Workload) for workload in named):
        raise UsageError("has no WORKLOAD that is a tare.workloads.base.Workload: see docs/add-a-workload.md")
    breaches = [problem for workload in named for problem in problems(workload)]
    if breaches:
        raise UsageError(f"{'; '.join(breaches)}: see docs/add-a-workload.md")
    return named
