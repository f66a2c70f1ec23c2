"""Checks of `tare doctor` for this feature: the levels that this host can count, and why it cannot count the others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tare.errors import Failed, TareError, attempt
from tare.features.kernel.counters.level_counters import check
from tare.features.kernel.exchange.countable import LAB_LEVELS, inside_lab
from tare.features.kernel.lab import lab_checks
from tare.features.kernel.surface import ptrace
from tare.host.host_checks import HostCheck
from tare.model import Level


def checks() -> Iterator[HostCheck]:
    """Yield the checks of surfaces, of footprints, and of the lab."""
    yield ptrace.check()
    yield from of_levels(lab_checks.check())


def of_levels(of_lab: HostCheck) -> Iterator[HostCheck]:
    """Yield a check for each level, then ``of_lab``, since a lab can count some; inside a lab, omit ``of_lab``."""
    inside = inside_lab()
    for level in Level:
        yield _check(level, inside=inside, lab_ready=of_lab.state == "ok")
    if not inside:
        yield of_lab


def _check(level: Level, *, inside: bool, lab_ready: bool) -> HostCheck:
    name = "sample stacks" if level is Level.STACKS else f"count {level.value}"
    command = "tare footprint" if level is Level.SYSCALLS else f"tare footprint --level {level.value}"
    tried = attempt(partial(check, level))
    if not isinstance(tried, Failed):
        return HostCheck(name, "ok", f"on this host: {command}")
    what, fix = (tried.error.what, tried.error.fix) if isinstance(tried.error, TareError) else (tried.reason, None)
    if level not in LAB_LEVELS:
        return HostCheck(name, "warn", what, fix)
    if inside:
        return HostCheck(name, "warn", what, f"{command} on the host outside, which boots a lab for it")
    if not lab_ready:
        return HostCheck(name, "warn", what, f"see lab below: {command} boots one")
    return HostCheck(name, "ok", f"in a lab, which {command} boots; on this host not: {what}")
