"""What an instance cannot have more of than another one, whatever the platform (docs/method.md)."""

import os
import time
from dataclasses import replace

import pytest

from tare.campaign.execution import preflight
from tare.campaign.instances.launcher import StartOptions
from tare.errors import SessionError, TareError
from tare.host import cgroup, instance_limits, processes
from tare.host.kernel import process_table
from tare.model import PIDS, Arm
from tare.platforms import platform_registry
from tare.platforms.parts.common import adopt
from tare.timeouts import stretched

pytestmark = [pytest.mark.host, pytest.mark.own_host]

#: What a platform cannot honour of the limits that all others have.
NOT_HONOURED = {
    "gvisor": ["transparent huge pages: none in place of madvise"],
    "containerd": ["open files: 1,024 in place of 16,384"],  # `ctr run` of 1.6 has no option for it
}
KIN = ["native", "runc", "crun", "docker", "podman", "containerd", "lxc", "nspawn", "bubblewrap", "gvisor", "qemu-tcg"]


@pytest.mark.parametrize("name", KIN)
def test_a_program_inside_has_the_limits_of_all_platforms_or_the_manifest_says_so(launcher, name):
    [platform] = platform_registry.choose([name])
    ready = preflight._try(platform, platform.detect(), launcher.image, launcher)
    expected = instance_limits.facts(instance_limits.wanted(launcher.resources))
    assert expected.keys() <= ready.fairness.keys()
    differing = [name for name, value in expected.items() if ready.fairness[name] != value]
    unkept = NOT_HONOURED.get(name, [])
    assert len(differing) == len(unkept)
    assert ready.record.not_honoured == ready.fairness["not honoured"] == [*platform.not_honoured, *unkept]
    assert "nice" in ready.fairness["priority"]
    if not platform.daemon:
        assert process_table.priority(os.getpid()) in ready.fairness["priority"], "of who started it"
    platform.close()


#: Makes as many processes as it is told, and says how many it got.
FORK = "for (1..shift) { my $p = fork; defined $p or last; sleep 600 if !$p; $n++ } print $n"


@pytest.mark.parametrize("name", ["native", "runc", "bubblewrap", "nspawn", "lxc", "docker", "podman"])
def test_an_instance_has_no_more_processes_than_it_may(launcher, name):
    [platform] = platform_registry.choose([name])
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm(name), measured=False, terms=StartOptions(memory_bytes=1 << 30))
    group = running.instance.spec.group
    try:
        assert group.limits() == {"pids": PIDS, "swap": 0}
        assert running.killed() == ""
        done = running.session.execute(["perl", "-e", FORK, "6000"], time_limit_s=180)
        assert PIDS - 200 < int(done.stdout) < PIDS
        assert running.killed() == "it took all process ids that it may have: 4,096 with threads"
    finally:
        running.stop()
        platform.close()


def test_a_sandbox_that_dies_of_its_limit_is_told_from_another(launcher, monkeypatch):
    """gVisor's sentry has a process of the host's for each of its guest's, and ends where it is refused one."""
    [platform] = platform_registry.choose(["gvisor"])
    platform.prepare(launcher.image)
    monkeypatch.setattr(launcher, "resources", replace(launcher.resources, pids=300))
    running = launcher.start(platform, Arm("gvisor"), measured=False)
    try:
        with pytest.raises(SessionError):
            running.session.execute(["perl", "-e", FORK, "600"], time_limit_s=180)
        assert running.killed() == "it took all process ids that it may have: 300 with threads"
    finally:
        running.stop()


#: Takes all process ids that there are, and those that become free, for as many seconds as it is told.
HOLD = """\
use POSIX (); use Time::HiRes qw(sleep); $end = time + shift;
while (time < $end) { my $p = fork; if (!defined $p) { sleep 0.002 } elsif (!$p) { sleep 600; POSIX::_exit(0) } }
"""


#: As a shim does that starts a runtime's command, or a thread.
FORKS = "for each in 1 2 3 4 5 6 7 8; do sleep 0.2 & done; wait && echo all"


@pytest.mark.parametrize(
    "name",
    [
        "docker",
        "podman",
        "lxc",
        "containerd",
        pytest.param("containerd-cri", marks=pytest.mark.slow),
    ],
)
def test_a_guest_that_takes_all_process_ids_ends_its_trial_and_not_the_engines_helpers(launcher, monkeypatch, name):
    [platform] = platform_registry.choose([name])
    platform.prepare(launcher.image)
    monkeypatch.setattr(launcher, "resources", replace(launcher.resources, pids=300))
    running = launcher.start(platform, Arm(name), measured=False)
    group = running.instance.spec.group
    took = "it took all process ids that it may have: 300 with threads"
    try:
        assert group.limits()["pids"] == 300
        running.session.start(["perl", "-e", HOLD, "300"], time_limit_s=300)
        deadline = time.monotonic() + stretched(60)
        while running.killed() != took:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        beside = processes.run(["sh", "-c", FORKS], cgroup_procs=group.leaf(adopt.LEAF), time_limit_s=30)
        assert (beside.text, beside.stderr) == ("all\n", b"")
        with pytest.raises(TareError):
            running.session.execute(["true"], time_limit_s=300)
        assert time.monotonic() < deadline
    finally:
        running.stop()
        platform.close()
    assert not any((root / group.path).exists() for root in cgroup.hierarchies().mounted)
