"""The module that Ansible runs on a host, without Ansible: its steps on a folder of this machine."""

import fcntl
import hashlib
import importlib.util
import io
import json
import os
import signal
import subprocess
import tarfile
import threading
import time
from collections import namedtuple
from types import SimpleNamespace

import pytest

from tare.fleet.playing import PLAYBOOK
from tare.host.kernel import process_table

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="takes root's rights, as on a host")
ID = "0123456789abcdef"
SPEC = importlib.util.spec_from_file_location("tare_host", PLAYBOOK / "library" / "tare_host.py")
tare_host = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tare_host)


def command(argv, cwd=None, environ_update=None, pass_fds=()):
    env = os.environ | (environ_update or {})
    done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, pass_fds=pass_fds, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def host(tmp_path):
    def made(name="alpha", **given):
        defaults = {
            "id": ID,
            "name": name,
            "folder": str(tmp_path / "fleet"),
            "home": str(tmp_path / "home"),
            "wait_s": 1,
        }
        params = {key: spec.get("default") for key, spec in tare_host._ARGUMENTS.items()} | defaults | given
        return tare_host.Host(SimpleNamespace(params=params, run_command=command))

    return made


@pytest.fixture
def run(host):
    """A run's folder, as `start` makes it."""
    there = host()
    there.run.mkdir(parents=True, mode=0o700)
    there._claim()
    return there


def test_a_host_without_a_run_has_none(host):
    assert host().status() == {"state": "absent", "over": True}
    assert host().clean() == {"state": "clean", "over": True}


def test_a_second_name_of_one_host_is_refused(run, host):
    host("alpha")._claim()
    with pytest.raises(tare_host.LackError, match="the same host as alpha, which is in the inventory too"):
        host("beta")._claim()


def test_what_was_forgotten_keeps_its_name(run, host):
    (run.run / "run.tare").write_text("x")
    assert run.forget()["state"] == "absent"
    assert sorted(path.name for path in run.run.iterdir()) == ["lock", "name"]
    with pytest.raises(tare_host.LackError, match="the same host as alpha"):
        host("beta")._claim()


def started(run, script):
    """A process that holds the run's lock, as `_launch` starts one."""
    lock = run._locked()
    (run.run / "log").touch()
    argv = ["setsid", "--fork", "/bin/sh", "-c", tare_host._RUN, "sh", "/bin/sh", "-c", script]
    assert command(argv, cwd=run.run, pass_fds=[lock])[0] == 0
    os.close(lock)


def test_a_run_is_waited_for_and_its_file_told(run):
    started(run, "printf whole >run.tare; sleep 0.3")
    answer = run.wait()
    assert answer["state"] == "complete"
    assert (answer["sha256"], answer["size"]) == (hashlib.sha256(b"whole").hexdigest(), 5)


def test_a_run_that_goes_on_is_told_with_its_progress_and_not_removed(run):
    events = [
        {"event": "block", "number": 3, "left_s": 90, "at": time.time() - 30},
        {"event": "doing", "what": "startup"},
    ]
    (run.run / "log").write_text("\n".join(map(json.dumps, events)) + "\nno JSON\n")
    started(run, "cat /dev/zero >/dev/null")  # until it is killed
    answer = run.wait()
    assert (answer["state"], answer["over"], answer["blocks"], answer["doing"]) == ("running", False, 2, "startup")
    assert 55 <= answer["left_s"] <= 61
    with pytest.raises(tare_host.LackError, match="still runs"):
        run.forget()
    with pytest.raises(tare_host.LackError, match="still runs"):
        run.clean()
    holders = [pid for pid in process_table.pids() if str(run.run / "lock") in process_table.open_files(pid)]
    assert holders
    for pid in holders:
        os.kill(pid, signal.SIGKILL)
    assert run.wait()["state"] == "killed"


def test_a_run_that_failed_tells_its_error_and_fix(run):
    started(run, "echo error: another tare has this host >&2; echo fix: wait >&2; exit 2")
    answer = run.wait()
    assert (answer["state"], answer["code"]) == ("failed", 2)
    assert answer["reason"] == "error: another tare has this host fix: wait"


def test_the_lock_is_the_run_s_alone(run):
    lock = run._locked()
    with pytest.raises(BlockingIOError):
        fcntl.flock(os.open(run.run / "lock", os.O_RDWR), fcntl.LOCK_SH | fcntl.LOCK_NB)
    os.close(lock)


def part(host, contents=b"x"):
    """An archive that arrived, as `packing` makes it."""
    incoming = host.folder / "incoming"
    incoming.mkdir(parents=True, exist_ok=True)
    archive = incoming / "tare-1-0123456789abcdef.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        info = tarfile.TarInfo("tare/__init__.py")
        info.size = len(contents)
        tar.addfile(info, io.BytesIO(contents))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return {"name": "tare-1-0123456789abcdef", "file": f"/elsewhere/{archive.name}", "sha256": digest, "unpacked": 4096}


def test_what_arrived_is_unpacked_once(run):
    given = part(run)
    run._unpack(given)
    assert (run.folder / given["name"] / "tare" / "__init__.py").read_bytes() == b"x"
    assert not [*(run.folder / "incoming").iterdir()]
    run._unpack(given)


def test_what_arrived_damaged_is_not_unpacked(run):
    given = part(run) | {"sha256": "0" * 64}
    with pytest.raises(tare_host.LackError, match="arrived damaged"):
        run._unpack(given)
    assert not (run.folder / given["name"]).exists()


def test_a_disk_without_room_is_a_reason(run, monkeypatch):
    given = part(run)
    monkeypatch.setattr(tare_host.shutil, "disk_usage", lambda _: namedtuple("usage", "free")(1 << 20))
    with pytest.raises(tare_host.LackError, match=r"1 MiB are free in .*, and 256 MiB are needed"):
        run._unpack(given)


def test_a_folder_that_others_can_write_is_refused(host):
    there = host()
    there.folder.mkdir(mode=0o700)
    there.folder.chmod(0o777)
    with pytest.raises(tare_host.LackError, match="not root's alone"):
        there.start()


def test_clean_keeps_what_was_not_fetched_and_what_was_there_before(run):
    (run.home / "images" / "base-old").mkdir(parents=True)
    run._note_what_is_there()
    (run.home / "images" / "base-new").mkdir()
    (run.run / "run.tare").write_text("x")
    with pytest.raises(tare_host.LackError, match="was not fetched"):
        run.clean()
    run.given["force"] = True
    run.clean()
    assert not run.folder.exists()
    assert [path.name for path in (run.home / "images").iterdir()] == ["base-old"]


def test_two_names_of_one_host_clean_it_one_after_the_other(run, host):
    answers = []
    turn = os.open(run.folder.parent, os.O_RDONLY)
    fcntl.flock(turn, fcntl.LOCK_EX)
    threads = [
        threading.Thread(target=lambda name=name: answers.append(host(name).clean())) for name in ("alpha", "beta")
    ]
    for thread in threads:
        thread.start()
    fcntl.flock(turn, fcntl.LOCK_UN)
    os.close(turn)
    for thread in threads:
        thread.join()
    assert [answer["state"] for answer in answers] == ["clean", "clean"]
    assert not run.folder.exists()


def test_clean_removes_a_home_that_a_fleet_made(run):
    run._note_what_is_there()
    (run.home / "images" / "base-new").mkdir(parents=True)
    run.clean()
    assert not run.home.exists()


@pytest.mark.parametrize(
    ("words", "overrides", "result"),
    [
        (["-p", "runc", "-w", "cpu"], {}, ["-p", "runc", "-w", "cpu"]),
        (
            ["-p", "runc", "-w", "cpu"],
            {"platform": ["crun", "gvisor"]},
            ["-w", "cpu", "--platform", "crun", "--platform", "gvisor"],
        ),
        (
            ["-prunc", "--platform=x", "--cpus", "0"],
            {"platform": "crun", "cpus": "2-3"},
            ["--platform", "crun", "--cpus", "2-3"],
        ),
        (["--precision", "1%"], {"margin": ["cpu=2%"]}, ["--precision", "1%", "--margin", "cpu=2%"]),
        ([], {"options": "--tune --seed 7"}, ["--tune", "--seed", "7"]),
    ],
)
def test_a_host_s_variables_take_the_place_of_the_options_for_all(words, overrides, result):
    assert tare_host._with_overrides(words, overrides) == result


def test_the_client_of_a_host_takes_the_place_of_that_for_all():
    own = tare_host._with_overrides(["-p", "runc", "--client", "ssh:all"], {"client": "ssh:root@load1:22"})
    assert own == ["-p", "runc", "--client", "ssh:root@load1:22"]
    assert tare_host._with_overrides(["--client", "ssh:all"], {"client": ""}) == ["--client", "ssh:all"]


def test_a_command_of_the_user_s_own_stays_behind_the_dashes():
    assert tare_host._split(["-p", "runc", "--", "ls", "-p"]) == (["-p", "runc"], ["--"], ["ls", "-p"])
