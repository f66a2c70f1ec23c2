"""What an instance cannot have more of than another one, whatever the platform (docs/method.md)."""

from dataclasses import replace

import pytest

from tare.campaign.execution import preflight
from tare.campaign.instances.launcher import Terms
from tare.errors import SessionError
from tare.host import limits
from tare.model import PIDS, Arm
from tare.platforms import registry

pytestmark = [pytest.mark.host, pytest.mark.own_host]

#: What a platform cannot honour of the limits that all others have.
NOT_HONOURED = {
    "gvisor": ["transparent huge pages: none in place of madvise"],
    "containerd": ["open files: 1,024 in place of 16,384"],  # `ctr run` of 1.6 has no option for it
}
KIN = ["native", "runc", "crun", "docker", "podman", "containerd", "lxc", "nspawn", "bubblewrap", "gvisor", "qemu-tcg"]


@pytest.mark.parametrize("name", KIN)
def test_a_program_inside_has_the_limits_of_all_platforms_or_the_manifest_says_so(launcher, name):
    [platform] = registry.choose([name])
    ready = preflight._try(platform, platform.detect(), launcher.image, launcher)
    expected = limits.facts(limits.wanted(launcher.resources))
    assert expected.keys() <= ready.fairness.keys()
    differing = [name for name, value in expected.items() if ready.fairness[name] != value]
    unkept = NOT_HONOURED.get(name, [])
    assert len(differing) == len(unkept)
    assert ready.record.not_honoured == ready.fairness["not honoured"] == [*platform.not_honoured, *unkept]
    platform.close()


#: Makes as many processes as it is told, and says how many it got.
FORK = "for (1..shift) { my $p = fork; defined $p or last; sleep 600 if !$p; $n++ } print $n"


@pytest.mark.parametrize("name", ["native", "runc", "bubblewrap", "nspawn", "lxc", "docker", "podman"])
def test_an_instance_has_no_more_processes_than_it_may(launcher, name):
    [platform] = registry.choose([name])
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm(name), measured=False, terms=Terms(memory_bytes=1 << 30))
    group = running.instance.spec.group
    try:
        assert group.limits() == {"pids": PIDS, "swap": 0}
        assert running.killed() == ""
        done = running.session.execute(["perl", "-e", FORK, "6000"], time_limit_s=180)
        assert PIDS - 200 < int(done.stdout) < PIDS
        assert running.killed() == "it was refused processes, having as many as it may: 4,096 with threads"
    finally:
        running.stop()
        platform.close()


def test_a_sandbox_that_dies_of_its_limit_is_told_from_another(launcher, monkeypatch):
    """gVisor's sentry has a process of the host's for each of its guest's, and ends where it is refused one."""
    [platform] = registry.choose(["gvisor"])
    platform.prepare(launcher.image)
    monkeypatch.setattr(launcher, "resources", replace(launcher.resources, pids=300))
    running = launcher.start(platform, Arm("gvisor"), measured=False)
    try:
        with pytest.raises(SessionError):
            running.session.execute(["perl", "-e", FORK, "600"], time_limit_s=180)
        assert running.killed() == "it was refused processes, having as many as it may: 300 with threads"
    finally:
        running.stop()
