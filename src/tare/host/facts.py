"""What kind of host this is: recorded in every campaign. Nothing that names the machine or its owner."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tare.host import cgroup, state

_CPU = Path("/sys/devices/system/cpu")


class Facts(BaseModel):
    """Facts of a host. Sizes in bytes; None where the kernel does not say."""

    model_config = ConfigDict(frozen=True)

    kernel: str
    architecture: str
    distribution: str
    cpu_model: str
    cpus: int  # usable by this process
    threads_per_core: int | None
    memory_bytes: int
    swap_bytes: int
    virtualised: bool  # runs under a hypervisor itself
    clock_source: str | None
    cgroups: str  # v1, v2 or hybrid
    governor: str | None
    turbo: bool | None
    smt: bool | None
    transparent_hugepages: str | None
    aslr: int | None
    mitigations: dict[str, str]
    filesystem: str  # below TARE_HOME
    disk_free_bytes: int
    load: float  # 1-minute average
    steal: float  # share of all CPU time since boot that the hypervisor below took


def gather() -> Facts:
    """Read this host's facts."""
    cpuinfo = parse_cpuinfo(_read(Path("/proc/cpuinfo")) or "")
    memory = parse_meminfo(_read(Path("/proc/meminfo")) or "")
    names = os.uname()
    return Facts(
        kernel=names.release,
        architecture=names.machine,
        distribution=parse_os_release(_read(Path("/etc/os-release")) or ""),
        cpu_model=cpuinfo.get("model name", "unknown"),
        cpus=len(os.sched_getaffinity(0)),
        threads_per_core=_threads_per_core(),
        memory_bytes=memory.get("MemTotal", 0),
        swap_bytes=memory.get("SwapTotal", 0),
        virtualised="hypervisor" in cpuinfo.get("flags", "").split(),
        clock_source=_read(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        cgroups=cgroup_version(cgroup.hierarchies()),
        governor=_read(_CPU / "cpu0/cpufreq/scaling_governor"),
        turbo=_turbo(),
        smt=_switch(_CPU / "smt/active"),
        transparent_hugepages=chosen(_read(Path("/sys/kernel/mm/transparent_hugepage/enabled")) or ""),
        aslr=_number(Path("/proc/sys/kernel/randomize_va_space")),
        mitigations=_mitigations(),
        filesystem=state.filesystem(state.home()),
        disk_free_bytes=shutil.disk_usage(state.home()).free,
        load=os.getloadavg()[0],
        steal=parse_steal(_read(Path("/proc/stat")) or ""),
    )


def parse_cpuinfo(text: str) -> dict[str, str]:
    """The first processor's fields of ``/proc/cpuinfo``."""
    first = text.split("\n\n", 1)[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def parse_meminfo(text: str) -> dict[str, int]:
    """Fields of ``/proc/meminfo`` in bytes."""
    found = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if words:
            found[name] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return found


def parse_os_release(text: str) -> str:
    """The distribution's name for people (os-release(5))."""
    fields = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    return fields.get("PRETTY_NAME", "unknown").strip('"')


def parse_steal(text: str) -> float:
    """Share of steal in the first line of ``/proc/stat`` (proc(5)), 0 to 1."""
    fields = [int(value) for value in text.splitlines()[0].split()[1:9]] if text else []
    total = sum(fields)
    return fields[7] / total if len(fields) == 8 and total > 0 else 0.0


def chosen(text: str) -> str | None:
    """The word in brackets of a kernel setting such as ``always [madvise] never``."""
    return next((word.strip("[]") for word in text.split() if word.startswith("[")), None)


def cgroup_version(tree: cgroup.Hierarchies) -> str:
    """v2, v1, or hybrid (v1 with a v2 hierarchy without controllers beside it)."""
    if tree.unified:
        return "v2"
    return "hybrid" if tree.v2 is not None else "v1"


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _number(path: Path) -> int | None:
    text = _read(path)
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


def _switch(path: Path) -> bool | None:
    value = _number(path)
    return None if value is None else value == 1


def _turbo() -> bool | None:
    boost = _switch(_CPU / "cpufreq/boost")
    if boost is not None:
        return boost
    off = _switch(_CPU / "intel_pstate/no_turbo")
    return None if off is None else not off


def _threads_per_core() -> int | None:
    siblings = _read(_CPU / "cpu0/topology/thread_siblings_list")
    if siblings is None:
        return None
    count = 0
    for part in siblings.split(","):
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return count


def _mitigations() -> dict[str, str]:
    folder = _CPU / "vulnerabilities"
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    return {file.name: _read(file) or "unknown" for file in files}
