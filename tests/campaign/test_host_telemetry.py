"""The telemetry of a real instance, and a neighbour on its CPU that is not tare's."""

import contextlib

import pytest

from campaign.busy_neighbour import Readings, neighbour
from campaign.fakes import a_plan, a_record
from tare.analysis.quality import contamination
from tare.campaign.telemetry.sampler import Sampler
from tare.model import Arm
from tare.platforms import platform_registry
from tare.store import create_store

pytestmark = pytest.mark.host

_LOOP = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"


def test_an_instance_is_counted_and_a_neighbour_is_told_apart_from_it(launcher, tmp_path):
    [platform] = platform_registry.choose(["native"])
    platform.prepare(launcher.image)
    cpu = launcher.resources.probe_cpu
    running = launcher.start(platform, Arm("native"), measured=False)
    sampler = Sampler((cpu,), interval_s=0.1)
    readings = Readings(sampler)
    with contextlib.ExitStack() as ends:  # the neighbour's last: a child that ended counts as the harness's own
        try:
            with sampler.sampling(lambda: (running,)):
                began, before = readings.next(), running.cpu_ns()
                running.session.execute(["taskset", "--cpu-list", str(cpu), "sh", "-c", _LOOP], time_limit_s=100)
                used = running.cpu_ns() - before
                ended = readings.next()
                first, last, spent = readings.while_spent(ends.enter_context(neighbour(cpu)), 1e9)
        finally:
            running.stop()
    assert sampler.failed is None
    plan = a_plan(others=())
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        store.commit_trials((), readings.ticks)
        telemetry = store.telemetry()
    counted = telemetry.instances["cpu_ns"]
    assert used <= counted[ended] - counted[began] < 1.2 * used
    assert telemetry.instances["memory_bytes"].min() > 0
    windows = contamination.windows(telemetry, [cpu])
    assert windows.height == len(readings.ticks) - 1

    def between(start, end):
        """In ns: how long it was, and how much of it others had the CPU."""
        part = windows[start:end]
        return 1e9 * part["seconds"].sum(), 1e9 * (part["foreign-cpu"] * part["seconds"]).sum()

    # Whatever else runs here: what the instance used was nobody else's, and what the neighbour used was.
    passed, foreign = between(began, ended)
    assert used + foreign < 1.2 * passed
    _, foreign = between(first, last)
    assert foreign > 0.8 * spent
