"""What `tare doctor` says of footprints: which levels can be counted on this host, and of the others why not."""

from __future__ import annotations

from collections.abc import Iterator

from tare.errors import HostError
from tare.footprint.counters import counter_of
from tare.footprint.model import Level
from tare.footprint.walk import NO_GROUP
from tare.host.checks import Check


def checks() -> Iterator[Check]:
    """One a level, by really counting for a moment: what locks a source is found in no single place."""
    for level in Level:
        name = f"count {level.value}"
        try:
            counter = counter_of(level)
            try:
                counter.start(NO_GROUP)
            finally:
                counter.stop()
        except HostError as error:
            yield Check(name, "warn", error.what, error.fix)
        else:
            yield Check(name, "ok", "can be counted here")
