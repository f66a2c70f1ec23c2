"""Texts of score sheets, in a terminal and on the page."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

STANDARDISED = "Standardised scores: the best platform has 1"
#: The page's form, its button, and the head of its last column.
FORM = "Priorities and weights of the score sheet"
RESET = "As the profile has it"
SHARE = "of what it could have"


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
    """What the page's sheet is, and is not; ``title``: of the profile."""
    return Markup(
        "Points by thresholds on shares of {}&rsquo;s figures (DESMET, after {}). They are sums of figures without"
        " their intervals: the table on top says what is sure. Change what matters to you; <code>tare score"
        " --profile</code> takes thresholds of your own."
    ).format(baseline, title)
