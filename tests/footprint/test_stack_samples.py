"""Stacks sampled on this very kernel, held to programs whose time is known, and folded from what it gave once."""

import errno
import gzip
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from footprint.leftovers import check_nothing_stays
from tare.errors import HostError
from tare.features.kernel.analysis.stacks import Entered, KernelEntry, SampleParts, entries, own_time
from tare.features.kernel.counters import stack_sampler
from tare.features.kernel.counters.stack_sampler import StackCounter, folded
from tare.features.kernel.reading import sample_clock, symbols
from tare.features.kernel.reading.symbols import UNKNOWN, Symbols
from tare.footprint_model import GUEST, NO_PATH, USER, Scope
from tare.host import cgroup, processes
from tare.model import Resources

#: What `dd` with blocks of a byte gave here, with the kernel's symbols around (Linux 6.18).
CAPTURED = Path(__file__).parent / "captured" / "stacks"
OURS = {b"sample_stack", b"note_idle", b"find_group"}
#: Reads a byte a call: nearly all that it does is to ask the kernel.
READER = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=600000"]
SPINNER = [sys.executable, "-P", "-c", "import time\nend = time.monotonic() + 0.5\nwhile time.monotonic() < end: pass"]


@pytest.fixture
def group():
    control_group = cgroup.Group(f"tare-test-{os.getpid()}/one")
    control_group.create(Resources((0,), 256 << 20))
    yield control_group
    control_group.close()
    cgroup.destroy(control_group.path.split("/")[0])


@pytest.fixture
def counter():
    stack_counter = StackCounter()
    yield stack_counter
    stack_counter.stop()


@pytest.fixture(scope="module")
def kernel():
    return Symbols((CAPTURED / "kallsyms.txt").read_text().splitlines())


@pytest.fixture
def captured():
    raw = gzip.decompress((CAPTURED / "paths.bin.gz").read_bytes())
    counts = np.frombuffer((CAPTURED / "counts.bin").read_bytes(), np.uint64)
    return np.frombuffer(raw, stack_sampler.PATH), counts


@pytest.mark.host
def test_a_reader_is_found_in_the_kernels_read_and_only_in_its_own_group(group, counter):
    counter.start(group.path)
    counter.reset()
    began = time.monotonic()
    processes.run(READER, cgroup_procs=group.leaf("tool")).require()
    processes.run(["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=300000"], time_limit_s=20).require()
    seconds = time.monotonic() - began
    counts = counter.read()
    of_group, everybodys = counts.hits[Scope.INSTANCE], counts.hits[Scope.HOST]
    frames = {frame for stack in of_group for frame in stack.split(";")}
    assert {"vfs_read", "read_zero", "do_syscall_64", USER} <= frames
    assert entries(of_group)[KernelEntry(Entered.NAMED, "read")] > 10
    of_dd = [sum(n for stack, n in hits.items() if stack.startswith("dd;")) for hits in (of_group, everybodys)]
    assert 0 < of_dd[0] < of_dd[1]
    assert 0.9 * sum(of_group.values()) <= of_dd[0]  # the rest is the process before it is dd
    assert all(everybodys.get(stack, 0) >= n for stack, n in of_group.items())
    again = counter.read()  # as of any counter: all since the last reset
    assert again.hits[Scope.INSTANCE] == of_group
    assert sum(again.hits[Scope.HOST].values()) >= sum(everybodys.values())
    assert sum(everybodys.values()) + counts.lost <= 1.05 * 1000 * seconds * (os.cpu_count() or 1)
    counter.reset()
    assert counter.read().hits[Scope.INSTANCE] == {}


@pytest.mark.host
def test_a_group_that_is_made_later_is_known_and_work_of_its_own_is_user_mode(counter):
    later = cgroup.Group(f"tare-test-{os.getpid()}/later")
    counter.start(later.path)
    later.create(Resources((0,), 256 << 20))
    try:
        processes.run(SPINNER, cgroup_procs=later.leaf("tool")).require()
        parts = SampleParts.of(counter.read().hits[Scope.INSTANCE])
    finally:
        cgroup.destroy(later.path.split("/")[0])
    assert parts.samples > 50
    assert parts.user > 0.6 * parts.samples
    assert parts.guest == 0


@pytest.mark.host
def test_nothing_of_it_is_in_the_kernel_after_a_kill_nor_after_a_stop(counter):
    check_nothing_stays(counter, OURS)


@pytest.mark.host
def test_what_tare_starts_inherits_nothing_and_a_stop_leaves_no_descriptor(counter):
    def held():
        there = [descriptor for descriptor in list(Path("/proc/self/fd").iterdir()) if descriptor.exists()]
        return [
            int(descriptor.name)
            for descriptor in there
            if any(word in str(descriptor.readlink()) for word in ("bpf", "perf_event"))
        ]

    before = held()
    counter.start("tare-test/inherited")
    ours = [number for number in held() if number not in before]
    assert len(ours) >= 4 + 2 * len(
        sample_clock.online()
    )  # programs and maps; a clock and what attaches it, each CPU's
    assert not any(os.get_inheritable(number) for number in ours)
    counter.stop()
    assert held() == before


@pytest.mark.host
def test_without_the_capabilities_it_says_so():
    code = (
        "from tare.features.kernel.counters.stack_sampler import StackCounter; StackCounter().start('tare-test/none')"
    )
    argv = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-P", "-c", code]
    errors = processes.run(argv, env=processes.own_environment()).stderr.decode()
    assert "the kernel hides the addresses of its functions" in errors or "perf events are locked" in errors
    assert "as root" in errors


@pytest.mark.host
def test_the_running_kernels_functions_have_names_and_its_entry_is_known():
    kernel_symbols = symbols.read()
    place = next(
        int(line.split()[0], 16)
        for line in Path("/proc/kallsyms").read_text().splitlines()
        if line.endswith(" T vfs_read")
    )
    assert kernel_symbols.names(np.array([place, place + 3], np.uint64)) == ["vfs_read", "vfs_read"]
    assert not kernel_symbols.begins(place, "vfs_read")


def test_captured_paths_fold_as_the_kernel_had_called(captured, kernel):
    hits = folded(*captured, kernel, {})
    of_group, everybodys = hits[Scope.INSTANCE], hits[Scope.HOST]
    assert of_group["dd;entry_SYSCALL_64_after_hwframe;do_syscall_64;ksys_read;vfs_read;read_zero"] == 21
    assert of_group[f"dd;{USER}"] == 46
    # The unwinder does not get past a retpoline's thunk: that is said, and no path is made up.
    assert of_group[f"dd;{NO_PATH};__x86_indirect_thunk_rax"] == 7
    parts = SampleParts.of(of_group)
    assert (parts.samples, parts.user, parts.kernel) == (189, 46, 143)
    assert own_time(of_group)["do_syscall_64"] == 46
    assert [entries(of_group)[KernelEntry(Entered.NAMED, call)] for call in ("read", "write")] == [48, 40]
    assert entries(everybodys) - entries(of_group) == {KernelEntry(Entered.THREAD, "kworker"): 31}
    # Eleven samples more were of a CPU without work, and are none.
    assert int(captured[1].sum()) == sum(everybodys.values()) + 11


def test_a_guests_time_is_one_frame_unless_the_kernel_had_left_it_for_interrupts(captured, kernel):
    paths, counts = captured[0].copy(), captured[1]
    paths["mode"][paths["mode"] == stack_sampler.IN_KERNEL] = stack_sampler.IN_GUEST
    hits = folded(paths, counts, kernel, {})[Scope.INSTANCE]
    assert hits.keys() == {f"dd;{USER}", f"dd;{GUEST}"} | {stack for stack in hits if "softirq" in stack}
    assert SampleParts.of(hits).guest == 142  # of 143


def test_what_a_cpu_without_work_does_is_no_sample_but_its_interrupts_are(captured, kernel):
    paths, counts = captured[0].copy(), captured[1]
    before = folded(paths, counts, kernel, {})[Scope.INSTANCE]
    paths["idle"] = 1
    after = folded(paths, counts, kernel, {})[Scope.INSTANCE]
    assert after == {stack: n for stack, n in before.items() if any(f.startswith("asm_") for f in stack.split(";"))}
    assert after


def test_a_process_whose_name_tells_nothing_is_called_by_what_it_is(captured, kernel):
    paths, counts = captured[0].copy(), captured[1]
    paths["comm"], paths["number"] = b"exe", 7
    paths["number"][paths["mode"] == stack_sampler.IN_USER] = 8
    hits = folded(paths, counts, kernel, {8: "runsc-sandbox"})[Scope.INSTANCE]
    assert hits[f"runsc-sandbox;{USER}"] == SampleParts.of(hits).user > 0
    assert {stack.partition(";")[0] for stack in hits} == {"exe", "runsc-sandbox"}


def test_whose_grandchild_a_process_is_says_what_it_is_though_nobody_between_was_seen(captured):
    inner = "bash -c 'sleep 60 & echo $!; wait; true'; true"
    sentry = processes.start(["bash", "-c", 'exec -a runsc-sandbox bash -c "$0"', inner], stdout=subprocess.PIPE)
    paths = captured[0][:3].copy()
    try:
        sleeper = int(sentry.stdout.readline())
        while Path(f"/proc/{sleeper}/comm").read_text() != "sleep\n":  # until then it is the shell that starts it
            time.sleep(0.01)
        paths["number"] = sleeper, sentry.pid, 0
        programs = stack_sampler.programs(paths)
    finally:
        processes.kill_group(sentry)
        sentry.communicate()
    assert programs == {int(paths["number"][0]): "sleep (stub)", sentry.pid: "runsc-sandbox"}
    assert stack_sampler.programs(paths) == {}  # they have ended


def test_processes_are_frames_whatever_they_call_themselves():
    names = {
        b"dd": "dd",
        b"kworker/0:1H": "kworker",
        b"kworker/u8:3": "kworker",
        b"ksoftirqd/1": "ksoftirqd",
        b"swapper/0": "swapper",
        b"CPU 0/TCG": "CPU 0/TCG",
        b"a;b\n\xff": "a:b??",
        b"": "?",
    }
    assert {comm: stack_sampler.process(comm) for comm in names} == names


def test_of_several_names_the_plain_one_is_taken_and_what_is_no_function_is_none():
    lines = [
        "ffffffff81000010 T __entry_text_start",
        "ffffffff81000010 T entry_SYSCALL_64",
        "ffffffff81000100 T __entry_text_end",
        "ffffffff81000ff0 t __pfx_do_it",
        "ffffffff81001000 t __do_it",
        "ffffffff81001000 T do_it",
        "ffffffff81001000 T __se_do_it",
        "ffffffff81001080 d data_of_it",
        "ffffffffc0000000 t helper\t[some_module]",
    ]
    kernel_symbols = Symbols(lines)
    addresses = [
        0x10,
        0xFFFFFFFF81000010,
        0xFFFFFFFF81001000,
        0xFFFFFFFF810010FF,
        0xFFFFFFFFC0000020,
        0xFFFFFFFFD0000000,
    ]
    named = [UNKNOWN, "entry_SYSCALL_64", "do_it", "do_it", "helper [some_module]", UNKNOWN]
    assert kernel_symbols.names(np.array(addresses, np.uint64)) == named
    assert kernel_symbols.begins(addresses[1], "entry_SYSCALL_64")
    assert not kernel_symbols.begins(addresses[2], "do_it")
    assert kernel_symbols.begins(addresses[2], "ret_from_fork_asm")


def test_a_kernel_that_hides_its_addresses_is_told_with_the_fix(tmp_path, monkeypatch):
    captured = CAPTURED / "kallsyms.txt"
    hidden = [f"0000000000000000 T {line.split()[2]}\n" for line in captured.read_text().splitlines()]
    with pytest.raises(HostError, match="hides the addresses") as refused:
        Symbols(hidden)
    assert "kptr_restrict" in refused.value.fix
    file = tmp_path / "kallsyms"
    file.write_text("".join(hidden))
    monkeypatch.setattr(symbols, "KALLSYMS", file)
    with pytest.raises(HostError, match="hides the addresses"):
        symbols.require_addresses()
    monkeypatch.setattr(symbols, "KALLSYMS", captured)
    symbols.require_addresses()


@pytest.mark.parametrize(
    ("number", "what", "fix"),
    [
        (errno.EACCES, "perf_event_paranoid", "as root"),
        (errno.EPERM, "perf_event_paranoid", "tare lab run"),
        (errno.ENOSYS, "no perf events", "CONFIG_PERF_EVENTS"),
        (errno.ENOENT, "no clock to sample by", "tare lab run"),
    ],
)
def test_a_clock_that_is_refused_is_told_with_the_fix(number, what, fix):
    refused = sample_clock.refused(number)
    assert what in refused.what
    assert fix in refused.fix
