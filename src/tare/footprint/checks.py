"""What `tare doctor` says of footprints: which levels can be counted on this host, and of the others why not."""

from __future__ import annotations

from collections.abc import Iterator

from tare.errors import HostError
from tare.footprint import lab
from tare.footprint.counters import check
from tare.footprint.model import Level
from tare.host.checks import Check


def checks(lab_state: str) -> Iterator[Check]:
    """One a level. ``lab_state``: that of the check of the lab, which some levels are counted in where need be."""
    for level in Level:
        name = "sample stacks" if level is Level.STACKS else f"count {level.value}"
        command = "tare footprint" if level is Level.SYSCALLS else f"tare footprint --level {level.value}"
        try:
            check(level)
        except HostError as error:
            if level in lab.LEVELS and lab_state == "ok" and not lab.inside():
                yield Check(name, "ok", f"in a lab, which {command} boots; on this host not: {error.what}")
            else:
                yield Check(name, "warn", error.what, error.fix)
        else:
            yield Check(name, "ok", f"on this host: {command}")
