import pytest

from tare.host import processes
from tare.platforms import krun, platform_registry


@pytest.fixture
def platform(monkeypatch):
    monkeypatch.setattr(processes, "find", lambda program: f"/usr/bin/{program}")
    return platform_registry.choose(["krun"])[0]


def test_without_the_program_it_says_who_has_it(platform, monkeypatch):
    monkeypatch.setattr(processes, "find", lambda program: None)
    answer = platform.detect()
    assert (answer.available, answer.reason) == (False, "krun is not installed")
    assert "crun-krun" in answer.fix


def test_without_kvm_it_is_refused_before_anything_starts(platform, monkeypatch):
    monkeypatch.setattr(krun.os, "access", lambda *_: False)
    monkeypatch.setattr(krun, "complaint", lambda command: pytest.fail("it was tried"))
    answer = platform.detect()
    assert (answer.available, answer.reason) == (False, "/dev/kvm cannot be opened")
    assert "lab" in answer.fix


def test_a_guest_that_does_not_come_up_is_told_in_its_words(platform, monkeypatch):
    monkeypatch.setattr(krun.os, "access", lambda *_: True)
    monkeypatch.setattr(krun, "complaint", lambda command: "could not load `libkrun.so.1`")
    assert platform.detect().reason == "a trivial bundle fails: could not load `libkrun.so.1`"


def test_what_it_does_not_keep_of_limits_is_in_the_manifest():
    [krun_itself] = platform_registry.choose(["krun"])
    assert "guest's memory and its monitor's together" in krun_itself.not_honoured[0]
    assert platform_registry.choose(["crun"])[0].not_honoured != krun_itself.not_honoured
