"""What /proc says of processes that others have made: with any name, about to end, or gone."""

import contextlib
import errno
import os
import subprocess
import sys

import pytest

from host.machines import write_process
from tare.features.kernel.reading import process_roles
from tare.host import cgroup
from tare.host.facts import posture
from tare.host.kernel import process_table
from tare.host.kernel.owner import Owner
from tare.host.kernel.process_table import Stat

NUMBERS = "1100 24 0 0 0 0 0 0 20 0 1 0 2460412 5799936 465"  # what follows the flags, the time of the start too
NOBODY = 2**22 + 1

#: Has the name that it is given, in hexadecimal, and waits for the end of its input.
NAMED = """
import ctypes, sys
assert ctypes.CDLL(None).prctl(15, bytes.fromhex(sys.argv[1]), 0, 0, 0) == 0
print("ready", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def named(name):
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", NAMED, name.hex()], stdin=pipe, stdout=pipe) as child:
        assert child.stdout.readline() == b"ready\n"
        yield child.pid
        child.stdin.close()


@pytest.fixture
def proc(tmp_path, monkeypatch):
    monkeypatch.setattr(process_table, "PROC", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"7 (a) b) S 3 7 7 0 -1 4194560 {NUMBERS}", Stat(3, ended=False, kernels=False, start_ticks=2460412)),
        (f"2 (kthreadd) S 0 0 0 0 -1 2129984 {NUMBERS}", Stat(0, ended=False, kernels=True, start_ticks=2460412)),
        (f"9 (gone) Z 3 9 9 0 -1 4228364 {NUMBERS}", Stat(3, ended=True, kernels=False, start_ticks=2460412)),
    ],
)
def test_where_a_process_comes_from(text, expected):
    assert process_table.parse_stat(text) == expected


def test_a_name_that_is_no_utf8_hides_nothing_of_its_process():
    """A tenant may call its programs so, and its host would not see what else runs."""
    with named(b"\xff) Z 1 (") as pid:
        assert process_table.stats()[pid].parent == os.getpid()
        assert process_table.named([r"\xff) Z 1 ("]) == [pid]
        assert process_table.command_lines()[pid][0] == sys.executable
        assert Owner.of(pid).lives()
        assert posture.foremost([pid], "tare-agent") == pid
        assert posture.of_process(pid)["process"] == r"\xff) Z 1 ("
        assert [side.pid for side in process_roles.sides([pid])] == [pid]


def test_a_name_does_not_make_fields_of_a_status():
    with named(b"a\rb\x0bX:\t1\x1cY:\n2") as pid:
        assert process_table.status(pid)["Name"] == "a\rb\x0bX:\t1\x1cY:\\n2"
        assert not {"X", "Y"} & process_table.status(pid).keys()


def test_of_a_process_that_is_gone_there_is_nothing():
    assert process_table.stat(NOBODY) is None
    assert process_table.status(NOBODY) == {}
    assert process_table.status(os.getpid(), NOBODY) == {}
    assert process_table.argv(NOBODY) == []
    assert process_table.descriptors(NOBODY) == []
    assert process_table.open_files(NOBODY) == {}
    assert process_table.descendants([NOBODY]) == []


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ESRCH, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENOMEM])
def test_a_process_that_cannot_be_read_for_want_of_something_is_not_taken_for_gone(monkeypatch, number):
    def opened(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", opened)
    if number in {errno.EMFILE, errno.ENOMEM}:
        with pytest.raises(OSError, match=os.strerror(number)):
            process_table.stat(1)
    else:
        assert process_table.stat(1) is None


def test_what_has_no_command_line_is_in_no_list_of_them(proc):
    write_process(proc, 2, 0)
    write_process(proc, 7, 1, "sh", "", "-c", "")
    assert process_table.command_lines() == {7: ["sh", "", "-c", ""]}


def test_descendants_are_those_that_run_in_whatever_order_ids_were_given(proc):
    write_process(proc, 30, 1, "first")
    write_process(proc, 7, 30, "child")
    write_process(proc, 8, 7, "grandchild")
    write_process(proc, 9, 7, state="Z")
    write_process(proc, 300, 1, "another's")
    assert process_table.descendants([30]) == [7, 8, 30]
    assert process_table.descendants([30, 300]) == [7, 8, 30, 300]
    assert process_table.descendants([9, 10]) == []


def test_ids_that_were_used_again_meanwhile_may_lead_in_a_circle(proc):
    write_process(proc, 7, 8, "a")
    write_process(proc, 8, 7, "b")
    assert process_table.descendants([7]) == [7, 8]


def test_daemons_are_found_by_their_names_and_a_group_of_several_is_one(proc, monkeypatch):
    for pid, name in ((5, "dockerd"), (6, "containerd"), (7, "containerd-shim"), (8, "containerd"), (9, "containerd")):
        write_process(proc, pid, 1, name, name=name)
    paths = {5: "system.slice/docker", 6: "system.slice/containerd", 8: "system.slice/containerd"}
    groups = {pid: cgroup.Group(path) for pid, path in paths.items()}
    monkeypatch.setattr(cgroup, "usage_of", groups.get)
    found = cgroup.usage_of_all({"dockerd", "containerd"})
    assert sorted(group.path for group in found) == ["system.slice/containerd", "system.slice/docker"]
    assert cgroup.usage_of_all({"virtqemud"}) == []


def test_what_is_open_is_known_by_where_it_leads_and_how_it_was_opened(tmp_path):
    file = tmp_path / "file"
    descriptor = os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    try:
        link = process_table.open_files(os.getpid())[str(file)]
        assert process_table.open_flags(link) & (os.O_APPEND | os.O_ACCMODE) == os.O_APPEND | os.O_WRONLY
    finally:
        os.close(descriptor)
    assert str(file) not in process_table.open_files(os.getpid())
    with pytest.raises(OSError, match="No such file"):
        process_table.open_flags(link)


def test_a_processs_priority_is_that_of_who_started_it():
    before = os.getpriority(os.PRIO_PROCESS, 0)
    sleeping = subprocess.Popen(["nice", "-n", "3", "cat"], stdin=subprocess.PIPE)
    try:
        while process_table.argv(sleeping.pid) != ["cat"]:
            assert sleeping.poll() is None
        policy = process_table.priority(os.getpid()).partition(",")[0]
        assert process_table.priority(sleeping.pid) == f"{policy}, nice {min(before + 3, 19)}"
    finally:
        sleeping.communicate()
    assert process_table.priority(NOBODY) == ""


@pytest.mark.parametrize(("policy", "name"), [("--batch", "batch"), ("--idle", "idle")])
def test_a_policy_has_its_name(policy, name):
    done = subprocess.run(
        ["chrt", policy, "0", sys.executable, "-c", "import os; from tare.host.kernel import process_table as t\n"
         "print(t.priority(os.getpid()))"], capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith(f"{name}, nice ")
