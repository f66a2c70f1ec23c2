"""The nearest names to one that does not exist, as the fix of a `UsageError`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: Maximum number of names to list if no name is near; `tare list` has all.
MAX_SHOWN = 60
#: Number of near names that are suggested.
_MOST_NEAR = 4


def nearest(name: str, known: Iterable[str], listing: str = "") -> str:
    """Say which known names come near, or that several stand in one; many of them when none does.

    ``listing``: the command that prints all of them, which is told in their place.
    """
    names = list(known)
    by_fold = {name.casefold(): name for name in names}
    folded = name.casefold()
    parts = [part.strip() for part in folded.split(",")]
    if all(part in by_fold for part in parts):
        meant = [by_fold[part] for part in parts]
        return f"repeat the option for each: {', '.join(meant)}" if len(meant) > 1 else f"did you mean {meant[0]}?"
    near = [by_fold[fold] for fold in difflib.get_close_matches(folded, by_fold, n=3, cutoff=0.6)]
    # Half a name is what people type first: "iperf" for "iperf3-tcp".
    near += [name for name in names if folded and folded in name.casefold() and name not in near]
    if near:
        others = f" ({len(near) - _MOST_NEAR} more)" if len(near) > _MOST_NEAR else ""
        return f"did you mean {' or '.join(near[:_MOST_NEAR])}?{others}"
    if listing:
        return f"{listing} has all {len(names)} names"
    shown = [*sorted(names)[:MAX_SHOWN], *(["..."] if len(names) > MAX_SHOWN else [])]
    return f"use one of {', '.join(shown)}" if names else "there are none"
