from __future__ import annotations

import math

import pytest

from tare.estimates.intervals import Interval
from tare.report.sentences.numbers import (
    all_failed,
    decimals,
    forecast,
    percent,
    quantity,
    signed,
    signed_range,
    span,
    times_range,
)

MINUS = "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3169.4, "events/s", "3,169 events/s"),
        (41.7, "MiB/s", "41.70 MiB/s"),
        (0.01234, "ms", "0.0123 ms"),
        (315_636.0, "ns/event", "315.6 µs/event"),
        (4.2e9, "ns", "4.20 s"),
        (250.0, "ns", "250.0 ns"),
        (1_250_000.0, "ops/s", "1.25 M ops/s"),
        (99_999.0, "ops/s", "99,999 ops/s"),
        (0.0, "ops/s", "0.0000 ops/s"),
    ],
)
def test_quantities(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


@pytest.mark.parametrize(
    ("fraction", "text"), [(0.01, "1 %"), (0.0023, "0.23 %"), (0.05, "5 %"), (0.014, "1.4 %"), (1.5, "150 %")]
)
def test_percentages(fraction: float, text: str) -> None:
    assert percent(fraction) == text


def test_decimals_follow_the_width_of_the_interval() -> None:
    assert [decimals(width) for width in (25, 2.8, 0.4, 0.04, 0.0)] == [0, 1, 2, 3, 2]
    assert [decimals(width) for width in (math.inf, math.nan, 5e-324)] == [2, 2, 3]


def test_what_rounds_to_zero_has_no_sign() -> None:
    assert signed(-0.004, 2) == "0.00"
    assert signed(0.004, 2) == "0.00"
    assert signed(-0.006, 2) == f"{MINUS}0.01"
    assert signed_range(Interval(0.0, -0.005, 0.005)) == f"0.0 %, {MINUS}0.5 to +0.5"


def test_what_is_far_out_says_no_more_than_that() -> None:
    assert signed_range(Interval(-0.36, -1055.6, 1.0)) == f"{MINUS}36 %, <{MINUS}999 to +100"
    assert signed(1e6, 0) == ">+999"
    assert percent(92.1) == ">999 %"
    assert times_range(Interval(3.4, 0.001, 10_680.2)) == ("3.4", "0.0 to >999")


def test_factors() -> None:
    assert times_range(Interval(3.3, 3.2, 3.4)) == ("3.3", "3.2 to 3.4")
    assert times_range(Interval(1234.0, 1100.0, 1400.0)) == ("1,234", "1,100 to 1,400")
    assert times_range(Interval(15.0, 14.0, 16.0)) == ("15.0", "14.0 to 16.0")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.6, "1 min 00 s"), (185, "3 min 05 s"), (7500, "2 h 05 min"), (400_000, "5 days")],
)
def test_a_duration_in_words(seconds, text):
    assert span(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0.4 s"),
        (55.2, "55 s"),
        (61, "1 min"),
        (100, "1.7 min"),
        (8900, "2.5 h"),
        (43_740, "12 h"),
        (1e6, "12 days"),
    ],
)
def test_what_few_blocks_foretell_has_two_digits(seconds, text):
    assert forecast(seconds) == text


def test_one_trial_that_failed_is_one() -> None:
    assert [all_failed(trials) for trials in (1, 2)] == ["its only trial failed", "all 2 trials failed"]
