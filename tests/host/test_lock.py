import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tare.errors import HostError
from tare.host import lock, processes
from tare.host.resources import removers
from tare.host.resources.journal import Journal, sweep
from tare.host.resources.resource import HostResource, is_shared

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="sessions are root's")

HOLDER = """\
import sys, time
from pathlib import Path
from tare.host import lock
lock.FOLDER = Path(sys.argv[1])
sys.argv[:] = ["/usr/bin/tare", "run", "-o", "my file.tare"]
with lock.held():
    print("held", flush=True)
    time.sleep(60)
"""
#: Whoever made the journal's entries is dead.
MAKER = """\
import sys
from pathlib import Path
from tare.host.resources import removers
from tare.host.resources.journal import Journal
journal = Journal(Path(sys.argv[1], "journal"))
journal.write(removers.control_group("tare"), removers.control_group("tare/ab12cx3"), removers.link("tare0"))
"""


@pytest.fixture(autouse=True)
def _nothing_is_there_yet(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "FOLDER", tmp_path / "run")


@contextlib.contextmanager
def another():
    """Another process that has the host."""
    argv = [sys.executable, "-c", HOLDER, str(lock.FOLDER)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.kill()


def test_the_second_is_told_who_has_the_host_and_how_to_wait():
    with another() as process:
        with pytest.raises(HostError) as refused, lock.held():
            pass
        assert re.search(
            rf"process {process.pid} \(`tare run -o 'my file.tare'`, since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\)$",
            refused.value.what,
        )
        assert f"tail --pid={process.pid} -f /dev/null" in refused.value.fix
        assert f"kill -INT {process.pid}" in refused.value.fix
    with lock.held():  # killed: the kernel lets go
        pass


def test_one_process_has_no_two_sessions():
    with lock.held():
        with pytest.raises(HostError, match=f"process {os.getpid()} "), lock.held():
            pass
        with lock.held_if_free() as holder:
            assert holder is None, "its own session keeps a process from nothing"


def test_nobody_begins_while_what_is_shared_is_removed():
    with lock.held_if_free() as holder:
        assert holder is None
        with pytest.raises(HostError, match="another tare"), lock.held():
            pass


def test_a_holder_that_has_not_written_yet_is_no_fault_of_who_asks():
    with lock.held():
        [file] = lock.FOLDER.iterdir()
        file.write_bytes(b"")
        with lock._tried() as holder:
            assert str(holder) == "a process that has just begun"


def test_the_folder_and_its_files_are_roots_alone():
    with lock.held():
        [file] = lock.FOLDER.iterdir()
        assert [place.stat().st_mode & 0o777 for place in (lock.FOLDER, file)] == [0o700, 0o600]
    lock.FOLDER.chmod(0o777)
    with pytest.raises(HostError, match="others can write"), lock.held():
        pass
    lock.FOLDER.chmod(0o700)
    file.unlink()
    file.symlink_to("/etc/hostname")
    with pytest.raises(HostError, match="cannot be opened"), lock.held():
        pass


def test_without_a_host_to_have_the_error_says_so(monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(HostError, match="need root"), lock.held():
        pass
    with lock.held_if_free() as holder:
        assert holder is None
    assert not lock.FOLDER.exists()


def test_other_control_groups_and_another_network_are_another_host():
    argv = [sys.executable, "-c", HOLDER, str(lock.FOLDER)]
    with lock.held(), subprocess.Popen(["unshare", "--net", *argv], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        process.kill()


def test_what_a_living_run_uses_by_the_same_name_is_not_swept(tmp_path, monkeypatch):
    """The run with another TARE_HOME that made it is dead; the one that uses it now has another journal."""
    removed = []
    monkeypatch.setattr(removers, "remove", removed.append)
    processes.run([sys.executable, "-P", "-c", MAKER, str(tmp_path)]).require()
    journal = Journal(tmp_path / "journal")
    with another() as process:
        kept = {str(step.resource): step.kept for step in sweep(journal)}
        assert [str(resource) for resource in removed] == ["cgroup tare/ab12cx3"], (
            "a name with a label is nobody else's"
        )
        for name in ("cgroup tare", "link tare0"):
            assert kept[name].startswith(f"another run uses it: process {process.pid} (`tare run -o ")
    assert [step.kept for step in sweep(journal)] == [None, None]
    assert journal.entries() == []


@pytest.mark.parametrize(
    ("resource", "shared"),
    [
        (removers.control_group("tare/client"), True),
        (removers.control_group("tare-detect12ab"), False),
        (removers.network_namespace("tare-client"), True),
        (removers.network_namespace("tare-ab12cx3"), False),
        (removers.iptables_rule("FORWARD", "-i", "tare0", "-o", "tare0", "-j", "ACCEPT"), True),
        (removers.setting(Path("/proc/sys/vm/swappiness"), "60", "0"), True),
        (HostResource("folder", {"path": "/var/lib/tare/work/ab12cx3"}), False),
    ],
)
def test_what_is_shared_has_no_label(resource, shared):
    assert is_shared(resource) is shared
