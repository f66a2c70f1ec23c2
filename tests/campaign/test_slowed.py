"""Copies of platforms that do more: their names tell apart who is a copy, and a record is enough to make them again."""

from campaign.fakes import FakePlatform, a_plan, a_record
from tare.campaign import known_results
from tare.campaign.execution import run_campaign
from tare.campaign.execution.preflight import StartedPlatform
from tare.campaign.execution.slowed import EXTRA, originals
from tare.model import Resources
from tare.store import PlatformRecord

SHARES = (0.005, 0.05)
NAMES = ("native", "runc")
COPIES = ["native+0.5%", "native+5%", "runc+0.5%", "runc+5%"]


def _ready():
    return [
        StartedPlatform(
            FakePlatform(name, baseline=name == "native"), PlatformRecord(name=name, title=name, version="0"), {}
        )
        for name in NAMES
    ]


def _record():
    request = run_campaign.CampaignRequest(blocks=3, slowed=SHARES)
    plan, ready = run_campaign._plan(request, _ready(), a_plan().jobs, Resources((0,), 1 << 30))
    record = a_record(plan)
    return plan, record.model_copy(
        update={
            "platforms": [platform.record for platform in ready],
            "slowed": list(plan.slowed),
            "targets": dict(plan.targets),
        }
    )


def test_a_resumed_campaign_has_the_arms_and_the_extra_work_of_the_first():
    plan, record = _record()
    assert originals(record) == list(NAMES)
    again = run_campaign._plan_of(record, _ready(), plan.jobs, plan.resources)
    assert [platform.name for platform in again.platforms] == [*NAMES, *COPIES]
    assert again.arms == plan.arms == tuple(record.all_arms())
    assert again.extra == plan.extra
    assert again.extra["runc+5%"] == {EXTRA: 50_000}
    assert (again.blocks, again.seed, again.replicas, again.slowed) == (plan.blocks, plan.seed, 2, SHARES)


def test_what_was_added_is_what_the_file_has_whatever_is_asked_for_now():
    _, record = _record()
    assert [name for _, name, _ in known_results.added(record)] == COPIES
    of_older_tare = record.model_copy(update={"slowed": []})
    assert [name for _, name, _ in known_results.added(of_older_tare)] == COPIES


def test_a_campaign_without_copies_has_none():
    record = a_record(a_plan())
    assert originals(record) == ["native", "runc", "docker"]
    assert known_results.added(record) == []
