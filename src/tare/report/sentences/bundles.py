"""The faults of a bundle, in words."""

from __future__ import annotations

#: The report in it is another's.
OTHER_CAMPAIGN = "the report is of another campaign than the one in the bundle"


def long_list(size: int) -> str:
    """Say that a bundle lists far more members than any has."""
    return f"its list of members has {size} bytes"


def unlisted(member: str) -> str:
    """A member that the manifest does not have."""
    return f"{member} is not in the manifest"


def missing(member: str) -> str:
    """A member of the manifest that is not there."""
    return f"{member} is missing"


def changed(member: str) -> str:
    """A member with other bytes than the manifest says."""
    return f"{member} was changed: its SHA-256 is another than the manifest's"


def not_computed(error: Exception) -> str:
    """Say that the campaign in a bundle cannot be analysed."""
    return f"its figures cannot be computed again: {error}"


def no_report(member: str, error: Exception) -> str:
    """Say that the report in a bundle cannot be read."""
    return f"{member} is no report of tare's: {type(error).__name__}: {error}"


def no_crate(member: str) -> str:
    """Say that the description of a bundle's crate cannot be read."""
    return f"{member} is no RO-Crate"


def other_profile(member: str) -> str:
    """Say that a bundle's crate is of another version of RO-Crate."""
    return f"{member} is not of RO-Crate 1.1"


def undescribed(crate: str, member: str) -> str:
    """A member that the crate does not describe."""
    return f"{member} is not described by {crate}"


def not_there(crate: str, member: str) -> str:
    """A member that the crate describes and that is not there."""
    return f"{crate} describes {member}, which is missing"


def other_digest(crate: str, member: str) -> str:
    """A member that the crate and the manifest disagree on."""
    return f"{crate} has another SHA-256 of {member} than the manifest"


def differs(figure: str, written: float | None, again: float | None) -> str:
    """A figure that is not as the report has it."""
    return f"{figure} is {written} in the report, and {again} computed again"


def more_differ(number: int) -> str:
    """Return how many more figures differ."""
    return f"and {number} more figures"
