"""The agent's probes, through a session."""

from __future__ import annotations

import time

import pytest

from tare.errors import UsageError
from tare.session import Refused, Session

MS = 1_000_000
SMALL = {"array_bytes": 1 << 20}


def turns(session: Session, count: int, first_ms: int = 5) -> list[tuple[int, int]]:
    """Slices of 10 ms every 20 ms, on the agent's clock."""
    start = session.sync_clock().to_agent(time.monotonic_ns()) + first_ms * MS
    return [(start + turn * 20 * MS, 10 * MS) for turn in range(count)]


@pytest.mark.parametrize(
    ("name", "params", "parts"),
    [("primes", {"max_prime": 1000}, ["events"]), ("stream", SMALL, ["copy", "scale", "add", "triad"])],
)
def test_slices_are_worked_in_their_turns(
    session: Session, name: str, params: dict[str, int], parts: list[str]
) -> None:
    probe = session.probe(name, params, 5 * MS)
    assert probe.wait_ready(20) > 0
    planned = turns(session, 4)
    probe.begin(planned)
    result = probe.wait(20)
    assert len(result.slices) == 4
    for done, (start, duration) in zip(result.slices, planned, strict=True):
        assert list(done.parts) == parts
        assert done.start_ns >= start
        assert sum(part.wall_ns for part in done.parts.values()) == done.end_ns - done.start_ns
        if done.start_ns < start + duration:
            assert done.end_ns >= start + duration
            assert all(part.work > 0 for part in done.parts.values())


def test_slices_may_be_given_with_the_request(session: Session) -> None:
    result = session.probe("primes", {}, 0, turns(session, 2, first_ms=50)).wait(20)
    assert len(result.slices) == 2
    assert result.warmup_work > 0


def test_a_turn_that_is_over_has_no_work(session: Session) -> None:
    result = session.probe("primes", {}, 0, [(1, 1)]).wait(20)
    assert result.slices[0].parts["events"].work == 0
    assert result.slices[0].start_ns == result.slices[0].end_ns


def test_no_slices_are_just_a_warm_up(session: Session) -> None:
    assert session.probe("stream", SMALL, MS, []).wait(20).slices == ()


def test_a_probe_that_is_killed_tells_what_it_did(session: Session) -> None:
    start = time.monotonic_ns() + 5 * MS
    probe = session.probe("primes", {"max_prime": 100}, 0, [(start, MS), (start + 3_600_000 * MS, MS)])
    probe.wait_ready(20)
    while time.monotonic_ns() < start + 2 * MS:
        session.ping()
    probe.kill()
    assert len(probe.wait(20).slices) <= 1


def test_two_probes_and_commands_at_once(session: Session) -> None:
    probes = [session.probe("primes", {"max_prime": 1000}, MS, turns(session, 3)) for _ in range(2)]
    assert session.execute(["echo", "between"]).stdout == b"between\n"
    assert all(len(probe.wait(20).slices) == 3 for probe in probes)


@pytest.mark.parametrize(
    ("name", "params", "code", "says"),
    [
        ("dance", {}, "unknown-probe", "primes, .*stream"),
        ("primes", {"max_primes": 3}, "bad-request", "max_primes"),
        ("primes", {"max_prime": 1.5}, "bad-request", "whole number"),
        ("stream", {"array_bytes": 1}, "bad-request", "array_bytes"),
        ("stream", {"array_bytes": True}, "bad-request", "array_bytes"),
    ],
)
def test_wrong_parameters_are_refused(
    session: Session, name: str, params: dict[str, int], code: str, says: str
) -> None:
    with pytest.raises(Refused, match=says) as refused:
        session.probe(name, params, 0, []).wait(20)
    assert refused.value.code == code
    assert session.execute(["true"]).code == 0


def test_slices_that_overlap_are_refused_before_they_are_sent(session: Session) -> None:
    probe = session.probe("primes", {}, 0)
    with pytest.raises(UsageError, match="ascend"):
        probe.begin([(5, 10), (6, 10)])
    with pytest.raises(UsageError, match="slices"):
        probe.begin([(turn * 10, 1) for turn in range(1001)])
    probe.begin([])
    assert probe.wait(20).slices == ()
