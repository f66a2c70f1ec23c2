"""Times, sizes and shares as users type them. A number that could mean two things is refused with both readings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tare.errors import UsageError

#: The longest time that a user can give: a year, in seconds.
MAX_SECONDS = 366 * 86_400.0

#: Characters of a text that an error shows.
_SHOWN = 100
_NUMBER = r"\d{1,15}(?:\.\d{1,9})?"
_BARE = re.compile(rf"{_NUMBER}", re.ASCII)
_PART = re.compile(rf"({_NUMBER})\s*(hours?|hr?|minutes?|min|m|seconds?|sec|s)", re.ASCII | re.IGNORECASE)
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0}
_SHARE = re.compile(rf"({_NUMBER})\s*(%?)", re.ASCII)
_SIZE = re.compile(r"(\d{1,12})\s*([MG])(i?B)?", re.ASCII | re.IGNORECASE)
_MIB = re.compile(r"-?\d{1,15}", re.ASCII)


def parse_time(text: str) -> float:
    """Seconds from ``90s``, ``5m``, ``5min``, ``1.5h`` or ``1h30m``: from 0 to a year. Raises `UsageError`."""
    stripped = text.strip()
    if _BARE.fullmatch(stripped):
        if not float(stripped):
            return 0.0
        raise UsageError(f"{text[:_SHOWN]!r} has no unit", fix=f"write {stripped[:_SHOWN]}s or {stripped[:_SHOWN]}m")
    parts = _PART.findall(stripped)
    whole = _PART.sub("", stripped).strip() == "" and bool(parts)
    units = [unit[0].lower() for _, unit in parts]
    seconds = sum(float(number) * _SECONDS[unit] for (number, _), unit in zip(parts, units, strict=True))
    # Each unit once, the larger first: 30m1h30m is no time that anybody means.
    if not whole or units != sorted(set(units)) or seconds > MAX_SECONDS:
        raise UsageError(f"{text[:_SHOWN]!r} is not a time", fix="write 90s, 5m or 1h30m")
    return seconds


def parse_share(text: str, what: str, example: str) -> float:
    """A fraction from ``0.5%``; 0 is 0. ``what``: it is, for the error, as ``a margin``. Raises `UsageError`."""
    match = _SHARE.fullmatch(text.strip())
    if match is None or float(match[1]) >= 100:
        raise UsageError(f"{text[:_SHOWN]!r} is not {what}", fix=f"write {example}")
    value = float(match[1])
    if not match[2] and value:
        of_one = f" or {100 * value:g}%" if value < 1 else ""
        raise UsageError(f"{text[:_SHOWN]!r} has no unit", fix=f"write {match[1]}%{of_one}")
    return value / 100


def parse_precision(text: str) -> float:
    """A half-width as a fraction, from ``0.5%``; ``0`` for none. Raises `UsageError`."""
    return parse_share(text, "a precision", "0.5%, or 0 to use all of the time")


def parse_margins(texts: Sequence[str]) -> dict[str, float]:
    """Margins by name, as fractions, from ``2%``, ``cpu=0.5%`` or ``primes=0.2%``. Raises `UsageError`.

    The empty name is for all workloads.
    """
    margins = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        margin = parse_share(number, "a margin", "2%, cpu=0.5% or primes=0.2%")
        if not margin or (equals and not name):
            raise UsageError(f"{text[:_SHOWN]!r} is not a margin", fix="write 2%, cpu=0.5% or primes=0.2%")
        margins[name] = margin
    return margins


def parse_size(text: str) -> int:
    """A size in bytes from ``4G``, ``4GB``, ``4GiB`` or ``3000M``, all of powers of 1,024. Raises `UsageError`."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text[:_SHOWN]!r} is not a size", fix="write 4G or 3000M")
    return int(match[1]) << (30 if match[2].upper() == "G" else 20)


def parse_memory(text: str) -> int:
    """A memory limit in bytes: a size, or a number of MiB such as ``512``, however small. Raises `UsageError`."""
    return int(text) << 20 if _MIB.fullmatch(text) else parse_size(text)


#: Limits of a fill, as `tare capacity --limit` has them: the parameter of the workload, and whether it is a time.
LIMITS = {
    "start-p99": ("start_p99_s", True),
    "failures": ("failures", False),
    "keep": ("keep", False),
    "psi-memory": ("memory_stall", False),
    "psi-cpu": ("cpu_stall", False),
}


def parse_limits(texts: Sequence[str]) -> dict[str, float]:
    """The parameters of a fill from ``start-p99=2s`` or ``failures=1%``, in seconds and fractions.

    Raises `UsageError`.
    """
    limits = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in LIMITS or not value:
            known = ", ".join(f"{known}={'2s' if time else '1%'}" for known, (_, time) in LIMITS.items())
            raise UsageError(f"{text[:_SHOWN]!r} is not a limit", fix=f"write one of {known}")
        parameter, is_time = LIMITS[name]
        limits[parameter] = parse_time(value) if is_time else parse_share(value, "a limit", f"{name}=1%")
    return limits


def parse_mix(text: str) -> float:
    """The share of instances at work, from ``idle=80%,active=20%``. Raises `UsageError`."""
    fix = "write idle=80%,active=20%, which make 100 %"
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = part.strip().partition("=")
        match = _SHARE.fullmatch(share.strip())
        if name not in {"idle", "active"} or name in shares or match is None or not match[2]:
            raise UsageError(f"{text[:_SHOWN]!r} is not a mix", fix=fix)
        shares[name] = float(match[1]) / 100
    active = shares.get("active", 1 - shares.get("idle", 1.0))
    if not 0 <= active <= 1 or abs(active + shares.get("idle", 1 - active) - 1) > 1e-9:
        raise UsageError(f"{text[:_SHOWN]!r} does not make 100 %", fix=fix)
    return active
