"""Kernel functions: what the module printed in a lab is read as it is, and where they cannot be counted is said why.

tests/footprint/captured has a dump of tare_fcount (6.1.0-56-cloud-amd64, a lab of two processors, a shell with some
commands in the group; gzip), and of what available_filter_functions said there every hundredth line.
"""

import gzip
import re
from pathlib import Path

import pytest

from tare.errors import HostError, ParseError
from tare.features.kernel.counters import functions
from tare.features.kernel.counters.functions import check, parse_dump, parse_functions
from tare.features.kernel.reading import kmodule
from tare.footprint_model import Scope
from tare.host import cgroup

CAPTURED = Path(__file__).parent / "captured"
DUMP = gzip.decompress((CAPTURED / "tare_fcount-dump.txt.gz").read_bytes()).decode()
CGROUPS = Path("/sys/fs/cgroup")
FUNCTIONS = (CAPTURED / "available_filter_functions.txt").read_text()


def with_line(line):
    """The dump with one line more."""
    return DUMP.removesuffix("end\n") + line + "\nend\n"


def test_a_dump_is_read_line_by_line():
    hits, lost = parse_dump(DUMP)
    lines = [line.split(" ", 3) for line in DUMP.splitlines()[1:-1]]
    assert lost == 0
    assert set(hits[Scope.HOST]) == {line[3] for line in lines}
    assert sum(hits[Scope.HOST].values()) == sum(int(line[1]) for line in lines)
    assert sum(hits[Scope.INSTANCE].values()) == sum(int(line[2]) for line in lines)
    assert set(hits[Scope.INSTANCE]) < set(hits[Scope.HOST])
    assert all(hits[Scope.INSTANCE].values())
    assert "__x64_sys_execve" in hits[Scope.INSTANCE]


def test_functions_of_one_name_are_one():
    hits = parse_dump(with_line("ffffffff81999990 5 2 do_mmap"))[0]
    before = parse_dump(DUMP)[0]
    for scope, added in ((Scope.HOST, 5), (Scope.INSTANCE, 2)):
        assert hits[scope] == {**before[scope], "do_mmap": before[scope]["do_mmap"] + added}


def test_functions_of_modules_are_named_with_the_module():
    named = {name for name in parse_dump(DUMP)[0][Scope.HOST] if " " in name}
    assert named
    assert all(re.fullmatch(r"\S+ \[\w+\]", name) for name in named)


def test_what_is_gone_since_it_ran_is_lost_and_so_is_what_found_no_room():
    changed = DUMP.replace("tare_fcount 1 lost 0\n", "tare_fcount 1 lost 3\nffffffffc0123450 17 4 0xffffffffc0123450\n")
    hits, lost = parse_dump(changed)
    assert lost == 20
    assert hits == parse_dump(DUMP)[0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tare_fcount 1 lost 0\n",
        DUMP.removesuffix("end\n"),
        DUMP[: len(DUMP) // 2],
        DUMP.replace("tare_fcount 1 ", "tare_fcount 2 "),
        with_line("ffffffff81000000 many 0 do_mmap"),
        with_line("ffffffff81000000 1 0"),
    ],
)
def test_what_is_not_whole_is_refused(text):
    with pytest.raises(ParseError):
        parse_dump(text)


def test_functions_that_were_replaced_at_linking_are_not_known():
    names = parse_functions(FUNCTIONS.splitlines())
    assert any(line.startswith("__ftrace_invalid_address___") for line in FUNCTIONS.splitlines())
    assert not any(name.startswith("__ftrace_invalid") for name in names)
    assert any(name.endswith("]") for name in names)
    assert 300 < len(names) <= len(FUNCTIONS.splitlines())


@pytest.fixture
def host(tmp_path, monkeypatch):
    """The files of a host that lets functions be counted; a test takes away one thing."""
    tracing, debug = tmp_path / "tracing", tmp_path / "debug"
    for folder in (tracing, debug / "tracing"):
        folder.mkdir(parents=True)
    (tmp_path / "ftrace_enabled").write_text("1\n")
    (tracing / "available_filter_functions").write_text(FUNCTIONS)
    (tracing / "current_tracer").write_text("nop\n")
    (tracing / "enabled_functions").write_text("")
    monkeypatch.setattr(functions, "TRACING", (tracing,))
    monkeypatch.setattr(functions, "DEBUG", debug)
    monkeypatch.setattr(functions, "SWITCH", tmp_path / "ftrace_enabled")
    monkeypatch.setattr(functions.os, "geteuid", lambda: 0)
    monkeypatch.setattr(cgroup, "hierarchies", lambda: cgroup.Hierarchies({}, CGROUPS, (CGROUPS,)))
    return tmp_path


def test_a_host_that_has_all_is_not_refused(host):
    check()


@pytest.mark.parametrize(
    ("file", "text", "what", "fix"),
    [
        ("ftrace_enabled", None, "has no function tracer", "lab"),
        ("ftrace_enabled", "0\n", "switched off", "sysctl kernel.ftrace_enabled=1"),
        ("tracing/available_filter_functions", None, "tracefs is not mounted", "mount -t tracefs"),
        ("tracing/current_tracer", "function_graph\n", "by the tracer function_graph", "wait"),
        ("tracing/enabled_functions", "do_mmap (1) R I\n", "1 functions of this kernel, such as do_mmap", "wait"),
    ],
)
def test_a_host_that_lacks_something_is_told_the_fix(host, file, text, what, fix):
    if text is None:
        (host / file).unlink()
    else:
        (host / file).write_text(text)
    with pytest.raises(HostError) as caught:
        check()
    assert what in caught.value.what
    assert fix in caught.value.fix


def test_without_debugfs_and_without_root_the_fix_is_told_too(host, monkeypatch):
    (host / "debug/tracing").rmdir()
    with pytest.raises(HostError, match="mount -t debugfs"):
        check()
    monkeypatch.setattr(functions.os, "geteuid", lambda: 1000)
    with pytest.raises(HostError, match="sudo"):
        check()


def test_root_of_a_user_namespace_alone_is_no_root(host, monkeypatch):
    """On a stock host tracefs is closed to it: there `tare doctor` ended by a traceback for a user without root."""
    monkeypatch.setattr(functions.own_namespaces, "inside", lambda: True)
    with pytest.raises(HostError, match=r"only root may count.*sudo"):
        check()


def test_where_groups_are_not_of_version_2_a_lab_is_named(host, monkeypatch):
    monkeypatch.setattr(cgroup, "hierarchies", lambda: cgroup.Hierarchies({"cpu": CGROUPS}, None, (CGROUPS,)))
    with pytest.raises(HostError, match=r"not of version 2 here.*lab"):
        check()


def test_a_module_that_was_brought_is_taken_and_a_missing_one_is_told(tmp_path, monkeypatch):
    brought = tmp_path / "tare_fcount.ko"
    monkeypatch.setenv(kmodule.BROUGHT, str(brought))
    with pytest.raises(HostError, match="is no file"):
        kmodule.find()
    brought.write_bytes(b"ELF")
    assert kmodule.find() == brought


def test_without_headers_the_package_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv(kmodule.BROUGHT, raising=False)
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    monkeypatch.setattr(kmodule, "MODULES", tmp_path / "modules")
    with pytest.raises(HostError, match=r"apt-get install linux-headers-\S+ make"):
        kmodule.find()
