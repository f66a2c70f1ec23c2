"""Checks of `tare doctor` for the host: its requirements, and settings that make figures worse.

Pure functions of `HostFacts`. The fix is for the person at the machine; `tare run --tune` does some of it for the
duration of a campaign (`tare.host.tuning.tune`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tare.errors import HostError
from tare.host import cgroup, distribution
from tare.host.facts.machine_facts import FULL_ASLR, CpuFacts, HostFacts
from tare.host.kernel import cpulist

State = Literal["ok", "warn", "fail"]

GIB = 1 << 30
#: `tare run` refuses to start below the first. Image, overlays and the full profile's 5 GB files fit in the second.
MIN_DISK, GOOD_DISK = 2 * GIB, 10 * GIB
#: Instances get 1 GiB, and the page cache of file workloads must not compete with them.
MIN_MEMORY = 2 * GIB
#: Runnable tasks per CPU. Above it, neighbours take turns with the measured programs.
QUIET_LOAD = 0.25
#: From this share on, the hypervisor's other guests are visible in single runs.
QUIET_STEAL = 0.005
#: Clock sources that are read without entering the kernel (vDSO). With others, every timestamp is a system call.
FAST_CLOCKS = frozenset({"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"})
#: Values of kernel.randomize_va_space.
_ASLR = {0: "off", 1: "partial (not the heap)", FULL_ASLR: "full"}

_PACKAGES = {
    "cp": "coreutils",
    "ip": "iproute2",
    "iptables": "iptables",
    "mkfs.ext4": "e2fsprogs",
    "mmdebstrap": "mmdebstrap",
    "umount": "mount",
    "nsenter": "util-linux",
    "tar": "tar",
}
#: Tools that only some platforms need: disks of virtual machines, and data of a fixed size.
_OF_DISKS = frozenset({"mkfs.ext4"})


@dataclass(frozen=True, slots=True)
class HostCheck:
    """The result of one check. ``fail``: tare cannot measure here; ``warn``: it can, with worse figures."""

    name: str
    state: State
    observed: str
    advice: str | None = None


def checks(facts: HostFacts, *, image: bool = False) -> list[HostCheck]:
    """Return all checks of the host, in a fixed order, without those that the host does not show.

    ``image``: the image exists, so the programs that build it are not needed.
    """
    if image:
        facts = facts.model_copy(update={"tools": {**facts.tools, "mmdebstrap": True}})
    parts = (_rights, _processors, _frequency, _memory, _disk, _noise, _clock, _kernel, _security, _below, _tools)
    return [check for part in parts for check in part(facts)]


def _judge(name: str, finding: str, *, bad: bool, advice: str, state: State = "warn") -> HostCheck:
    return HostCheck(name, state, finding, advice) if bad else HostCheck(name, "ok", finding)


def without_rights(lacking: HostError, *, root: bool) -> HostCheck:
    """Return the check of rights that are too few to start anything: a user without namespaces, or limited root."""
    return HostCheck("root", "fail", f"{'root, but' if root else 'not root, and'} {lacking.what}", lacking.fix)


def _rights(facts: HostFacts) -> Iterator[HostCheck]:
    if facts.own_namespaces:
        advice = "what needs root is left out, and figures are a user's: run tare as root (sudo) for all"
        yield HostCheck("root", "warn", "not root: tare is root of a user namespace of its own", advice)
        if facts.cgroup == "none":
            finding = "none are delegated to this user: no memory limit, no CPU time, and CPUs by affinity"
            yield HostCheck("control groups", "warn", finding, cgroup.DELEGATE)
            return
        if facts.cgroup == "v2" and facts.cgroup_missing == ("cpuset",):  # This is systemd's default for users.
            finding = "v2, delegated to this user without cpuset: CPUs by affinity, which root inside may change"
            yield HostCheck("control groups", "warn", finding, cgroup.DELEGATE_CPUSET)
            return
    else:
        finding = "root" if facts.root else "not root"
        yield _judge("root", finding, bad=not facts.root, state="fail", advice="run tare as root (sudo)")
    missing = facts.cgroup_missing
    finding = "none mounted" if facts.cgroup == "none" else facts.cgroup
    finding += ", kept by systemd" if facts.cgroup_manager == "systemd" else ""
    finding += f", without {', '.join(missing)}" if missing else ""
    yield _judge(
        "control groups",
        finding,
        bad=bool(missing),
        state="fail",
        advice="mount cgroup2 on /sys/fs/cgroup; a controller that is off is put on at boot (cgroup_enable=memory)",
    )


def _processors(facts: HostFacts) -> Iterator[HostCheck]:
    cpu = facts.cpu
    shape = f"{cpu.threads} x {cpu.model} ({cpu.cores} cores, {cpu.sockets} socket{'s' * (cpu.sockets > 1)})"
    yield _judge(
        "cpus", shape, bad=cpu.threads < 2, advice="one CPU: tare and its clients share it with what they measure"
    )
    if cpu.smt is not None:
        yield _judge(
            "smt",
            "on" if cpu.smt else "off",
            bad=cpu.smt,
            advice="the other thread of a core takes its share: echo off > /sys/devices/system/cpu/smt/control",
        )
    yield _siblings(cpu)
    yield from _unlike(cpu)


def _unlike(cpu: CpuFacts) -> Iterator[HostCheck]:
    """Yield checks of differences between CPUs; empty for a machine whose CPUs are all alike."""
    if cpu.kinds:
        kinds = "; ".join(map(cpulist.written, cpu.kinds))
        yield HostCheck("kinds of cpus", "ok", f"fastest first: {kinds}. Instances get CPUs of the first kind")
    if len(cpu.nodes) > 1:
        nodes = "; ".join(map(cpulist.written, cpu.nodes))
        yield HostCheck("numa nodes", "ok", f"{nodes}. Instances get CPUs of one node")
    if cpu.offline:
        yield HostCheck("offline", "ok", f"CPU {cpulist.written(cpu.offline)}")
    if cpu.isolated:
        yield _judge(
            "isolated",
            f"CPU {cpulist.written(cpu.isolated)}. Instances get these",
            bad=len(cpu.isolated) > 1,
            advice="the kernel does not spread threads over isolated CPUs: to measure programs of several threads, "
            "give --cpus with others",
        )


def _siblings(cpu: CpuFacts) -> HostCheck:
    cores, how = cpu.siblings, ", by a try: the host does not say" if cpu.tried else ""
    if cores is None:
        finding = "not known: the host does not say which CPUs are threads of one core, nor does a try of it"
        advice = "who has the other thread of a measured core moves figures by some per cent, unseen: prefer bare metal"
        return HostCheck("siblings", "warn", finding, advice)
    threads = max(map(len, cores))
    if threads == 1:
        return HostCheck("siblings", "ok", "none: no two CPUs share a core")
    if len(cores) == 1:
        advice = "tare and its clients slow down what is measured beside them: prefer another host, or smt off"
        return HostCheck("siblings", "warn", f"all {threads} CPUs are threads of one core{how}", advice)
    return HostCheck("siblings", "ok", f"tare leaves the other threads of measured cores idle{how}")


def _frequency(facts: HostFacts) -> Iterator[HostCheck]:
    governors = facts.cpu.governors
    if governors:
        yield _judge(
            "governor",
            ", ".join(governors),
            bad=governors != ("performance",),
            advice="the clock rate follows the load: cpupower frequency-set -g performance, or tare run --tune",
        )
    else:
        yield HostCheck("governor", "ok", "not set by this kernel")
    if facts.cpu.turbo is not None:
        yield _judge(
            "turbo",
            "on" if facts.cpu.turbo else "off",
            bad=facts.cpu.turbo,
            advice="the clock rate follows heat and neighbours: echo 0 > /sys/devices/system/cpu/cpufreq/boost, "
            "or echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or tare run --tune",
        )


def _memory(facts: HostFacts) -> Iterator[HostCheck]:
    yield _judge(
        "memory",
        f"{facts.memory_bytes / GIB:.1f} GiB",
        bad=facts.memory_bytes < MIN_MEMORY,
        advice="give instances less than the usual 1 GiB: tare run --memory 512",
    )
    finding = f"{facts.swap_bytes / GIB:.1f} GiB" if facts.swap_bytes else "none"
    yield _judge("swap", finding, bad=facts.swap_bytes > 0, advice="swapping spoils memory figures: swapoff -a")
    if facts.huge_pages is not None:
        yield _judge(
            "huge pages",
            facts.huge_pages,
            bad=facts.huge_pages == "always",
            advice="whether a run gets huge pages is luck: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, "
            "or tare run --tune",
        )


def _disk(facts: HostFacts) -> Iterator[HostCheck]:
    free = facts.disk_free_bytes
    finding = f"{free / GIB:.1f} GiB free, {facts.filesystem}"
    advice = "free some space, or set TARE_HOME to a larger disk"
    if free < MIN_DISK:
        yield HostCheck("disk", "fail", finding, advice)
    else:
        yield _judge(
            "disk", finding, bad=free < GOOD_DISK, advice=f"the full profile needs {GOOD_DISK // GIB} GiB: {advice}"
        )


def _noise(facts: HostFacts) -> Iterator[HostCheck]:
    yield _judge(
        "load",
        f"{facts.load:.2f} over the last minute",
        bad=facts.load > QUIET_LOAD * facts.cpu.threads,
        advice="other programs run: intervals get wider; stop them, or give --time more",
    )
    if facts.steal is not None:
        yield _judge(
            "steal",
            f"{facts.steal:.2%} since boot",
            bad=facts.steal > QUIET_STEAL,
            advice="the hypervisor gives these CPUs to other guests too: prefer a dedicated host",
        )
    finding = "counted" if facts.pressure else "not counted"
    advice = "trials are not marked for waiting: boot with psi=1"
    yield _judge("pressure", finding, bad=not facts.pressure, advice=advice)


def _clock(facts: HostFacts) -> Iterator[HostCheck]:
    source = facts.clock_source
    if source is None:
        return
    fast = sorted(FAST_CLOCKS.intersection(facts.clock_sources))
    where = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    advice = "every timestamp enters the kernel" + (f": echo {fast[0]} > {where}" if fast else "")
    yield _judge("clock", source, bad=source not in FAST_CLOCKS, advice=advice)


def _kernel(facts: HostFacts) -> Iterator[HostCheck]:
    if facts.aslr is not None:
        # Randomisation should be on. Without it, the luck of one layout would be the same in every start, and so look
        # like an effect that no number of blocks averages out (Mytkowicz and others, ASPLOS 2009; Curtsinger and
        # Berger, ASPLOS 2013).
        yield _judge(
            "aslr",
            _ASLR.get(facts.aslr, str(facts.aslr)),
            bad=facts.aslr < FULL_ASLR,
            advice="every start gets the same memory layout, and its luck looks like an effect: "
            f"sysctl kernel.randomize_va_space={FULL_ASLR}, or tare run --tune",
        )
    if facts.mitigations:
        bare = sorted(name for name, status in facts.mitigations.items() if status.startswith("Vulnerable"))
        finding = (
            f"{len(bare)} of {len(facts.mitigations)} known flaws without: {', '.join(bare)}" if bare else "all there"
        )
        yield _judge(
            "mitigations",
            finding,
            bad=bool(bare),
            advice="system calls and VM exits may be cheaper than where figures will be used: "
            "boot without mitigations=off, with current microcode",
        )


def _security(facts: HostFacts) -> Iterator[HostCheck]:
    if facts.security is not None:
        yield HostCheck("security module", "ok", facts.security)


def _below(facts: HostFacts) -> Iterator[HostCheck]:
    yield _judge(
        "machine",
        f"a guest of {facts.virtualised}" if facts.virtualised else "bare metal, as far as can be seen",
        bad=facts.virtualised is not None,
        advice="figures include the layer below, and platforms with a VM nest in it",
    )
    if facts.container is not None:
        yield HostCheck(
            "container",
            "warn",
            f"tare runs in what looks like a container ({facts.container})",
            "what is compared is inside it too: run tare on the host itself",
        )


def _tools(facts: HostFacts) -> Iterator[HostCheck]:
    missing = [name for name, installed in facts.tools.items() if not installed]
    needed = sorted({_PACKAGES[name] for name in missing})
    finding = f"missing: {', '.join(missing)}" if missing else "all there"
    of_disks = bool(missing) and _OF_DISKS.issuperset(missing)
    if of_disks:
        finding += ", for disks of virtual machines and data of a fixed size"
    yield _judge(
        "tools",
        finding,
        bad=bool(missing),
        state="warn" if of_disks else "fail",
        advice=f"tare setup, or {distribution.install(*needed)}",
    )
