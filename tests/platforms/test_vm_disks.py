"""Disks of real guests: what direct I/O in a guest leaves in the host's page cache, and what the manifest says."""

import pytest

from tare.campaign.execution import caches
from tare.errors import UnsupportedError
from tare.host import processes
from tare.host.filesystems import roots
from tare.model import Arm
from tare.platforms import registry
from tare.workloads.base import RunPlan

pytestmark = pytest.mark.host
MIB = 32
_FILE = f"dd if=/dev/urandom of=file bs=1M count={MIB} oflag=direct conv=fsync status=none"
_READ = "dd if=file of=/dev/null bs=64k iflag=direct status=none"


def _after_direct_reads(launcher, name):
    """Bytes of the data volume's file in the host's page cache (fincore(1)), facts, why it is refused, and details."""
    platform = registry.choose([name])[0]
    answer = platform.detect()
    assert answer.available, answer.reason
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm(name), measured=False)
    try:
        space = running.instance.spec.space
        for step in (_FILE, _READ):
            roots.drop_page_cache(space.data)  # what was made, with the filesystem
            done = running.session.execute(["sh", "-c", step], cwd="/data", time_limit_s=120)
            assert done.code == 0, done.stderr
        refused = None
        try:
            caches.require_direct(RunPlan(measures=(), uncached=("file",)), running)
        except UnsupportedError as error:
            refused = error.what
        asked = processes.run(["fincore", "--bytes", "--noheadings", "--output", "RES", str(space.data / "data.ext4")])
        return int(asked.require().text), platform.observed(running.instance, str).facts, refused, answer.details
    finally:
        running.stop()
        platform.close()


@pytest.mark.parametrize("name", ["qemu-tcg", "qemu-microvm-tcg", "libvirt-qemu-tcg"])
def test_direct_reads_in_a_guest_leave_nothing_in_the_hosts_page_cache(launcher, name):
    cached, facts, refused, details = _after_direct_reads(launcher, name)
    assert cached == 0
    assert facts["data volume opened"] == "past the host's page cache (O_DIRECT)"
    assert facts["packets moved by"] == "the monitor"
    assert refused is None
    assert details["disks"].startswith("cache=none, aio=")


@pytest.mark.parametrize("name", ["qemu-writeback-tcg", "libvirt-qemu-writeback-tcg"])
def test_disks_that_are_written_back_are_cached_by_the_host_and_have_no_direct_io(launcher, name):
    cached, facts, refused, _ = _after_direct_reads(launcher, name)
    assert cached >= MIB << 20
    assert facts["data volume opened"] == "through the host's page cache"
    assert "through the host's page cache" in refused
