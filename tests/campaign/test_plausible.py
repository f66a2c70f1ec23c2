"""Readings of counters that cannot be are dropped, whatever the kernel, a hypervisor or lxcfs shows."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fake_campaign
from tare.campaign.telemetry.plausible import LARGEST, Judge, contradiction, impossible
from tare.model import CpuTick, Tick

TICKS = list(fake_campaign.ticks(fake_campaign.Shape(blocks=2, rounds=2), 2))


def with_cpu(tick: Tick, **changes: int) -> Tick:
    """The reading with other counters of its first CPU."""
    return replace(tick, cpus=(replace(tick.cpus[0], **changes), *tick.cpus[1:]))


def judged(ticks: list[Tick]) -> list[Tick | str]:
    judge = Judge()
    return [judge.judged(tick) for tick in ticks]


def test_what_a_host_shows_is_kept() -> None:
    kept = judged(TICKS)
    assert all(isinstance(tick, Tick) for tick in kept)
    assert [tick.first for tick in kept if isinstance(tick, Tick)] == [True] + [False] * (len(TICKS) - 1)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"idle_ms": 10**19}, "CPU 0's idle_ms is beyond all that is counted"),  # lxc/lxcfs#311, in ticks of 10 ms
        ({"steal_ms": TICKS[2].cpus[0].steal_ms - 10**9}, "CPU 0's steal_ms runs backwards"),  # node_exporter#742
        ({"steal_ms": TICKS[2].cpus[0].steal_ms + 10**9}, "CPU 0's steal_ms runs away"),
        ({"run_ns": TICKS[2].cpus[0].run_ns - 10**10}, "CPU 0's run_ns runs backwards"),
    ],
)
def test_one_reading_that_cannot_be_is_dropped_alone(change: dict[str, int], problem: str) -> None:
    ticks = [*TICKS[:3], with_cpu(TICKS[3], **change), *TICKS[4:]]
    kept = judged(ticks)
    assert kept[3] == problem
    others = [tick for number, tick in enumerate(kept) if number != 3]
    assert [tick.first for tick in others if isinstance(tick, Tick)] == [True] + [False] * (len(TICKS) - 2)


@pytest.mark.parametrize("name", ["swapped_in", "disk_read_bytes", "tare_ns", "io_pressure_us"])
def test_a_counter_that_begins_anew_ends_one_window_and_no_more(name: str) -> None:
    high = [replace(tick, **{name: 10**15 + number}) for number, tick in enumerate(TICKS[:3])]
    low = [replace(tick, **{name: number}) for number, tick in enumerate(TICKS[3:8])]
    kept = judged([*high, *low])
    assert kept[3] == f"{name} runs backwards"
    assert [tick.first for tick in kept if isinstance(tick, Tick)] == [True, False, False, True, False, False, False]


def test_idle_time_that_runs_backwards_a_little_is_as_proc_has_it() -> None:
    tick = with_cpu(TICKS[1], idle_ms=TICKS[0].cpus[0].idle_ms - 10, iowait_ms=TICKS[0].cpus[0].iowait_ms)
    assert contradiction(TICKS[0], tick) is None


def test_a_machine_that_was_paused_is_kept_with_what_was_stolen() -> None:
    tick = with_cpu(TICKS[1], steal_ms=TICKS[0].cpus[0].steal_ms + 600_000)
    assert contradiction(TICKS[0], tick) is None


def test_cpus_come_and_go() -> None:
    fewer = replace(TICKS[1], cpus=TICKS[1].cpus[:1])
    assert [type(tick) for tick in judged([TICKS[0], fewer, TICKS[2]])] == [Tick] * 3


numbers = st.integers(-(2**80), 2**80) | st.integers(0, 10**6)


@pytest.mark.thorough
@given(st.lists(st.tuples(st.sampled_from([field.name for field in fields(CpuTick)[1:]]), numbers), max_size=8))
def test_whatever_is_kept_fits_and_agrees(changes: list[tuple[str, int]]) -> None:
    ticks = [with_cpu(tick, **{name: value}) for tick, (name, value) in zip(TICKS, changes, strict=False)]
    kept = [tick for tick in judged(ticks) if isinstance(tick, Tick)]
    for tick in kept:
        assert impossible(tick) is None
        assert all(abs(getattr(tick.cpus[0], field.name) or 0) < LARGEST for field in fields(CpuTick))
    for before, after in itertools.pairwise(kept):
        assert after.first or contradiction(before, after) is None
