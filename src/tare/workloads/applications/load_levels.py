"""The levels of a curve: one workload for each load, which differ in that alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from tare.workloads.base import CurveLevel, Params, Workload

#: The kind of workload that a curve's levels are.
_Leveled = TypeVar("_Leveled", bound=Workload)


def levels(
    of: type[_Leveled],
    title: str,
    parameter: str,
    loads: Sequence[int],
    curve: CurveLevel,
    quick: Params | None = None,
) -> tuple[_Leveled, ...]:
    """Return the workloads ``CURVE-LOAD`` for these loads, which are values of a parameter of ``of``.

    ``curve``: its level at any load; ``title``: with ``{}`` for the load; ``quick``: parameters in place of those of
    ``of``.
    """
    return tuple(_level(of, title, parameter, load, curve, quick or {}) for load in loads)


def _level(of: type[_Leveled], title: str, parameter: str, load: int, curve: CurveLevel, quick: Params) -> _Leveled:
    profiles = {name: {**params, parameter: load} for name, params in of.profiles.items()}
    profiles["quick"] |= quick
    attributes = {
        "__doc__": of.__doc__,
        "__module__": of.__module__,
        "name": f"{curve.curve}-{load}",
        "title": title.format(load),
        "profiles": profiles,
        "by_default": False,
        "level": CurveLevel(curve.curve, load, curve.unit, curve.rate, curve.latency, curve.limit),
    }
    workload: _Leveled = type(f"{of.__name__}Level", (of,), attributes)()
    return workload
