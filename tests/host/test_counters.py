"""The telemetry's parsers, on files captured from a real host (a guest, kernel 6.18); and those of this one."""

import time
from pathlib import Path

import pytest

from tare.host import cgroup_files, state
from tare.host.facts import counters, machine_facts

DATA = Path(__file__).parent / "data"


def captured(name):
    return (DATA / name).read_text()


def test_cpu_times_are_by_cpu_and_kind_in_milliseconds():
    times = counters.parse_cpu_times(captured("stat"), 10)
    assert times[1] == (533690, 30080, 176880, 3175310, 31200, 0, 10140, 990)
    assert set(times) == {0, 1}
    whole = [int(word) for word in captured("stat").splitlines()[0].split()[1:9]]
    assert [10 * ticks for ticks in whole] == pytest.approx(
        [sum(kind) for kind in zip(*times.values(), strict=True)], abs=20
    )


def test_time_with_tasks_by_cpu():
    # The form of Documentation/scheduler/sched-stats.rst, version 15; domains follow each CPU.
    text = """version 15
timestamp 4296218540
cpu0 0 0 0 0 0 0 9377804698645 1200034 31250
domain0 3 10 10 0 0 0 0 0 10 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
cpu1 0 0 0 0 0 0 14592713845991 800 4
"""
    assert counters.parse_schedstat(text) == {0: 9377804698645, 1: 14592713845991}


def test_pressure_is_the_total_of_some():
    text = "some avg10=0.48 avg60=0.37 avg300=1.82 total=60350291\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
    assert counters.parse_pressure(text) == 60350291


def test_swapped_pages():
    assert counters.parse_swapped(captured("vmstat")) == (0, 0)
    assert counters.parse_swapped("pgpgin 5\npswpin 71\npswpout 640\n") == (71, 640)
    assert counters.parse_swapped("pgpgin 5\n") == (0, 0)


def test_a_disk_by_its_number():
    disk = counters.parse_diskstats(captured("diskstats"), (254, 0))
    assert disk == counters.Disk(163737242 * 512, 366701008 * 512, 439500)
    assert counters.parse_diskstats(captured("diskstats"), (0, 38)) is None  # what btrfs gives


def test_the_bridges_bytes_and_all_links_where_there_is_none():
    links = counters.parse_links(captured("net-dev"))
    assert links["eth0"] == (2751825469, 3365948)
    assert counters.pick_link(links, "tare0") == (2751825469, 3365948)  # without loopback
    assert counters.pick_link({**links, "tare0": (5, 7)}, "tare0") == (5, 7)


def test_throttled_periods_of_v1_and_v2():
    v1 = b"nr_periods 5\nnr_throttled 5\nthrottled_time 421281183\nnr_bursts 0\nburst_time 0\n"
    assert cgroup_files.parse_throttled(v1) == (5, 421281183)
    v2 = b"usage_usec 5\nuser_usec 3\nsystem_usec 2\nnr_periods 9\nnr_throttled 2\nthrottled_usec 17\n"
    assert cgroup_files.parse_throttled(v2) == (2, 17_000)
    assert cgroup_files.parse_throttled(b"usage_usec 5\nuser_usec 3\nsystem_usec 2\n") is None


def test_kernel_threads_that_are_bound_to_other_cpus_or_only_wait_are_not_counted():
    names = captured("kernel-threads").splitlines()
    counted = {name for name in names if counters.runs_on(name, [1])}
    assert {"kswapd0", "migration/1"} <= counted
    assert {name for name in names if name.startswith(("kworker/u", "kworker/1:"))} <= counted
    assert not {name for name in counted if name.startswith(("kworker/0:", "kworker/R-", "migration/0", "ksoftirqd/0"))}
    assert counters.runs_on("jbd2/vda-8", [1])
    assert counters.runs_on("kworker/12:0", [12])
    assert not counters.runs_on("kworker/12:0", [1, 2])


def test_kernel_threads_of_this_host_are_added_up_from_the_first_look_on(monkeypatch):
    files = {
        "/proc/2/comm": "kthreadd\n",
        "/proc/2/task/2/children": "7 8 9 ",
        "/proc/7/comm": "kswapd0",
        "/proc/8/comm": "kworker/0:1",
        "/proc/9/comm": "jbd2/vda-8",
    }
    files |= {"/proc/7/schedstat": "100 5 1", "/proc/8/schedstat": "5000 5 1", "/proc/9/schedstat": "10 5 1"}

    def read(path):
        if path not in files:
            raise OSError(2, "No such file or directory")
        return files[path]

    monkeypatch.setattr(counters.host_text, "read", read)
    threads = counters.KernelThreads([1])
    assert not threads.shown
    assert threads.total_ns() == 0
    assert threads.shown
    files |= {"/proc/7/schedstat": "150 6 2", "/proc/8/schedstat": "9000 5 1", "/proc/9/schedstat": "17 5 1"}
    assert threads.total_ns() == 57
    del files["/proc/9/schedstat"]  # it ends, and another is made
    files |= {"/proc/2/task/2/children": "7 8 9 11", "/proc/11/comm": "kworker/u8:2", "/proc/11/schedstat": "70 1 1"}
    assert threads.total_ns() == 127
    files |= {"/proc/11/schedstat": "73 1 1"}
    assert threads.total_ns() == 130
    files.clear()
    assert threads.total_ns() == 130  # a kernel that does not tell
    assert not threads.shown


def test_in_a_namespace_of_processes_the_second_process_is_none_of_the_kernels(monkeypatch):
    files = {
        "/proc/2/comm": "bash\n",
        "/proc/2/task/2/children": "7",
        "/proc/7/comm": "fio",
        "/proc/7/schedstat": "9 1 1",
    }
    monkeypatch.setattr(counters.host_text, "read", files.__getitem__)
    threads = counters.KernelThreads()
    threads.total_ns()
    files["/proc/7/schedstat"] = "5009 1 1"
    assert threads.total_ns() == 0
    assert not threads.shown


def test_a_thread_that_moves_the_packets_of_one_machine_is_that_machines():
    assert not counters.runs_on("vhost-4711", [1])


def test_interrupts_are_beside_the_tasks_only_where_the_kernel_times_them():
    assert counters.parse_interrupts(captured("stat"), 10) == 0, "softirq of clock ticks, which the tasks have too"
    timed = "cpu 9 0 9 9 0 47 30 0 0 0\ncpu0 5 0 5 5 0 40 21 0 0 0\ncpu1 4 0 4 4 0 7 9 0 0 0\n"
    assert counters.parse_interrupts(timed, 10) == 10 * (40 + 21 + 7 + 9)
    one_nested = timed.replace("cpu1 4 0 4 4 0 7", "cpu1 4 0 4 4 0 0")
    assert counters.parse_interrupts(one_nested, 10) == 0


def test_this_host_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    before = counters.cpu_times()
    until = time.monotonic() + 0.1
    while time.monotonic() < until:
        pass
    after = counters.cpu_times()
    gone = {cpu: [late - early for late, early in zip(after[cpu], before[cpu], strict=True)] for cpu in after}
    assert all(len(kinds) == machine_facts.CPU_KINDS for kinds in gone.values())
    assert sum(kinds[0] + kinds[1] + kinds[2] for kinds in gone.values()) >= 50  # this loop, in ms
    assert counters.memory().available > 0
    disk = counters.disk(counters.device_of(state.home()))
    assert disk is None or disk.read_bytes > 0
    received, sent = counters.network("no-such-link")
    assert received >= 0
    assert sent >= 0
