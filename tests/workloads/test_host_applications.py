"""Each server under its load on native and on gVisor, with tiny parameters: most in one campaign of one block."""

import functools
import tempfile
from pathlib import Path

import pytest

from campaign.fakes import Quiet
from tare.campaign.execution import run_campaign
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.model import CLIENT_BUSY, Status
from tare.report.campaign.report_builder import build
from tare.store import read_store
from tare.workloads import workload_registry

pytestmark = [pytest.mark.host, pytest.mark.own_host, pytest.mark.paced]

TINY = {
    "build-pipeline": {"units": 1},
    # Of fewer rows, more are locked. The image has no such seed: this one is made in the instance, all others are not.
    "mariadb-read-write": {"tables": 1, "rows": 5_000, "threads": 2, "time_s": 5},
    # By its own data: of fewer rows, so many threads want the same one too often, and every trial fails.
    "mariadb-write-threads-70": {"time_s": 5},
    "memcached": {"connections": 4, "time_s": 5},
    "nginx": {"connections": 4},
    "nginx-connections-1": {},
    "nginx-connections-100": {},
    "postgresql": {"clients": 2, "time_s": 5},
    "site": {"users": 20, "time_s": 6, "limit_ms": 20_000},  # who waits so long outlives a busy machine
    "site-split": {"users": 20, "time_s": 6, "limit_ms": 20_000},
}
#: The same programs with other loads: `make slow-test`.
RELATIVES = {"mariadb-write-threads-70", "nginx", "site"}
USUAL = tuple(name for name in TINY if name not in RELATIVES)
NAMES = [*USUAL, *(pytest.param(name, marks=pytest.mark.slow) for name in sorted(RELATIVES))]


@functools.cache
def _campaign(names):
    """The rows, the figures of each by its workload, platform and replica, and the report."""
    params = {name: TINY[name] for name in names}
    request = CampaignRequest(platforms=["gvisor"], workloads=list(names), params=params, blocks=1)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.tare"
        run_campaign.begin(request, file, Quiet())
        with read_store(file) as store:
            rows = list(store.trials().iter_rows(named=True))
            samples = store.samples()
        return rows, samples, build(file)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NAMES)
def test_a_server_answers_its_load_on_native_and_in_a_sandbox(name):
    rows, samples, _ = _campaign((name,) if name in RELATIVES else USUAL)
    mine = [row for row in rows if row["workload"] == name]
    assert sorted(row["platform"] for row in mine) == ["gvisor", "native", "native"]
    assert {row["status"]: row["reason"] for row in mine} == {Status.OK.value: None}
    figures = samples.filter(samples["workload"] == name)
    declared = {metric.name for metric in workload_registry.get(name).metrics}
    assert declared <= set(figures["metric"].to_list())
    may_be_none = figures["metric"].is_in(["server-errors", "transport-errors"])
    assert (figures.filter(~may_be_none)["value"] > 0).all()
    assert (figures.filter(may_be_none)["value"] == 0).all()
    assert (CLIENT_BUSY in figures["metric"].to_list()) == (name != "build-pipeline")


@pytest.mark.timeout(900)
def test_two_levels_are_a_curve_on_both():
    [curve] = _campaign(USUAL)[2].curves
    assert (curve.name, [platform.platform for platform in curve.platforms]) == (
        "nginx-connections",
        ["native", "gvisor"],
    )
    assert all(point.rate for platform in curve.platforms for point in platform.points)
