"""What `tare doctor` says of footprints: which levels can be counted on this host, and of the others why not."""

from __future__ import annotations

from collections.abc import Iterator

from tare.errors import HostError
from tare.footprint.counters import check
from tare.footprint.model import Level
from tare.host.checks import Check


def checks() -> Iterator[Check]:
    """One a level."""
    for level in Level:
        done, name = ("sampled", "sample stacks") if level is Level.STACKS else ("counted", f"count {level.value}")
        try:
            check(level)
        except HostError as error:
            yield Check(name, "warn", error.what, error.fix)
        else:
            yield Check(name, "ok", f"can be {done} here")
