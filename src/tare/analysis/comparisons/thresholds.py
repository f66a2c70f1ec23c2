"""Thresholds of a regression: a file of them by workload, metric and platform, or each workload's margin."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import Field

from tare.inputs import read_toml
from tare.records import Strict, of_a_file

FIX = "docs/diff.md has an example with every key"

Percent = Annotated[float, Field(gt=0, lt=100, allow_inf_nan=False)]
Pattern = Annotated[str, Field(min_length=1)]


class Threshold(Strict):
    """A threshold that holds if all patterns match (like file names: ``*`` for any text)."""

    workload: Pattern = "*"
    metric: Pattern = "*"
    platform: Pattern = "*"
    percent: Percent | None = None
    ignore: bool = False


class Thresholds(Strict):
    """Thresholds; the last matching rule holds. ``percent``: without a match; None: the workload's margin."""

    percent: Percent | None = None
    rule: list[Threshold] = []

    def of(self, workload: str, metric: str, platform: str, margin: float) -> float | None:
        """Return the threshold as a fraction, or None if the figure is not compared."""
        for rule in reversed(self.rule):
            if (
                fnmatchcase(workload, rule.workload)
                and fnmatchcase(metric, rule.metric)
                and fnmatchcase(platform, rule.platform)
            ):
                if rule.ignore:
                    return None
                if rule.percent is not None:
                    return rule.percent / 100
        return margin if self.percent is None else self.percent / 100

    def names(self, workload: str, metric: str) -> bool:
        """Return True if a rule names this very metric, which need not be a headline then."""
        return any(rule.metric == metric and fnmatchcase(workload, rule.workload) for rule in self.rule)


def load(file: Path | None) -> Thresholds:
    """Return the thresholds of a file; None: the margins. Raises `UsageError`."""
    if file is None:
        return Thresholds()
    return of_a_file(Thresholds, read_toml(file, FIX), str(file), FIX)
