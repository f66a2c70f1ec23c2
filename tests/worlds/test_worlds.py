"""The command line in odd worlds (`worlds.WORLDS`): the right exit code, the true cause, and a fix that works.

`make worlds` runs all, in a host of their own. Those that start no instance are part of the quick tests.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from test_fix_texts import HOLE, fixes
from worlds import NOT_RUN, WORLDS

CAMPAIGN = Path(__file__).parents[1] / "store" / "released" / "whole-1.tare"
PIDS = next(
    (folder for folder in map(Path, ("/sys/fs/cgroup/pids", "/sys/fs/cgroup")) if (folder / "cgroup.procs").exists()),
    None,
)
TARE = [sys.executable, "-P", "-m", "tare"]
V1 = Path("/sys/fs/cgroup/memory/cgroup.procs").exists()
#: All of it ends with the command. In a network of its own tare does not wait for a campaign of the host's.
NAMESPACES = ["unshare", "--mount", "--net", "--propagation", "private", "bash", "-ec"]
APART = "mount -t tmpfs -o mode=755 none /run; ip link set lo up\n"
#: Runs the command, the one that it names as the fix, and it again: the end of one obstacle may show another.
FOLLOWED = """
for _ in 1 2 3; do
    "$@" >>said 2>&1 && exit 0
    fix=$(sed -n 's/^fix: //p' said | tail -n 1)
    eval "$fix" >>said 2>&1
done
exit 99
"""
PROGRAMS = re.compile(
    r"(apt-get|chmod|chown|docker|echo|for|ip|kill|mount|modprobe|python3|rm|sysctl|systemctl|ulimit|umount|useradd"
    r"|usermod|virsh) "
)
PROSE = re.compile(r", | or |; (?!(do|done|for|mount|mknod)\b)")
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make these worlds")
EACH = [
    pytest.param(world, id=world.name, marks=[pytest.mark.host, pytest.mark.own_host] if world.slow else [])
    for world in WORLDS
    if not world.v1 or V1
]


@pytest.fixture
def folder():
    """Not pytest's, which `make check` puts into /dev/shm: some worlds cover it."""
    with tempfile.TemporaryDirectory(prefix="tare-world-") as name:
        folder = Path(name)
        shutil.copy(CAMPAIGN, folder / "a.tare")
        (folder / "home").mkdir(mode=0o700)
        yield folder
    for group in PIDS.glob("tare-host-world-*") if PIDS else ():
        _remove(group)


def _remove(group):
    try:
        group.rmdir()
    except OSError:  # of another test
        assert (group / "cgroup.procs").read_text()


def _run(world, folder, then='exec "$@"'):
    environment = {**os.environ, "TERM": "dumb", "PIDS": str(PIDS)}
    if not world.slow:
        environment["TARE_HOME"] = str(folder / "home")
    argv = [*NAMESPACES, f"{'' if world.slow else APART}{world.make}\n{then}", "sh", *TARE, *shlex.split(world.command)]
    return subprocess.run(
        argv,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.parametrize("world", EACH)
def test_a_command_ends_as_documented(world, folder):
    done = _run(world, folder)
    said = done.stdout + done.stderr
    assert done.returncode == world.code, said
    assert re.search(world.says, said), said
    assert "Traceback" not in said
    if world.code == 2 and world.says:
        assert len(re.findall("^error: ", said, re.MULTILINE)) == len(re.findall("^fix: ", said, re.MULTILINE)) == 1, (
            said
        )


@pytest.mark.parametrize("world", [each for each in EACH if each.values[0].fix])
def test_its_fix_works(world, folder):
    done = _run(world, folder, then=FOLLOWED)
    said = (folder / "said").read_text()
    assert done.returncode == 0, said
    assert re.search(f"^fix: {_pattern(world.fix)}$", said, re.MULTILINE), said


def _pattern(text):
    return ".+".join(map(re.escape, text.split(HOLE)))


def test_every_fix_that_is_a_command_is_run_in_a_world():
    """Those of tare itself are looked at by test_fix_texts.py: their commands and options exist."""
    commands = {text for text in fixes() if _is_command(text)}
    in_worlds = {world.fix for world in WORLDS if world.fix}
    assert commands - in_worlds == NOT_RUN.keys()
    assert in_worlds <= commands


def _is_command(text):
    """Whether a fix is a command to the letter, and no sentence with one in it."""
    if not PROGRAMS.match(text) or PROSE.search(text.replace(HOLE, "x")):
        return False
    return subprocess.run(["bash", "-n"], input=text, text=True, check=False, capture_output=True).returncode == 0


def test_there_are_worlds_enough():
    assert len({world.name for world in WORLDS}) == len(WORLDS) >= 40
