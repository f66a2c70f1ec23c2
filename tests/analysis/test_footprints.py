from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fake_footprints as footprints
from refused import refused
from tare.features.kernel.analysis.footprint_sets import Exposure, PooledFootprints, View, beyond, pooled
from tare.features.studies import literature
from tare.footprint_model import EMPTY, IDLE, Footprint, Phase, Scope
from tare.model import Level

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
    assert exposure.pool("native", Scope.HOST) == PooledFootprints({"tick": 200, "own": 3, "rare": 2}, 20.0, 0, 2)


def test_rates_decide_and_not_hits() -> None:
    idle = PooledFootprints({"a": 600, "b": 600, "c": 599}, 600.0, 0, 1)
    pool = PooledFootprints({"a": 60, "b": 61, "c": 60, "new": 1}, 60.0, 0, 1)
    assert beyond(pool, idle) == {"b", "c", "new"}
    assert beyond(idle, idle) == frozenset()


@given(COUNTS, COUNTS, st.integers(1, 100), st.integers(1, 100), st.integers(2, 9))
def test_how_long_was_counted_does_not_matter(
    hits: dict[str, int], idle_hits: dict[str, int], seconds: int, idle_seconds: int, times: int
) -> None:
    pool, idle = PooledFootprints(hits, seconds, 0, 1), PooledFootprints(idle_hits, idle_seconds, 0, 1)
    longer = PooledFootprints({thing: times * count for thing, count in hits.items()}, times * seconds, 0, 1)
    kept = beyond(pool, idle)
    assert beyond(longer, idle) == kept
    assert kept == {thing for thing in hits if pool.rate(thing) > idle.rate(thing) * (1 + 1e-12)}
    assert hits.keys() - idle_hits.keys() <= kept <= hits.keys()


def test_what_readings_leave_is_taken_off_in_hits_whatever_the_windows_length() -> None:
    """By rates, a short window between two readings has more of "read" a second than the long idle one."""
    idle = of({"read": 1_000, "tick": 400}, platform=IDLE, workload=None, seconds=40.0)
    short = of({"read": 1_000, "tick": 5, "own": 1}, seconds=0.5)
    assert Exposure([idle, short]).things("native", View.BEYOND_IDLE) == {"read", "own"}
    empty = of({"read": 1_000}, platform=EMPTY, workload=None, seconds=1e-6)
    exposure = Exposure([idle, empty, short])
    assert exposure.things("native", View.BEYOND_IDLE) == {"own"}
    assert exposure.things("native", View.HOST) == {"tick", "own"}
    assert exposure.platforms == ("native",)
    assert exposure.idle == PooledFootprints({"tick": 400}, 40.0, 0, 1)
    busier = Exposure([idle, empty, short.model_copy(update={"hits": {"read": 1_013}})])
    assert busier.pool("native", Scope.HOST) == PooledFootprints({"read": 13}, 0.5, 0, 1)
    assert busier.things("native", View.BEYOND_IDLE) == {"read"}


def test_the_spread_of_readings_is_no_work() -> None:
    empty = [of({"read": hits}, platform=EMPTY, workload=None) for hits in (90, 110)]
    exposure = Exposure([*empty, *(of({"read": hits}, repeat=at) for at, hits in enumerate((100, 120)))])
    assert exposure.left == {"read": 110}
    assert exposure.things("native", View.HOST) == frozenset(), "two readings may leave 220"
    assert exposure.repeats("native", View.HOST) == (set(), set())
    worked = Exposure([*empty, *(of({"read": hits}, repeat=at) for at, hits in enumerate((100, 121)))])
    assert worked.things("native", View.HOST) == {"read"}
    assert worked.repeats("native", View.HOST) == (set(), {"read"})


def test_what_an_instance_runs_has_no_readings_in_it() -> None:
    empty = of({"read": 7}, platform=EMPTY, workload=None)
    exposure = Exposure([empty, of({"read": 5}), of({"read": 5}, scope=Scope.INSTANCE)])
    assert exposure.things("native", View.HOST) == frozenset()
    assert exposure.things("native", View.INSTANCE) == {"read"}


def test_a_thing_that_one_workload_ran_has_hits_in_the_pool_of_all() -> None:
    """Many windows whose readings left less than the most must not eat up what one window ran."""
    empty = [of({"read": hits}, platform=EMPTY, workload=None) for hits in (50, 100)]
    quiet = [of({"read": 50}, workload=f"w{number}") for number in range(8)]
    exposure = Exposure([*empty, *quiet, of({"read": 103}, workload="net")])
    assert exposure.things("native", View.HOST) == {"read"}
    pool = exposure.pool("native", Scope.HOST)
    assert (pool.hits, pool.seconds, pool.footprints) == ({"read": 3}, 90.0, 9)


@pytest.mark.parametrize("seed", range(5))
def test_of_invented_readings_only_what_ran_besides_is_left(seed: int) -> None:
    """200 lines that the reading alone runs, 100 of them not always as often; 100 that it and the platform run."""
    rng = np.random.default_rng(seed)
    steady = {f"fs/seq_file.c:{line}": int(rng.integers(1, 5_000)) for line in range(100)}
    unsteady = {f"mm/slub.c:{line}": int(rng.integers(1, 5_000)) for line in range(100)}
    shared = {f"fs/open.c:{line}": int(rng.integers(1, 5_000)) for line in range(100)}
    background = dict.fromkeys((f"kernel/time/timer.c:{line}" for line in range(40)), 500.0)

    def reading(seconds: float, worked: int = 0) -> dict[str, int]:
        left = steady | {line: int(rng.poisson(hits)) for line, hits in unsteady.items()}
        left |= {line: hits + 20 * worked for line, hits in shared.items()}
        return left | {line: int(rng.poisson(rate * seconds)) for line, rate in background.items()}

    prints = []
    for repeat in range(3):
        facts = {"workload": None, "repeat": repeat}
        prints += [
            of(reading(0.1), platform=EMPTY, seconds=1e-6, **facts),
            of(reading(30.0), platform=IDLE, seconds=30.0, **facts),
            of(reading(0.5, 1), phase=Phase.START, seconds=0.5, **facts),
            of(reading(8.0, 5), workload="cpu", repeat=repeat, seconds=8.0),
        ]
    exposure = Exposure(prints)
    for phase in (Phase.START, Phase.STEADY, None):
        ran = {line for line in exposure.things("native", View.BEYOND_IDLE, phase) if line not in background}
        assert ran >= shared.keys()
        assert not ran & steady.keys()
        # Three readings together now and then leave more than three times the most of three empty ones.
        assert len(ran & unsteady.keys()) < 45
    plain = Exposure([footprint for footprint in prints if footprint.platform != EMPTY])
    assert plain.things("native", View.BEYOND_IDLE) >= shared.keys() | steady.keys() | unsteady.keys()


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
    things_of = exposure.things
    assert things_of("native", View.BEYOND_IDLE, Phase.START) == {"boot"}
    assert things_of("native", View.BEYOND_IDLE, Phase.STEADY, "cpu") == {"cpu"}
    assert things_of("native", View.BEYOND_IDLE, Phase.STEADY) == {"cpu", "net", "tick"}
    assert things_of("native", View.BEYOND_IDLE, None, "cpu") == {"boot", "cpu"}
    assert things_of("native", View.BEYOND_IDLE) == {"boot", "cpu", "net", "tick"}
    assert things_of("docker", View.HOST) == frozenset()


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
    host, instance = of({"a": 1}), of({"b": 1}, scope=Scope.INSTANCE)
    assert Exposure([host]).views() == (View.HOST,)
    assert Exposure([host]).things("native", View.BEYOND_IDLE) == frozenset()
    assert Exposure([host, idle]).best_view() is View.BEYOND_IDLE
    assert Exposure([host, idle, instance]).views() == tuple(View)
    assert Exposure([host, idle, instance]).best_view() is View.INSTANCE
    assert Exposure([idle]).best_view() is None
    assert Exposure([idle]).platforms == ()


def test_levels_are_not_mixed_and_nothing_is_no_level() -> None:
    with refused("not of 2"):
        Exposure([of({}), of({}, level=Level.SYSCALLS)])
    with refused("not of 0"):
        Exposure([])
    assert pooled([]) is None


def test_what_is_known_is_the_most_that_was_known_at_once() -> None:
    assert Exposure([of({}, known=7), of({}, known=9), of({})]).known == 9
    assert Exposure([of({})]).known is None


def test_invented_platforms_are_found_again_and_the_background_is_gone() -> None:
    exposure = Exposure(footprints.invented())
    for platform in footprints.PLATFORMS:
        lines = exposure.things(platform, View.BEYOND_IDLE)
        assert {line for line in lines if not line.startswith("kernel/time/")} == footprints.lines_of(platform)
        assert sum(line.startswith("kernel/time/") for line in lines) < 10
        assert sum(line.startswith("kernel/time/") for line in exposure.things(platform, View.HOST)) == 40


def test_shares_agree_with_table_2_of_the_paper() -> None:
    """7.83 % of 806,318 lines and so on, by the arithmetic that the report uses."""
    study = literature.load("anjali-2020")
    lines = study.metric("Kernel lines executed").value
    for printed in (statement for statement in study.text.derived if statement.of == "share"):
        exposure = Exposure([of(dict.fromkeys(map(str, range(int(lines[printed.platform]))), 1), known=printed.total)])
        share = 100 * len(exposure.things("native", View.HOST)) / exposure.known
        # Two of the four are cut off and not rounded (the study's slips).
        assert printed.value - 0.005 <= share < printed.value + 0.01
