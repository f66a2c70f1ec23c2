"""Times, sizes and shares as people type them; what could mean two things is refused with both readings."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tare.cli.commands.instances import parse_cpus
from tare.cli.metrics_endpoint import parse_address
from tare.cli.quantities import (
    parse_limits,
    parse_margins,
    parse_memory,
    parse_mix,
    parse_precision,
    parse_size,
    parse_time,
)
from tare.errors import UsageError


def refused(parse: Callable[[str], object], text: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90), ("5m", 300), ("1.5h", 5400), ("4m30s", 270), ("1h30m", 5400), ("5min", 300), ("4 min 08 s", 248),
        ("46 min 16 s", 2776), ("2 hours", 7200), ("30sec", 30), ("0", 0), ("0s", 0),
    ],
)  # fmt: skip
def test_a_time(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "soon", "-5m", "5d", "m", "30m1h", "5m5m", "1h30", "nan", "9" * 5000 + "s", "400000h"]
)
def test_what_is_no_time_is_refused_with_the_fix(text: str) -> None:
    assert refused(parse_time, text).fix.startswith("write ")


def test_a_time_without_a_unit_is_refused_with_both_readings() -> None:
    assert refused(parse_time, "5").fix == "write 5s or 5m"


@pytest.mark.parametrize(("text", "value"), [("0.5%", 0.005), ("2 %", 0.02), ("0", 0.0), ("0%", 0.0)])
def test_a_precision(text: str, value: float) -> None:
    assert parse_precision(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "%", "fine", "-1%", "100%", "nan", "inf", "1e1%"])
def test_what_is_no_precision_is_refused_with_the_fix(text: str) -> None:
    error = refused(parse_precision, text)
    assert "is not a precision" in str(error)
    assert "0.5%" in error.fix


def test_margins_are_by_name() -> None:
    assert parse_margins(["3%", "cpu=0.5%", "primes=0.2%"]) == pytest.approx({"": 0.03, "cpu": 0.005, "primes": 0.002})


@pytest.mark.parametrize("text", ["", "0", "-1%", "100%", "much", "=2%", "cpu=", "nan", "cpu=inf%"])
def test_what_is_no_margin_is_refused_with_the_fix(text: str) -> None:
    assert "is not a margin" in str(refused(lambda margin: parse_margins([margin]), text))


@pytest.mark.parametrize(
    ("text", "fix"), [("0.5", "write 0.5% or 50%"), ("0.02", "write 0.02% or 2%"), ("5", "write 5%")]
)
def test_a_share_without_a_unit_is_refused_with_both_readings(text: str, fix: str) -> None:
    """It was a fraction: who forgot the sign got equivalence within 50 % for everything."""
    assert refused(parse_precision, text).fix == fix
    assert refused(lambda margin: parse_margins([f"cpu={margin}"]), text).fix == fix


@pytest.mark.parametrize("text", ["4G", "4g", "4GB", "4GiB", "4 GiB"])
def test_a_size_is_of_powers_of_1024_however_it_is_written(text: str) -> None:
    assert parse_size(text) == parse_memory(text) == 4 << 30
    assert parse_size("3000M") == parse_size("3000MiB") == 3000 << 20


@pytest.mark.parametrize("text", ["4", "-1G", "1.5G", "many", "4T", "9" * 5000 + "G"])
def test_what_is_no_size_is_refused_with_the_fix(text: str) -> None:
    assert refused(parse_size, text).fix == "write 4G or 3000M"


def test_a_number_alone_is_an_instances_memory_in_mib() -> None:
    assert parse_memory("512") == parse_memory("512M") == 512 << 20
    assert parse_memory("-1") == -1 << 20
    for wrong in ("", "1.5G", "9" * 5000, "many"):
        refused(parse_memory, wrong)


def test_limits_of_a_fill_are_times_and_shares() -> None:
    assert parse_limits(["start-p99=2s", "keep=90%", "failures=1%"]) == {
        "start_p99_s": 2.0,
        "keep": 0.9,
        "failures": 0.01,
    }


@pytest.mark.parametrize("text", ["start-p99", "speed=2", "keep=0.9", "start-p99=2", ""])
def test_what_is_no_limit_is_refused_with_the_fix(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_limits([text])
    assert caught.value.fix


@pytest.mark.parametrize(
    ("text", "active"), [("idle=80%,active=20%", 0.2), ("active=5%", 0.05), ("idle=100%", 0.0), ("active=100%", 1.0)]
)
def test_a_mix_is_the_share_at_work(text: str, active: float) -> None:
    assert parse_mix(text) == pytest.approx(active)


@pytest.mark.parametrize("text", ["idle=80%,active=30%", "busy=20%", "active=0.2", "active=20%,active=20%", ""])
def test_what_is_no_mix_is_refused_with_the_fix(text: str) -> None:
    with pytest.raises(UsageError, match=r"mix|100 %") as caught:
        parse_mix(text)
    assert caught.value.fix == "write idle=80%,active=20%, which make 100 %"


@pytest.mark.parametrize(
    "parse", [parse_time, parse_size, parse_memory, parse_mix, parse_precision, parse_address, parse_cpus]
)
@pytest.mark.parametrize("text", ["2-2," * 5000, "x" * 9000, f"{'9' * 9000}:1"])
def test_what_is_refused_is_shown_in_short(parse: Callable[[str], object], text: str) -> None:
    assert len(str(refused(parse, text))) < 1000
