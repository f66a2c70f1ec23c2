"""What an instance cannot have more of than another one, whatever the platform (docs/method.md)."""

import pytest

from tare.campaign.instances.launcher import Terms
from tare.model import PIDS, Arm
from tare.platforms import registry

pytestmark = [pytest.mark.host, pytest.mark.own_host]

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
        assert running.killed().startswith("processes and threads that the kernel refused it: 1, at its limit of 4,096")
    finally:
        running.stop()
        platform.close()
