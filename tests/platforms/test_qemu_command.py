"""The command line of a machine, as pure data."""

import itertools
from dataclasses import replace
from pathlib import Path

from tare.platforms.machine import Machine, command

MACHINE = Machine(
    kind="q35",
    accel="tcg",
    cpus=2,
    memory_bytes=768 << 20,
    kernel=Path("/k"),
    initramfs=Path("/i"),
    root=Path("/root.ext4"),
    data=Path("/data.ext4"),
    control=Path("/control"),
    console=Path("/console.log"),
    tap="tareab1x2",
    mac="02:7a:0a:4d:00:0a",
    address="10.77.0.10/24",
    gateway="10.77.0.1",
    agent=("serve", "--token", "00ff"),
)


def _value(argv, option, having=""):
    return [after for before, after in itertools.pairwise(argv) if before == option and having in after]


def test_what_the_agent_is_to_do_comes_after_the_kernels_own_words():
    [append] = _value(command(MACHINE), "-append")
    before, _, agent = append.partition(" -- ")
    assert agent == "serve --token 00ff"
    assert "tare.ip=10.77.0.10/24" in before
    assert "tare.gw=10.77.0.1" in before


def test_the_image_is_never_written_and_the_data_volume_is():
    root, data = _value(command(MACHINE), "-drive")
    assert "file=/root.ext4" in root
    assert "snapshot=on" in root
    assert "file=/data.ext4" in data
    assert "snapshot" not in data


def test_resources_and_address_are_those_of_the_instance():
    argv = command(MACHINE)
    assert _value(argv, "-smp") == ["2"]
    assert _value(argv, "-m") == ["768M"]
    assert _value(argv, "-netdev") == ["tap,id=net,ifname=tareab1x2,script=no,downscript=no"]
    assert _value(argv, "-device", "virtio-net") == ["virtio-net-pci,netdev=net,mac=02:7a:0a:4d:00:0a,romfile="]


def test_hardware_gives_the_guest_the_hosts_processor_and_emulation_a_bounded_buffer():
    assert _value(command(replace(MACHINE, accel="kvm")), "-cpu") == ["host"]
    [accel] = _value(command(MACHINE), "-accel")
    assert "tb-size=" in accel


def test_a_machine_without_pci_has_the_same_devices():
    argv = command(replace(MACHINE, kind="microvm"))
    assert not [word for word in argv if "-pci" in word]
    assert _value(argv, "-device", "virtserialport") == ["virtserialport,chardev=agent,name=tare.0"]
