"""How many instances fit: straight lines, Fieller's interval, and how often it holds."""

import math

import numpy as np
import pytest

from tare.estimates.use_lines import UseCurve, UseLine, fits, line, mean_line, tangents


def test_line_through_levels():
    found = line([1, 2, 4, 8], [130, 160, 220, 340])
    assert (found.once, found.each) == (pytest.approx(100), pytest.approx(30))
    assert found.at(10) == pytest.approx(400)


def test_one_level_gives_a_line_through_nothing():
    assert line([4], [100]) == UseLine(0.0, 25.0)


def test_how_many_fit_is_where_the_mean_line_meets_what_there_is():
    found = fits([UseLine(100, 29), UseLine(100, 31)], 3100)
    assert found.count == pytest.approx(100)
    assert found.low < 100 < found.high
    assert mean_line([UseLine(1, 2), UseLine(3, 4)]) == UseLine(2, 3)


def test_fieller_ends_are_where_the_mean_use_may_be_what_there_is():
    """At either end the room lies exactly at the end of Student's interval of the use over blocks."""
    lines = [UseLine(90, 28), UseLine(110, 31), UseLine(95, 33), UseLine(120, 29)]
    found = fits(lines, 3000)
    for count in (found.low, found.high):
        used = np.array([one.at(count) for one in lines])
        t = abs(used.mean() - 3000) / (used.std(ddof=1) / math.sqrt(4))
        assert t == pytest.approx(2.3534, abs=1e-3)  # t(3) at 95 % of one side


def test_a_curve_meets_what_there_is_where_it_does():
    """Of 1000 + 10 n + n²/10 with 100 n; the interval is that of the tangents."""

    def beyond(count):
        return count * count / 10, count / 5

    curves = [UseCurve(UseLine(once, each), beyond) for once, each in ((990, 9), (1010, 11))]
    lines = tangents(curves, 13_000)
    found = fits(lines, 13_000)
    root = (-10 + math.sqrt(100 + 4 * 0.1 * 12_000)) / 0.2
    assert found.count == pytest.approx(root, rel=1e-9)
    assert found.low < root < found.high
    assert lines[0].at(root) == pytest.approx(curves[0].line.at(root) + root * root / 10)


def test_a_curve_that_is_a_line_so_far_is_one():
    curves = [UseCurve(UseLine(0, 10), lambda count: (max(0.0, count - 500) ** 2, 2 * max(0.0, count - 500)))]
    assert fits(tangents(curves, 1000), 1000).count == pytest.approx(100)
    assert fits(tangents(curves, 6000), 6000).count == pytest.approx(527.0156, abs=1e-3)


def test_one_fill_has_no_interval():
    found = fits([UseLine(0, 10)], 100)
    assert (found.count, found.low, found.high) == (10, None, None)


def test_blocks_that_do_not_tell_a_part_from_nothing_have_no_upper_end():
    found = fits([UseLine(0, 1), UseLine(0, -0.9), UseLine(0, 0.4)], 100)
    assert math.isinf(found.high)
    assert found.low > 0


def test_nothing_fits_where_the_first_part_is_more_than_there_is():
    found = fits([UseLine(100, 1), UseLine(101, 1)], 50)
    assert (found.count, found.low, found.high) == (0, 0, 0)


def test_use_that_does_not_grow_is_no_limit():
    assert math.isinf(fits([UseLine(10, 0), UseLine(10, -1)], 100).count)


#: Fills of a host with room for 147.5 instances of 40 MiB and 100 MiB once; the scatter of what each takes by block,
#: and the noise of each reading in MiB.
WORLDS = [(0.0, 4.0, 3), (0.0, 4.0, 8), (0.02, 1.0, 4), (0.05, 4.0, 5), (0.10, 2.0, 4)]


@pytest.mark.simulation
@pytest.mark.parametrize(("scatter", "noise", "blocks"), WORLDS)
def test_ninety_of_a_hundred_intervals_hold_the_truth(scatter, noise, blocks):
    random, campaigns, held = np.random.default_rng(45), 4000, 0
    counts = np.array([1, 2, 4, 8, 16, 32])
    for _ in range(campaigns):
        lines = []
        for _ in range(blocks):
            each = 40 * (1 + scatter * random.standard_normal())
            once = 100 + 5 * random.standard_normal()
            drift = np.cumsum(random.standard_normal(counts.size))
            lines.append(line(counts, once + each * counts + drift + noise * random.standard_normal(counts.size)))
        found = fits(lines, 6000)
        held += found.low <= (6000 - 100) / 40 <= found.high
    assert 0.88 <= held / campaigns <= 0.92
