"""The storage workloads on real platforms, with files of some MiB: each has figures, or says why there are none."""

import math

import pytest

from tare.campaign.execution.runs import run_trial
from tare.errors import UnsupportedError
from tare.model import Arm
from tare.platforms import platform_registry
from tare.workloads import workload_registry as workloads
from workloads.lacking import LACKING, RACING

SMALL = {"size_mib": 8, "least_mib": 8}
SECOND = {**SMALL, "time_s": 1}
TINY = {
    "fio-randread": SECOND,
    "fio-randwrite": SECOND,
    "fio-randread-buffered": SECOND,
    "fio-randwrite-buffered": SECOND,
    "seq-read-sizes": SMALL,
    "seq-read-sizes-guest": SMALL,
    "seq-read-sizes-host": SMALL,
    "seq-read-sizes-warm": SMALL,
    "seq-write-sizes": SMALL,
}
LONGER = {
    "dbench": {},
    "dbench-fsync-root": {},
    "dbench-osync": {},
    # Of a smaller file some hosts write the blocks in half a second.
    "bonnie": {"size_mib": 1024, "char_mib": 1},
    "bonnie-trajectory": {"size_mib": 1024, "char_mib": 1, "iterations": 2},
}


def _try(launcher, name, chosen):
    """Run each once in one instance; the reasons of those that the platform cannot run."""
    [platform] = platform_registry.choose([name])
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm(name), measured=False)
    reasons = {}
    try:
        for workload, params in ((workloads.get(name), params) for name, params in chosen.items()):
            try:
                measured = run_trial(workload, {**workload.profiles["quick"], **params}, running, None)
            except UnsupportedError as error:
                reasons[workload.name, name] = error.what
                continue
            samples = measured.outcome.as_samples()
            assert samples, workload.name
            assert all(math.isfinite(sample.value) and sample.value > 0 for sample in samples), workload.name
            assert measured.cpu_ns > 0
            left = running.session.execute(["sh", "-c", "find /data /var/tmp -type f"], time_limit_s=60)
            assert left.stdout == b"", f"{workload.name} leaves files"
    finally:
        running.stop()
        platform.close()
    return reasons


def _hold(reasons, name, chosen):
    expected = {key: reason for key, reason in LACKING.items() if key[1] == name and key[0] in chosen}
    expected |= {key: RACING[key] for key in reasons.keys() & RACING.keys()}
    assert reasons.keys() == expected.keys()
    assert all(expected[key] in reason for key, reason in reasons.items())


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.parametrize(
    "name", ["docker", *(pytest.param(name, marks=pytest.mark.slow) for name in ("runc", "gvisor"))]
)
def test_files_by_fio(launcher, name):
    _hold(_try(launcher, name, TINY), name, TINY)


@pytest.mark.slow
@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["uml", "qemu-tcg"])
def test_files_by_fio_in_a_guest(launcher, name):
    _hold(_try(launcher, name, TINY), name, TINY)


@pytest.mark.slow
@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["native", "runc", "docker", "gvisor", "uml", "qemu-tcg"])
def test_dbench_and_bonnie(launcher, name):
    _hold(_try(launcher, name, LONGER), name, LONGER)
