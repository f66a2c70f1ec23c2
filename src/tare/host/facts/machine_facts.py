"""Facts of this machine: recorded in every campaign, and read by `tare doctor`.

Everything is read from ``/proc`` and ``/sys``. The parsers are pure functions on text. A fact that a machine does not
show (a guest has no frequency governor, arm64 no hypervisor flag) is None, and never guessed. The machine's name, its
addresses and its kernel command line are not recorded, because campaign files are made to be shared.
"""

from __future__ import annotations

import os
import platform
import shutil
import time
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tare.host import cgroup, distribution, own_namespaces, processes, state
from tare.host.facts import security, topology
from tare.host.facts.memory_policy import MemoryPolicy
from tare.host.kernel import bridged, cpulist, mounts, settings, sysinfo
from tare.host.kernel import host_text as kernel_text

CgroupVersion = Literal["none", "v1", "v2", "hybrid"]
CgroupManager = Literal["tare", "systemd"]

#: Location of ``proc``, ``sys`` and ``etc``; tests set a folder with the files of another machine.
ROOT = Path("/")
#: kernel.randomize_va_space: stack, mappings and heap of every program have other addresses in every start.
FULL_ASLR = 2
#: Number of kinds of CPU time (`parse_cpu_ticks`).
CPU_KINDS = 8
#: Of an integer of 64 bits; an imitation of /proc may show more (`tare.campaign.telemetry.plausible` checks the size).
_MAX_DIGITS = 40
#: No machine has a higher load: it means a process for each id that Linux can assign.
MAX_LOAD = 1 << 22
#: Programs that tare starts on the host.
TOOLS = ("cp", "ip", "iptables", "mkfs.ext4", "mmdebstrap", "nsenter", "tar", "umount")


class _Facts(BaseModel):
    model_config = ConfigDict(frozen=True)


class CpuFacts(_Facts):
    """The processors that are online."""

    model: str
    microcode: str | None
    sockets: int
    cores: int
    threads: int
    smt: bool | None  # Cores run more than one thread now.
    #: The CPUs of each core; None: unknown. By measurement (`tried`), only the measured CPUs' cores are right.
    siblings: topology.Cores | None = None
    #: Siblings are known by measurement (`tare.host.facts.siblings`), because the host does not show them.
    tried: bool = False
    kinds: topology.Cores = ()  # The CPUs of each kind, the fastest first; empty: no differences are shown.
    isolated: tuple[int, ...] = ()  # The scheduler places nothing there by itself (isolcpus, cpuset partitions).
    offline: tuple[int, ...] = ()
    nodes: topology.Cores = ()  # The CPUs of each NUMA node that has any.
    governors: tuple[str, ...]  # Of all CPUs, each once; empty if the kernel does not set the frequency.
    turbo: bool | None


class HostFacts(_Facts):
    """The host of a campaign. Sizes in bytes; shares from 0 to 1."""

    kernel: str
    architecture: str
    distribution: str
    root: bool  # tare runs as root.
    own_namespaces: bool = False  # tare is root only in a user namespace of its own.
    cpu: CpuFacts
    memory_bytes: int
    swap_bytes: int
    virtualised: str | None  # The hypervisor's name; None on bare metal, as far as visible.
    container: str | None  # The kind of container around tare itself, by systemd-detect-virt(1).
    clock_source: str | None
    clock_sources: tuple[str, ...]
    cgroup: CgroupVersion
    cgroup_missing: tuple[str, ...]  # Controllers that tare needs and the host lacks.
    cgroup_manager: CgroupManager = "tare"  # The manager of the groups above tare's.
    pressure: bool  # The kernel counts pressure stall information.
    huge_pages: str | None  # Transparent huge pages: always, madvise or never.
    memory_policy: MemoryPolicy | None = None  # None: not recorded.
    aslr: int | None  # kernel.randomize_va_space
    mitigations: dict[str, str]
    security: str | None = None  # The module that labels processes (`security.module`); None: not recorded.
    #: Frames that cross a bridge pass the host's packet rules (br_netfilter), "on" or "off"; and the kernel tracks
    #: connections of the host's network. None: not recorded.
    bridge_filter: str | None = None
    connection_tracking: bool | None = None
    filesystem: str  # Below tare's home, where images, overlays and data are.
    disk_free_bytes: int
    load: float  # Over the last minute.
    steal: float | None  # Share of CPU time that the hypervisor below took, since boot.
    uptime_s: float
    tools: dict[str, bool]

    @property
    def machine(self) -> str:
        """Key of the machine to which figures apply: its processors and its kernel."""
        return f"{self.cpu.threads} x {self.cpu.model}, Linux {self.kernel}"


def gather() -> HostFacts:
    """Read the facts of this machine. Raises `HostError` if tare's home cannot be written."""
    home = state.home()
    meminfo, answered = _text("proc/meminfo"), sysinfo.read()
    version, missing = _cgroup()
    aslr = _text("proc/sys/kernel/randomize_va_space")
    clocks = "sys/devices/system/clocksource/clocksource0"
    return HostFacts(
        kernel=platform.release(),
        architecture=platform.machine(),
        distribution=distribution.title(distribution.parse(_text("etc/os-release"))),
        root=os.geteuid() == 0 and not own_namespaces.inside(),
        own_namespaces=own_namespaces.inside(),
        cpu=_cpu(),
        memory_bytes=parse_meminfo(meminfo, "MemTotal") or answered.memory_bytes,
        swap_bytes=parse_meminfo(meminfo, "SwapTotal") if meminfo else answered.swap_bytes,
        virtualised=_virtualised(),
        container=_detected("--container"),
        clock_source=_text(f"{clocks}/current_clocksource") or None,
        clock_sources=tuple(_text(f"{clocks}/available_clocksource").split()),
        cgroup=version,
        cgroup_missing=missing,
        cgroup_manager="systemd" if version == "v2" and cgroup.kept_by_systemd() else "tare",
        pressure=Path("/proc/pressure/cpu").exists(),
        huge_pages=settings.read(ROOT / "sys/kernel/mm/transparent_hugepage/enabled"),
        memory_policy=MemoryPolicy.read(ROOT),
        aslr=int(aslr) if is_number(aslr) else None,
        mitigations=_mitigations(),
        security=security.module(ROOT),
        bridge_filter="on" if bridged.switched_on() else "off",
        connection_tracking=bridged.tracks_connections(),
        filesystem=mounts.filesystem(home),
        disk_free_bytes=shutil.disk_usage(home).free,
        load=parse_load(_text("proc/loadavg"), answered.load),
        steal=parse_steal(_text("proc/stat")),
        uptime_s=time.clock_gettime(time.CLOCK_BOOTTIME),
        tools={name: processes.find(name) is not None for name in TOOLS},
    )


def is_number(word: str) -> bool:
    """Return True if a word is a number as the kernel writes it: Python refuses to read thousands of digits."""
    return word.isdecimal() and len(word) <= _MAX_DIGITS


def parse_cpuinfo(text: str) -> tuple[str, str | None, bool]:
    """Return model name, microcode (or None) and the hypervisor flag, from ``/proc/cpuinfo``."""
    first: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            first.setdefault(name.strip(), value.strip())
    model = first.get("model name")
    if model is None:  # arm64 shows only numbers.
        numbers = [first.get("CPU implementer"), first.get("CPU part")]
        model = "implementer {}, part {}".format(*numbers) if all(numbers) else "unknown"
    return model, first.get("microcode"), "hypervisor" in first.get("flags", "").split()


def parse_meminfo(text: str, name: str) -> int:
    """Return a size in bytes from ``/proc/meminfo`` (proc(5): its kB are KiB); 0 without a valid line."""
    for line in text.splitlines():
        title, _, value = line.partition(":")
        words = value.split()
        if title == name and words and is_number(words[0]):
            return int(words[0]) * 1024
    return 0


def parse_load(loadavg: str, otherwise: float) -> float:
    """Return the first figure of ``/proc/loadavg`` (proc(5)), or ``otherwise`` if it is not valid."""
    try:
        first = float((loadavg.split() or [""])[0])
    except ValueError:
        return otherwise
    return first if 0 <= first <= MAX_LOAD else otherwise


def parse_cpu_ticks(text: str) -> dict[str, tuple[int, ...]]:
    """Return ticks since boot of each CPU that is online (``cpu0``), and their sum (``cpu``), from ``/proc/stat``.

    By kind (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal; user includes guest time. An old kernel,
    or an imitation, has fewer kinds. A CPU whose line has other words than numbers is left out.
    """
    ticks = {}
    for line in text.splitlines():
        if not line.startswith("cpu"):
            break  # The CPUs come first, and the rest is long.
        name, *kinds = line.split()[: CPU_KINDS + 1]
        if all(map(is_number, kinds)) and (name == "cpu" or is_number(name[3:])):
            ticks[name] = tuple(map(int, kinds))
    return ticks


def parse_steal(text: str) -> float | None:
    """Return the share of steal in all CPU time since boot, from ``/proc/stat``; None if it is not counted."""
    ticks = parse_cpu_ticks(text).get("cpu", ())
    return ticks[7] / sum(ticks) if len(ticks) == CPU_KINDS and sum(ticks) > 0 else None


def cgroup_version(tree: cgroup.Hierarchies) -> CgroupVersion:
    """Return the version of the mounted control groups. Hybrid: limits by v1, with the unified hierarchy beside it."""
    if tree.v1:
        return "hybrid" if tree.v2 else "v1"
    return "v2" if tree.v2 else "none"


def _cgroup() -> tuple[CgroupVersion, tuple[str, ...]]:
    tree = cgroup.hierarchies_among(mounts.table())
    if own_namespaces.inside():
        tree = cgroup.delegated(tree)
    version = cgroup_version(tree)
    if version == "v2":
        assert tree.v2 is not None
        offered = set(kernel_text.said(tree.v2 / "cgroup.controllers").split()) | {"cpuacct"}  # cpu.stat always exists.
    else:
        offered = set(tree.v1)
    return version, tuple(name for name in cgroup.CONTROLLERS if name not in offered)


def _cpu() -> CpuFacts:
    model, microcode, _ = parse_cpuinfo(_text("proc/cpuinfo"))
    online = _online()
    folders = [f"sys/devices/system/cpu/cpu{number}" for number in online]
    # A machine without a topology (some VMs) gives empty texts: one socket, and every thread a core.
    cores = {_text(f"{folder}/topology/thread_siblings_list") or folder for folder in folders}
    sockets = {_text(f"{folder}/topology/physical_package_id") for folder in folders}
    governors = {_text(f"{folder}/cpufreq/scaling_governor") for folder in folders} - {""}
    smt = _text("sys/devices/system/cpu/smt/active")
    shown = layout()
    return CpuFacts(
        model=model,
        microcode=microcode,
        sockets=len(sockets),
        cores=len(cores),
        threads=len(online),
        smt=smt == "1" if smt else None,
        siblings=shown.cores,
        kinds=shown.kinds,
        isolated=shown.isolated,
        offline=_cpus("sys/devices/system/cpu/offline"),
        nodes=shown.nodes,
        governors=tuple(sorted(governors)),
        turbo=_turbo(),
    )


def cores_of_machine() -> topology.Cores | None:
    """Return the CPUs of each core of this machine; None if unknown, as in most guests."""
    lists = {cpu: _text(f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") for cpu in _online()}
    _, _, virtual = parse_cpuinfo(_text("proc/cpuinfo"))
    try:
        return topology.cores_of({cpu: cpulist.parse(text) for cpu, text in lists.items()}, virtual=virtual)
    except ValueError:  # No kernel writes such lists.
        return None


def layout() -> topology.Layout:
    """Return what this machine shows of its CPUs that are online."""
    online = set(_online())
    isolated = {*_cpus("sys/devices/system/cpu/isolated"), *_cpus("sys/fs/cgroup/cpuset.cpus.isolated")}
    nodes = sorted((ROOT / "sys/devices/system/node").glob("node*"), key=lambda node: (len(node.name), node.name))
    by_node = (tuple(cpu for cpu in _cpus(f"{node}/cpulist") if cpu in online) for node in nodes)
    return topology.Layout(
        cores=cores_of_machine(),
        kinds=_kinds(),
        isolated=tuple(sorted(isolated & online)),
        nodes=tuple(filter(None, by_node)),
    )


def _kinds() -> topology.Cores:
    """Return kinds of CPUs by capacity (arm64, newer x86), Intel's counter for each kind, or highest clock rate."""
    capacity = _numbers("cpu_capacity")
    if capacity:
        return topology.kinds_of(capacity)
    counters = ("cpu_core", "cpu_atom", "cpu_lowpower")
    by_counter = tuple(filter(None, (_cpus(f"sys/devices/{name}/cpus") for name in counters)))
    return by_counter if len(by_counter) > 1 else topology.kinds_of(_numbers("cpufreq/cpuinfo_max_freq"))


def _numbers(file: str) -> dict[int, int]:
    """Return the number in a file of each CPU that is online; empty unless all have it."""
    shown = {cpu: _text(f"sys/devices/system/cpu/cpu{cpu}/{file}") for cpu in _online()}
    return {cpu: int(text) for cpu, text in shown.items()} if all(map(str.isdecimal, shown.values())) else {}


def _online() -> tuple[int, ...]:
    """Return the CPUs that are online; if /sys does not show them, as many as exist."""
    return _cpus("sys/devices/system/cpu/online") or tuple(range(os.cpu_count() or 1))


def _cpus(path: str) -> tuple[int, ...]:
    """Return the CPUs that a file lists; empty if it is missing or invalid (older kernels write ``(null)``)."""
    try:
        return cpulist.parse(_text(path))
    except ValueError:
        return ()


def _turbo() -> bool | None:
    """Read turbo mode: two drivers have two files of opposite meaning."""
    off = _text("sys/devices/system/cpu/intel_pstate/no_turbo")
    if off:
        return off == "0"
    boost = _text("sys/devices/system/cpu/cpufreq/boost")
    return boost == "1" if boost else None


def _virtualised() -> str | None:
    """Return the hypervisor by systemd's detector, which knows most; otherwise by CPU flag and firmware names."""
    detected = _detected("--vm")
    _, _, flagged = parse_cpuinfo(_text("proc/cpuinfo"))
    if detected or not flagged:
        return detected
    named = [_text(f"sys/class/dmi/id/{name}") for name in ("sys_vendor", "product_name")]
    return _text("sys/hypervisor/type") or " ".join(filter(None, named)) or "a hypervisor without a name"


def _detected(kind: str) -> str | None:
    if processes.find("systemd-detect-virt") is None:
        return None
    detected = processes.run(["systemd-detect-virt", kind], time_limit_s=5).text.strip()
    return None if detected in {"", "none"} else detected


def _mitigations() -> dict[str, str]:
    folder = ROOT / "sys/devices/system/cpu/vulnerabilities"
    if not folder.is_dir():
        return {}
    return {file.name: kernel_text.said(file) for file in sorted(folder.iterdir())}


def _text(path: str) -> str:
    """Return the text of a file below `ROOT` (`tare.host.kernel.host_text.said`)."""
    return kernel_text.said(ROOT / path)
