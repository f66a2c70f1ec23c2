"""What a host can lack: no root, no disk, no archive, no free subnet. One clear line with the fix, nothing left."""

import os
import sys

import pytest

from tare import cli
from tare.host import processes


def _as_user(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["tare", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code, capsys.readouterr().err


@pytest.mark.parametrize("command", [("run", "-o", "never.tare"), ("clean",)])
def test_a_user_takes_no_home_of_roots(monkeypatch, capsys, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    code, errors = _as_user(monkeypatch, capsys, *command)
    assert code == 2
    assert "home is not safe from other users: it belongs to root" in errors
    assert "fix: set TARE_HOME to a folder that is yours alone" in errors
    assert not (tmp_path / "never.tare").exists()


def _in(namespace, tmp_path, *arguments):
    """Run the command in namespaces of its own, with an empty TARE_HOME on whatever ``namespace`` mounts there."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    main = "from tare.cli import main; main()"
    script = f'{namespace.format(home=home)}\nexec "$0" -P -c "$@"'
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, sys.executable, main, *arguments]
    return processes.run(argv, env={**os.environ, "TARE_HOME": str(home)}, cwd=tmp_path, time_limit_s=280)


@pytest.mark.host
def test_a_full_disk_is_said_before_anything_is_made(tmp_path):
    done = _in("mount -t tmpfs -o size=64m,mode=700 none {home}", tmp_path, "run", "--blocks", "1", "-o", "never.tare")
    assert done.code == 2, done.stderr
    assert b"GiB are free" in done.stderr
    assert b"fix: free some space" in done.stderr
    assert not (tmp_path / "never.tare").exists()


@pytest.mark.host
def test_an_archive_that_is_not_reached_is_said_and_nothing_half_built_stays(tmp_path):
    # No interface but a loopback that is down: a host that is offline.
    main = "from tare.cli import main; main()"
    argv = ["unshare", "--net", sys.executable, "-P", "-c", main, "run", "--blocks", "1", "-o", "never.tare"]
    home = tmp_path / "home"
    done = processes.run(argv, env={**os.environ, "TARE_HOME": str(home)}, cwd=tmp_path, time_limit_s=280)
    assert done.code == 2, done.stderr
    assert b"archive" in done.stderr
    assert b"fix:" in done.stderr
    assert not (tmp_path / "never.tare").exists()
    assert [path.name for path in (home / "images").iterdir() if path.is_dir()] == []


@pytest.mark.host
def test_a_subnet_that_is_taken_is_said_and_nothing_is_left(tare, tmp_path):
    done = tare("run", "-p", "native", "--blocks", "1", "--subnet", "127.0.0.0/24", "-o", "never.tare")
    assert done.returncode == 2, done.stderr
    assert "the subnet 127.0.0.0/24 is taken" in done.stderr
    assert "fix: --subnet " in done.stderr
    assert not (tmp_path / "never.tare").exists()
    assert "tare" not in processes.run(["ip", "-o", "link"]).text
