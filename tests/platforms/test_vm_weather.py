"""Bad weather for virtual machines, on real ones: one clear line each, the console is kept, the rest goes on."""

import sys
import textwrap
import threading
import time
from dataclasses import replace

import pytest

from awake import check_wait
from platforms import guests
from tare.contract.leftovers import left_on_host
from tare.errors import HostError, PlatformError, TareError
from tare.host import processes
from tare.host.network import bridge
from tare.image import forms, guest
from tare.model import Arm
from tare.platforms import platform_registry, uml
from tare.platforms.base import LaunchSpec
from tare.platforms.parts.machines import vm

pytestmark = [pytest.mark.host, pytest.mark.own_host]


@pytest.fixture(scope="module")
def launcher(prepared):
    return guests.with_one_processor(prepared[0])


@pytest.fixture
def broken_disk(tmp_path, monkeypatch):
    disk = tmp_path / "broken.ext4"
    with disk.open("wb") as file:
        file.truncate(64 << 20)
    monkeypatch.setattr(forms, "ext4", lambda *_: disk)


def _fails(launcher, name):
    """Start an instance that cannot start; the error, after a look at what it left."""
    platform = platform_registry.choose([name])[0]
    before = set(threading.enumerate())
    began = time.monotonic()
    with pytest.raises(TareError) as caught:
        launcher.start(platform, Arm(name), measured=True)
    assert time.monotonic() - began < 60
    assert "\n" not in caught.value.what
    # The thread that reads all consoles comes with the first one, and stays.
    left_threads = [thread.name for thread in set(threading.enumerate()) - before if thread.name != "consoles"]
    assert left_threads == [], "somebody still watches or pings what was given up"
    assert left_on_host(f"{launcher.campaign}x") == []
    return caught.value


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("qemu-tcg", "the image cannot be mounted"),
        pytest.param("qemu-microvm-tcg", "the image cannot be mounted", marks=pytest.mark.slow),
        ("uml-ubd", "Unable to mount root fs"),
    ],
)
def test_a_root_disk_that_is_broken(launcher, broken_disk, name, message):
    error = _fails(launcher, name)
    assert isinstance(error, PlatformError)
    assert message in error.what
    assert message.encode() in error.console


def test_a_guest_kernel_that_panics(launcher, tmp_path, monkeypatch):
    initramfs = tmp_path / "initramfs"
    initramfs.write_bytes(b"not an archive" * 100)
    broken = replace(guest.ensure(), initramfs=initramfs)
    monkeypatch.setattr(guest, "ensure", lambda *_: broken)
    error = _fails(launcher, "qemu-tcg")
    assert isinstance(error, PlatformError)
    assert "Kernel panic" in error.what
    assert b"Call Trace" in error.console


def test_a_file_that_is_no_kernel(launcher, tmp_path, monkeypatch):
    kernel = tmp_path / "vmlinuz"
    kernel.write_bytes(b"not a kernel " * 1000)
    wrong = replace(guest.ensure(), kernel=kernel)
    monkeypatch.setattr(guest, "ensure", lambda *_: wrong)
    error = _fails(launcher, "qemu-tcg")
    assert isinstance(error, PlatformError)
    assert b"kernel" in error.console  # in QEMU's own words
    assert "console ends: qemu" in error.what


def test_a_program_that_is_no_user_mode_linux(launcher, monkeypatch):
    monkeypatch.setattr(uml, "PROGRAM", "false")
    assert "the guest ended with 1 before it connected" in _fails(launcher, "uml").what


@pytest.mark.parametrize("name", ["qemu-tcg", "uml"])
def test_a_guest_that_does_not_answer_in_time(launcher, monkeypatch, name):
    monkeypatch.setattr(launcher, "start_limit_s", 0.5)
    began = time.monotonic()
    check_wait(_fails(launcher, name).what, 0.5, time.monotonic() - began)


@pytest.mark.parametrize("name", ["uml"])
def test_an_agent_that_connects_and_says_nothing(launcher, monkeypatch, name):
    monkeypatch.setattr(LaunchSpec, "agent_argv", lambda *_: ["/bin/sh", "-c", "exec sleep 1000", "agent"])
    monkeypatch.setattr(launcher, "start_limit_s", 10.0)
    began = time.monotonic()
    check_wait(_fails(launcher, name).what, 10, time.monotonic() - began)


@pytest.mark.parametrize("name", ["qemu-tcg", "uml"])
def test_a_tap_that_cannot_be_made(launcher, tmp_path, monkeypatch, name):
    monkeypatch.setattr(bridge, "TUN", tmp_path / "tun")
    error = _fails(launcher, name)
    assert isinstance(error, HostError)
    assert "no TAP can be made" in error.what
    assert "modprobe tun" in error.fix


def test_a_host_without_tun_says_so_and_what_needs_none_runs():
    script = textwrap.dedent("""
        from tare.platforms import platform_registry
        for name in ("uml", "uml-ubd", "qemu-tcg", "qemu-microvm-tcg", "qemu-user-tcg"):
            answer = platform_registry.choose([name])[0].detect()
            print(name, answer.available, answer.reason, answer.fix, sep="|")
    """)
    hidden = 'mount -t tmpfs tmpfs /dev/net && exec "$0" -c "$1"'
    argv = ["unshare", "-m", "--propagation", "private", "sh", "-c", hidden, sys.executable, script]
    shown = processes.run(argv, env=processes.own_environment()).require().text
    answers = dict(line.split("|", 1) for line in shown.splitlines())
    for name in ("uml", "uml-ubd", "qemu-tcg", "qemu-microvm-tcg"):
        assert answers[name].startswith(
            "False|no TAP can be made: /dev/net/tun: No such file or directory|modprobe tun"
        )
    assert answers["qemu-user-tcg"].startswith("True|")


@pytest.mark.parametrize("name", ["qemu", "qemu-kvm", "qemu-microvm", "libvirt-qemu", "runc-in-qemu"])
def test_kvm_that_runs_no_guest_is_told_with_the_platform_that_emulates(name, monkeypatch):
    monkeypatch.setattr(vm, "accelerated", lambda made: ("tcg", "KVM: a guest does not come up within 5 s"))
    [platform] = platform_registry.choose([name])
    answer = platform.detect()
    assert not answer.available
    assert answer.reason == "KVM: a guest does not come up within 5 s"
    emulates = f"{name.removesuffix('-kvm')}-tcg"
    assert answer.fix == f"use {emulates}, which emulates, or a host whose /dev/kvm runs guests"
    [stand_in] = platform_registry.choose([emulates])
    assert platform.stand_in == emulates
    assert not stand_in.stand_in


@pytest.mark.parametrize("name", ["qemu-tcg", "uml"])
def test_the_rest_goes_on(launcher, name):
    running = launcher.start(platform_registry.choose([name])[0], Arm(name), measured=False)
    running.stop()
