"""The telemetry of a real instance, and a neighbour on its CPU that is not tare's."""

import sys
import time

import polars as pl
import pytest

from campaign.fakes import a_plan, a_record
from tare.analysis.trust import contamination
from tare.campaign.telemetry.sampler import Sampler
from tare.host import processes
from tare.model import Arm
from tare.platforms import registry
from tare.store import create_store

pytestmark = pytest.mark.host

_BUSY = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"
_LOOP = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"


def test_an_instance_is_counted_and_a_neighbour_is_told_apart_from_it(launcher, tmp_path):
    [platform] = registry.choose(["native"])
    platform.prepare(launcher.image)
    cpu = launcher.resources.probe_cpu
    running = launcher.start(platform, Arm("native"), measured=False)
    sampler = Sampler((cpu,), interval_s=0.1)
    neighbour, ticks = None, []
    try:
        with sampler.sampling(lambda: (running,)):
            before = running.cpu_ns()
            running.session.execute(["sh", "-c", _LOOP], time_limit_s=60)
            used = running.cpu_ns() - before
            between = time.time()
            neighbour = processes.start([sys.executable, "-c", _BUSY, str(cpu)])
            while sum(tick.at > between for tick in ticks) < 15:  # on a busy machine they come late
                time.sleep(0.1)
                ticks += sampler.drain()
    finally:
        running.stop()
        if neighbour is not None:  # only now: a child that ended counts as the harness's own
            processes.kill_group(neighbour)
            neighbour.wait()
    assert sampler.failed is None
    plan = a_plan(others=())
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        store.commit_trials((), [*ticks, *sampler.drain()])
        telemetry = store.telemetry()
    counted = telemetry.instances["cpu_ns"]
    assert counted[-1] - counted[0] == pytest.approx(used, rel=0.2)  # the first reading may come within the loop
    assert telemetry.instances["memory_bytes"].min() > 0
    windows = contamination.windows(telemetry, [cpu]).with_columns(pl.col("end") < between)
    alone = windows.filter(pl.col("end"))["foreign-cpu"].mean()
    beside = windows.filter(~pl.col("end")).slice(5)["foreign-cpu"].mean()  # Python takes a while to start
    assert beside > 0.8
    assert beside > alone
