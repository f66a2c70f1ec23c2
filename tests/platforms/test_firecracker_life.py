"""A Firecracker machine's life as pure data: its commands, and the names by which copies have files of their own."""

import socket
from types import SimpleNamespace

import pytest

from tare.errors import PlatformError, UnsupportedError
from tare.platforms import firecracker, platform_registry
from tare.platforms.base import STARTED
from tare.platforms.parts.common import signal_commands
from tare.platforms.parts.machines import firecracker_api, microvm
from tare.platforms.parts.machines.channel import GuestChannel
from tare.platforms.parts.machines.microvm_life import MicroVmLife


@pytest.fixture
def lived(tmp_path):
    def made(name, *options):
        folder = tmp_path / name
        folder.mkdir()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(folder / "v_5000"))
        listener.listen(1)
        channels.append(GuestChannel(listener, ["perl"], 0.1, firecracker.accepted))
        command = ["firecracker", "--id", name, *options]
        kill = signal_commands.sent("KILL", STARTED)
        return MicroVmLife(folder, command, kill, channels[-1], [folder / "root.ext4"], None, f"tare{name}")

    channels = []
    yield made
    for channel in channels:
        channel.close()


def test_without_an_api_a_machine_is_not_paused_and_the_reason_names_the_one_with_it(lived):
    life = lived("one", "--no-api", "--config-file", "config.json").by_file()
    assert life.start[2:] == ("firecracker", "--id", "one", "--no-api", "--config-file", "config.json")
    assert set(life.lacks) == {"pause", "resume", "snapshot", "restore"}
    assert all("firecracker-api" in why for why in life.lacks.values())


def test_it_starts_in_its_folder_is_killed_and_its_sockets_are_removed(lived):
    machine = lived("one", "--api-sock", "api")
    life = machine.by_api((), lambda: None)
    assert life.start == life.restore == ("env", f"--chdir={machine.folder}", *machine.command)
    assert life.kill[-2:] == ("KILL", STARTED)
    assert life.remove == ("rm", "-f", "--", f"{machine.folder}/api", f"{machine.folder}/v")
    assert not life.lacks
    assert life.acts.keys() == {"start", "execute", "stop", "pause", "resume", "snapshot", "restore"}


def test_a_copy_takes_the_snapshots_disks_and_starts_in_a_folder_of_its_own(lived):
    one, two = lived("one"), lived("two")
    one.saved.mkdir()
    (one.saved / "root.ext4").write_bytes(b"as it was")
    life = two.copy_of(one, lambda: None)
    assert (two.folder / "root.ext4").read_bytes() == b"as it was"
    assert life.start[1] == f"--chdir={two.folder}"


def test_a_restored_machine_keeps_its_tap_and_a_copy_has_another():
    path, body = firecracker_api.load("/s", "/m")
    assert path == "/snapshot/load"
    assert body == {
        "snapshot_path": "/s",
        "mem_backend": {"backend_type": "File", "backend_path": "/m"},
        "resume_vm": True,
    }
    _, copied = firecracker_api.load("/s", "/m", "tareab1x2")
    assert copied == {**body, "network_overrides": [{"iface_id": "eth0", "host_dev_name": "tareab1x2"}]}


def test_in_its_working_folder_its_files_have_relative_names(tmp_path):
    place = firecracker.JailPaths(tmp_path, jailed=False, inside=True)
    assert place.seen(tmp_path / "root.ext4") == "root.ext4"
    assert microvm.listening(place.seen(tmp_path / "v")) == "v_5000"
    assert place.bring(tmp_path / "vmlinux") == str(tmp_path / "vmlinux")  # it is the same for all


def test_a_guest_that_does_not_connect_is_said_to_be_firecrackers(lived):
    with pytest.raises(PlatformError, match="Firecracker has not connected the agent's port"):
        lived("one").channel.open()


def test_connections_of_a_guest_that_is_gone_are_dropped(lived):
    machine = lived("one")
    with socket.socket(socket.AF_UNIX) as gone:
        gone.connect(str(machine.folder / "v_5000"))
        machine.channel.forget_waiting()
        assert gone.recv(1) == b""
    machine.channel.forget_waiting()  # nothing waits: nothing is waited for


@pytest.mark.parametrize(
    ("name", "why"), [("firecracker-jailer", "outside of a jail"), ("firecracker-restored", "firecracker-api's")]
)
def test_variants_without_a_life_say_why(name, why):
    [platform] = platform_registry.choose([name])
    with pytest.raises(UnsupportedError, match=why):
        platform.life(SimpleNamespace(), SimpleNamespace(), ["perl"])
