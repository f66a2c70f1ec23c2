from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import fake_footprints as footprints
from tare.features.kernel.analysis.footprint_sets import Exposure
from tare.features.kernel.analysis.frequencies import Frequency, frequencies
from tare.footprint_model import IDLE, Footprint, Scope
from tare.model import Level


def of(hits: dict[str, int], **facts: object) -> Footprint:
    return footprints.footprint(hits, level=Level.FUNCTIONS, **facts)


def test_the_papers_own_example() -> None:
    """Section 5.2: tcp_sum_lost runs 27,719 times in LXC, 3 times in Firecracker, never in gVisor, in ten minutes."""
    counts = {"LXC": 27719, "Firecracker": 3, "gVisor": 0}
    exposure = Exposure(
        [
            of({"tcp_sum_lost": hits, "other": 500} if hits else {"other": 500}, platform=platform, seconds=600.0)
            for platform, hits in counts.items()
        ]
    )
    first, *rest = frequencies(exposure, "w", "LXC")
    assert first.thing == "tcp_sum_lost"
    assert rest == []  # "other" is as frequent everywhere
    assert first.rates == {"LXC": 27719 / 600, "Firecracker": 3 / 600, "gVisor": 0.0}
    assert first.ratios["gVisor"].point == pytest.approx(0.5 / 27719.5)
    assert first.ratios["Firecracker"].point == pytest.approx(3.5 / 27719.5)
    assert first.ratios["gVisor"].low is None
    assert not first.ratios["gVisor"].sure
    assert first.greatest == pytest.approx(math.log(27719.5 / 0.5))


def test_intervals_are_welchs_on_logarithms() -> None:
    rng = np.random.default_rng(3)
    counts = {name: rng.poisson(rate, size).tolist() for name, rate, size in (("native", 900, 4), ("docker", 500, 3))}
    exposure = Exposure(
        [
            of({"f": hits}, platform=platform, repeat=at)
            for platform, all_hits in counts.items()
            for at, hits in enumerate(all_hits)
        ]
    )
    (frequency,) = frequencies(exposure, "w", "native")
    logs = {name: np.log((np.array(hits) + 0.5) / 10.0) for name, hits in counts.items()}
    theirs = stats.ttest_ind(logs["docker"], logs["native"], equal_var=False).confidence_interval(0.95)
    ratio = frequency.ratios["docker"]
    assert (ratio.low, ratio.high) == pytest.approx((math.exp(theirs.low), math.exp(theirs.high)))
    assert ratio.low < ratio.point < ratio.high < 1
    assert ratio.sure


def test_repeats_that_agree_to_the_hit_have_no_width() -> None:
    prints = [of({"f": hits}, platform=name, repeat=at) for at in range(2) for name, hits in (("a", 200), ("b", 400))]
    (frequency,) = frequencies(Exposure(prints), "w", "a")
    assert (
        frequency.ratios["b"].low
        == frequency.ratios["b"].high
        == frequency.ratios["b"].point
        == pytest.approx(400.5 / 200.5)
    )


def test_rare_things_and_other_workloads_are_left_out() -> None:
    prints = [
        of({"often": 100, "rare": 99}),
        of({"often": 300}, platform="docker"),
        of({"often": 300, "net": 900}, platform="docker", workload="net"),
    ]
    exposure = Exposure(prints)
    assert [frequency.thing for frequency in frequencies(exposure, "w", "native")] == ["often"]
    assert [frequency.thing for frequency in frequencies(exposure, "w", "native", least_hits=50)] == ["often", "rare"]
    assert frequencies(exposure, "net", "native") == []  # the baseline was not counted in it
    assert frequencies(exposure, "w", "gvisor") == []
    assert frequencies(Exposure([of({}, platform=IDLE, workload=None)]), "w", "native") == []


def test_an_instances_own_work_is_compared_where_it_is_known() -> None:
    prints = [
        of({"f": 200, "tick": 9000}),
        of({"f": 200}, scope=Scope.INSTANCE),
        of({"f": 400, "tick": 1}, platform="docker"),
        of({"f": 400}, platform="docker", scope=Scope.INSTANCE),
    ]
    assert [frequency.thing for frequency in frequencies(Exposure(prints), "w", "native")] == ["f"]


def test_what_one_does_not_run_at_all_comes_apart_by_how_often_the_others_do() -> None:
    """Section 6.2: do_mmap differs everywhere, zap_page_range_single only gVisor runs."""
    lxc = of({"do_mmap": 1_000_000, "kmalloc": 5_000, "tcp_sum_lost": 300}, platform="LXC")
    gvisor = of({"do_mmap": 5_382, "kmalloc": 6_000, "zap_page_range_single": 459_984}, platform="gVisor")
    compared = frequencies(Exposure([lxc, gvisor]), "w", "LXC")
    order = [(frequency.thing, frequency.everywhere) for frequency in compared]
    assert order == [("do_mmap", True), ("kmalloc", True), ("zap_page_range_single", False), ("tcp_sum_lost", False)]
    assert compared[0].ratios["gVisor"].point == pytest.approx(5_382.5 / 1_000_000.5)


def test_the_greatest_difference_comes_first_and_only_so_many() -> None:
    base = {f"f{at}": 1000 for at in range(30)}
    other = {f"f{at}": 1000 + 100 * at for at in range(30)}
    compared: list[Frequency] = frequencies(Exposure([of(base), of(other, platform="docker")]), "w", "native", top=5)
    assert [frequency.thing for frequency in compared] == ["f29", "f28", "f27", "f26", "f25"]
