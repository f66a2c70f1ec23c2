"""What was not alike is listed; what makes a comparison unfair forbids it, unless the platform was asked for."""

import pytest

import fake_campaign
from tare.analysis import VerdictKind, analyse
from tare.analysis.quality.fairness import differences, refusals, unlike_mtus
from tare.analysis.verdicts import Reason
from tare.store import read_store

NATIVE = {
    "host": "this one",
    "image": "aa",
    "agent": "0.1.0",
    "cpus pinned": [1],
    "cpus seen inside": 1,
    "memory limit": 1 << 30,
    "kernel seen inside": "6.1.0",
    "network path": "veth",
}


def _record(**others):
    record = fake_campaign.record(fake_campaign.Shape(failing=None, unsupported=None))
    manifest = {"native": NATIVE} | {name: NATIVE | facts for name, facts in others.items()}
    return record.model_copy(update={"fairness": manifest})


def test_what_is_alike_is_not_listed_and_a_campaign_without_a_manifest_has_no_list():
    assert differences(_record(docker={})) == []
    assert differences(fake_campaign.record(fake_campaign.Shape())) == []


def test_what_a_platform_is_made_of_is_listed_and_forbids_nothing():
    [kernel] = differences(_record(docker={"kernel seen inside": "4.19.0-gvisor"}))
    assert (kernel.platform, kernel.value, kernel.baseline) == ("docker", "4.19.0-gvisor", "6.1.0")
    assert not kernel.unfair
    assert refusals(_record(docker={"kernel seen inside": "4.19.0-gvisor", "network path": "NAT"})) == {}


def test_each_limit_that_differs_is_listed_and_forbids_nothing():
    limits = {"limit of swap": "0", "limit of thp": "madvise"}
    [huge_pages] = differences(_record(native={**NATIVE, **limits}, docker={**limits, "limit of thp": "none"}))
    assert (huge_pages.fact, huge_pages.value, huge_pages.baseline) == ("limit of thp", "none", "madvise")
    assert not huge_pages.unfair


@pytest.mark.parametrize(
    ("facts", "unlike"),
    [
        ({"image": None, "agent": None}, ("image", "agent")),
        ({"cpus seen inside": 2}, ("cpus seen inside",)),
        ({"cpus pinned": [0, 1]}, ("cpus pinned",)),
        ({"memory limit": 1 << 29}, ("memory limit",)),
        ({"host": "another"}, ("host",)),
    ],
)
def test_what_makes_it_unfair_is_refused_unless_asked_for(facts, unlike):
    assert refusals(_record(docker=facts)) == {"docker": unlike}
    record = _record(docker=facts).model_copy(update={"asked": ["docker"]})
    assert refusals(record) == {}


def test_an_mtu_is_unlike_where_both_are_known_and_differ_and_forbids_nothing():
    unlike = {"docker": {"mtu inside": 1450}, "lxc": {}, "gvisor-host": {"mtu inside": "unknown"}}
    record = _record(**unlike)
    assert unlike_mtus(record) == {}  # of a file from before it was recorded
    record.fairness["native"]["mtu inside"] = 1500
    assert unlike_mtus(record) == {"docker": (1450, 1500)}
    assert refusals(record) == {}


@pytest.mark.thorough
def test_a_refused_platform_has_no_figure_and_the_others_have(tmp_path):
    with read_store(fake_campaign.write(tmp_path / "x.tare")) as store:
        results = analyse(_record(docker={"image": "bb"}), store.samples(), store.trials())
    for result in results:
        by_name = {platform.platform: platform for platform in result.platforms}
        assert by_name["docker"].verdict.kind is VerdictKind.NO_DATA
        verdict = by_name["docker"].verdict
        assert (verdict.reason, verdict.unlike) == (Reason.NOT_ALIKE, ("image",))
        assert by_name["docker"].ratio is None
        assert by_name["runc"].ratio is not None
