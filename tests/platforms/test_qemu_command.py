"""The command line of a machine, as pure data."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest

from platforms.guests import MACHINE
from tare.campaign.execution import caches
from tare.errors import UnsupportedError
from tare.host.facts import tsc
from tare.platforms import platform_registry
from tare.platforms.parts.machines import vm
from tare.platforms.parts.machines.disks import WRITE_BACK, DiskIo
from tare.platforms.parts.machines.qemu_line import Plug, command, tap, user
from tare.workloads.base import RunPlan


def _value(argv, option, having=""):
    return [after for before, after in itertools.pairwise(argv) if before == option and having in after]


def test_what_the_agent_is_to_do_comes_after_the_kernels_own_words():
    [append] = _value(command(MACHINE), "-append")
    before, _, agent = append.partition(" -- ")
    assert agent == "serve --beacon 10.0.0.1:914"
    assert "tare.ip=10.77.0.10/24" in before
    assert "tare.gw=10.77.0.1" in before


def test_the_guest_is_quiet_as_every_byte_of_its_console_costs_its_start():
    [append] = _value(command(MACHINE), "-append")
    assert "console=ttyS0 quiet" in append.partition(" -- ")[0]


def test_disks_pass_the_hosts_page_cache_and_carry_flushes_out():
    argv = command(MACHINE)
    root, data = _value(argv, "-drive")
    assert root == "if=none,id=root,file=/root.qcow2,format=qcow2,cache=none,aio=io_uring"
    assert data == "if=none,id=data,file=/data.ext4,format=raw,cache=none,aio=io_uring"
    assert _value(argv, "-object") == ["iothread,id=disks"]
    assert _value(argv, "-device", "virtio-blk") == [
        "virtio-blk-pci,drive=root,iothread=disks",
        "virtio-blk-pci,drive=data,iothread=disks",
    ]


def test_disks_may_be_written_back_and_have_no_thread_of_their_own():
    argv = command(replace(MACHINE, disks=DiskIo("writeback", "threads", io_thread=False)))
    assert all("cache=writeback,aio=threads" in drive for drive in _value(argv, "-drive"))
    assert _value(argv, "-object") == []
    assert "iothread" not in " ".join(argv)


def test_packets_are_moved_by_the_hosts_kernel_where_it_does_that():
    assert tap("tareab1x2", vhost=True) == "tap,id=net,ifname=tareab1x2,script=no,downscript=no,vhost=on"


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


def test_a_network_of_qemus_own_hands_one_port_on():
    plug = Plug(user(20_105), "02:7a:0a:00:02:0f", "10.0.2.15/24", "10.0.2.2")
    [netdev] = _value(command(replace(MACHINE, plug=plug)), "-netdev")
    assert netdev == "user,id=net,hostfwd=tcp::20105-:20105,hostfwd=udp::20105-:20105"


def test_an_emulated_guest_is_told_its_counters_speed_and_kvm_tells_its_own():
    [append] = _value(command(MACHINE), "-append")
    assert f"tsc_early_khz={tsc.khz()} tsc=reliable no_timer_check" in append.partition(" -- ")[0]
    [by_kvm] = _value(command(replace(MACHINE, accel="kvm")), "-append")
    assert "tsc" not in by_kvm


def test_what_qemu_says_and_the_console_are_kept_together():
    assert "file,id=console,path=/proc/self/fd/1,append=on" in _value(command(MACHINE), "-chardev")


def test_how_disks_are_opened_is_said_in_the_details():
    assert DiskIo("none", "io_uring").described() == "cache=none, aio=io_uring, an I/O thread"
    assert WRITE_BACK.described() == "cache=writeback, aio=threads, no I/O thread"


@pytest.mark.parametrize("name", ["qemu", "libvirt-qemu"])
def test_direct_io_is_unsupported_on_disks_that_are_written_back_and_there_alone(name):
    passing, written_back = platform_registry.choose([name, f"{name}-writeback"])
    plan = RunPlan(measures=(), uncached=("file",))
    caches.require_direct(plan, SimpleNamespace(no_direct_io=passing.no_direct_io))
    with pytest.raises(UnsupportedError, match="through the host's page cache"):
        caches.require_direct(plan, SimpleNamespace(no_direct_io=written_back.no_direct_io))


def test_who_moves_the_packets_is_read_from_what_a_monitor_has_open():
    instance = SimpleNamespace(host_processes=list, spec=SimpleNamespace(space=SimpleNamespace(data="/none")))
    assert vm.back_ends(instance) == {"packets moved by": "the monitor"}
    assert vm._mover(instance, {"/dev/vhost-net", "/dev/net/tun"}) == "vhost-net, in the host's kernel"
