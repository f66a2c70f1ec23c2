from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fake_footprints as footprints
from tare import literature
from tare.analysis.footprints import Exposure, Pool, View, beyond, pooled
from tare.analysis.inputs import NoAnswer
from tare.footprint.model import IDLE, Footprint, Level, Phase, Scope

COUNTS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 1000))


def of(hits: dict[str, int], **facts: object) -> Footprint:
    return footprints.footprint(hits, **facts)


def test_repeats_are_pooled_before_they_are_compared_with_the_idle_host() -> None:
    idle = of({"tick": 100, "rare": 1}, platform=IDLE, workload=None, seconds=10.0)
    # Alone the first repeat ticks more often than the idle host (11 a second), together they do as often.
    first = of({"tick": 110, "own": 3}, repeat=0)
    second = of({"tick": 90, "rare": 2}, repeat=1)
    exposure = Exposure([idle, first, second])
    assert exposure.things("native", View.HOST) == {"tick", "own", "rare"}
    assert exposure.things("native", View.BEYOND_IDLE) == {"own"}
    assert exposure.repeats("native", View.BEYOND_IDLE) == ({"own"}, set())
    assert exposure.repeats("native", View.HOST) == ({"tick", "own"}, {"tick", "rare"})
    assert exposure.pool("native", Scope.HOST) == Pool({"tick": 200, "own": 3, "rare": 2}, 20.0, 0, 2)


def test_rates_decide_and_not_hits() -> None:
    idle = Pool({"a": 600, "b": 600, "c": 599}, 600.0, 0, 1)
    found = Pool({"a": 60, "b": 61, "c": 60, "new": 1}, 60.0, 0, 1)
    assert beyond(found, idle) == {"b", "c", "new"}
    assert beyond(idle, idle) == frozenset()


@settings(deadline=None)
@given(COUNTS, COUNTS, st.integers(1, 100), st.integers(1, 100), st.integers(2, 9))
def test_how_long_was_counted_does_not_matter(
    hits: dict[str, int], idle_hits: dict[str, int], seconds: int, idle_seconds: int, times: int
) -> None:
    found, idle = Pool(hits, seconds, 0, 1), Pool(idle_hits, idle_seconds, 0, 1)
    longer = Pool({thing: times * count for thing, count in hits.items()}, times * seconds, 0, 1)
    kept = beyond(found, idle)
    assert beyond(longer, idle) == kept
    assert kept == {thing for thing in hits if found.rate(thing) > idle.rate(thing) * (1 + 1e-12)}
    assert hits.keys() - idle_hits.keys() <= kept <= hits.keys()


def test_a_union_is_of_each_workloads_own_set_and_the_start_belongs_to_all() -> None:
    exposure = Exposure(
        [
            of({"boot": 1, "tick": 5}, phase=Phase.START, workload=None),
            of({"tick": 50, "cpu": 1}, workload="cpu"),
            of({"tick": 500, "net": 1}, workload="net"),
            of({"tick": 100}, platform=IDLE, workload=None),
        ]
    )
    assert exposure.workloads == ("cpu", "net")
    assert exposure.phases() == (Phase.START, Phase.STEADY)
    things = exposure.things
    assert things("native", View.BEYOND_IDLE, Phase.START) == {"boot"}
    assert things("native", View.BEYOND_IDLE, Phase.STEADY, "cpu") == {"cpu"}
    assert things("native", View.BEYOND_IDLE, Phase.STEADY) == {"cpu", "net", "tick"}
    assert things("native", View.BEYOND_IDLE, None, "cpu") == {"boot", "cpu"}
    assert things("native", View.BEYOND_IDLE) == {"boot", "cpu", "net", "tick"}
    assert things("docker", View.HOST) == frozenset()


def test_a_repeat_counts_where_all_its_workloads_were_counted() -> None:
    exposure = Exposure(
        [
            of({"a": 1}, workload="cpu", repeat=0),
            of({"b": 1}, workload="cpu", repeat=1),
            of({"c": 1}, workload="net", repeat=1),
            of({"d": 1}, platform="docker", workload="cpu"),
        ]
    )
    assert exposure.repeats("native", View.HOST) == ({"b", "c"},)
    assert exposure.repeats("native", View.HOST, Phase.STEADY, "cpu") == ({"a"}, {"b"})
    assert exposure.lacking("docker", Scope.HOST) == ("net",)
    assert exposure.lacking("native", Scope.HOST) == ()


def test_views_are_those_that_there_is_something_for() -> None:
    idle = of({"tick": 1}, platform=IDLE, workload=None)
    host, own = of({"a": 1}), of({"b": 1}, scope=Scope.INSTANCE)
    assert Exposure([host]).views() == (View.HOST,)
    assert Exposure([host]).things("native", View.BEYOND_IDLE) == frozenset()
    assert Exposure([host, idle]).best_view() is View.BEYOND_IDLE
    assert Exposure([host, idle, own]).views() == tuple(View)
    assert Exposure([host, idle, own]).best_view() is View.INSTANCE
    assert Exposure([idle]).best_view() is None
    assert Exposure([idle]).platforms == ()


def test_levels_are_not_mixed_and_nothing_is_no_level() -> None:
    with pytest.raises(NoAnswer, match="not of 2"):
        Exposure([of({}), of({}, level=Level.SYSCALLS)])
    with pytest.raises(NoAnswer, match="not of 0"):
        Exposure([])
    assert pooled([]) is None


def test_what_is_known_is_the_most_that_was_known_at_once() -> None:
    assert Exposure([of({}, known=7), of({}, known=9), of({})]).known == 9
    assert Exposure([of({})]).known is None


def test_invented_platforms_are_found_again_and_the_background_is_gone() -> None:
    exposure = Exposure(footprints.invented())
    for platform in footprints.PLATFORMS:
        found = exposure.things(platform, View.BEYOND_IDLE)
        assert {one for one in found if not one.startswith("kernel/time/")} == footprints.lines_of(platform)
        assert sum(one.startswith("kernel/time/") for one in found) < 10
        assert sum(one.startswith("kernel/time/") for one in exposure.things(platform, View.HOST)) == 40


def test_shares_agree_with_table_2_of_the_paper() -> None:
    """7.83 % of 806,318 lines and so on, by the arithmetic that the report uses."""
    study = literature.load("anjali-2020")
    lines = study.metric("Kernel lines executed").value
    for printed in (one for one in study.text.derived if one.of == "share"):
        exposure = Exposure([of(dict.fromkeys(map(str, range(int(lines[printed.platform]))), 1), known=printed.total)])
        share = 100 * len(exposure.things("native", View.HOST)) / exposure.known
        # Two of the four are cut off and not rounded (the study's slips).
        assert printed.value - 0.005 <= share < printed.value + 0.01
