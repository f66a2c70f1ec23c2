"""System calls counted on this very kernel, held to programs whose calls are known."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from footprint.leftovers import check_nothing_stays
from lab.caller import Caller
from tare.errors import HostError
from tare.features.kernel.counters import syscalls
from tare.features.kernel.counters.syscalls import SyscallCounter, named
from tare.features.kernel.reading import bpf, call_tables
from tare.features.kernel.reading.instance import PATH, group_number, instance
from tare.footprint_model import Scope
from tare.host import cgroup, processes
from tare.model import Resources

#: What one answer takes of its own: to read the word, and to say that it is done.
ITS_OWN = {"read", "write"}
OURS = {b"count_call", b"find_group"}


@pytest.fixture
def group():
    control_group = cgroup.Group(f"tare-test-{os.getpid()}/one")
    control_group.create(Resources((0,), 256 << 20))
    yield control_group
    control_group.close()
    cgroup.destroy(control_group.path.split("/")[0])


@pytest.fixture
def callers():
    started = []

    def start(*cgroup_procs):
        started.append(Caller(*cgroup_procs))
        return started[-1]

    yield start
    for caller in started:
        caller.end()


@pytest.fixture
def counter():
    syscall_counter = SyscallCounter()
    yield syscall_counter
    syscall_counter.stop()


@pytest.mark.host
def test_exactly_the_calls_of_the_group_and_below_are_counted_and_everybodys(group, callers, counter):
    inside, below, outside = callers(*group.leaf("tool")), callers(*group.leaf("tool/deeper")), callers()
    counter.start(group.path)
    for caller, count in ((inside, 12_345), (below, 77), (outside, 1_000)):
        caller.make(count)
    counts = counter.read()
    assert counts.hits[Scope.INSTANCE]["getpid"] == 12_345 + 77
    assert set(counts.hits[Scope.INSTANCE]) <= {"getpid"} | ITS_OWN
    assert counts.hits[Scope.HOST]["getpid"] >= 12_345 + 77 + 1_000
    assert counts.lost == 0
    counter.reset()
    assert "getpid" not in counter.read().hits[Scope.INSTANCE]
    inside.make(5)
    assert counter.read().hits[Scope.INSTANCE]["getpid"] == 5


@pytest.mark.host
def test_a_group_that_is_made_later_is_known_by_its_path_and_no_other_is(callers, counter):
    parent = f"tare-test-{os.getpid()}"
    mine, longer = cgroup.Group(f"{parent}/one"), cgroup.Group(f"{parent}/one2")
    counter.start(mine.path)
    try:
        for group in (longer, mine):
            group.create(Resources((0,), 256 << 20))
        callers(*longer.leaf("tool")).make(500)
        assert counter.read().hits[Scope.INSTANCE] == {}
        callers(*mine.leaf("tool")).make(300)
        assert counter.read().hits[Scope.INSTANCE]["getpid"] >= 300
        assert counter.read().hits[Scope.INSTANCE]["getpid"] < 500
    finally:
        cgroup.destroy(parent)


@pytest.mark.host
def test_a_counter_that_is_started_again_is_for_the_other_group_and_from_zero(group, callers, counter):
    caller, another = callers(*group.leaf("tool")), cgroup.Group(f"{group.path.split('/')[0]}/two")
    another.create(Resources((0,), 256 << 20))
    other = callers(*another.leaf("tool"))
    counter.start(group.path)
    caller.make(10)
    counter.start(another.path)
    caller.make(20)
    other.make(30)
    assert counter.read().hits[Scope.INSTANCE]["getpid"] == 30


@pytest.mark.host
def test_two_counters_at_once_do_not_see_each_other(group, callers, counter):
    caller, other = callers(*group.leaf("tool")), SyscallCounter()
    counter.start(group.path)
    other.start("tare-test-nobody")
    caller.make(400)
    assert other.read().hits[Scope.INSTANCE] == {}
    other.stop()
    caller.make(11)
    assert counter.read().hits[Scope.INSTANCE]["getpid"] == 411


@pytest.mark.host
def test_calls_by_the_32_bit_gate_are_apart_refused_ones_are_none_and_strange_numbers_are_together(tmp_path, counter):
    source, program = tmp_path / "calls.c", tmp_path / "calls"
    source.write_text(r"""
        #include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <sys/prctl.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int main(void) {
            struct sock_filter filter[] = {
                {BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
                {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_getpriority},
                {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | 1},
                {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
            };
            struct sock_fprog rules = {4, filter};
            long result;
            for (int i = 0; i < 321; i++)
                __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
            for (int i = 0; i < 111; i++)
                syscall(2000);
            for (int i = 0; i < 7; i++)
                syscall(-5);
            for (int i = 0; i < 33; i++)
                syscall(SYS_getpriority, 0, 0);
            if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &rules))
                return 1;
            for (int i = 0; i < 55; i++)
                syscall(SYS_getpriority, 0, 0);
            return 0;
        }""")
    processes.run(["gcc", "-o", str(program), str(source)]).require()
    control_group = cgroup.Group(f"tare-test-{os.getpid()}/calls")
    control_group.create(Resources((0,), 256 << 20))
    try:
        counter.start(control_group.path)
        processes.run([str(program)], cgroup_procs=control_group.leaf("tool")).require()
        hits = counter.read().hits[Scope.INSTANCE]
    finally:
        cgroup.destroy(control_group.path.split("/")[0])
    assert hits["getpid [i386]"] == 321
    assert hits["unknown"] == 118
    assert hits["getpriority"] == 33
    assert hits["execve"] >= 1


@pytest.mark.host
def test_nothing_of_it_is_in_the_kernel_after_a_kill_nor_after_a_stop(counter):
    check_nothing_stays(counter, OURS)


@pytest.mark.host
def test_what_still_looks_into_the_counts_is_no_error_when_they_go():
    loaded = bpf.Loaded(bpf.compiled(syscalls.SOURCE), {"counts": bpf.possible_cpus()})
    memory = loaded.memory("counts", 8)
    counts = np.frombuffer(memory, np.uint64)  # as the traceback of a Ctrl-C has it
    with pytest.raises(BufferError):
        memory.close()
    loaded.close()
    assert counts.size == 1


@pytest.mark.host
def test_what_tare_starts_inherits_nothing_that_would_keep_it_in_the_kernel(counter):
    counter.start("tare-test/inherited")
    # The descriptor by which they are listed is among them, and gone when it is looked at.
    there = [descriptor for descriptor in list(Path("/proc/self/fd").iterdir()) if descriptor.exists()]
    held = [int(descriptor.name) for descriptor in there if "bpf" in str(descriptor.readlink())]
    assert len(held) >= 4  # two programs, two maps, and what attaches them
    assert not any(os.get_inheritable(number) for number in held)


@pytest.mark.host
def test_without_the_capabilities_it_says_so():
    code = "from tare.features.kernel.counters.syscalls import SyscallCounter; SyscallCounter().start('tare-test/none')"
    argv = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-P", "-c", code]
    errors = processes.run(argv, env=processes.own_environment()).stderr.decode()
    assert "BPF is locked: tare lacks the capabilities BPF and PERFMON" in errors
    assert "tare lab run" in errors


def test_without_a_compiler_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    monkeypatch.setattr(processes, "find", lambda program: None)
    with pytest.raises(HostError, match="clang is not installed") as refused:
        bpf.compiled(syscalls.SOURCE)
    assert refused.value.fix == "apt-get install clang libbpf-dev"


def test_a_kernel_without_type_information_is_told_apart(monkeypatch, tmp_path):
    monkeypatch.setattr(bpf, "BTF", tmp_path / "none")
    error = bpf._host_error(bpf._Refused("load", 22), [])
    assert "no type information" in error.what
    assert "CONFIG_DEBUG_INFO_BTF" in error.fix


def test_names_are_those_that_programs_use():
    names = call_tables.by_number("x86_64")
    expected = {0: "read", 5: "fstat", 39: "getpid", 202: "futex", 435: "clone3", 452: "fchmodat2", 469: "file_setattr"}
    assert expected.items() <= names.items()
    assert max(names) < syscalls.NUMBERS - 1
    assert call_tables.by_number("i386")[20] == "getpid"
    assert len(set(names.values())) == len(names)


def test_counts_by_number_are_named_and_strange_numbers_are_one():
    counts = np.zeros(syscalls.NUMBERS, np.uint64)
    counts[[0, 39, 700, 1023]] = 3, 5, 7, 11
    assert named(counts, call_tables.by_number("x86_64")) == {"read": 3, "getpid": 5, "unknown": 18}
    assert named(counts, {0: "restart_syscall"}, " [i386]") == {"restart_syscall [i386]": 3, "unknown [i386]": 23}


def test_what_the_program_is_told_of_an_instance_is_its_group_as_the_kernel_writes_it():
    key = instance(7, "tare/abcx1")
    assert key[:8] == (7).to_bytes(8, "little")
    assert key[8:].rstrip(b"\0") == b"/tare/abcx1"
    assert len(key) == 8 + PATH


def test_a_group_that_is_not_there_has_no_number():
    assert group_number("tare-test/never") == 0
    assert group_number("") > 0
