"""A daemon of tare's own: how its end is told."""

import subprocess

import pytest

from tare.host import cgroup
from tare.host.daemons import own

#: Lets go of its connection as a dying process does, and is gone only when it is told.
LETS_GO_FIRST = "exec 1>&-; read word; exit 3"


@pytest.fixture
def dying():
    """A daemon whose connection has ended already, and who asked for it to be gone."""
    process = subprocess.Popen(["sh", "-c", LETS_GO_FIRST], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdout.read() == b""  # what a client sees: the stream's end
        yield own.Daemon("sh", process, cgroup.Group("none"))
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
