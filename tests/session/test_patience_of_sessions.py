"""Where all is slower, the agent and the host wait longer for a command: the real agent, by the clock."""

import time
from types import SimpleNamespace

import pytest

from awake import check_wait
from tare.campaign.execution import runs
from tare.errors import SessionTimeout
from tare.workloads.base import Command


@pytest.mark.thorough
def test_a_command_has_as_much_longer_as_everything_else(session, monkeypatch):
    monkeypatch.delenv("TARE_PATIENCE", raising=False)
    assert session.execute(["sleep", "20"], time_limit_s=0.3).timed_out
    monkeypatch.setenv("TARE_PATIENCE", "12")
    done = session.execute(["sleep", "1"], time_limit_s=0.3)
    assert not done.timed_out
    assert done.code == 0


@pytest.mark.parametrize(("patience", "waited_s"), [("", 0.1), ("6", 0.6)])
def test_the_host_waits_longer_too(session, monkeypatch, awake, patience, waited_s):
    monkeypatch.setenv("TARE_PATIENCE", patience)
    sleeping = session.start(["sleep", "5"], time_limit_s=20)
    began, awake_began = time.monotonic(), awake.seconds
    with pytest.raises(SessionTimeout, match=r"has not within ([0-9.]+) s") as error:
        sleeping.wait(0.1)
    assert time.monotonic() - began >= waited_s
    check_wait(str(error.value), waited_s, time.monotonic() - began)
    assert awake.seconds - awake_began < waited_s + 0.5
    sleeping.kill()


@pytest.mark.thorough
@pytest.mark.parametrize(("patience", "seconds", "in_time"), [("", "20", False), ("12", "1", True)])
def test_a_workloads_command_has_it_once(session, monkeypatch, patience, seconds, in_time):
    monkeypatch.setenv("TARE_PATIENCE", patience)
    running = SimpleNamespace(session=session)
    sleeping = Command(("sleep", seconds), time_limit_s=0.3, cwd="/")
    assert runs._inside(sleeping, running).timed_out is not in_time
    assert runs._start(sleeping, running).wait().timed_out is not in_time
    assert runs._inside(Command(("sleep", "20"), time_limit_s=0.3, cwd="/"), running).timed_out  # and not twice: 43 s
