"""Whether KVM runs guests here: what a try showed is kept for other commands, and how long."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tare.host import probe_cache
from tare.image import guest
from tare.platforms.parts.machines import vm

MADE = guest.Guest("6.1", Path("/k"), Path("/i"))


@pytest.fixture
def host(monkeypatch, tmp_path):
    """A host whose /dev/kvm opens, with the tries of KVM so far, and what the next one shows."""
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    program = tmp_path / "qemu"
    program.touch()
    host = SimpleNamespace(tries=0, why="a guest does not come up within 5 s", opens=True, now=1e9, program=program)

    def tried(boot_files):
        host.tries += 1
        return host.why

    monkeypatch.setattr(vm, "_try_kvm", tried)
    monkeypatch.setattr(vm.os, "access", lambda path, mode: host.opens)
    monkeypatch.setattr(vm.processes, "find", lambda name: str(host.program))
    monkeypatch.setattr(probe_cache.time, "time", lambda: host.now)

    def asked():
        vm.accelerated.cache_clear()  # as in another command
        return vm.accelerated(MADE)

    host.asked = asked
    yield host
    vm.accelerated.cache_clear()


def test_a_guest_that_came_up_is_believed_until_the_host_has_another_qemu(host):
    host.why = ""
    assert host.asked() == ("kvm", "a guest came up")
    host.now += 30 * 86400
    assert host.asked()[0] == "kvm"
    assert host.tries == 1
    host.program.write_text("newer")
    vm.os.utime(host.program, (1, 1))
    assert host.asked()[0] == "kvm"
    assert host.tries == 2


def test_one_that_did_not_is_believed_for_an_hour_as_the_host_may_have_been_too_busy(host):
    assert host.asked() == ("tcg", "KVM: a guest does not come up within 5 s")
    host.why = ""
    host.now += probe_cache.DOUBTED_S - 1
    accel, why = host.asked()
    assert accel == "tcg"
    assert re.fullmatch(r"KVM: a guest .* 5 s \(tried at \d\d:\d\d; for another try: rm /\S+/tries/kvm\)", why)
    host.now += 2
    assert host.asked()[0] == "kvm"
    assert host.tries == 2


def test_a_device_that_cannot_be_opened_is_looked_at_each_time(host):
    host.opens = False
    assert host.asked() == ("tcg", "KVM: /dev/kvm cannot be opened")
    host.opens, host.why = True, ""
    assert host.asked()[0] == "kvm"


@pytest.mark.parametrize("kept", ["", "[]", "{}", '{"key": [1], "answer": null}'])
def test_what_is_kept_by_others_or_broken_is_no_verdict(host, kept):
    host.why = ""
    (vm.state.tries() / "kvm").write_text(kept)
    assert host.asked()[0] == "kvm"
    assert host.tries == 1
