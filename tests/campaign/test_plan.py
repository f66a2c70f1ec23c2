from dataclasses import replace

import pytest

from tare.campaign.execution.run_campaign import _workloads
from tare.campaign.plan import campaign_request
from tare.campaign.plan.campaign_plan import QUICK, CampaignPlan, arms_of, families_of, how_long, make_jobs, only_in
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.errors import UsageError
from tare.model import Arm, Family, Resources
from tare.platforms import platform_registry
from tare.workloads import workload_registry as workloads


def _plan(blocks, budget_s):
    platforms = tuple(platform_registry.choose(["native", "runc"]))
    return CampaignPlan("quick", 1, platforms, (), Resources((1,), 1 << 30), blocks, budget_s)


def test_the_baseline_runs_twice_in_every_block():
    assert arms_of(platform_registry.choose(["native", "docker"])) == (
        Arm("native", 0),
        Arm("native", 1),
        Arm("docker", 0),
    )


def test_a_number_of_blocks_is_kept():
    plan = _plan(3, None)
    assert [plan.more_blocks(block, 1e9, 1e9) for block in range(4)] == [True, True, True, False]


def test_a_block_begins_only_when_the_longest_so_far_still_fits():
    plan = _plan(None, 100.0)
    assert plan.more_blocks(0, 0.0, 0.0)
    assert plan.more_blocks(2, 60.0, 40.0)
    assert not plan.more_blocks(2, 61.0, 40.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: how_long("slow", None, None),
        lambda: how_long("quick", 0, None),
        lambda: how_long("quick", 10**20, None),
        lambda: how_long("quick", None, -1.0),
    ],
)
def test_what_makes_no_sense_is_said_with_the_fix(call):
    with pytest.raises(UsageError) as caught:
        call()
    assert caught.value.fix


def test_blocks_go_before_the_profile_and_before_time():
    assert how_long("quick", 4, None).blocks == 4
    assert how_long("quick", 4, None).budget(5) is None
    assert how_long("full", None, 60.0).budget(5) == 60.0
    assert how_long("full", None, None).budget(5) is None
    assert how_long("quick", None, None).budget(5) == 320.0
    assert how_long("quick", None, None).budget(11) < 15 * 60, "ten platforms, the baseline twice"


def test_quick_has_a_figure_for_each_answer_and_other_lengths_have_all_defaults():
    quick = _workloads(CampaignRequest(profile="quick"))
    assert [workload.name for workload in quick] == list(QUICK)
    assert all(workload.by_default for workload in quick), "quick is no other choice, but a smaller one"
    assert {workload.family for workload in quick} == set(Family) - {Family.DENSITY, Family.KERNEL, Family.LIFE}
    full = _workloads(CampaignRequest(profile="full"))
    assert {workload.name for workload in full} == {
        workload.name for workload in workloads.all_workloads().values() if workload.by_default
    }
    assert [workload.name for workload in _workloads(CampaignRequest(workloads=["sqlite-insert"]))] == ["sqlite-insert"]


def test_second_baselines_run_only_what_they_belong_to_unless_they_were_asked_for():
    chosen = platform_registry.choose(["native", "native-plain", "native-veth", "docker"])
    assert only_in(chosen, ()) == {
        "native-plain": frozenset({Family.STORAGE}),
        "native-veth": frozenset({Family.NETWORK, Family.APPLICATION}),
    }
    assert only_in(chosen, ("native-plain",)).keys() == {"native-veth"}
    plan = replace(_plan(1, None), only_in=only_in(chosen, ()))
    start, disk, cpu = (workloads.get(name) for name in ("startup", "sysbench-fileio-seqrd", "primes"))
    veth, plain = Arm("native-veth"), Arm("native-plain")
    assert [plan.takes_part(workload, plain) for workload in (start, disk, cpu)] == [True, True, False]
    assert [plan.takes_part(workload, veth) for workload in (start, disk, cpu)] == [True, False, False]
    assert plan.takes_part(cpu, Arm("docker"))
    loads = [workloads.get(name) for name in ("redis", "build-pipeline")]
    plan = replace(plan, jobs=make_jobs(loads, "quick"))
    assert [plan.takes_part(workload, veth) for workload in loads] == [True, False], "the second has no client"
    assert families_of(plan.jobs) == {Family.APPLICATION}
    assert families_of(plan.jobs[1:]) == set()


def test_an_unknown_platform_is_told_the_nearest_names():
    with pytest.raises(UsageError, match="dokcer") as caught:
        platform_registry.choose(["dokcer"])
    assert "docker" in caught.value.fix


def test_margins_are_the_users_own_where_he_gave_some_the_nearest_first():
    chosen = [workloads.get(name) for name in ("primes", "sysbench-cpu", "stream", "iperf3-tcp")]
    margins = {"": 0.03, "cpu": 0.005, "primes": 0.002}
    jobs = make_jobs(chosen, "quick", margins=margins)
    assert [job.margin for job in jobs] == pytest.approx([0.002, 0.005, 0.03, 0.03])
    assert [job.margin for job in make_jobs(chosen, "quick")] == [0.01, 0.01, 0.02, 0.05]


def test_a_margin_for_what_is_not_there_is_an_error_and_not_lost():
    with pytest.raises(UsageError, match="no margin can be given for 'cup'"):
        make_jobs([workloads.get("primes")], "quick", margins={"cup": 0.01})


def test_which_workloads_have_a_client_is_seen_by_their_plans():
    names = ("tcp-rr", "http-get", "udp-rtt", "iperf3-tcp", "density-network", "ping-rtt", "sysbench-cpu", "startup")
    jobs = make_jobs([workloads.get(name) for name in names], "quick")
    assert [job.workload.name for job in jobs if job.has_client] == list(names[:5])


@pytest.mark.parametrize("quota", [0.0, -1.0, 0.001, 3.5, float("nan"), float("inf")])
def test_a_quota_beyond_the_cpus_is_refused(quota, monkeypatch):
    monkeypatch.setattr(campaign_request, "usable_cpus", lambda: [0, 1, 2])
    with pytest.raises(UsageError, match="CPUs' worth of time") as refused:
        CampaignRequest(cpu_quota=quota, memory_bytes=1 << 29).check()
    assert refused.value.fix == "give --cpu-quota between 0.01 and 3"
    CampaignRequest(cpu_quota=1.5, memory_bytes=1 << 29).check()
