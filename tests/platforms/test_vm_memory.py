"""Memory of real guests: all of the limit is theirs, and their monitor's own is beside it."""

import pytest

from tare.model import Arm
from tare.platforms import platform_registry

pytestmark = [pytest.mark.host, pytest.mark.own_host]


@pytest.mark.parametrize("name", ["qemu-tcg", pytest.param("libvirt-qemu-tcg", marks=pytest.mark.slow)])
def test_a_guest_has_the_limit_and_its_monitor_is_counted_apart(launcher, name):
    platform = platform_registry.choose([name])[0]
    assert platform.detect().available
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm(name), measured=False)
    try:
        limit = launcher.resources.memory_bytes
        before = running.measure_memory()
        # More than its kernel touched and freed again when it started, and less than half, which /dev/shm has.
        fill = f"head -c {limit * 2 // 5} /dev/zero >/dev/shm/filled"
        assert running.session.execute(["sh", "-c", fill], time_limit_s=120).code == 0
        after = running.measure_memory()
    finally:
        running.stop()
        platform.close()
    assert running.instance.guest_bytes == limit
    # The kernel keeps some for itself, before it counts.
    assert running.session.hello.memory_bytes > 0.85 * limit
    assert 0 < before.guest < after.guest <= limit
    assert after.guest - before.guest > limit // 4
    assert 10 << 20 < before.pss - before.guest < platform.monitor_bytes
    assert 10 << 20 < after.pss - after.guest < platform.monitor_bytes
