"""Each check on a quiet machine, and on one with the fault that it looks for."""

import pytest

from tare.host.facts.machine_facts import TOOLS, CpuFacts, HostFacts
from tare.host.host_checks import GIB, checks

CPU = CpuFacts(
    model="A CPU",
    microcode="0x1",
    sockets=1,
    cores=4,
    threads=4,
    smt=False,
    siblings=((0,), (1,), (2,), (3,)),
    governors=("performance",),
    turbo=False,
)
QUIET = HostFacts(
    kernel="6.1.0",
    architecture="x86_64",
    distribution="Debian GNU/Linux 12 (bookworm)",
    root=True,
    cpu=CPU,
    memory_bytes=16 * GIB,
    swap_bytes=0,
    virtualised=None,
    container=None,
    clock_source="tsc",
    clock_sources=("tsc", "hpet"),
    cgroup="v2",
    cgroup_missing=(),
    pressure=True,
    huge_pages="madvise",
    aslr=2,
    mitigations={},
    filesystem="ext4 on /dev/sda1",
    disk_free_bytes=100 * GIB,
    load=0.1,
    steal=0.0,
    uptime_s=1000.0,
    tools=dict.fromkeys(TOOLS, True),
)


def by_name(facts):
    return {check.name: check for check in checks(facts)}


def changed(**values):
    return QUIET.model_copy(update=values)


def with_cpu(**values):
    return changed(cpu=CPU.model_copy(update=values))


def test_a_quiet_machine_needs_no_advice():
    assert {(check.state, check.advice) for check in checks(QUIET)} == {("ok", None)}


@pytest.mark.parametrize(
    ("facts", "name", "state", "says", "advises"),
    [
        (changed(root=False), "root", "fail", "not root", "sudo"),
        (changed(cgroup="none", cgroup_missing=("cpu", "memory")), "control groups", "fail", "none", "mount"),
        (changed(cgroup_missing=("memory",)), "control groups", "fail", "v2, without memory", "boot"),
        (
            changed(cgroup_missing=("memory",), cgroup_manager="systemd"),
            "control groups",
            "fail",
            "v2, kept by systemd, without memory",
            "boot",
        ),
        (with_cpu(threads=1, cores=1), "cpus", "warn", "1 x A CPU", "share"),
        (with_cpu(smt=True, threads=8), "smt", "warn", "on", "smt/control"),
        (with_cpu(siblings=None), "siblings", "warn", "not known", "bare metal"),
        (with_cpu(siblings=((0, 1, 2, 3),)), "siblings", "warn", "all 4 CPUs are threads of one core", "another host"),
        (with_cpu(siblings=((0, 1),), tried=True), "siblings", "warn", "core, by a try", "another host"),
        (with_cpu(governors=("powersave",)), "governor", "warn", "powersave", "performance"),
        (with_cpu(governors=("performance", "powersave")), "governor", "warn", "performance, powersave", "cpupower"),
        (with_cpu(turbo=True), "turbo", "warn", "on", "no_turbo"),
        (changed(memory_bytes=GIB), "memory", "warn", "1.0 GiB", "--memory"),
        (changed(swap_bytes=2 * GIB), "swap", "warn", "2.0 GiB", "swapoff"),
        (changed(huge_pages="always"), "huge pages", "warn", "always", "madvise"),
        (changed(disk_free_bytes=5 * GIB), "disk", "warn", "5.0 GiB free, ext4 on /dev/sda1", "TARE_HOME"),
        (changed(disk_free_bytes=GIB), "disk", "fail", "1.0 GiB", "TARE_HOME"),
        (changed(load=3.0), "load", "warn", "3.00", "--time"),
        (changed(steal=0.02), "steal", "warn", "2.00%", "dedicated"),
        (changed(pressure=False), "pressure", "warn", "not counted", "psi=1"),
        (changed(clock_source="hpet"), "clock", "warn", "hpet", "echo tsc"),
        (changed(clock_source="acpi_pm", clock_sources=("acpi_pm",)), "clock", "warn", "acpi_pm", "enters the kernel"),
        (changed(aslr=0), "aslr", "warn", "off", "randomize_va_space=2"),
        (changed(aslr=1), "aslr", "warn", "not the heap", "randomize_va_space=2"),
        (changed(mitigations={"a": "Vulnerable: no microcode"}), "mitigations", "warn", "1 of 1 known flaws", "boot"),
        (changed(virtualised="kvm"), "machine", "warn", "a guest of kvm", "layer below"),
        (changed(container="lxc"), "container", "warn", "lxc", "host itself"),
        (changed(tools={"ip": False, "tar": True}), "tools", "fail", "missing: ip", "apt-get install iproute2"),
        (changed(tools={"mkfs.ext4": False}), "tools", "warn", "mkfs.ext4, for disks", "apt-get install e2fsprogs"),
        (changed(tools={"ip": False, "mkfs.ext4": False}), "tools", "fail", "missing: ip, mkfs.ext4", "iproute2"),
    ],
)
def test_a_fault_is_found_and_has_a_fix(facts, name, state, says, advises):
    check = by_name(facts)[name]
    assert check.state == state
    assert says in check.observed
    assert advises in check.advice
    others = [other for other in checks(facts) if other.name != name]
    assert {other.state for other in others} == {"ok"}


def test_what_the_host_does_not_show_is_not_judged():
    hidden = changed(
        cpu=CPU.model_copy(update={"smt": None, "governors": (), "turbo": None}),
        clock_source=None,
        huge_pages=None,
        steal=None,
        aslr=None,
    )
    assert {"smt", "turbo", "clock", "huge pages", "steal", "aslr", "mitigations"}.isdisjoint(by_name(hidden))
    assert {check.state for check in checks(hidden)} == {"ok"}


def test_where_there_are_other_cores_the_measured_ones_other_thread_is_left_idle():
    check = by_name(with_cpu(siblings=((0, 2), (1, 3))))["siblings"]
    assert (check.state, check.advice) == ("ok", None)
    assert check.observed == "tare leaves the other threads of measured cores idle"


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_has_its_package(tool):
    assert "apt-get install " in by_name(changed(tools={tool: False}))["tools"].advice


def test_a_users_groups_without_cpus_of_their_own_are_no_obstacle():
    """systemd delegates no cpuset to users unless told so; memory it does, and without that nothing is measured."""
    user = {"own_namespaces": True, "root": False}
    groups = by_name(changed(**user, cgroup_missing=("cpuset",)))["control groups"]
    assert (groups.state, groups.observed[:43]) == ("warn", "v2, delegated to this user without cpuset: ")
    assert "Delegate=cpu cpuset memory pids" in groups.advice
    assert by_name(changed(**user, cgroup_missing=("cpuset", "memory")))["control groups"].state == "fail"
    assert by_name(changed(**user))["control groups"].state == "ok"


def test_cpus_that_are_unlike_are_said():
    unlike = by_name(with_cpu(kinds=((0, 1), (2, 3)), nodes=((0, 1), (2, 3)), offline=(8, 9), isolated=(2, 3)))
    assert unlike["kinds of cpus"].observed.startswith("fastest first: 0-1; 2-3")
    assert unlike["numa nodes"].observed.startswith("0-1; 2-3")
    assert unlike["offline"].observed == "CPU 8-9"
    assert (unlike["isolated"].state, "does not spread threads" in unlike["isolated"].advice) == ("warn", True)
    assert by_name(with_cpu(isolated=(3,)))["isolated"].state == "ok"
    assert not {"kinds of cpus", "numa nodes", "offline", "isolated"} & by_name(QUIET).keys()
