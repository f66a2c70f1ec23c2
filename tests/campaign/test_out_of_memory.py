"""What the kernel kills for want of memory is told as such: the reason is a broken stream or a signal 9 else."""

import pytest

from tare.campaign.instances.launcher import InstanceLauncher, StartOptions
from tare.contract.promises import HOG
from tare.errors import PlatformError
from tare.model import Arm
from tare.platforms import platform_registry

pytestmark = [pytest.mark.host, pytest.mark.own_host]

TOLD = "processes of it that the kernel killed for want of memory: 1, at its limit of 512 MiB (tare run --memory)"


@pytest.mark.parametrize("name", ["native", "runc", "docker"])
def test_a_program_that_wants_more_than_its_instance_has(launcher, name):
    [platform] = platform_registry.choose([name])
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm(name), measured=False)
    try:
        assert running.killed() == ""
        running.session.execute(["perl", "-e", HOG, "734003200"], time_limit_s=180)
        assert running.killed() == TOLD
        assert running.killed() == ""  # it was told
    finally:
        running.stop()
        platform.close()


#: Takes memory step by step: what is more than a guest has at once is refused there, and nothing is killed.
STEPS = "push @held, 'x' x 1048576 for 1..{}"


@pytest.mark.parametrize(
    ("name", "memory_mib", "program", "text"),
    [
        pytest.param(
            "qemu-tcg",
            160,
            STEPS.format(160),
            "its own kernel killed for want of memory: 1, the last one perl, of 160 MiB (tare run --memory)",
            id="qemu-tcg",
        ),
        pytest.param(
            "uml",
            512,
            STEPS.format(400),
            "its own kernel killed as the host maps no more of their pages: 1 (sysctl vm.max_map_count)",
            id="uml",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_program_that_wants_more_than_its_guest_has(launcher, name, memory_mib, program, text):
    [platform] = platform_registry.choose([name])
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm(name), measured=False, terms=StartOptions(memory_bytes=memory_mib << 20))
    try:
        ended = running.session.execute(["perl", "-e", program], time_limit_s=180)
        assert (ended.code, ended.signal) == (None, 9)
        assert running.killed() == f"processes of it that {text}"
        assert running.killed() == ""  # it was told
    finally:
        running.stop()
        platform.close()


def test_a_start_that_fails_meanwhile(launcher, monkeypatch):
    def hog(_launcher, session, platform):
        session.execute(["perl", "-e", HOG, "734003200"], time_limit_s=180)
        raise PlatformError(f"{platform.name} is not well")

    monkeypatch.setattr(InstanceLauncher, "_check", hog)
    [platform] = platform_registry.choose(["runc"])
    monkeypatch.setattr(type(platform), "start_fix", lambda *_: "wait")
    with pytest.raises(PlatformError) as raised:
        launcher.start(platform, Arm("runc"), measured=False)
    assert (raised.value.what, raised.value.fix) == (f"{TOLD}: runc is not well", "wait")
