"""What the workloads run, word by word, and what they refuse."""

from dataclasses import replace

import pytest

from tare.errors import HostError
from tare.model import Mode
from tare.workloads import workload_registry
from tare.workloads.applications import serving
from tare.workloads.base import Drop, Side, Surroundings
from tare.workloads.network import exchange

GIB = 2**30
ROOMY = Surroundings(
    memory_bytes=GIB,
    cpu_count=1,
    disk_free_bytes=100 * GIB,
    address="192.0.2.3",
    port=20107,
    instance_port=5201,
    ping="192.0.2.3",
)
RUNS = [name for name, workload in workload_registry.all_workloads().items() if workload.mode is Mode.RUN]


def plan(name, profile="quick", around=ROOMY):
    workload = workload_registry.get(name)
    return workload.plan(workload.profiles[profile], around)


def lines(commands):
    return [" ".join(command.argv) for command in commands]


def disk(free):
    return Surroundings(GIB, 1, free, None, None, None)


def test_sysbench_cpu():
    command = "sysbench cpu --cpu-max-prime=10000 --threads=1"
    assert lines(plan("sysbench-cpu").measures) == [f"{command} --events=300 --time=1 run"]
    assert lines(plan("sysbench-cpu").starts) == [f"{command} --events=1 --time=1 run"]
    assert lines(plan("sysbench-cpu", "full").measures) == [f"{command} --events=0 --time=10 run"]


def test_there_is_a_thread_for_each_cpu_and_as_much_work_for_each():
    around = replace(ROOMY, cpu_count=3)
    command = "sysbench cpu --cpu-max-prime=10000 --threads=3"
    planned = plan("sysbench-cpu-threads", around=around)
    assert lines(planned.measures) == [f"{command} --events=900 --time=1 run"]
    assert lines(planned.starts) == [f"{command} --events=1 --time=1 run"]


def test_sysbench_memory():
    assert lines(plan("sysbench-memory").measures) == [
        "sysbench memory --memory-block-size=128K --memory-total-size=2048M --memory-oper=write --memory-scope=global "
        "--memory-access-mode=seq --threads=1 --time=1 run"
    ]


def test_memory_footprint():
    planned = plan("memory-footprint")
    assert lines(planned.prepare) == ["sleep 0.3"]
    assert lines(planned.measures) == [
        'sh -c head -c "$1" /dev/zero | tail -c "$1" | tee footprint | wc -c && wc -c <footprint && rm footprint'
        " work 64m",
        "sleep 0.3",
    ]
    assert workload_registry.get("memory-footprint").fresh


def test_sysbench_fileio_reads_every_file_once_in_quick():
    quick = plan("sysbench-fileio-seqrd")
    files = "sysbench fileio --file-num=128 --file-total-size=128M"
    assert lines(quick.prepare) == [f"{files} prepare"]
    assert lines(quick.measures) == [
        f"{files} --file-test-mode=seqrd --file-block-size=16K --file-io-mode=sync --file-fsync-freq=100 "
        "--file-fsync-end=on --threads=1 --events=8192 --time=10 run"
    ]
    assert lines(quick.cleanup) == [f"{files} cleanup"]
    assert quick.drop is Drop.BOTH
    assert set(quick.fetched) == {f"test_file.{number}" for number in range(128)}
    assert all(command.cwd == "/data" for command in (*quick.prepare, *quick.measures, *quick.cleanup))


def test_a_quick_write_goes_through_the_files_once_and_at_most_for_a_second():
    argv = plan("sysbench-fileio-seqwr").measures[0].argv
    writes = 64 * 1024 // 16
    # sysbench counts what it calls fsync on as events: all 128 files after each 100 writes.
    assert f"--events={writes + writes // 100 * 128}" in argv
    assert "--time=1" in argv


@pytest.mark.parametrize("mode", ["seqrd", "seqwr"])
def test_sysbench_fileio_is_the_studys_test_in_full(mode):
    full = plan(f"sysbench-fileio-{mode}", "full")
    assert lines(full.measures) == [
        f"sysbench fileio --file-num=128 --file-total-size=5120M --file-test-mode={mode} --file-block-size=16K "
        "--file-io-mode=sync --file-fsync-freq=100 --file-fsync-end=on --threads=1 --events=0 --time=30 run"
    ]
    # Reads are cold for the guest too. What is written is on the disk before: sysbench flushes the files that it makes.
    assert full.drop is (Drop.BOTH if mode == "seqrd" else Drop.HOST)
    assert full.fetched == ()  # nobody knows which files are still cached after so many passes


@pytest.mark.parametrize(
    ("free", "size"), [(100 * GIB, 128), (256 * 2**20, 128), (256 * 2**20 - 1, 64), (128 * 2**20, 64)]
)
def test_the_files_are_halved_on_a_small_disk(free, size):
    assert f"--file-total-size={size}M" in plan("sysbench-fileio-seqrd", around=disk(free)).measures[0].argv


@pytest.mark.parametrize(
    ("profile", "free", "message"),
    [
        ("quick", 128 * 2**20 - 1, "files of 64 MiB need 128 MiB free on the data volume, which has 127"),
        ("full", 10 * GIB - 1, "files of 5120 MiB need 10240 MiB free on the data volume, which has 10239"),
    ],
)
def test_a_full_disk_is_refused_with_the_fix(profile, free, message):
    with pytest.raises(HostError, match=message) as refused:
        plan("sysbench-fileio-seqrd", profile, disk(free))
    assert "quick" in refused.value.fix


def test_iperf3_connects_to_the_open_port_and_serves_the_instances_own():
    quick = plan("iperf3-tcp")
    assert lines(quick.servers) == ["iperf3 -s --forceflush -B 0.0.0.0 -p 5201"]
    assert quick.servers[0].side is Side.INSTANCE
    forth = "iperf3 -c 192.0.2.3 -p 20107 -J -t 3 -O 1 --connect-timeout 5000"
    assert lines(quick.measures) == [forth, f"{forth} -R"]
    assert all(command.side is Side.CLIENT for command in quick.measures)
    assert "-t 10 -O 2" in lines(plan("iperf3-tcp", "full").measures)[0]


def test_the_server_outlives_both_tests():
    for profile in ("quick", "full"):
        planned = plan("iperf3-tcp", profile)
        assert planned.servers[0].time_limit_s >= sum(command.time_limit_s for command in planned.measures)


def test_iperf3_without_a_network_is_refused():
    with pytest.raises(HostError, match="needs an instance with a network"):
        plan("iperf3-tcp", around=disk(GIB))


@pytest.mark.parametrize("profile", ["quick", "full"])
@pytest.mark.parametrize("name", RUNS)
def test_every_plan_measures_something_and_gives_it_time(name, profile):
    planned = plan(name, profile)
    asked_s = float(workload_registry.get(name).profiles[profile].get("time_s", 0))
    assert planned.measures
    for command in (*planned.prepare, *planned.measures, *planned.cleanup, *planned.servers):
        assert all(command.argv)
        assert command.time_limit_s > 0
    assert all(command.time_limit_s > asked_s + 5 for command in planned.measures)
    assert plan(name, profile) == planned, "a plan is pure"


#: Of programs that come under names of their own: a shell and what coreutils has, servers and what loads them.
PACKAGES = {
    "sh": "coreutils", "sleep": "coreutils", "rm": "coreutils", "ping": "iputils-ping", "ctest": "cmake",
    "redis-benchmark": "redis-tools", "nginx": "nginx-light", "ab": "apache2-utils", "mariadbd": "mariadb-server",
    "memcaslap": "libmemcached-tools", "setpriv": "util-linux", "pgbench": "postgresql-15",
    "pg_isready": "postgresql-15", "test": "coreutils", "mkdir": "coreutils",
}  # fmt: skip
#: Of libraries that a program only loads, and that do the work.
LIBRARIES = {"sqlite-insert": {"libsqlite3-0"}}


def _programs(command):
    """The programs of a command; of a server (`applications/serving.py`) also what it is asked by, and its own."""
    words = command.argv
    if command.ready == serving.READY:
        asks, separator = ("--ask" in words and words.index("--ask")), words.index("--")
        words = (words[0], *([words[asks + 1]] if asks else []), words[separator + 1])
    else:
        words = words[:1]
    return [word.rpartition("/")[2] if word.startswith("/usr/lib/postgresql/") else word for word in words]


@pytest.mark.parametrize("name", RUNS)
def test_programs_are_of_the_packages_that_the_workload_names(name):
    planned = plan(name)
    commands = (*planned.prepare, *planned.measures, *planned.cleanup, *planned.servers)
    programs = {program for command in commands for program in _programs(command)}
    named = {PACKAGES.get(program, program) for program in programs - {exchange.AGENT}}  # which every image has
    assert named | LIBRARIES.get(name, set()) == set(workload_registry.get(name).packages)
