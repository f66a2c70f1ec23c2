"""What a platform adds, in the metric's unit: known differences come out, and their intervals hold them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tare.analysis.amounts import UnitScale, amount, scale
from tare.estimates.grid import Grid
from tare.estimates.hodges_lehmann import hodges_lehmann
from tare.estimates.intervals import Amount, Interval, smallest_effect, standard_error, t_interval
from tare.model import Arm, Design, Family
from tare.report.sentences.numbers import amount_range

ARMS = (Arm("native"), Arm("native", 1), Arm("docker"))
MS = UnitScale("ms")
MINUS = "\N{MINUS SIGN}"


def grid(values: np.ndarray) -> Grid:
    """``values[arm, block, round]`` of two native arms and docker."""
    present = ~np.isnan(values)
    unfit = (present & ~(np.isfinite(values) & (values > 0))).sum(axis=(1, 2))
    return Grid(ARMS, np.arange(values.shape[1]), values, unfit, present.sum(axis=(1, 2)))


def runs(*rows: list[float]) -> Grid:
    return grid(np.array(rows)[:, :, None])


def test_one_run_a_block_is_the_paired_t_interval_of_differences() -> None:
    native, twin, docker = [3.0, 3.4, 2.9, 3.1], [3.2, 3.0, 2.9, 3.3], [135.0, 139.0, 131.0, 142.0]
    cost = amount(runs(native, twin, docker), 2, [0, 1], Design.BLOCKS, MS)
    differences = np.array(docker) - (np.array(native) + np.array(twin)) / 2
    expected = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert cost is not None
    assert cost.interval is not None
    assert (cost.unit, cost.n_blocks, cost.point) == ("ms", 4, pytest.approx(differences.mean()))
    assert (cost.interval.low, cost.interval.high) == pytest.approx((expected.low, expected.high))


def test_rounds_of_a_block_are_paired_and_wild_ones_passed_over() -> None:
    rng = np.random.default_rng(3)
    shared = rng.normal(100, 20, (5, 9))
    values = np.stack([shared, shared + rng.normal(0, 0.1, (5, 9)), shared + 7 + rng.normal(0, 0.1, (5, 9))])
    values[2, :, 4] += 500
    cost = amount(grid(values), 2, [0, 1], Design.BLOCKS, MS)
    assert cost is not None
    assert cost.interval is not None
    blocks = [np.mean([hodges_lehmann(values[2, b] - values[k, b]) for k in (0, 1)]) for b in range(5)]
    assert cost.point == pytest.approx(np.mean(blocks)) == pytest.approx(7, abs=0.2)
    assert cost.interval.half_width < 0.5  # the mean over rounds would be off by 55


@pytest.mark.simulation
def test_the_interval_holds_the_truth() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(600):
        drift = rng.normal(40, 10, 6)
        cost = amount(runs(*(drift + shift + rng.normal(0, 2, 6) for shift in (0, 0, 3))), 2, [0, 1], Design.BLOCKS, MS)
        assert cost is not None
        assert cost.interval is not None
        held += cost.interval.low <= 3 <= cost.interval.high
    assert 0.93 <= held / 600 <= 0.97


def test_one_block_has_a_figure_and_no_interval() -> None:
    assert amount(runs([3.0], [5.0], [10.0]), 2, [0, 1], Design.BLOCKS, MS) == Amount("ms", 6.0, None, 1)


def test_blocks_without_a_partner_are_left_out_and_none_is_none() -> None:
    nan = float("nan")
    cost = amount(runs([1.0, nan, 1.0], [nan, nan, 3.0], [5.0, 9.0, 5.0]), 2, [0, 1], Design.BLOCKS, MS)
    assert cost is not None
    assert (cost.n_blocks, cost.point) == (2, pytest.approx((4.0 + 3.0) / 2))
    assert amount(runs([nan], [nan], [5.0]), 2, [0, 1], Design.BLOCKS, MS) is None


def test_a_baseline_of_zero_has_an_amount_and_no_ratio() -> None:
    cost = amount(runs([0.0, 0.0], [0.0, 0.0], [5.0, 7.0]), 2, [0, 1], Design.BLOCKS, MS)
    assert cost is not None
    assert cost.point == 6.0
    endless = runs([1.0, float("inf")], [1.0, 1.0], [5.0, 7.0])
    assert amount(endless, 2, [0, 1], Design.BLOCKS, MS) is None


def test_one_platform_after_the_other_is_welch() -> None:
    cost = amount(runs([3.0, 4.0, 5.0], [0.0, 0.0, 0.0], [9.0, 13.0, 11.0]), 2, [0], Design.SEQUENTIAL, MS)
    expected = stats.ttest_ind([9, 13, 11], [3, 4, 5], equal_var=False).confidence_interval(0.95)
    assert cost is not None
    assert cost.interval is not None
    assert (cost.interval.low, cost.interval.high) == pytest.approx((expected.low, expected.high))


def test_of_a_rate_of_calls_it_is_the_time_that_one_takes() -> None:
    unit_scale = scale("calls/s", Family.KERNEL, "call")
    assert unit_scale == UnitScale("ns/call", inverse=True)
    cost = amount(runs([1e7, 1e7], [1e7, 1e7], [5e6, 4e6]), 2, [0, 1], Design.BLOCKS, unit_scale)
    assert cost is not None
    assert (cost.unit, cost.point) == ("ns/call", pytest.approx((100 + 150) / 2))
    assert scale("MiB/s", Family.STORAGE, "MiB") == UnitScale("MiB/s")
    assert amount(runs([0.0], [1.0], [1.0]), 2, [0, 1], Design.BLOCKS, unit_scale) is None


@pytest.mark.parametrize(
    ("point", "ends", "unit", "texts"),
    [
        (132.4, (127.9, 137.1), "ms", ("+132.4 ms", "127.9 to 137.1")),
        (1768.0, (1672.0, 1864.0), "ms", ("+1,768 ms", "1,672 to 1,864")),
        (17_680.0, (16_720.0, 18_640.0), "ms", ("+17.7 s", "16.7 to 18.6")),
        (0.0123, (0.0113, 0.0133), "ms", ("+12.3 µs", "11.3 to 13.3")),
        (-0.03, (-0.34, 0.28), "ms", (f"{MINUS}0.03 ms", f"{MINUS}0.34 to +0.28")),
        (5.2, (4.9, 5.5), "us", ("+5.20 µs", "4.90 to 5.50")),
        (2130.0, (2100.0, 2160.0), "ns/call", ("+2,130 ns/call", "2,100 to 2,160")),
        (45.87, (45.72, 46.02), "MiB", ("+45.87 MiB", "45.72 to 46.02")),
        (20_480.0, (20_000.0, 20_960.0), "MiB", ("+20.00 GiB", "19.53 to 20.47")),
        (-3.8, (-5.0, -2.6), "%", (f"{MINUS}3.8 points", f"{MINUS}5.0 to {MINUS}2.6")),
        (-120.0, (-150.0, -90.0), "events/s", (f"{MINUS}120 events/s", f"{MINUS}150 to {MINUS}90")),
        (108.0, None, "ms", ("+108 ms", "")),
        (16.0, (16.0, 16.0), "MiB", ("+16.0 MiB", "16.0 to 16.0")),
        # Two blocks that differ much give an end of any size: neither its digits nor its unit are of use.
        (0.104, (0.012, 9e300), "MiB", ("+0.10 MiB", "0.01 to >10")),
        (5.5, (-0.4, 9e300), "MiB", ("+5.5 MiB", f"{MINUS}0.4 to >+550")),
        (5.5, (5.0, 540.0), "MiB", ("+6 MiB", "5 to 540")),
        (1e20, (-1e20, 2e20), "ops", ("+1e+20 ops", f"{MINUS}1e+20 to +2e+20")),
    ],
)
def test_amounts_in_words(point: float, ends: tuple[float, float] | None, unit: str, texts: tuple[str, str]) -> None:
    assert amount_range(point, ends, unit) == texts


@pytest.mark.simulation
def test_the_smallest_effect_is_greater_than_the_half_width_and_found_in_nine_of_ten() -> None:
    rng = np.random.default_rng(8)
    n, sd = 8, 1.0
    effect = smallest_effect(sd / np.sqrt(n), n - 1)
    intervals = [t_interval(rng.normal(effect, sd, n), 0.95) for _ in range(4000)]
    assert 0.88 <= np.mean([interval.low > 0 for interval in intervals]) <= 0.93
    half_width = float(stats.t.ppf(0.975, n - 1)) * sd / np.sqrt(n)
    at_half_width = [t_interval(rng.normal(half_width, sd, n), 0.95) for _ in range(4000)]
    assert 0.4 <= np.mean([interval.low > 0 for interval in at_half_width]) <= 0.6
    assert effect > 1.5 * half_width
    assert standard_error(Interval(0, -half_width, half_width), n) == pytest.approx(sd / np.sqrt(n))
