"""A daemon of tare's own: how its end is told."""

import subprocess
from pathlib import Path

import pytest

from tare.host import cgroup, own_daemon
from tare.host.daemons import lxd_access

#: Lets go of its connection as a dying process does, and is gone only when it is told.
LETS_GO_FIRST = "exec 1>&-; read word; exit 3"


@pytest.fixture
def dying():
    """A daemon whose connection has ended already, and who asked for it to be gone."""
    process = subprocess.Popen(["sh", "-c", LETS_GO_FIRST], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdout.read() == b""  # what a client sees: the stream's end
        yield own_daemon.Daemon("sh", process, cgroup.Group("none"))
        process.kill()


def test_a_daemon_that_others_see_dying_still_runs(dying):
    assert dying.ended() is None


def test_the_end_that_others_saw_is_waited_for(dying):
    dying.process.stdin.write(b"now\n")
    dying.process.stdin.close()
    assert dying.ended(within_s=20) == "ended with 3"


def test_a_signal_is_told_by_its_number(dying):
    dying.process.kill()
    assert dying.ended(within_s=20) == "was ended by signal 9"


def test_a_client_of_incus_keeps_its_cache_below_its_settings():
    """By the variable that Incus 6 reads: whatever else names a cache, it makes ~/.cache/incus."""
    reach = lxd_access.LxdAccess("incus", Path("/f"), Path("/run/incus/unix.socket"), Path("/f/client"))
    assert reach.argv[-2:] == ["INCUS_CACHE=/f/client/cache", "incus"]
