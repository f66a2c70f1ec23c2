"""The contract of every workload beyond its types.

`problems` is called for plug-ins when they load and for our own workloads in the tests, `checked` for the figures of
every trial.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from numbers import Real

from tare.errors import Failed, ParseError, UsageError, attempt
from tare.model import CLIENT_BUSY, CLIENT_COST, CPU_COST, HOST_COST, PIDS, Family, ImageSource, Layer, Mode, Sample
from tare.workloads.base import CurveLevel, Outcome, Params, SliceWorkload, Workload

#: Names of workloads and metrics: lower case words and digits, joined by single dashes.
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
PROFILES = ("quick", "full")
#: The largest number that a parameter may have: bytes, requests, milliseconds.
MAX_PARAM = 1e12
#: The campaign computes this metric; a workload must not have its own of that name.
RESERVED = frozenset({CPU_COST, HOST_COST, CLIENT_COST, CLIENT_BUSY})
_KINDS: Mapping[str, type] = {
    "name": str,
    "title": str,
    "family": Family,
    "metrics": tuple,
    "work_unit": str,
    "revision": int,
    "packages": tuple,
    "profiles": Mapping,
    "mode": Mode,
    "by_default": bool,
    "least": Mapping,
}
_SLICE_KINDS: Mapping[str, type] = {**_KINDS, "probe": str, "parts": Mapping}


def problems(workload: Workload) -> list[str]:
    """Each breach of the contract as half a sentence; none when the workload is fine."""
    kinds = _SLICE_KINDS if isinstance(workload, SliceWorkload) else _KINDS
    wrong = [
        f"has no {name} that is a {kind.__name__}"
        for name, kind in kinds.items()
        if not isinstance(getattr(workload, name, None), kind)
    ]
    # The checks of the values rely on their types.
    return wrong or [
        problem for part in (_texts, _metrics, _profiles, _slices, _numbers, _places) for problem in part(workload)
    ]


def checked(workload: Workload, samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """Return the figures of one trial, as they may go into the file.

    Raises `ParseError` for a metric that the workload does not declare, a figure that is no number, two of one round,
    and where the headline is missing: it may be missing only in a workload of starts, or one
    that starts instances of its own, where some metrics cannot be seen.
    """
    figures = list(samples)
    declared = [metric.name for metric in workload.all_metrics]
    for sample in figures:
        if sample.metric not in declared:
            raise ParseError(f"{workload.name} gives {sample.metric!r}, which is none of its metrics")
        if not _is_number(sample.value):
            raise ParseError(f"{workload.name} gives {sample.value!r} as its {sample.metric}")
    for (metric, number), times in Counter((sample.metric, sample.round) for sample in figures).items():
        if times > 1:
            why = "a metric is in `samples` or in `series`, never in both"
            raise ParseError(f"{workload.name} gives {times} figures of {metric} in round {number}: {why}")
    metrics = {sample.metric for sample in figures}
    if not metrics or (workload.mode in {Mode.RUN, Mode.SLICES} and declared[0] not in metrics):
        why = f": {workload.no_headline}" if workload.no_headline else ""
        raise ParseError(f"{workload.name} gives no {declared[0]}, which is its headline{why}")
    return tuple(Sample(sample.metric, float(sample.value), sample.round) for sample in figures)


def require_work(workload: Workload, outcome: Outcome) -> None:
    """Raise `ParseError` where the work done is no number above 0; without a CPU cost it may be 0."""
    has_cost = any(metric.name in RESERVED for metric in workload.all_metrics)
    if not _is_number(outcome.work) or outcome.work < 0 or (has_cost and outcome.work == 0):
        raise ParseError(f"{workload.name} did {outcome.work!r} {workload.work_unit} of work")


def require_params(workload: Workload, params: Params) -> None:
    """Raise `UsageError` unless these are the workload's parameters: those of its profiles, by name and type.

    A number is from 0, or the workload's least, to `MAX_PARAM`, and a text one that a profile has: it goes into a
    command's arguments.
    """
    declared = {name: [profile[name] for profile in workload.profiles.values()] for name in workload.profiles["quick"]}
    if params.keys() != declared.keys():
        names = ", ".join(sorted(params.keys() ^ declared.keys()))
        raise UsageError(f"{workload.name} has not these parameters, or they are missing: {names[:100]}")
    for name, value in params.items():
        examples = declared[name]
        if isinstance(examples[0], bool) or isinstance(value, bool):
            fits = isinstance(value, bool) and isinstance(examples[0], bool)
        elif isinstance(examples[0], str):
            fits = value in examples
        else:
            fits = isinstance(value, int | float) and 0 <= value <= MAX_PARAM
        if not fits:
            raise UsageError(f"{workload.name} cannot have {name} {str(value)[:100]!r}", fix=f"such as {examples[0]}")
        if name in workload.least and float(value) < (least := workload.least[name]):
            raise UsageError(f"{workload.name} gives no figures with {name} {value}", fix=f"at least {least:g}")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and isfinite(value)


def _texts(workload: Workload) -> Iterator[str]:
    if not NAME.fullmatch(workload.name):
        yield f"has a name that is not lower case words joined by dashes: {workload.name!r}"
    if not workload.title.strip() or "\n" in workload.title:
        yield "has a title that is not one line"
    if workload.revision < 1:
        yield "has a revision below 1"
    if not workload.work_unit.strip():
        yield "has no unit of work"
    if not all(isinstance(package, str) for package in workload.packages):
        yield "has packages that are not each the name of one"
    if workload.layer is not None and not _is_layer(workload.layer):
        yield "has a layer that is no tare.model.Layer with a name in lower case words, and a text"
    if not (inspect.getmodule(type(workload)) or workload).__doc__:
        yield "has no docstring in its module"


def _numbers(workload: Workload) -> Iterator[str]:
    margin = attempt(lambda: workload.margin)
    if isinstance(margin, Failed):
        yield f"has no margin: {margin.reason}"
    elif not _is_number(margin) or not 0 < margin < 1:
        yield f"has a margin that is no fraction: {margin!r}"
    for name, value in workload.least.items():
        if not _is_number(value):
            yield f"has no number as the least of {name!r}"
    if not isinstance(workload.pids, int) or workload.pids < PIDS:
        yield f"has {workload.pids!r} as its pids, and no number from {PIDS}, which every instance may have"


def _places(workload: Workload) -> Iterator[str]:
    if workload.source is not None and not isinstance(workload.source, ImageSource):
        yield "has a source that is no tare.model.ImageSource"
    level = workload.level
    if level is not None and not (
        isinstance(level, CurveLevel) and isinstance(level.curve, str) and _is_number(level.at)
    ):
        yield "has a level that is no tare.workloads.base.CurveLevel with the name of a curve and a number"


def _is_layer(layer: object) -> bool:
    if not isinstance(layer, Layer) or not isinstance(layer.name, str) or not isinstance(layer.text, str):
        return False
    return NAME.fullmatch(layer.name) is not None


def _metrics(workload: Workload) -> Iterator[str]:
    names = [metric.name for metric in workload.metrics]
    if not names:
        yield "has no metrics"
    if len(set(names)) < len(names):
        yield f"names a metric twice: {', '.join(names)}"
    for metric in workload.metrics:
        if not NAME.fullmatch(metric.name) or metric.name in RESERVED:
            yield f"has a metric with a name that cannot be: {metric.name!r}"
        if not metric.unit.strip() or not metric.title.strip():
            yield f"has a metric without a unit or a title: {metric.name}"


def _profiles(workload: Workload) -> Iterator[str]:
    if set(workload.profiles) != set(PROFILES):
        yield f"has the profiles {', '.join(sorted(workload.profiles))} and not {' and '.join(PROFILES)}"
        return
    quick, full = (workload.profiles[name] for name in PROFILES)
    if quick.keys() != full.keys():
        yield f"has parameters in only one profile: {', '.join(sorted(quick.keys() ^ full.keys()))}"
    elif any(type(quick[key]) is not type(full[key]) for key in quick):
        yield "has a parameter of one type in one profile and of another in the other"


def _slices(workload: Workload) -> Iterator[str]:
    if not isinstance(workload, SliceWorkload):
        return
    if {metric.name for metric in workload.metrics} != set(workload.parts):
        yield "has parts that are not its metrics"
    for name, params in workload.profiles.items():
        absent = workload.schedule_keys - params.keys()
        if absent:
            yield f"lacks {', '.join(sorted(absent))} in the profile {name}"
