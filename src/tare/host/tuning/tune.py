"""`tare run --tune`: settings for a quieter host, set for the duration of a campaign and restored afterwards.

`look` reads the settings, `plan` returns their targets (pure), `tuned` sets them. Every change is journaled before it
is made, with the former value. It is restored at the end, after an error or Ctrl-C, and by the next sweep (`tare
clean`) after SIGKILL. A setting that somebody else changed meanwhile stays as it is.

Address space randomisation stays on, and is switched on if it is off. Every block starts every platform afresh, and
with randomisation each start draws its own memory layout: the luck of a layout is then part of the spread between
blocks, and so in the interval. With a fixed layout the same luck is in every block, looks like an effect of the
platform, and no number of blocks averages it out (Mytkowicz and others, ASPLOS 2009; Curtsinger and Berger, Stabilizer,
ASPLOS 2013).
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tare.host.facts.machine_facts import FULL_ASLR
from tare.host.kernel import cpulist, settings
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack, Journal
from tare.model import SettingOutcome

ROOT = Path("/")

_CPUS = "sys/devices/system/cpu"
_HUGE = "sys/kernel/mm/transparent_hugepage/enabled"
_KSM = "sys/kernel/mm/ksm/run"
_SWAPPINESS = "proc/sys/vm/swappiness"
_KERNEL = "proc/sys/kernel"
_ASLR = f"{_KERNEL}/randomize_va_space"
_INTEL_TURBO, _BOOST = f"{_CPUS}/intel_pstate/no_turbo", f"{_CPUS}/cpufreq/boost"
_ONLINE = f"{_CPUS}/online"

#: Settings of the kernel that are one number: name, file, the value for a campaign, why.
_NUMBERS = (
    ("nmi watchdog", f"{_KERNEL}/nmi_watchdog", "0", "it interrupts every CPU and takes a performance counter"),
    ("numa balancing", f"{_KERNEL}/numa_balancing", "0", "it unmaps pages to see who uses them, at moments of its own"),
    ("timer migration", f"{_KERNEL}/timer_migration", "0", "idle CPUs would hand their timers to the measured ones"),
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of the host's, and its value for a campaign."""

    name: str
    path: str  # Below /; empty if this host has no such setting.
    present: str | None
    wanted: str | None
    why: str  # The reason for the value, or for not changing it.


@dataclass(frozen=True, slots=True)
class Tuned:
    """The outcome for a setting."""

    setting: Setting
    outcome: SettingOutcome
    reason: str = ""  # The reason for not changing it.


def look(root: Path = ROOT) -> dict[str, str]:
    """Return the values of all settings that `plan` knows and this host has, by path below ``root``."""
    fixed = (_HUGE, _KSM, _SWAPPINESS, _ASLR, _INTEL_TURBO, _BOOST, _ONLINE, *(path for _, path, _, _ in _NUMBERS))
    files = [root / path for path in fixed]
    files += (root / _CPUS).glob("cpu[0-9]*/cpufreq/scaling_governor")
    files += (root / _CPUS).glob("cpu[0-9]*/cpufreq/scaling_available_governors")
    files += (root / "proc/irq").glob("[0-9]*/smp_affinity_list")
    values = {str(file.relative_to(root)): settings.read(file) for file in files}
    return {path: value for path, value in values.items() if value is not None}


def plan(seen: Mapping[str, str], measured: Collection[int]) -> list[Setting]:
    """Return the target of each setting, from the values of `look` and the CPUs of pinned instances."""
    return [
        *_governors(seen),
        _turbo(seen),
        _single(seen, "swappiness", _SWAPPINESS, "0", "memory is given back from caches and not swapped out"),
        _huge_pages(seen),
        _single(seen, "aslr", _ASLR, str(FULL_ASLR), "each start draws its own layout, so that luck averages out"),
        *(_single(seen, *number) for number in _NUMBERS),
        _ksm(seen),
        *_interrupts(seen, measured),
    ]


@contextlib.contextmanager
def tuned(journal: Journal, measured: Collection[int], root: Path = ROOT) -> Iterator[list[Tuned]]:
    """Set what can be set, and restore everything at the end, however it ends. Raises `HostError` if that fails."""
    with CleanupStack(journal) as cleanup:
        yield [_apply(setting, cleanup, root) for setting in plan(look(root), measured)]


def _apply(setting: Setting, cleanup: CleanupStack, root: Path) -> Tuned:
    if setting.wanted is None or setting.present is None:
        return Tuned(setting, "not changed", setting.why)
    if setting.wanted == setting.present:
        return Tuned(setting, "as wanted")
    file = root / setting.path
    cleanup.own(removers.setting(file, setting.present, setting.wanted))
    try:
        settings.write(file, setting.wanted)
    except OSError as error:
        return Tuned(setting, "not changed", f"the kernel refuses it: {error.strerror}")
    return Tuned(setting, "changed")


def _single(values: Mapping[str, str], name: str, path: str, value: str, why: str) -> Setting:
    if path not in values:
        return _lacking(name)
    return Setting(name, path, values[path], value, why)


def _lacking(name: str, why: str = "this host has no such setting") -> Setting:
    return Setting(name, "", None, None, why)


def _governors(values: Mapping[str, str]) -> list[Setting]:
    governors = []
    for path in sorted(path for path in values if path.endswith("/scaling_governor")):
        folder = path.removesuffix("/scaling_governor")
        name = f"governor of {folder.split('/')[-2]}"
        offered = values.get(f"{folder}/scaling_available_governors", "performance").split()
        if "performance" in offered:
            governors.append(
                Setting(name, path, values[path], "performance", "the clock rate does not follow the load")
            )
        else:
            governors.append(Setting(name, path, values[path], None, f"performance is not among {', '.join(offered)}"))
    return governors or [_lacking("governor", "this kernel does not set the CPUs' frequency")]


def _turbo(values: Mapping[str, str]) -> Setting:
    why = "the clock rate does not follow heat and neighbours"
    if _INTEL_TURBO in values:
        return Setting("turbo", _INTEL_TURBO, values[_INTEL_TURBO], "1", why)
    if _BOOST in values:
        return Setting("turbo", _BOOST, values[_BOOST], "0", why)
    return _lacking("turbo", "this kernel does not show whether there is any")


def _huge_pages(values: Mapping[str, str]) -> Setting:
    """Plan transparent huge pages: change ``always``, which gives them by chance; keep ``madvise`` and ``never``."""
    why = "huge pages go to who asks for them (QEMU does), and not to who meets free ones"
    setting = _single(values, "huge pages", _HUGE, "madvise", why)
    return Setting("huge pages", _HUGE, "never", "never", why) if setting.present == "never" else setting


def _ksm(values: Mapping[str, str]) -> Setting:
    """Plan KSM: 1 is running; 0 (stopped) and 2 (stopped, and all pages separate again) are both quiet."""
    setting = _single(values, "ksm", _KSM, "0", "no thread looks for equal pages; those that are merged stay so")
    return Setting("ksm", _KSM, "2", "2", setting.why) if setting.present == "2" else setting


def _interrupts(values: Mapping[str, str], measured: Collection[int]) -> list[Setting]:
    online = cpulist.parse(values.get(_ONLINE, ""))
    unmeasured = [cpu for cpu in online if cpu not in measured]
    if not unmeasured:
        return [_lacking("interrupts", "instances are pinned to all CPUs, so that none is left to take them")]
    interrupts = []
    numbers = [int(path.split("/")[2]) for path in values if path.startswith("proc/irq/")]
    for number in sorted(numbers):
        path = f"proc/irq/{number}/smp_affinity_list"
        now = cpulist.parse(values[path])
        remaining = [cpu for cpu in now if cpu not in measured] or unmeasured
        value = values[path] if remaining == list(now) else cpulist.written(remaining)
        interrupts.append(
            Setting(f"interrupt {number}", path, values[path], value, "it goes to CPUs that are not measured")
        )
    return interrupts


def described(outcomes: Collection[Tuned]) -> list[str]:
    """Describe each setting that was not changed as wanted in a line; interrupts refused alike share a line."""
    lines: dict[str, list[str]] = {}
    for tuned_setting in outcomes:
        if tuned_setting.outcome == "not changed":
            lines.setdefault(tuned_setting.reason, []).append(tuned_setting.setting.name)
    return [f"{', '.join(names)}: {reason}" for reason, names in lines.items()]
