"""The CPU cost of the whole host: the platform's, its daemons', and that of the kernel's threads meanwhile."""

from dataclasses import replace

import pytest

from campaign.fakes import FakeLauncher, FakeRun, Quiet, a_plan, a_record
from tare.campaign.execution import run_campaign, runs
from tare.campaign.execution.runner import Runner
from tare.campaign.execution.runs import Measured
from tare.campaign.plan.campaign_plan import WorkloadJob
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.model import CPU_COST, HOST_COST, Family
from tare.store import create_store, read_store
from tare.workloads import workload_registry
from tare.workloads.base import Outcome

MEASURED = Measured(Outcome({"rate": 1.0}, work=10.0), (), (), 1_000, None, starting_ns=200, beside_ns=400)


def test_what_the_host_does_beside_the_platform_is_added_for_a_unit_of_work():
    assert (MEASURED.cpu_cost, MEASURED.host_cost) == (80.0, 120.0)
    assert {sample.metric: sample.value for sample in MEASURED.costs} == {CPU_COST: 80.0, HOST_COST: 120.0}


@pytest.mark.parametrize("unknown", [{"beside_ns": None}, {"cpu_ns": None}, {"starting_ns": None}])
def test_where_a_part_is_not_known_the_whole_is_not(unknown):
    assert replace(MEASURED, **unknown).host_cost is None


def test_workloads_of_storage_and_network_have_it_and_no_others():
    having = {
        workload.family
        for workload in workload_registry.all_workloads().values()
        if any(metric.name == HOST_COST for metric in workload.all_metrics)
    }
    assert having == {Family.STORAGE, Family.NETWORK}


class FakeWrites(FakeRun):
    family = Family.STORAGE


def _campaign(tmp_path, monkeypatch, workload, record_of=a_record):
    """One block of two arms of the baseline, whose host's kernel works for 300 ns in each run."""
    kernel = iter(range(0, 100_000, 300))
    monkeypatch.setattr(runs.KernelWork, "so_far_ns", lambda _: next(kernel))
    plan = replace(a_plan(1, others=()), jobs=(WorkloadJob(workload, {}),))
    with create_store(tmp_path / "fake.tare", record_of(plan)) as store:
        Runner(plan, store, FakeLauncher(), None, Quiet()).run()
        assert set(store.trials()["status"]) == {"ok"}
        return {(row["metric"], row["value"]) for row in store.samples().iter_rows(named=True)}


def test_a_run_has_the_kernels_work_from_just_before_it_to_just_after(tmp_path, monkeypatch):
    figures = _campaign(tmp_path, monkeypatch, FakeWrites("writes"))
    assert figures == {("rate", 42.0), (CPU_COST, 100.0), (HOST_COST, 130.0)}


def test_a_campaign_of_an_older_tare_goes_on_without_it(tmp_path, monkeypatch):
    def older(plan):
        record = a_record(plan)
        metrics = [metric for metric in record.workloads[0].metrics if metric.name != HOST_COST]
        return record.model_copy(update={"workloads": [record.workloads[0].model_copy(update={"metrics": metrics})]})

    assert _campaign(tmp_path, monkeypatch, FakeWrites("writes"), older) == {("rate", 42.0), (CPU_COST, 100.0)}


@pytest.mark.host
@pytest.mark.parametrize("name", ["sysbench-fileio-seqwr", pytest.param("iperf3-tcp", marks=pytest.mark.slow)])
def test_the_host_does_at_least_what_the_platform_does(name, tmp_path):
    file = tmp_path / "x.tare"
    run_campaign.begin(CampaignRequest(platforms=("runc",), workloads=(name,), blocks=1), file, Quiet())
    with read_store(file) as store:
        assert set(store.trials()["status"]) == {"ok"}
        by_round = {}
        for row in store.samples().iter_rows(named=True):
            by_round.setdefault((row["platform"], row["replica"], row["round"]), {})[row["metric"]] = row["value"]
    costs = [(figures[CPU_COST], figures[HOST_COST]) for figures in by_round.values() if CPU_COST in figures]
    assert len(costs) >= 3
    assert all(host > platform > 0 for platform, host in costs)
