"""A study's profile as a campaign's order: what the study's file decides, and what the user's own options do."""

import pytest

from tare.campaign.plan.campaign_plan import make_jobs
from tare.campaign.plan.campaign_request import DEFAULT_MEMORY, CampaignRequest
from tare.campaign.plan.presets import foreword, ordered
from tare.campaign.plan.schedule import schedule_block
from tare.errors import UsageError
from tare.features.studies.literature import load, names, studies
from tare.features.studies.profiles import full_length
from tare.model import Arm, Design, Scale
from tare.platforms import platform_registry as platforms
from tare.workloads import workload_registry as workloads
from tare.workloads.base import RunWorkload, SliceWorkload, Surroundings

STUDIES = pytest.mark.parametrize("study", studies(), ids=names())


def test_a_profile_has_the_studys_platforms_workloads_parameters_repetitions_and_order():
    order = ordered(CampaignRequest(profile="karna-2021"))
    assert order.platforms == ["native", "qemu", "docker", "docker-gvisor-ptrace", "firecracker"]
    assert order.offered, "what does not run here is left out"
    assert order.workloads[:2] == ["startup", "sysbench-fileio-seqrd"]
    assert (order.design, order.in_order) == (Design.SEQUENTIAL, True)
    assert order.duration().blocks == 3
    one_run = {"max_prime": 10_000, "threads": 1, "events": 0, "time_s": 1, "rounds": 1}
    assert order.params["sysbench-cpu"] == one_run
    assert order.scale == "scaled"


def test_at_full_scale_it_is_the_studys_own():
    order = ordered(CampaignRequest(profile="karna-2021"), Scale.FULL)
    assert order.duration().blocks == 10
    assert order.params["sysbench-cpu"]["time_s"] == 10
    (job,) = make_jobs([workloads.get("sysbench-fileio-seqrd")], order.base, order.params)
    assert (job.params["total_mib"], job.params["time_s"]) == (5120, 30)
    assert order.scale == "full"


def test_a_study_that_counts_hours_has_them_for_each_arm():
    length = ordered(CampaignRequest(profile="li-2017"), Scale.FULL).duration()
    assert length.blocks is None
    assert length.budget(3) == 3 * 4 * 25 * 3600


def test_the_users_own_options_go_before_the_studys():
    mine = CampaignRequest(
        profile="karna-2021", platforms=["runc"], workloads=["sysbench-cpu"], blocks=2,
        params={"sysbench-cpu": {"time_s": 5}},
    )  # fmt: skip
    order = ordered(mine, design=Design.BLOCKS)
    assert (order.platforms, order.workloads, order.design) == (["runc"], ["sysbench-cpu"], Design.BLOCKS)
    assert not order.offered, "one that was named and does not run is an error"
    assert order.left_out == ()
    assert order.duration().blocks == 2
    assert order.params["sysbench-cpu"] == {"time_s": 5}
    assert ordered(CampaignRequest(profile="karna-2021", budget_s=60.0)).duration().budget_s == 60.0


def test_what_a_study_had_and_tare_has_not_is_left_out_with_the_reason():
    order = ordered(CampaignRequest(profile="plauth-2017"))
    assert {omission.platform for omission in order.left_out} == {"LXD in KVM", "Rumprun", "OSv", "MirageOS"}
    assert all(omission.reason for omission in order.left_out)


def test_other_profiles_stay_as_they_are_and_have_no_scale():
    assert ordered(CampaignRequest(profile="full")) == CampaignRequest(profile="full")
    assert ordered(CampaignRequest(), design=Design.DUET).design is Design.DUET
    with pytest.raises(UsageError, match="the profile quick has no scales"):
        ordered(CampaignRequest(), Scale.FULL)
    with pytest.raises(UsageError, match="there is no profile 'karna'") as refused:
        ordered(CampaignRequest(profile="karna")).duration()
    assert "karna-2021" in refused.value.fix


def test_it_says_what_is_scaled_and_how_long_the_full_would_take():
    study = load("karna-2021")
    order = ordered(CampaignRequest(profile="karna-2021"))
    assert f"scaled: 3 blocks instead of 10; {study.run.what_is_scaled};" in foreword(order)
    assert "scaled: 2 blocks instead" in foreword(ordered(CampaignRequest(profile="karna-2021", blocks=2)))
    assert f"scaled: {study.run.what_is_scaled};" in foreword(
        ordered(CampaignRequest(profile="karna-2021", budget_s=60.0))
    )
    assert full_length(study, order.workloads) == 10 * sum(
        job.full_s for job in study.run.job if job.workload in order.workloads
    )
    assert full_length(study, ["sysbench-cpu"]) == 110
    assert "about 3.9 h an arm" in foreword(order)
    assert "100.0 h an arm" in foreword(ordered(CampaignRequest(profile="li-2017")))
    assert foreword(ordered(CampaignRequest(profile="li-2017"), Scale.FULL)).startswith(
        "profile li-2017: the study's own"
    )
    assert foreword(CampaignRequest()) == ""


def test_what_a_campaign_did_less_than_the_study_is_said_at_each_scale():
    run = load("karna-2021").run
    assert run.shorter(Scale.FULL, 10) == ""
    assert run.shorter(Scale.FULL, 4) == "4 blocks instead of 10"
    assert run.shorter(Scale.SCALED, None) == run.what_is_scaled
    assert run.shorter(Scale.SCALED, 12) == run.what_is_scaled
    assert load("li-2017").run.shorter(Scale.FULL, 9) == "9 blocks instead of as many as fit into 100 hours an arm"


def test_in_order_the_workloads_of_every_block_run_as_listed():
    names = ["sysbench-memory", "sysbench-cpu", "startup", "stream", "iperf3-tcp", "memory-footprint"]
    jobs = [(workloads.get(name), 4 if name == "stream" else 0) for name in names]
    arms = (Arm("native"), Arm("docker"))
    # A start is a block's beginning, and a fresh instance comes after those that live already.
    for block in range(5):
        schedule = schedule_block(7, block, arms, jobs, in_order=True)
        assert [stage.workload for stage in schedule.stages] == [
            "startup", "sysbench-memory", "sysbench-cpu", "stream", "iperf3-tcp", "memory-footprint",
        ]  # fmt: skip
    drawn = {tuple(stage.workload for stage in schedule_block(7, block, arms, jobs).stages) for block in range(5)}
    assert len(drawn) > 1


#: An instance of the default size, with a network and a disk that has room for all.
AROUND = Surroundings(DEFAULT_MEMORY, 2, 1 << 40, "192.0.2.3", 20107, 5201, ping="192.0.2.3")


@pytest.mark.parametrize("scale", Scale)
@STUDIES
def test_every_profile_plans_and_starts_at_both_scales(study, scale):
    order = ordered(CampaignRequest(profile=study.name), scale)
    order.check()
    jobs = make_jobs(workloads.choose(order.workloads), order.base, order.params)
    assert [job.workload.name for job in jobs] == [job.workload for job in study.run.jobs(scale)]
    for job in jobs:
        if isinstance(job.workload, RunWorkload):
            assert job.workload.plan(job.params, AROUND).measures
        if isinstance(job.workload, SliceWorkload):
            job.workload.fitted(job.params, DEFAULT_MEMORY)


@pytest.mark.parametrize("scale", Scale)
@STUDIES
def test_no_profile_asks_bonnie_for_a_file_that_fits_the_page_cache(study, scale):
    """It tells no speed of what took less than half a second, and the trial fails."""
    order = ordered(CampaignRequest(profile=study.name), scale)
    for job in make_jobs(workloads.choose(order.workloads), order.base, order.params):
        if job.workload.name.startswith("bonnie"):
            assert job.params["size_mib"] == 0 or int(job.params["size_mib"]) << 20 >= DEFAULT_MEMORY


def test_a_level_of_the_full_scale_alone_is_not_in_the_scaled_run():
    scaled, full = (ordered(CampaignRequest(profile="karna-2021"), scale).workloads for scale in Scale)
    levels = [10, 30, 60, 90, 120, 150, 180, 200]
    assert [name for name in full if name.startswith("nginx-ab")] == [f"nginx-ab-connections-{at}" for at in levels]
    assert sum(name.startswith("mariadb") for name in full) == 21
    assert [name for name in full if name in scaled] == scaled
    assert len(scaled) < len(full)


@STUDIES
def test_every_platform_of_a_profile_is_one_of_tares(study):
    by_name = platforms.all_platforms()
    named = [name for entry in study.run.platform for name in (*entry.run, *entry.like)]
    assert set(named) <= by_name.keys()
    assert len(set(named)) == len(named), "a platform stands for one of the study's"
    names = [entry.study for entry in study.run.platform]
    assert names.count(study.source.baseline) == 1
    (base,) = (entry for entry in study.run.platform if entry.study == study.source.baseline)
    assert base.run == ["native"]
    assert set(names) == set(study.source.platforms), "each of the study's platforms runs, or has a reason"


@STUDIES
def test_every_workload_of_a_profile_exists_and_takes_its_parameters(study):
    for job in study.run.job:
        workload = workloads.get(job.workload)
        for parameters, base in ((job.scaled, "quick"), (job.full, "full")):
            defaults = workload.profiles[base]
            assert parameters.keys() <= defaults.keys(), job.workload
            assert all(type(defaults[key]) is type(value) for key, value in parameters.items()), job.workload
    assert len({job.workload for job in study.run.job}) == len(study.run.job)


@STUDIES
def test_every_metric_that_is_set_beside_a_studys_exists_and_has_its_direction(study):
    run = {job.workload for job in study.run.job}
    for link in study.beside:
        assert link.workload in run
        (metric,) = (metric for metric in workloads.get(link.workload).all_metrics if metric.name == link.ours)
        ways = {figure.direction for figure in study.figure if figure.metric == link.metric}
        assert (ways <= {metric.direction}) is (not ways or not link.inverse), link.metric


def test_a_preset_has_its_platforms_its_workloads_and_its_length():
    order = ordered(CampaignRequest(profile="apps-small"))
    assert order.platforms == ["native", "runc", "docker", "gvisor", "qemu"]
    assert order.offered, "what does not run here is left out"
    assert {workloads.get(name).family for name in order.workloads} == {"application"}
    assert order.duration().budget(6) <= 40 * 60
    assert {
        job.params == job.workload.profiles["quick"] for job in make_jobs(workloads.choose(order.workloads), order.base)
    } == {True}


def test_a_user_may_have_one_application_on_one_platform_of_a_preset():
    order = ordered(CampaignRequest(profile="apps-small", platforms=["runc"], workloads=["redis"], blocks=1))
    assert (order.platforms, order.workloads, order.duration().blocks) == (["runc"], ["redis"], 1)
    assert not order.offered
    with pytest.raises(UsageError, match="has no scales"):
        ordered(CampaignRequest(profile="apps-small"), Scale.FULL)
