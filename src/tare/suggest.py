"""The nearest names to one that does not exist, as the fix of a `UsageError`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: Names that are told when none comes near; `tare list` has all.
MAX_SHOWN = 60


def nearest(name: str, known: Iterable[str]) -> str:
    """Say which known names come near; many of them when none does."""
    names = list(known)
    by_fold = {name.casefold(): name for name in names}
    folded = name.casefold()
    near = [by_fold[fold] for fold in difflib.get_close_matches(folded, by_fold, n=3, cutoff=0.5)]
    # Half a name is what people type first: "iperf" for "iperf3-tcp".
    near += [name for name in names if folded and folded in name.casefold() and name not in near]
    if near:
        return f"did you mean {' or '.join(near)}?"
    shown = [*sorted(names)[:MAX_SHOWN], *(["..."] if len(names) > MAX_SHOWN else [])]
    return f"use one of {', '.join(shown)}" if names else "there are none"
