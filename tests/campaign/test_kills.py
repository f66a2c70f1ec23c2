"""What was killed of an instance, from consoles of real guests and of this host."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tare.campaign.instances.kills import Kills
from tare.errors import HostError
from tare.host.cgroup_files import MemoryKills
from tare.model import Resources

CAPTURED = Path(__file__).parent / "captured"
BY_GUEST = (
    "processes of it that its own kernel killed for want of memory: 1, the last one perl, of 512 MiB "
    "(tare run --memory)"
)
NOT_MAPPED = (
    "processes of it that its own kernel killed as the host maps no more of their pages: 1 (sysctl vm.max_map_count)"
)
PANIC = "its own kernel panicked: System is deadlocked on memory, of 512 MiB (tare run --memory)"


@pytest.fixture
def read(tmp_path):
    """Read the kills of an instance with 512 MiB whose console has printed this."""

    def read(printed=b"", by_host=lambda: None, *, refused=0, accounted=True, own_kernel=True):
        log = tmp_path / "log"
        log.write_bytes(printed)
        spec = SimpleNamespace(
            resources=Resources((0,), 512 << 20),
            space=SimpleNamespace(log=log),
            group=SimpleNamespace(memory_kills=by_host, refused_processes=lambda _: refused),
        )
        return Kills.read(spec, accounted=accounted, own_kernel=own_kernel)

    return read


@pytest.mark.parametrize(
    ("console", "words"),
    [
        ("qemu-killed-console.txt", BY_GUEST),  # of qemu-tcg with Debian's 6.1 cloud kernel
        ("group-killed-dmesg.txt", BY_GUEST),  # at a control group's limit, as of a container in a guest
        ("qemu-panic-console.txt", PANIC),  # of qemu-tcg, where the agent's own probe took all memory
        ("uml-not-mapped-console.txt", NOT_MAPPED),  # of 6.1.176, with 512 MiB and 65,530 maps
    ],
)
def test_a_guests_kernel_says_what_it_killed(read, console, words):
    printed = (CAPTURED / console).read_bytes()
    kills = read(printed)
    assert (kills.count, kills.in_words()) == (1, words)
    assert read(2 * printed).count == (1 if words is PANIC else 2)  # after a panic there is no other
    assert read(printed, own_kernel=False).count == 0  # a container prints what it likes


def test_only_a_kernels_own_line_counts_and_no_name_can_write_on_a_terminal(read):
    line = (CAPTURED / "qemu-killed-console.txt").read_bytes()
    assert read(line.replace(b"perl", b"\x1b[2Jperl")).count == 0
    assert read(line.replace(b"perl", b"a b)(c")).by_guest == ["a b)(c"]
    assert read(line.replace(b"perl", 16 * b"p")).count == 0  # the kernel's names have 15 characters at most
    assert read(b"Out of memory!\nKilled process 1 (perl)\n").count == 0  # perl's own message, which is no kill
    assert read().in_words() == ""


def test_both_kernels_kills_are_counted_and_told(read):
    printed = (CAPTURED / "qemu-killed-console.txt").read_bytes()
    by_host = MemoryKills(2, at_limit=True, limit_bytes=640 << 20)
    kills = read(printed, lambda: by_host)
    assert kills.count == 3
    told = (
        "processes of it that the kernel killed for want of memory: 2, at 640 MiB for the guest's 512 and its monitor's"
    )
    assert kills.in_words() == f"{told}; {BY_GUEST}"
    assert read(printed, lambda: by_host, accounted=False).in_words() == BY_GUEST


def test_processes_that_were_refused_explain_a_failure(read):
    kills = read(refused=1200)
    assert kills.count == 1200
    assert kills.in_words() == "it took all process ids that it may have: 4,096 with threads"
    assert read(refused=1200, accounted=False).in_words() == ""


def test_kills_that_cannot_be_read_are_none(read):
    def gone():
        raise HostError("no control groups are delegated to this user")

    assert read(by_host=gone).count == 0


def test_another_panic_is_told_as_it_stands(read):
    printed = (
        (CAPTURED / "qemu-panic-console.txt").read_bytes().replace(b"System is deadlocked on memory", b"Oops \x1b[2J")
    )
    assert read(printed).in_words() == "its own kernel panicked: Oops"
