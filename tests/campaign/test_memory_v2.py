"""What an instance takes of memory on a host with cgroup v2 alone, by files that a stock Debian 13 host showed."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tare.campaign.instances import memory_usage
from tare.host import cgroup
from tare.host.facts import memory

#: Of `system.slice` (Linux 6.12): the kernel's own 17,887,232 bytes, of files in memory 491,520, of others 240,730,112.
SHOWN = (Path(__file__).parents[1] / "host" / "data" / "memory-stat-v2").read_text()
ANON, FILE, KERNEL, SHMEM = 66_424_832, 240_730_112, 17_887_232, 491_520
CLIENT = "anon 4096\nfile 8192\nkernel 1000000\nkernel_stack 16384\npercpu 0\nsock 0\nshmem 4096\nslab 20000\n"


@pytest.fixture
def instance(tmp_path, monkeypatch):
    """A running instance with a client that waits in a group below its own."""
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    monkeypatch.setattr(cgroup, "hierarchies", lambda: cgroup.Hierarchies({}, tmp_path, (tmp_path,)))
    for folder, shown in (("tare/a1x1", SHOWN), ("tare/a1x1/client", CLIENT)):
        place = tmp_path / folder
        place.mkdir(parents=True)
        (place / "memory.stat").write_text(shown)
        (place / "memory.current").write_text("400000000\n" if folder.endswith("x1") else "2000000\n")
        (place / "cpu.stat").write_text("usage_usec 5\n")
        (place / "cgroup.procs").write_text("" if folder.endswith("x1") else "4242\n")
    resident = {(1, 2): memory.Resident(3_000_000, 2_000_000, 100_000), (4242,): memory.Resident(9_000_000, 5, 0)}
    monkeypatch.setattr(
        memory_usage.memory, "resident", lambda pids: resident.get(tuple(pids), memory.Resident(0, 0, 0))
    )
    return SimpleNamespace(
        accounted=True, guest_bytes=0, client="client", daemons=(),
        spec=SimpleNamespace(group=cgroup.Group("tare/a1x1")), host_processes=lambda: [1, 2, 4242],
    )  # fmt: skip


def test_the_clients_part_is_in_no_figure_but_its_own(instance):
    usage = memory_usage.read(instance, idle=True)
    assert usage.own == 2_000_000 + (SHMEM - 4096) + (KERNEL - 1_000_000)
    assert usage.group == ANON + FILE + KERNEL - (4096 + 8192 + 1_000_000)
    assert (usage.pss, usage.client, usage.daemons) == (3_000_000, 9_000_000, None)


def test_of_an_instance_that_works_the_kernels_own_count_is_taken(instance, monkeypatch):
    monkeypatch.setattr(cgroup.Group, "counts_late", lambda _: False)
    assert memory_usage.read(instance).group == 400_000_000 - 2_000_000


def test_the_clients_cpu_time_is_known_and_nothing_without_one_or_after_its_end(instance):
    assert memory_usage.client_cpu_ns(instance) == 5000
    instance.client = ""
    assert memory_usage.client_cpu_ns(instance) == 0
    instance.client = "ended"
    assert memory_usage.client_cpu_ns(instance) == 0
