"""Texts of score sheets, in a terminal and on the page."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

TITLE = "Score sheet"
STANDARDISED = "Standardised scores: the best platform has 1"
#: The page's form, its button, and the head of its last column.
FORM = "Priorities and weights of the score sheet"
RESET = "As the profile has it"
SHARE = "of what it could have"


def points_text(points: int, within: tuple[int, int] | None) -> str:
    """Points, and which others the interval of their figure allows: "4 (2 to 4)"."""
    return f"{points}" if within is None or within[0] == within[1] else f"{points} ({within[0]} to {within[1]})"


def total_text(total: int, attainable: int, within: tuple[int, int]) -> str:
    """All points of those that there are, and the range that the intervals allow."""
    return f"{points_text(total, within)} of {attainable}"


def share_text(weighted: float, most: float, within: tuple[float, float]) -> str:
    """A weighted sum as a share of what could be had, with its range: "90 % (70 to 100)". tables.js has the same."""
    if not most:
        return "–"
    share, low, high = (f"{100 * value / most:.0f}" for value in (weighted, *within))
    return f"{share} %" if low == high else f"{share} % ({low} to {high})"


def percents(baseline: str) -> str:
    """The heading of figures in per cent."""
    return f"Per cent of {baseline}, with the relative standard deviation over blocks"


def feature(name: str, most: int, priority: str) -> str:
    """A feature in the table of points: its name, the most points that there are, its priority."""
    return f"{name} (of {most}, {priority})"


def trial_counts(baseline: str) -> str:
    """The heading of trials that fit into a day."""
    return f"Trials that fit into 24 hours, and their overhead: how far their number is from {baseline}'s"


def not_measured(features: Sequence[str]) -> str:
    """Say which features were not measured, and have no points."""
    return f"not measured in this campaign, so no points: {', '.join(features)}"


def note(baseline: str, title: str) -> Markup:
    """Return what the page's sheet is, and is not; ``title``: of the profile."""
    return Markup(
        "Points by thresholds on shares of {}&rsquo;s figures (DESMET, after {}). In brackets, the points that the"
        " 95&nbsp;% intervals of the figures allow; of a sum, with all figures at one end at once. Change what matters"
        " to you; <code>tare score --profile</code> takes thresholds of your own."
    ).format(baseline, title)
