"""What there is, the contract that all keep, and plugins through their entry point."""

import dataclasses
import re
import sys
from pathlib import Path

import pytest

from tare import plugins
from tare.errors import ParseError, UsageError
from tare.model import CLIENT_BUSY, CLIENT_COST, Direction, Family, Metric
from tare.suggest import nearest
from tare.workloads import workload_registry
from tare.workloads.apart import ProbeDensity, RunDensity, SplitWorkload
from tare.workloads.base import CurveLevel, IdleWorkload, MemoryWorkload, RunWorkload, SliceWorkload, Surroundings
from tare.workloads.workload_contract import problems
from workloads.captures import captured, completed, text

EXAMPLE = Path(__file__).parent / "example" / "dd_syscalls.py"
GUIDE = Path(__file__).parents[2] / "docs" / "add-a-workload.md"
AROUND = Surroundings(2**30, 1, 2**30, None, None, None)


def test_all_workloads_by_family_and_name():
    assert list(dict.fromkeys(_name(workload) for workload in workload_registry.all_workloads().values())) == [
        "dhrystone",
        "gzip",
        "hardinfo-cryptohash",
        "hardinfo-fft",
        "hardinfo-fibonacci",
        "hardinfo-nqueens",
        "hardinfo-raytracing",
        "hardinfo-zlib",
        "kernel-compile",
        "linpack",
        "llc-probe",
        "primes",
        "sysbench-cpu",
        "sysbench-cpu-threads",
        "whetstone",
        "memory-footprint",
        "memory-least",
        "memory-least-stream",
        "mmap-sweep",
        "munmap-sweep",
        "ramspeed-float",
        "ramspeed-int",
        "ramspeed-sse",
        "ramspeed-sse-nt",
        "stream",
        "sysbench-memory",
        "call-clock-syscall",
        "call-clock-vdso",
        "call-epoll",
        "call-getpid",
        "call-open",
        "call-read-1b",
        "call-read-4k",
        "call-signal",
        "call-stat",
        "call-write-1b",
        "call-write-4k",
        "file-create",
        "file-fsync",
        "file-read-1b",
        "file-read-4k",
        "file-write-1b",
        "file-write-4k",
        "ipc-futex",
        "ipc-pipe",
        "mem-fault",
        "mem-map",
        "mem-map-touch",
        "net-tcp-kib",
        "net-tcp-packet",
        "net-udp-kib",
        "net-udp-packet",
        "proc-exec",
        "proc-fork",
        "bonnie",
        "bonnie-trajectory",
        "dbench",
        "dbench-fsync",
        "dbench-fsync-root",
        "dbench-osync",
        "dbench-osync-root",
        "dbench-root",
        "fio-randread",
        "fio-randread-32",
        "fio-randread-buffered",
        "fio-randwrite",
        "fio-randwrite-32",
        "fio-randwrite-buffered",
        "seq-read-sizes",
        "seq-read-sizes-guest",
        "seq-read-sizes-host",
        "seq-read-sizes-warm",
        "seq-write-sizes",
        "sqlite-insert",
        "sysbench-fileio-seqrd",
        "sysbench-fileio-seqwr",
        "http-get",
        "iperf3-jitter",
        "iperf3-streams",
        "iperf3-tcp",
        "iperf3-tcp-1g",
        "iperf3-udp",
        "iperf3-udp-1g",
        "ping-rtt",
        "tcp-crr",
        "tcp-rr",
        "udp-rtt",
        "image-size",
        "startup",
        "startup-cold",
        "burst",
        "burst-staggered",
        "engine-restart",
        "exec",
        "fork",
        "idle-cpu",
        "kill",
        "pause",
        "snapshot-512",
        "snapshot-64",
        "whole-life",
        "capacity",
        "density-llc",
        "density-memory",
        "density-network",
        "density-primes",
        "density-start",
        "density-stream",
        "fio-randread-beside-disk",
        "redis-beside-cpu",
        "redis-beside-disk",
        "redis-beside-fork",
        "redis-beside-memory",
        "redis-beside-network",
        "build-pipeline",
        "mariadb-read",
        "mariadb-read-threads",
        "mariadb-read-write",
        "mariadb-read-write-threads",
        "mariadb-write",
        "mariadb-write-threads",
        "memcached",
        "nginx",
        "nginx-ab",
        "nginx-ab-connections",
        "nginx-connections",
        "nginx-open",
        "nginx-open-rate",
        "postgresql",
        "postgresql-clients",
        "postgresql-select",
        "redis",
        "redis-connections",
        "redis-open",
        "redis-open-rate",
        "site",
        "site-split",
        "site-split-users",
        "site-users",
    ]


@pytest.mark.parametrize("workload", workload_registry.all_workloads().values(), ids=lambda workload: workload.name)
def test_every_workload_keeps_the_contract(workload):
    assert problems(workload) == []


def test_every_family_has_a_workload():
    assert {workload.family for workload in workload_registry.all_workloads().values()} == set(Family)


def test_every_timed_workload_has_the_cpu_cost_of_its_work():
    for workload in workload_registry.all_workloads().values():
        units = {metric.name: metric.unit for metric in workload.all_metrics}
        timed = isinstance(workload, SliceWorkload | ProbeDensity | RunDensity | SplitWorkload) or (
            isinstance(workload, RunWorkload) and not isinstance(workload, MemoryWorkload | IdleWorkload)
        )
        timed = timed and workload.name != "ping-rtt"  # which the host's kernel answers, in nobody's account
        assert ("cpu-cost" in units) == timed
        assert units.get("cpu-cost", f"ns/{workload.work_unit}") == f"ns/{workload.work_unit}"


@pytest.mark.parametrize(
    ("typed", "advice"),
    [
        ("sysbnch-cpu", "sysbench-cpu"),
        ("iperf", "iperf3-tcp"),
        ("STREAM", "stream"),
        ("seqrd", "sysbench-fileio-seqrd"),
        ("qqq", "tare list workloads has all "),
    ],
)
def test_an_unknown_name_gets_the_nearest(typed, advice):
    with pytest.raises(UsageError) as refused:
        workload_registry.get(typed)
    assert repr(typed) in refused.value.what
    assert advice in refused.value.fix


def test_only_the_case_or_a_list_is_wrong():
    names = ["docker", "docker-gvisor", "gvisor"]
    assert nearest("Docker", names) == "did you mean docker?"
    assert nearest("docker, gVisor", names) == "repeat the option for each: docker, gvisor"
    assert nearest("docker,gvisr", names).startswith("did you mean docker-gvisor")


def test_nearest_of_nothing():
    assert nearest("docker", []) == "there are none"
    assert nearest("", ["docker", "runc"]) == "use one of docker, runc"


def _broken(**attributes):
    base = type(workload_registry.get("primes"))
    return type("Broken", (base,), {"__module__": base.__module__, **attributes})()


METRIC = workload_registry.get("primes").metrics[0]
PARAMS = workload_registry.get("primes").profiles["quick"]


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({"name": "Not A Name"}, "not lower case words"),
        ({"name": "trailing-"}, "not lower case words"),
        ({"name": 5}, "no name that is a str"),
        ({"title": "two\nlines"}, "title that is not one line"),
        ({"family": "cpu time"}, "no family"),
        ({"work_unit": " "}, "no unit of work"),
        ({"revision": 0}, "a revision below 1"),
        ({"level": "x"}, "a level that is no tare.workloads.base.CurveLevel"),
        (
            {"level": CurveLevel("served", "few", "users", "events-per-second", "events-per-second", 1.0)},
            "a level that is no",
        ),
        ({"least": 3}, "no least that is a Mapping"),
        ({"pids": 100}, "100 as its pids, and no number from 4096"),
        ({"least": {"rounds": "many"}}, "no number as the least of 'rounds'"),
        ({"mode": None}, "no mode that is a Mode"),
        ({"by_default": "yes"}, "no by_default that is a bool"),
        ({"source": "docker://x"}, "a source that is no tare.model.ImageSource"),
        ({"margin": 2}, "a margin that is no fraction: 2"),
        ({"margin": property(lambda workload: 1 / 0)}, "no margin: ZeroDivisionError"),
        ({"revision": "2"}, "no revision that is a int"),
        ({"metrics": ()}, "no metrics"),
        ({"metrics": (METRIC, METRIC)}, "a metric twice"),
        ({"metrics": (dataclasses.replace(METRIC, unit=""),)}, "without a unit"),
        ({"metrics": (Metric("cpu-cost", "ns", Direction.LOWER, "cost"),)}, "name that cannot be: 'cpu-cost'"),
        ({"metrics": (dataclasses.replace(METRIC, name="Events"),)}, "name that cannot be: 'Events'"),
        ({"profiles": {"quick": PARAMS}}, "the profiles quick and not"),
        ({"profiles": {"quick": PARAMS, "full": {**PARAMS, "more": 1}}}, "only one profile: more"),
        ({"profiles": {"quick": PARAMS, "full": {**PARAMS, "rounds": "40"}}}, "one type in one profile"),
        ({"profiles": {"quick": {"rounds": 1}, "full": {"rounds": 1}}}, "lacks slice_ms, warmup_ms"),
        ({"parts": {"other": "events"}}, "parts that are not its metrics"),
        ({"probe": None}, "no probe that is a str"),
        ({"__module__": "workloads.captures.nowhere"}, "no docstring in its module"),
    ],
)
def test_breaches_of_the_contract_are_named(attributes, problem):
    assert problem in "; ".join(problems(_broken(**attributes)))


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Installs a module as a package of its own would: importable, with an entry point in its metadata."""

    def install(source, module="dd_syscalls"):
        (tmp_path / f"{module}.py").write_text(source)
        metadata = tmp_path / "tare_dd-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: tare-dd\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[tare.workloads]\ndd-syscalls = {module}\n")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(plugins, "_said", set())
        monkeypatch.setenv(plugins.ALLOWED, "tare-dd")
        monkeypatch.delitem(sys.modules, module, raising=False)

    yield install
    sys.modules.pop("dd_syscalls", None)


def test_the_guides_example_is_this_one():
    source = EXAMPLE.read_text()
    assert f"```python\n{source}```" in GUIDE.read_text()


def test_a_plugin_is_a_workload_like_all_others(plugin):
    plugin(EXAMPLE.read_text())
    workload = workload_registry.get("dd-syscalls")
    assert workload.metrics[0].unit == "calls/s"
    params = workload.profiles["quick"]
    argv = workload.plan(params, AROUND).measures[0].argv
    assert argv == ("dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=200000")
    done = completed(stderr=text("dd-syscalls", ".err"))
    assert workload.parse(params, [done]).samples == {"syscalls-per-second": pytest.approx(400_000 / 0.0909595)}
    with pytest.raises(ParseError, match="No space left on device"):
        workload.parse(params, [captured("dd-syscalls-no-space", code=1)])
    with pytest.raises(ParseError, match="not 5"):
        workload.parse({"count": 5}, [done])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import no_such_module", "does not load: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def (", "does not load: SyntaxError"),
        ("import numpy; numpy.nonesuch()", "does not load: AttributeError"),
        ("1 / 0", "does not load: ZeroDivisionError: division by zero"),
        ("from tare.workloads.base import RunWorkload\nWORKLOAD = RunWorkload()", "does not load"),
        ("", "has no WORKLOAD"),
        ("WORKLOAD = 5", "has no WORKLOAD"),
        (EXAMPLE.read_text().replace('"dd-syscalls"', '"DD"'), "not lower case words"),
        (EXAMPLE.read_text().replace('"dd-syscalls"', '"stream"'), "names 'stream', which there is already"),
    ],
)
def test_a_broken_plugin_is_left_out_with_one_line_that_says_whose_it_is(plugin, capsys, source, message):
    before = workload_registry.all_workloads().keys()
    plugin(source)
    assert workload_registry.all_workloads().keys() == workload_registry.all_workloads().keys() == before
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("the plug-in 'dd-syscalls' of tare-dd 1.0 (tare.workloads: dd_syscalls) is left out: it ")
    assert message in line
    assert line.endswith("(fix: repair or uninstall it)")


def test_a_family_stands_for_its_workloads_each_once():
    chosen = [workload.name for workload in workload_registry.choose(["udp-rtt", "network", "startup"])]
    assert chosen[0] == "udp-rtt"
    assert chosen[-1] == "startup"  # a workload has its name before a family has it
    of_family = [
        workload.name for workload in workload_registry.all_workloads().values() if workload.family is Family.NETWORK
    ]
    assert sorted(chosen[:-1]) == sorted(of_family)
    with pytest.raises(UsageError, match="there is no workload 'network '"):
        workload_registry.choose(["network "])


def test_the_documentation_has_every_workload_and_no_other():
    page = Path(__file__).parents[2] / "docs" / "workloads.md"
    listed = re.findall(r"^\| `([^`]+)`( \*)? \|", page.read_text(), re.MULTILINE)
    assert {name: bool(star) for name, star in listed} == {
        _name(workload): workload.by_default for workload in workload_registry.all_workloads().values()
    }


def test_over_a_network_the_clients_share_is_a_figure_too():
    workloads = workload_registry.all_workloads().items()
    stated = {
        name for name, workload in workloads if CLIENT_COST in _names(workload) and workload.family is Family.NETWORK
    }
    assert stated == {
        "http-get", "iperf3-jitter", "iperf3-streams", "iperf3-tcp", "iperf3-tcp-1g", "iperf3-udp",
        "iperf3-udp-1g", "tcp-crr", "tcp-rr", "udp-rtt",
    }  # fmt: skip


def test_a_curve_stands_for_its_levels_by_rising_load_and_a_family_for_none_of_them():
    levels = workload_registry.choose(["redis-connections"])
    assert [workload.name for workload in levels][:3] == [
        "redis-connections-1",
        "redis-connections-50",
        "redis-connections-100",
    ]
    assert [workload.level.at for workload in levels] == [
        workload.profiles["full"]["connections"] for workload in levels
    ]
    assert not [workload for workload in workload_registry.choose(["application"]) if workload.level]
    assert [workload.name for workload in workload_registry.choose(["redis-connections-100"])] == [
        "redis-connections-100"
    ]
    with pytest.raises(UsageError, match="there is no workload 'redis-connection'"):
        workload_registry.choose(["redis-connection"])


def _name(workload):
    return workload.name if workload.level is None else workload.level.curve


def test_of_a_server_it_is_known_how_busy_its_client_was():
    applications = [
        workload for workload in workload_registry.all_workloads().values() if workload.family is Family.APPLICATION
    ]
    servers = [workload for workload in applications if isinstance(workload, SplitWorkload) or workload.loaded]
    assert servers
    assert all({CLIENT_COST, CLIENT_BUSY} <= set(_names(workload)) for workload in servers)


def _names(workload):
    return [metric.name for metric in workload.all_metrics]
