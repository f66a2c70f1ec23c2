"""What is said of gVisor's sandboxes, from what runsc of 2026-09 shows of them: their mounts and command lines."""

from types import SimpleNamespace

import pytest

from tare.model import Family
from tare.platforms import gvisor, platform_registry

#: /proc/mounts in a sandbox, and the words of its sentry on the host, the paths shortened.
MOUNTS = """\
none / overlay rw 0 0
none /dev dev rw,nosuid,mode=0755 0 0
none /proc proc rw,nosuid,noexec,dentry_cache_limit=1000 0 0
none /data 9p rw,trans=fd,rfdno=4,wfdno=4,aname=/,dfltuid=4294967294,dfltgid=4294967294,dcache=1000,cache=CACHE 0 0
none /tmp tmpfs rw,mode=01777 0 0
"""
SENTRY = (
    "runsc-sandbox --root=/x/state --network=sandbox --platform=systrap boot --bundle=/x --setup-root"
    " --total-host-memory 25276514304 --cpu-num {} --cpu-period 100000 --total-memory 536870912 --attached tare-1ff24x0"
)
GOFER = "runsc-gofer --root=/x/state --network=sandbox --platform=systrap gofer --bundle /x tare-1ff24x0"


def commands(number, trap="systrap"):
    sentry = SENTRY.format(number).replace("systrap", trap)
    return [["runsc", "run"], GOFER.split(), sentry.split(), []]


@pytest.mark.parametrize(
    ("cache", "said"),
    [
        ("remote_revalidating,disable_fifo_open,directfs", "host's page cache, which the sentry goes to directly"),
        ("remote_revalidating", "the host's page cache, which the sentry goes to by its gofer"),
        ("fscache,directfs", "gVisor's own cache (fscache) over the host's, which the sentry goes to directly"),
    ],
)
def test_the_cache_of_a_volume_is_what_the_sandbox_mounted_it_with(cache, said):
    assert said in gvisor.data_cache(MOUNTS.replace("CACHE", cache))


def test_what_cannot_be_read_is_not_known():
    assert gvisor.data_cache("unknown") == "unknown"


def test_with_one_cpu_the_fast_path_is_off_and_unit_costs_say_so():
    assert gvisor.remarks(commands(1)) == {Family.KERNEL: "systrap's fast path is off with one CPU"}


@pytest.mark.parametrize(("number", "trap"), [(2, "systrap"), (12, "systrap"), (1, "kvm"), (1, "ptrace")])
def test_with_more_of_them_or_another_way_to_trap_there_is_nothing_to_say(number, trap):
    assert gvisor.remarks(commands(number, trap)) == {}


@pytest.mark.parametrize("name", ["gvisor", "gvisor-host", "docker-gvisor", "podman-gvisor"])
def test_whoever_starts_runsc_its_sandbox_is_asked(name, monkeypatch):
    [platform] = platform_registry.choose([name])
    monkeypatch.setattr(gvisor.process_table, "argv", lambda pid: commands(1)[pid])
    instance = SimpleNamespace(host_processes=lambda: range(4))
    observed = platform.observed(
        instance, {"/proc/mounts": MOUNTS.replace("CACHE", "remote_revalidating,directfs")}.get
    )
    assert observed.disk_cache == "the host's page cache, which the sentry goes to directly (directfs)"
    assert observed.remarks == {Family.KERNEL: gvisor.SLOW_CALLS}
    assert platform.disk_cache == "the host's page cache"  # what is declared promises no cache of its own
