"""What gvisor-kvm says on hosts whose KVM does not serve it; that it runs where KVM does, the lab shows."""

import pytest

from tare.host import probe_cache, processes
from tare.platforms import gvisor


@pytest.fixture
def platform(monkeypatch, tmp_path):
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    (tmp_path / "runsc").touch()
    monkeypatch.setattr(gvisor, "find_runsc", lambda: str(tmp_path / "runsc"))
    answer = processes.Finished(("runsc", "--version"), 0, b"runsc version v0\n", b"", 1)
    monkeypatch.setattr(gvisor.processes, "run", lambda *_, **__: answer)
    return next(platform for platform in gvisor.PLATFORMS if platform.name == "gvisor-kvm")


def test_no_kvm_is_said_with_the_lab_as_the_fix(platform, monkeypatch):
    monkeypatch.setattr(gvisor.os, "access", lambda *_: False)
    answer = platform.detect()
    assert (answer.available, answer.reason) == (False, "/dev/kvm cannot be opened")
    assert "tare lab run -- tare doctor" in answer.fix


def test_a_kvm_that_runs_nothing_is_said_as_it_was_seen(platform, monkeypatch):
    monkeypatch.setattr(gvisor.os, "access", lambda *_: True)
    monkeypatch.setattr(gvisor, "complaint", lambda _: "no answer within 10 s")
    answer = platform.detect()
    assert (answer.available, answer.reason) == (False, "a trivial sandbox fails: no answer within 10 s")
    assert "tare lab run" in answer.fix


def test_one_that_hung_is_not_waited_for_again_and_one_that_came_up_is_tried_each_time(platform, monkeypatch):
    now, answers, tried = [1e9], ["no answer within 10 s", "", ""], []
    monkeypatch.setattr(gvisor.os, "access", lambda *_: True)
    monkeypatch.setattr(gvisor, "complaint", lambda _: tried.append(now[0]) or answers.pop(0))
    monkeypatch.setattr(probe_cache.time, "time", lambda: now[0])
    assert [platform.detect().available for _ in range(3)] == [False] * 3
    assert len(tried) == 1
    now[0] += probe_cache.DOUBTED_S + 1
    assert [platform.detect().available for _ in range(2)] == [True] * 2
    assert len(tried) == 3
