"""What the kernel kills for want of memory is told as such: the reason is a broken stream or a signal 9 else."""

import pytest

from tare.campaign.instances.launcher import Terms
from tare.contract.checks import HOG
from tare.errors import TareError
from tare.model import Arm
from tare.platforms import registry

pytestmark = [pytest.mark.host, pytest.mark.own_host]

TOLD = "the kernel killed a process of it for want of memory: it has 512 MiB (tare run --memory)"


@pytest.mark.parametrize("name", ["native", "runc", "docker"])
def test_a_program_that_wants_more_than_its_instance_has(launcher, name):
    [platform] = registry.choose([name])
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm(name), measured=False)
    try:
        assert running.out_of_memory() == ""
        running.session.execute(["perl", "-e", HOG, "734003200"], time_limit_s=180)
        assert running.out_of_memory() == TOLD
        assert running.out_of_memory() == ""  # it was told
    finally:
        running.stop()
        platform.close()


def test_an_instance_that_is_too_small_to_start(launcher):
    [platform] = registry.choose(["gvisor"])
    with pytest.raises(TareError) as raised:
        launcher.start(platform, Arm("gvisor"), measured=False, terms=Terms(memory_bytes=8 << 20))
    assert "for want of memory: it has 8 MiB (tare run --memory)" in raised.value.what
