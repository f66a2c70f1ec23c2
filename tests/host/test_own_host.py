"""scripts/own-host: a command on a host of its own leaves this one as it was."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.host
SCRIPT = Path(__file__).parents[2] / "scripts" / "own-host"
NAME = "tested"


@pytest.fixture(autouse=True)
def _an_empty_home(monkeypatch, tmp_path):
    """There is no image to be shared."""
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))


def _run(script):
    argv = [SCRIPT, NAME, "bash", "-euc", script]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def _groups():
    return [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/tare-host-{NAME}")]


def test_it_shares_neither_network_nor_control_groups_nor_folders_with_this_one():
    lines = (
        "ls /sys/class/net; readlink /proc/self/ns/net /proc/self/ns/cgroup; ls /run/tare 2>&1 || :; echo $TARE_HOME"
    )
    ended = _run(
        f"{lines}; cut -d : -f 3 /proc/self/cgroup | sort -u; ip link add tare0 type bridge; ls /sys/class/net"
    )
    assert ended.returncode == 0, ended.stderr
    link, net, control, run, home, *rest = ended.stdout.splitlines()
    assert link == "lo"
    assert net != str(Path("/proc/self/ns/net").readlink())
    assert control != str(Path("/proc/self/ns/cgroup").readlink())
    assert "No such file" in run
    assert home == f"{os.environ['TARE_HOME']}-hosts/{NAME}/tare"
    assert sorted(rest[-2:]) == ["lo", "tare0"]  # /sys shows its own links
    assert set(rest[:-2]) <= {"/", "/session"}
    assert not Path("/sys/class/net/tare0").exists()
    assert _groups() == []


def test_images_of_this_host_are_seen_and_not_changed(tmp_path):
    images = tmp_path / "home" / "images"
    root = images / "0123" / "root"
    root.mkdir(parents=True)
    (images / "0123" / "root.tar").write_text("packed")
    (images / "0123" / "store").mkdir()
    for place in (images / "lock", root / "file"):
        place.write_text("first")
    before = (root / "file").stat()
    new_image = "mkdir -p 45/root; touch 45/root/file"
    script = f"cd $TARE_HOME/images; cat 0123/root/file; echo; ls . 0123; ! touch 0123/root/new; {new_image}"
    lines = ["first", ".:", "0123", "", "0123:", "root", "root.tar"]
    for listed in (lines, [*lines[:3], "45", *lines[3:]]):
        ended = _run(script)
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.splitlines() == listed
    assert (root / "file").stat() == before
    shutil.rmtree(images / "0123")
    ended = _run("ls $TARE_HOME/images")
    assert ended.stdout.splitlines() == ["45"]


def test_a_command_s_exit_code_is_passed_on_and_what_it_left_running_is_named_and_ended():
    started = "setsid sleep 987 >/dev/null 2>&1 & until grep -qx sleep /proc/$!/comm; do sleep 0.1; done"
    ended = _run(f"{started}; exit 7")
    assert ended.returncode == 7
    assert "still runs, and ends with its host: sleep 987" in ended.stderr
    assert _groups() == []
    assert not any(b"sleep\x00987\x00" in _cmdline(path) for path in Path("/proc").glob("[0-9]*/cmdline"))


def test_one_name_is_one_host():
    with subprocess.Popen([SCRIPT, NAME, "bash", "-c", "echo there; read -r"], stdin=-1, stdout=-1, text=True) as first:
        assert first.stdout.readline() == "there\n"
        second = _run("true")
        first.communicate("\n")
    assert second.returncode == 2
    assert f"the host {NAME} is in use" in second.stderr
    assert first.returncode == 0


def _cmdline(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""
