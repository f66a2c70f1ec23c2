"""User-Mode Linux's command line and first script, as pure data; and the end of a guest that cannot say it."""

import contextlib
import itertools
import os
import select
import socket
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from platforms_here import cannot_be
from tare.campaign.execution.own_instances import run_apart
from tare.campaign.instances.pool import InstancePool
from tare.contract.leftovers import left_on_host
from tare.errors import PlatformError, UnsupportedError
from tare.host import processes, state, userns
from tare.host.filesystems import roots
from tare.host.resources.journal import CleanupStack, Journal
from tare.image import guest
from tare.model import Arm
from tare.platforms import platform_registry, uml
from tare.platforms.parts.common.attempt import why_not
from tare.platforms.parts.common.jail import command, within
from tare.platforms.uml import GuestStream, UmlMachine, accept, script, words
from tare.workloads import workload_registry

MACHINE = UmlMachine(id="ab1x2", memory_bytes=448 << 20, tap="tareab1x2", mac="02:7a:0a:4d:00:0a", ubd=False)
DISKS = replace(MACHINE, ubd=True)


CONSOLE = Path(__file__).parent / "captured" / "uml-registers.txt"  # of 6.1.176 on a processor with AMX


def test_a_processor_whose_registers_the_guests_kernel_does_not_know_is_named(monkeypatch):
    """The line that says why is not the last: a kernel's stack follows."""
    ended = processes.Finished(("linux.uml",), 134, CONSOLE.read_bytes(), b"", 1)
    assert why_not(ended) == "[<6002c0dd>] new_thread_handler+0xae/0xb0"
    monkeypatch.setattr(uml, "complaint", lambda _, telling: why_not(ended, telling))
    monkeypatch.setattr(uml.processes, "find", lambda _: "/usr/bin/linux.uml")
    monkeypatch.setattr(uml.bridge, "no_tun", lambda: None)
    answer = platform_registry.choose(["uml"])[0].detect()
    assert (answer.available, answer.reason, answer.fix) == (False, uml.REGISTERS, uml.NEWER)


def test_a_root_on_the_host_is_a_folder_of_the_jail():
    argv = words(MACHINE)
    assert {"rootfstype=hostfs", "rootflags=/root"} <= set(argv)
    assert not [word for word in argv if word.startswith("ubd")]


def test_the_image_is_never_written_and_the_data_volume_is():
    argv = words(DISKS)
    assert "ubd0c=/uml/written,/image/root.ext4" in argv  # what is written goes to the first
    assert "ubd1=/data/data.ext4" in argv
    assert "root=/dev/ubda" in argv


@pytest.fixture
def libraries(monkeypatch):
    monkeypatch.setattr(uml.outer, "located", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(uml.outer, "with_libraries", lambda program: [program, "/lib/libc.so.6"])


def test_a_jail_shows_the_kernel_its_instance_and_nothing_else(libraries):
    argv = command(uml.jail(Path("/work/x"), Path("/work/x/users"), disk=None), ["mem=448M"])
    mounts = [(option, argv[at + 2]) for at, option in enumerate(argv) if option.endswith("bind")]
    assert sorted(mounts) == [
        ("--bind", "/data"),
        ("--bind", "/root"),
        ("--bind", "/uml"),
        ("--dev-bind", "/dev/net/tun"),
        ("--dev-bind", "/dev/null"),
        ("--ro-bind", "/guest"),
        ("--ro-bind", "/lib/libc.so.6"),
        ("--ro-bind", "/proc/cpuinfo"),
        ("--ro-bind", "/usr/bin/linux.uml"),
    ]
    assert argv[-2:] == ["/usr/bin/linux.uml", "mem=448M"]
    assert argv[argv.index("--remount-ro") + 1] == "/"
    added = {argv[at + 1] for at, option in enumerate(argv) if option == "--cap-add"}
    assert added == {"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID"}


def test_roots_rights_are_gone_before_the_kernel_starts(libraries):
    held = uml.jail(Path("/work/x"), Path("/work/x/users"), disk=Path("/work/x/image/root.ext4"))
    *_, nsenter, of_users, to_user, to_group, _, _, _, _, setpriv, bounding, _ = within(held)
    assert (nsenter, of_users, to_user, to_group) == ("nsenter", "--user=/work/x/users", "--setuid=0", "--setgid=0")
    assert (setpriv, bounding) == ("setpriv", "--bounding-set=-all,+chown,+dac_override,+fowner,+fsetid")
    assert "/root" not in held.written
    assert held.read["/image/root.ext4"] == Path("/work/x/image/root.ext4")


#: What a kernel that its guest has taken over could do as the process that it is. It prints what it should not reach.
LOOK = """\
cd /
[ -e /etc ] || [ -e /home ] || [ -e /var ] || [ -e /sys ] || [ -e /proc/1 ] && echo "a folder of the host"
for up in /../../../../etc /root/../../../etc/passwd /data/../../../../../etc; do [ -e "$up" ] && echo "$up"; done
for place in / /guest /lib64 /dev; do $box touch "$place/x" 2>/dev/null && echo "wrote $place"; done
$box mknod /data/disk b 254 0 2>/dev/null && echo "made the disk"
$box mount -t tmpfs none /data 2>/dev/null && echo "mounted"
[ "$($box chroot /data /x 2>&1)" = "chroot: can't change root directory to '/data': Operation not permitted" ] ||
    echo "changed its root"
kill -0 $outside 2>/dev/null && echo "signalled the host's"
$box touch /data/x && $box chown 33:33 /data/x && $box mkdir /uml/y && echo kept >/data/kept
"""
#: What a guest does to its root by hostfs.
CHANGE = """\
$box cat /root/etc/shadow >/dev/null && echo more >>/root/etc/hosts && $box mkdir -m 700 /root/srv/x &&
$box chown 5:5 /root/srv/x && echo y >/root/srv/x/y && $box stat -c '%u %g' /root/etc /root/srv/x
"""


@pytest.mark.host
@pytest.mark.parametrize("ubd", [False, True], ids=["hostfs", "disks"])
def test_what_is_in_the_jail_of_a_kernel_sees_nothing_of_the_host_and_is_no_root_there(prepared, ubd):
    """A shell in the kernel's place: no guest's program runs on every processor (`uml.NO_ROOM`)."""
    image = prepared[0].image
    with CleanupStack(Journal(state.journal())) as cleanup:
        space = roots.new_workspace(cleanup, state.work() / f"jail{os.getpid()}")
        held = uml.confined(cleanup, space, image, ubd=ubd)
        shell = str(guest.busybox_path())
        held = replace(held, program=shell, files=[*held.files, shell])
        names = f"box={shell} outside={os.getpid()}\n"
        looked = processes.run([*within(held), *command(held, ["sh", "-c", names + LOOK])])
        assert (looked.text, looked.code) == ("", 0), looked.stderr.decode()
        assert (space.data / "x").stat().st_uid == userns.FIRST + 33
        assert (space.data / "kept").stat().st_uid == userns.FIRST
        running_instances = processes.start([*within(held), *command(held, ["sleep", "20"])])
        try:
            ids = _status_below(running_instances.pid, [shell, "sleep", "20"])
        finally:
            processes.kill_group(running_instances)
            running_instances.wait()
        assert {*ids["Uid"], *ids["Gid"]} == {str(userns.FIRST)}
        assert ids["NoNewPrivs"] == ["1"]
        chown_dac_override_fowner_fsetid = int(ids["CapEff"][0], 16)
        assert chown_dac_override_fowner_fsetid == 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4
        assert int(ids["CapBnd"][0], 16) == chown_dac_override_fowner_fsetid
        if not ubd:
            changed = processes.run([*within(held), *command(held, ["sh", "-c", names + CHANGE])])
            assert changed.text.splitlines() == ["0 0", "5 5"], changed.stderr.decode()
            assert "more" not in (image.root / "etc/hosts").read_text()


def _status_below(pid, argv):
    """What /proc says of the process with this command line, among the descendants."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        waiting = [pid]
        while waiting:
            place = Path(f"/proc/{waiting.pop()}")
            with contextlib.suppress(OSError):  # it may end meanwhile
                if (place / "cmdline").read_text().split("\0")[:-1] == argv:
                    lines = (place / "status").read_text().splitlines()
                    return {line.split(":")[0]: line.split()[1:] for line in lines}
                waiting += map(int, (place / "task" / place.name / "children").read_text().split())
        time.sleep(0.05)
    raise AssertionError(f"{argv} does not run")


def test_memory_and_link_are_those_of_the_instance():
    argv = words(MACHINE)
    assert "mem=448M" in argv
    assert "vec0:transport=tap,ifname=tareab1x2,depth=128,gro=1,mac=02:7a:0a:4d:00:0a" in argv


def test_the_words_of_the_first_process_are_one_argument():
    argv = words(MACHINE)
    [script_words] = [after for before, after in itertools.pairwise(argv) if before == "-c"]
    assert script_words[0] == script_words[-1] == '"'
    assert len(" ".join(argv)) < 2048


def test_the_first_script_hands_the_connection_to_the_agent():
    text = script(
        "10.77.0.10/24", "10.77.0.1", 4242, "-t hostfs none -o /data", ["/agent", "serve", "--beacon", "10.0.0.1:914"]
    )
    assert processes.run(["bash", "-n"], stdin=text.encode()).code == 0
    assert "ip addr add 10.77.0.10/24 dev eth0" in text
    assert "exec 3<>/dev/tcp/10.77.0.1/4242" in text
    last = text.strip().splitlines()[-1]
    assert last.startswith('exec /agent serve --beacon 10.0.0.1:914 --init --userspace-at "$began" <&3 >&3')


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


@pytest.mark.thorough
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


def test_a_guest_that_ends_first_is_told_at_once(listener, awake):
    process = processes.start(["false"], stderr=subprocess.DEVNULL)
    began = awake.seconds
    with pytest.raises(PlatformError, match="the guest ended with 1 before it connected"):
        accept(listener, "127.0.0.1", process, 30)
    assert awake.seconds - began < 5


#: How much the guest's kernel has cached before, while and after a file of /data of 30 MiB is open and was read, in kB.
_CACHED = """\
cached() { sed -n 's/^Cached: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo; }
dd if=/dev/zero of=/data/x bs=1M count=30 status=none && cached
exec 3</data/x; cat <&3 >/dev/null; cached
exec 3<&-; cached
"""


@pytest.mark.host
@pytest.mark.parametrize("name", ["uml"])
def test_hostfs_keeps_a_files_pages_while_it_is_open_and_no_longer(prepared, name):
    """So the manifest says; a guest on a disk of its own keeps them."""
    launcher, _ = prepared
    [platform] = platform_registry.choose([name])
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm(name), measured=False)
    try:
        done = running.session.execute(["sh", "-c", _CACHED], time_limit_s=120)
    finally:
        running.stop()
    before, opened, closed = map(int, done.stdout.split())
    assert opened - before > 25 << 10
    assert closed - before < 5 << 10
    assert platform.disk_cache == "the guest's page cache while a file is open, over the host's"


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.slow
def test_a_guests_life_has_a_figure_for_each_part_and_its_pause_takes_the_kernels_own_tool(launcher, prepared):
    if (why := cannot_be("uml")) is not None:
        pytest.skip(why)
    [platform] = platform_registry.choose(["uml"])
    platform.prepare(launcher.image)
    pool = InstancePool(platform, Arm("uml"), launcher, pytest.fail, pytest.fail)
    result = run_apart(workload_registry.get("whole-life"), {"time_s": 0}, pool, prepared[1])
    assert {sample.metric for sample in result.samples} >= {"start", "execute", "stop"}
    if processes.find(uml.MCONSOLE) is None:
        with pytest.raises(
            UnsupportedError, match=r"uml cannot pause: uml_mconsole is not installed \(uml-utilities\)"
        ):
            run_apart(workload_registry.get("pause"), {"time_s": 0}, pool, prepared[1])
    else:
        paused = run_apart(workload_registry.get("pause"), {"time_s": 0}, pool, prepared[1])
        assert {sample.metric for sample in paused.samples} == {"pause", "resume", "ok"}
    assert left_on_host(f"{launcher.campaign}x") == []
