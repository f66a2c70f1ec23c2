"""SIGKILL of the harness while it starts instances: `tare clean` finds and removes everything."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from platforms.leftovers import left_on_host
from tare.host import state
from tare.host.journal import Journal, sweep

pytestmark = pytest.mark.host

STARTER = textwrap.dedent("""
    import sys
    from tare.campaign import ground
    from tare.image import build
    from tare.model import Arm, Resources
    from tare.platforms import registry
    image = build.ensure(build.agent_path(), progress=lambda _: None)
    platform = registry.choose([sys.argv[1]])[0]
    resources = Resources(ground.default_cpus(), 512 << 20)
    with ground.sole_campaign(), ground.prepared(image, resources, None) as (nursery, _):
        print(nursery.campaign, flush=True)
        while True:
            nursery.start(platform, Arm(platform.name), measured=True).stop()
""")


@pytest.mark.parametrize("delay", [0.02, 0.15, 0.4])
@pytest.mark.parametrize(
    "name",
    ["native", "runc", "crun", "bubblewrap", "nspawn", "docker", "lxc", "podman", "gvisor", "docker-gvisor", "qemu"],
)
def test_a_harness_killed_mid_start_leaves_nothing_that_clean_does_not_find(name, delay):
    process = subprocess.Popen([sys.executable, "-c", STARTER, name], stdout=subprocess.PIPE)
    label = process.stdout.readline().decode().strip()
    assert label
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    steps = list(sweep(Journal(state.journal())))
    assert steps
    assert [step for step in steps if step.kept] == []
    assert left_on_host(label) == []
    assert not Path("/sys/class/net/tare0").exists()
