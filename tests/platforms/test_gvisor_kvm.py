"""What gvisor-kvm says on hosts whose KVM does not serve it; that it runs where KVM does, the lab shows."""

import pytest

from tare.host import processes
from tare.platforms import gvisor


@pytest.fixture
def platform(monkeypatch):
    monkeypatch.setattr(gvisor, "find_runsc", lambda: "/nowhere/runsc")
    monkeypatch.setattr(gvisor.os, "geteuid", lambda: 0)
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
