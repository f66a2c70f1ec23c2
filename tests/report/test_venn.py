from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tare.features.kernel.footprint_report.venn import HEIGHT, WIDTH, Venn, distance, lens, venn


def drawn_areas(diagram: Venn) -> dict[tuple[str, ...], float]:
    """Areas of the drawing's regions, counted on a fine grid: another way than the one that drew it."""
    x, y = np.meshgrid(np.linspace(0, WIDTH, 1_000), np.linspace(0, HEIGHT, 1_000))
    cell = WIDTH * HEIGHT / 999**2
    names = {key.number: key.name for key in diagram.keys}
    inside = {names[circle.number]: np.hypot(x - circle.x, y - circle.y) < circle.r for circle in diagram.circles}
    areas = {}
    for size in range(1, len(inside) + 1):
        for names in itertools.combinations(inside, size):
            areas[names] = float(np.logical_and.reduce([inside[name] for name in names]).sum()) * cell
    return areas


def proportions(diagram: Venn, regions: dict[tuple[str, ...], int], names: tuple[str, ...]) -> tuple[float, float]:
    """What ``names`` share of the first circle: as drawn, and as it should be."""
    areas = drawn_areas(diagram)
    first = diagram.keys[0].name

    def of(circles: tuple[str, ...]) -> int:
        return sum(count for region, count in regions.items() if set(circles) <= set(region))

    return areas[names] / areas[(first,)], of(names) / of((first,))


def test_circles_that_touch_or_hold_one_another() -> None:
    assert lens(3.0, 1.0, 2.0) == 0
    assert lens(0.5, 1.0, 2.0) == pytest.approx(math.pi)
    assert lens(1.0, 1.0, 1.0) == pytest.approx(2 * math.pi / 3 - math.sqrt(3) / 2)  # the vesica piscis
    assert distance(1.0, 1.0, 2 * math.pi / 3 - math.sqrt(3) / 2) == pytest.approx(1.0)
    assert distance(1.0, 2.0, math.pi) == pytest.approx(1.0)
    assert distance(1.0, 2.0, 0.0) > 3


def test_two_sets_are_in_proportion() -> None:
    regions = {("A",): 300, ("B",): 100, ("A", "B"): 200}
    diagram = venn(["A", "B"], regions)
    areas = drawn_areas(diagram)
    assert areas[("B",)] / areas[("A",)] == pytest.approx(300 / 500, rel=0.01)
    assert areas[("A", "B")] / areas[("A",)] == pytest.approx(200 / 500, rel=0.01)
    assert [(number.names, number.things) for number in diagram.numbers] == list(regions.items())


def test_three_sets_are_in_proportion_two_by_two() -> None:
    """The trial's sets: functions of native, runc and gVisor in the steady state."""
    regions = {
        ("N", "C"): 1226, ("N", "C", "G"): 740, ("C",): 254, ("G",): 231, ("C", "G"): 62, ("N",): 26, ("N", "G"): 8,
    }  # fmt: skip
    diagram = venn(["N", "C", "G"], regions)
    for pair in (("N", "C"), ("N", "G"), ("C", "G")):
        drawn, true = proportions(diagram, regions, pair)
        assert drawn == pytest.approx(true, rel=0.02)
    assert {number.names for number in diagram.numbers} | {names for names, _ in diagram.below} == set(regions)
    assert ("N", "C") in {number.names for number in diagram.numbers}


@pytest.mark.parametrize(
    "regions",
    [
        {("A",): 1, ("A", "B"): 650, ("B", "C"): 76, ("A", "B", "C"): 13},  # matplotlib-venn cannot draw its like
        {("A", "B", "C"): 5},
        {("A",): 5, ("B",): 5, ("C",): 5},
        {("A", "B", "C"): 1, ("A", "B"): 10, ("A",): 100},  # one in the other
        {("A",): 1_000_000, ("B",): 1},
    ],
)
def test_sets_in_one_another_or_apart_are_drawn_too(regions: dict[tuple[str, ...], int]) -> None:
    diagram = venn(["A", "B", "C"], regions)
    shown = [(number.names, number.things) for number in diagram.numbers] + list(diagram.below)
    assert sorted(shown) == sorted(regions.items())


def test_more_than_three_sets_and_none_at_all_are_not_drawn() -> None:
    assert venn(["A", "B", "C", "D"], {("A",): 1}) is None
    assert venn(["A", "B"], {}) is None
    diagram = venn(["A", "B"], {("A",): 3})
    assert [circle.number for circle in diagram.circles] == [1]
    assert [(key.number, key.name, key.things) for key in diagram.keys] == [(1, "A", 3), (2, "B", 0)]
    assert [circle.number for circle in venn(["A", "B"], {("B",): 3}).circles] == [2]
    assert [key.number for key in venn(["A", "C"], {("C",): 3}, ["A", "B", "C"]).keys] == [1, 3]


def test_a_set_in_another_and_a_third_across_both_is_no_triangle_and_overlaps_all_the_same() -> None:
    """Lines of mm: native in docker, gvisor shares a part of both."""
    regions = {("N", "D"): 30, ("G",): 20, ("N", "D", "G"): 10, ("D", "G"): 10}
    diagram = venn(["N", "D", "G"], regions)
    for pair in (("N", "D"), ("N", "G")):
        drawn, true = proportions(diagram, regions, pair)
        assert drawn == pytest.approx(true, abs=0.06)


COUNTS = st.lists(st.integers(0, 10_000), min_size=7, max_size=7)
SUBSETS = [names for size in (1, 2, 3) for names in itertools.combinations("ABC", size)]


@settings(max_examples=60)
@given(COUNTS)
def test_every_number_is_told_once_and_stands_in_its_region(counts: list[int]) -> None:
    regions = {names: count for names, count in zip(SUBSETS, counts, strict=True) if count}
    diagram = venn(["A", "B", "C"], regions)
    if not regions:
        assert diagram is None
        return
    shown = [(number.names, number.things) for number in diagram.numbers] + list(diagram.below)
    assert sorted(shown) == sorted(regions.items())
    for circle in diagram.circles:
        assert circle.r <= circle.x <= WIDTH - circle.r
        assert circle.r <= circle.y <= HEIGHT - circle.r
    for number in diagram.numbers:
        inside = {
            "ABC"[circle.number - 1]
            for circle in diagram.circles
            if math.hypot(number.x - circle.x, number.y - circle.y) < circle.r
        }
        assert inside == set(number.names)
        for side in (-1, 1):  # the whole number is, and not only its middle
            end = number.x + side * 4 * len(f"{number.things:,}")
            assert {
                "ABC"[circle.number - 1]
                for circle in diagram.circles
                if math.hypot(end - circle.x, number.y - circle.y) < circle.r
            } == inside
