"""Cloud Hypervisor's command line as pure data, and what is said where it does not run. No guest of it has run here."""

import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from tare.host.network import bridge
from tare.image import guest
from tare.platforms import cloud_hypervisor, firecracker, platform_registry
from tare.platforms.parts.machines import microvm

MACHINE = microvm.MicroVm(
    cpus=2,
    memory_bytes=448 << 20,
    kernel="/k",
    initramfs="/i",
    root="/root.ext4",
    data="/data.ext4",
    socket="/v",
    tap="tareab1x2",
    mac="02:7a:0a:4d:00:0a",
    address="10.77.0.10/24",
    gateway="10.77.0.1",
    agent=("serve", "--beacon", "10.0.0.1:914"),
)
MADE = guest.Guest("6.1", Path("/k"), Path("/i"))


def _options(argv):
    """The values by option; an option's values go on to the next one."""
    options, current = {}, None
    for word in argv[1:]:
        if word.startswith("--") and current != "--cmdline":
            current = word
            options[current] = []
        else:
            options[current].append(word)
            current = None if current == "--cmdline" else current
    return options


def test_the_command_line_has_the_machine_as_the_documentation_writes_it():
    options = _options(cloud_hypervisor.command(MACHINE, (49, 0)))
    words = options.pop("--cmdline")[0]
    assert options == {
        "--kernel": ["/k"], "--initramfs": ["/i"], "--serial": ["tty"], "--console": ["off"],
        "--cpus": ["boot=2"], "--memory": ["size=448M"],
        "--disk": ["path=/root.ext4", "path=/data.ext4"],
        "--net": ["tap=tareab1x2,mac=02:7a:0a:4d:00:0a"],
        "--vsock": ["cid=3,socket=/v"],
    }  # fmt: skip
    assert "tare.ip=10.77.0.10/24 tare.gw=10.77.0.1" in words
    assert words.endswith("-- serve --beacon 10.0.0.1:914 --host vsock:2:5000")
    assert microvm.listening("/v") == "/v_5000"


@pytest.mark.parametrize(
    ("version", "named"), [((36, 0), ""), ((50, 0), ""), ((50, 1), ",image_type=raw"), ((51, 1), ",image_type=raw")]
)
def test_the_format_of_disks_is_named_where_their_first_sector_could_not_be_written_else(version, named):
    disks = _options(cloud_hypervisor.command(MACHINE, version))["--disk"]
    assert disks == [f"path=/root.ext4{named}", f"path=/data.ext4{named}"]


@pytest.mark.parametrize(
    ("shown", "number"),
    [
        ("cloud-hypervisor v51.0\n", (51, 0)),
        ("cloud-hypervisor v50.1-dirty", (50, 1)),
        ("cloud-hypervisor 36.0", (36, 0)),
        ("", (0, 0)),
    ],
)
def test_its_release_is_read_from_what_it_says(shown, number):
    assert cloud_hypervisor.release(shown) == number


def test_its_guest_has_a_bus_for_its_devices_and_the_socket():
    modules = guest.MODULES["cloud-hypervisor"]
    assert {"virtio_pci", "virtio_blk", "virtio_net", "vmw_vsock_virtio_transport"} <= set(modules)


def _says(monkeypatch, version):
    monkeypatch.setattr(cloud_hypervisor.processes, "run", lambda *_, **__: SimpleNamespace(text=version))


@pytest.fixture
def a_root_user(monkeypatch):
    """A host on which all is there but KVM."""
    monkeypatch.setattr(bridge, "no_tun", lambda: None)
    monkeypatch.setattr(guest, "ensure", lambda kind="virtio": MADE)
    monkeypatch.setattr(cloud_hypervisor.processes, "find", lambda name: f"/bin/{name}")
    _says(monkeypatch, "cloud-hypervisor v51.1\n")


def test_without_the_program_it_says_who_has_it(monkeypatch):
    monkeypatch.setattr(cloud_hypervisor.processes, "find", lambda name: None)
    answer = platform_registry.choose(["cloud-hypervisor"])[0].detect()
    assert answer.reason == "no cloud-hypervisor binary on PATH"
    assert "no package registry has it" in answer.fix


def test_without_kvm_it_says_so_and_names_the_lab(monkeypatch, a_root_user):
    monkeypatch.setattr(firecracker.os, "access", lambda *_: False)
    answer = platform_registry.choose(["cloud-hypervisor"])[0].detect()
    assert answer.reason == "KVM: /dev/kvm cannot be opened"
    assert "tare lab run" in answer.fix


def test_one_with_the_options_of_another_time_is_refused(monkeypatch, a_root_user):
    _says(monkeypatch, "cloud-hypervisor v35.0\n")
    answer = platform_registry.choose(["cloud-hypervisor"])[0].detect()
    assert answer.reason == "it takes Cloud Hypervisor 36 or newer: 'cloud-hypervisor v35.0'"


def _program(tmp_path, script):
    program = tmp_path / "cloud-hypervisor"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def test_one_that_starts_no_guest_says_its_last_words(tmp_path):
    broken = _program(tmp_path, "echo 'Error booting VM: VmBoot(KvmNotFound)' >&2; exit 1")
    assert cloud_hypervisor.complaint(broken, MADE).endswith("VmBoot(KvmNotFound)")


def test_one_whose_guest_speaks_runs(tmp_path):
    assert cloud_hypervisor.complaint(_program(tmp_path, 'echo "$*"; echo tare-guest-runs'), MADE) == ""
