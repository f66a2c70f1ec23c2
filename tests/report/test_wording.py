"""What is said of a difference follows what the metric is: decided in one place, for every metric that tare has."""

from __future__ import annotations

import math

import pytest

from tare.analysis.effects import Effect
from tare.estimates.intervals import Amount, Interval
from tare.estimates.overhead import times_worse
from tare.model import CPU_COST, Direction, Family, Metric
from tare.report.sentences.verdict_words import Subject, described
from tare.report.sentences.wording import wording
from tare.workloads.workload_registry import all_workloads

HIGHER, LOWER = Direction.HIGHER, Direction.LOWER
METRICS = [(family.family, metric) for family in all_workloads().values() for metric in family.all_metrics]


def effect_of(logs: Interval, direction: Direction, added: Amount | None = None) -> Effect:
    return Effect(times_worse(logs, direction), 0.95, amount=added)


def wording_for(metric: str, unit: str, direction: Direction, factor: float, family: Family | None = None) -> str:
    """What is said of a platform that has so many times the baseline's figure."""
    subject = Subject(metric, unit, direction, 0.01, family)
    log = math.log(factor)
    return described(subject, effect_of(Interval(log, log - 0.01, log + 0.01), direction)).partition(",")[0]


@pytest.mark.parametrize(
    ("metric", "unit", "direction", "texts"),
    [  # of 3 times, 1.5 times, two thirds and a third of the baseline's figure
        ("time", "s", LOWER, ("3.00 times slower", "50.0 % slower", "33.3 % faster", "3.00 times faster")),
        ("p99", "µs", LOWER, ("3.00 times slower", "50.0 % slower", "33.3 % faster", "3.00 times faster")),
        ("rate", "calls/s", HIGHER, ("3.00 times faster", "50.0 % faster", "33.3 % slower", "3.00 times slower")),
        ("mwips", "MWIPS", HIGHER, ("3.00 times faster", "50.0 % faster", "33.3 % slower", "3.00 times slower")),
        ("idle-pss", "MiB", LOWER, ("3.00 times as much", "50.0 % more", "33.3 % less", "3.00 times less")),
        ("room", "MiB", HIGHER, ("3.00 times as much", "50.0 % more", "33.3 % less", "3.00 times less")),
        ("faults", "faults", LOWER, ("3.00 times as many", "50.0 % more", "33.3 % fewer", "3.00 times fewer")),
        ("mdev", "us", LOWER, ("3.00 times higher", "50.0 % higher", "33.3 % lower", "3.00 times lower")),
        ("jitter-to-instance", "us", LOWER, ("3.00 times higher", "50.0 % higher", "33.3 % lower", "3.00 times lower")),
        ("arrived", "%", HIGHER, ("3.00 times higher", "50.0 % higher", "33.3 % lower", "3.00 times lower")),
        (
            CPU_COST,
            "ns/call",
            LOWER,
            ("costs 3.00 times the CPU", "costs 50.0 % more CPU", "costs 33.3 % less CPU", "costs 3.00 times less CPU"),
        ),
    ],
)
def test_the_words_are_those_of_the_metric(
    metric: str, unit: str, direction: Direction, texts: tuple[str, ...]
) -> None:
    assert tuple(wording_for(metric, unit, direction, factor) for factor in (3, 1.5, 2 / 3, 1 / 3)) == texts


def test_memory_is_never_slower_and_jitter_neither() -> None:
    for family, metric in METRICS:
        text = wording_for(metric.name, metric.unit, metric.direction, 26.0, family)
        if metric.unit == "MiB":
            assert text == "26.0 times as much", metric
        if metric.unit == "%" or metric.name.startswith("jitter"):
            assert text == "26.0 times higher", metric
        if metric.name == CPU_COST:
            assert text == "costs 26.0 times the CPU", metric


def test_every_metric_that_there_is_has_words_of_its_kind() -> None:
    """Only shares of something, scatter and errors are left to the words that fit anything."""
    plain = {(metric.name, metric.unit) for family, metric in METRICS if "higher" in _worse(family, metric)}
    fitting = ("jitter", "mdev", "server-errors", "transport-errors")
    assert {unit for name, unit in plain if not name.startswith(fitting)} == {"%"}


def test_short_times_sizes_and_calls_tell_first_what_they_add() -> None:
    first = {
        (family, metric.unit)
        for family, metric in METRICS
        if wording(metric.name, metric.unit, metric.direction, family).amount_first
    }
    assert {unit for family, unit in first if family is not Family.KERNEL} == {"MiB", "ms", "us", "µs", "us/s"}
    assert all(unit.endswith("/s") for family, unit in first if family is Family.KERNEL)
    assert (Family.STARTUP, "ms") in first


def test_the_amount_comes_first_where_the_metric_wants_it() -> None:
    log = Interval(math.log(45.3), math.log(43.1), math.log(47.5))
    start = Subject("command", "ms", LOWER, 0.05, Family.STARTUP)
    added = Amount("ms", 132.4, Interval(132.4, 127.9, 137.1), 6)
    assert (
        described(start, effect_of(log, LOWER, added)) == "+132.4 ms (127.9 to 137.1): 45.3 times slower, 43.1 to 47.5"
    )
    rate = Subject("time", "s", LOWER, 0.05, Family.CPU)
    assert described(rate, effect_of(log, LOWER, added)) == "45.3 times slower, 43.1 to 47.5"


def _worse(family: Family, metric: Metric) -> str:
    words = wording(metric.name, metric.unit, metric.direction, family)
    return words.worse + words.better
