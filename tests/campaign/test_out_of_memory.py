"""What the kernel kills for want of memory is told as such: the reason is a broken stream or a signal 9 else."""

import pytest

from tare.campaign.instances.launcher import InstanceLauncher
from tare.contract.checks import HOG
from tare.errors import PlatformError
from tare.model import Arm
from tare.platforms import registry

pytestmark = [pytest.mark.host, pytest.mark.own_host]

TOLD = "processes of it that the kernel killed for want of memory: 1, at its limit of 512 MiB (tare run --memory)"


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


def test_a_start_that_fails_meanwhile(launcher, monkeypatch):
    def hog(_launcher, session, platform):
        session.execute(["perl", "-e", HOG, "734003200"], time_limit_s=180)
        raise PlatformError(f"{platform.name} is not well")

    monkeypatch.setattr(InstanceLauncher, "_check", hog)
    [platform] = registry.choose(["runc"])
    with pytest.raises(PlatformError) as raised:
        launcher.start(platform, Arm("runc"), measured=False)
    assert raised.value.what == f"{TOLD}: runc is not well"
