"""What about this host makes figures wrong or wide, and what to do about it. Pure: facts in, checks out."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tare.host import processes
from tare.host.facts import Facts

State = Literal["ok", "warn", "fail"]

#: Below this, an image and a campaign do not fit.
NEEDED_DISK = 3 << 30
BUSY_LOAD = 0.5
STEAL = 0.01
#: Clock sources that cost a hypervisor exit or a slow device a reading.
SLOW_CLOCKS = frozenset({"hpet", "acpi_pm", "jiffies", "refined-jiffies"})
TOOLS = {"ip": "iproute2", "mount": "mount", "nsenter": "util-linux", "chroot": "coreutils", "mmdebstrap": "mmdebstrap"}


@dataclass(frozen=True, slots=True)
class Check:
    """One look at the host. ``advice`` is empty when all is well."""

    name: str
    state: State
    found: str
    advice: str = ""


def checks(facts: Facts) -> list[Check]:
    """All checks, those that stop a campaign first."""
    made = [_root(), *_tools()]
    made += [check(facts) for check in _OF_FACTS]
    return sorted(made, key=lambda check: ("fail", "warn", "ok").index(check.state))


def _root() -> Check:
    if os.geteuid() == 0:
        return Check("root", "ok", "yes")
    return Check("root", "fail", "no", "run tare as root (sudo): sandboxes and their accounting need it")


def _tools() -> list[Check]:
    missing = [tool for tool in TOOLS if processes.find(tool) is None]
    if not missing:
        return [Check("tools", "ok", ", ".join(TOOLS))]
    packages = " ".join(sorted({TOOLS[tool] for tool in missing}))
    return [Check("tools", "fail", f"missing: {', '.join(missing)}", f"apt-get install {packages}")]


def _cpus(facts: Facts) -> Check:
    if facts.cpus >= 2:
        return Check("cpus", "ok", f"{facts.cpus}")
    return Check("cpus", "warn", "1", "harness, client and instances share one CPU: figures will be wide")


def _disk(facts: Facts) -> Check:
    found = f"{facts.disk_free_bytes / 2**30:.1f} GiB free, {facts.filesystem}"
    if facts.disk_free_bytes >= NEEDED_DISK:
        return Check("disk", "ok", found)
    return Check("disk", "fail", found, "free some space, or set TARE_HOME to a larger disk")


def _cgroups(facts: Facts) -> Check:
    return Check("cgroups", "ok", facts.cgroups)


def _virtualised(facts: Facts) -> Check:
    if not facts.virtualised:
        return Check("bare metal", "ok", "yes")
    return Check("bare metal", "warn", "no: a virtual machine", "overheads here are on top of the hypervisor below")


def _governor(facts: Facts) -> Check:
    if facts.governor in {None, "performance"}:
        return Check("governor", "ok", facts.governor or "none: no frequency scaling is seen")
    return Check("governor", "warn", facts.governor or "", "cpupower frequency-set -g performance")


def _turbo(facts: Facts) -> Check:
    if not facts.turbo:
        return Check("turbo", "ok", "off" if facts.turbo is False else "not seen")
    return Check("turbo", "warn", "on", "speed drifts with heat: echo 0 >/sys/devices/system/cpu/cpufreq/boost")


def _smt(facts: Facts) -> Check:
    if not facts.smt:
        return Check("smt", "ok", "off" if facts.smt is False else "not seen")
    return Check(
        "smt", "warn", "on", "give --cpus whose siblings are idle, or echo off >/sys/devices/system/cpu/smt/control"
    )


def _load(facts: Facts) -> Check:
    found = f"{facts.load:.2f}"
    if facts.load <= BUSY_LOAD:
        return Check("load", "ok", found)
    return Check("load", "warn", found, "others are at work: blocks and slices cope, intervals are wider")


def _steal(facts: Facts) -> Check:
    found = f"{facts.steal:.2%} since boot"
    if facts.steal <= STEAL:
        return Check("steal", "ok", found)
    return Check("steal", "warn", found, "the hypervisor below takes time away; contaminated trials are marked")


def _swap(facts: Facts) -> Check:
    if facts.swap_bytes == 0:
        return Check("swap", "ok", "none")
    return Check("swap", "warn", f"{facts.swap_bytes / 2**30:.1f} GiB", "swapoff -a while you measure memory")


def _hugepages(facts: Facts) -> Check:
    return Check("transparent hugepages", "ok", facts.transparent_hugepages or "not seen")


def _clock(facts: Facts) -> Check:
    if facts.clock_source in SLOW_CLOCKS:
        return Check(
            "clock source", "warn", facts.clock_source or "", "reading the clock is slow: prefer tsc or kvm-clock"
        )
    return Check("clock source", "ok", facts.clock_source or "not seen")


_OF_FACTS: tuple[Callable[[Facts], Check], ...] = (
    _cpus, _disk, _cgroups, _virtualised, _governor, _turbo, _smt, _load, _steal, _swap, _hugepages, _clock,
)  # fmt: skip
