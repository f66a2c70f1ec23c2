"""User-Mode Linux's command line and first script, as pure data; and the end of a guest that cannot say it."""

import itertools
import select
import socket
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tare.errors import PlatformError
from tare.host import processes
from tare.platforms import registry, uml
from tare.platforms.parts.attempt import why_not
from tare.platforms.uml import GuestStream, Machine, accept, command, script

MACHINE = Machine(
    id="ab1x2",
    folder=Path("/work/ab1x2"),
    memory_bytes=448 << 20,
    tap="tareab1x2",
    mac="02:7a:0a:4d:00:0a",
    disk=None,
    data=None,
)
DISKS = replace(MACHINE, disk=Path("/image.ext4"), data=Path("/work/ab1x2/data/data.ext4"))


CONSOLE = Path(__file__).parent / "captured" / "uml-registers.txt"  # of 6.1.176 on a processor with AMX


def test_a_processor_whose_registers_the_guests_kernel_does_not_know_is_named(monkeypatch):
    """The line that says why is not the last: a kernel's stack follows."""
    ended = processes.Finished(("linux.uml",), 134, CONSOLE.read_bytes(), b"", 1)
    assert why_not(ended) == "[<6002c0dd>] new_thread_handler+0xae/0xb0"
    monkeypatch.setattr(uml, "complaint", lambda _, telling: why_not(ended, telling))
    monkeypatch.setattr(uml.processes, "find", lambda _: "/usr/bin/linux.uml")
    monkeypatch.setattr(uml.network, "no_tun", lambda: None)
    monkeypatch.setattr(uml.os, "geteuid", lambda: 0)
    answer = registry.choose(["uml"])[0].detect()
    assert (answer.available, answer.reason, answer.fix) == (False, uml.REGISTERS, uml.NEWER)


def test_a_root_on_the_host_is_below_the_instances_folder_and_so_is_all_that_the_guest_can_mount():
    argv = command(MACHINE)
    assert {"rootfstype=hostfs", "rootflags=/root", "hostfs=/work/ab1x2"} <= set(argv)
    assert not [word for word in argv if word.startswith("ubd")]


def test_the_image_is_never_written_and_the_data_volume_is():
    argv = command(DISKS)
    assert "ubd0c=/work/ab1x2/written,/image.ext4" in argv  # what is written goes to the first
    assert "ubd1=/work/ab1x2/data/data.ext4" in argv
    assert "root=/dev/ubda" in argv


def test_memory_and_link_are_those_of_the_instance():
    argv = command(MACHINE)
    assert "mem=448M" in argv
    assert "vec0:transport=tap,ifname=tareab1x2,depth=128,gro=1,mac=02:7a:0a:4d:00:0a" in argv


def test_the_words_of_the_first_process_are_one_argument():
    argv = command(MACHINE)
    [words] = [after for before, after in itertools.pairwise(argv) if before == "-c"]
    assert words[0] == words[-1] == '"'
    assert len(" ".join(argv)) < 2048


def test_the_first_script_hands_the_connection_to_the_agent():
    text = script("10.77.0.10/24", "10.77.0.1", 4242, "-t hostfs none -o /data", ["/agent", "serve", "--token", "00ff"])
    assert processes.run(["bash", "-n"], stdin=text.encode()).code == 0
    assert "ip addr add 10.77.0.10/24 dev eth0" in text
    assert "exec 3<>/dev/tcp/10.77.0.1/4242" in text
    last = text.strip().splitlines()[-1]
    assert last.startswith('exec /agent serve --token 00ff --init --userspace-at "$began" <&3 >&3')


@pytest.fixture
def sleeper():
    process = processes.start(["sleep", "60"])
    yield process
    processes.kill_group(process)
    process.wait()


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def _pair(listener, process):
    guest = socket.create_connection(listener.getsockname())
    return guest, accept(listener, "127.0.0.1", process, 2)


def test_the_end_of_the_kernel_is_the_end_of_the_stream_though_nobody_closed_it(sleeper, listener):
    guest, stream = _pair(listener, sleeper)
    with guest:
        guest.sendall(b"last words")
        while stream.receive(100) != b"last words":
            pass
        assert stream.receive(100) is None
        sleeper.kill()
        assert select.select([stream], [], [], 5)[0]
        assert stream.receive(100) == b""
    stream.close()


def test_what_came_before_the_end_is_still_read(sleeper, listener):
    guest, stream = _pair(listener, sleeper)
    with guest:
        guest.sendall(b"last words")
        sleeper.kill()
        sleeper.wait()
        assert stream.receive(100) == b"last words"
        assert stream.receive(100) == b""
    stream.close()


def test_closing_ends_the_guest_leaves_no_descriptor_and_may_come_twice(sleeper, listener):
    before = set(Path("/proc/self/fd").iterdir())
    guest, stream = _pair(listener, sleeper)
    guest.close()
    assert isinstance(stream, GuestStream)
    stream.close()
    stream.close()
    assert sleeper.poll() is not None
    assert stream.fileno() == -1
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_another_than_the_guest_is_not_let_in(sleeper, listener):
    with socket.create_connection(listener.getsockname()), pytest.raises(PlatformError, match="did not connect within"):
        accept(listener, "10.77.0.10", sleeper, 0.5)


def test_a_guest_that_ends_first_is_told_at_once(listener):
    process = processes.start(["false"], stderr=subprocess.DEVNULL)
    began = time.monotonic()
    with pytest.raises(PlatformError, match="the guest ended with 1 before it connected"):
        accept(listener, "127.0.0.1", process, 30)
    assert time.monotonic() - began < 5
