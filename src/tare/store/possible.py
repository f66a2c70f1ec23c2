"""Check that data can be read again once written: a guest's figure that cannot would cost the whole file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from tare.model import SliceFacts, Trial
from tare.store.row_rules import holds

_FACTS = ("seq", "started", "wall_ns", "cpu_ns", "daemon_cpu_ns", "steal", "pressure", "load")
_SLICE_FACTS = tuple(field.name for field in fields(SliceFacts))


def unreadable(trial: Trial) -> str | None:
    """Return the first value of a trial that a file cannot hold, as its name and value, or None."""
    return next((f"{name} is {value!r}" for name, column, value in _values(trial) if not holds(column, value)), None)


def _values(trial: Trial) -> Iterator[tuple[str, str, int | float | None]]:
    """Yield every number of a trial with its name and column."""
    for name in _FACTS:
        yield name, name, getattr(trial, name)
    for sample in trial.samples:
        yield f"the round of {sample.metric}", "round", sample.round
        yield sample.metric, "value", sample.value
    for part in trial.slices:
        for name in _SLICE_FACTS:
            yield f"{name} of round {part.round}", name, getattr(part, name)
