"""A guest that makes user namespaces mounts the host's v1 hierarchies, and keeps processes from ending by them."""

import time

import pytest

from tare.host import cgroup
from tare.model import Arm
from tare.platforms import platform_registry

pytestmark = [pytest.mark.host, pytest.mark.own_host]

#: Root of a user namespace makes groups two levels deep below its own, and does as the rest says; $x is the lower one.
ATTACK = """\
mkdir /tmp/m
mount -t cgroup -o $0 none /tmp/m
x=/tmp/m/x/y
mkdir -p $x
"""
FREEZER = """\
for i in 1 2 3; do sleep 1000 & echo $! >$x/cgroup.procs; done
echo FROZEN >$x/freezer.state
echo FROZEN >/tmp/m/x/freezer.state
until grep -q FROZEN $x/freezer.state; do sleep 0.01; done
"""
CPU = """\
echo 1000000 >$x/cpu.cfs_period_us
echo 1000 >$x/cpu.cfs_quota_us
for i in $(seq 400); do sleep 1000 & echo $! >$x/cgroup.procs; done
sh -c 'echo $$ >$0/cgroup.procs; while :; do :; done' $x &
sleep 1
"""
BLKIO = """\
device=$(stat -c %Hd:%Ld /data)
echo "$device 1" >$x/blkio.throttle.write_bps_device
sh -c 'echo $$ >$0/cgroup.procs; exec dd if=/dev/zero of=/data/big bs=1M count=4 oflag=direct' $x &
dd=$!
until grep -q 'State:.D' /proc/$dd/status; do sleep 0.01; done
sleep 2
grep -q 'State:.D' /proc/$dd/status
"""


@pytest.mark.skipif(cgroup.hierarchies().unified, reason="v2 alone: none of its files withstands SIGKILL")
@pytest.mark.parametrize("name", ["runc", "bubblewrap"])
@pytest.mark.parametrize(("hierarchy", "attack"), [("freezer", FREEZER), ("cpu", CPU), ("blkio", BLKIO)])
def test_an_instance_ends_whatever_its_root_does_to_its_groups(launcher, name, hierarchy, attack):
    [platform] = platform_registry.choose([name])
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm(name), measured=False)
    group = running.instance.spec.group.path
    try:
        script = f"{ATTACK}{attack}echo done; sleep 1000"
        attacked = running.session.start(["unshare", "-UrmC", "sh", "-ec", script, hierarchy], time_limit_s=60)
        attacked.wait_output(b"done", time_limit_s=30)
    finally:
        began = time.monotonic()
        running.stop()
    assert time.monotonic() - began < 8
    assert not any((root / group).exists() for root in cgroup.hierarchies().mounted)
