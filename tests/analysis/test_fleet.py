"""Campaigns of many hosts, merged: what is found in them, and what is left out with its reason."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import numpy as np
import pytest

import fake_campaign
from refused import refused
from tare.analysis.comparisons.merged_hosts import MAX_GROUPS, Fleet, Gathering, facts_of, merge
from tare.analysis.comparisons.sides import MetricSide
from tare.analysis.comparisons.summaries import Summary, Why
from tare.errors import UsageError
from tare.model import Design

SHAPE = fake_campaign.Shape(slowdown={"native": 1.0, "gvisor": 1.2}, workloads=("prime-slices",))
RECORD = fake_campaign.record(SHAPE)
CPU = {"model": "Invented 9000", "microcode": "0x2", "governors": ["performance"]}


def campaign(
    times: float, rng: np.random.Generator, *, blocks: int = 6, noise: float = 0.005, **changed: object
) -> Summary:
    """A host's campaign, whose gvisor takes so many times native's; the rate goes down, the cost up."""
    facts = {"id": str(uuid.UUID(bytes=rng.bytes(16))), "host": {**RECORD.host, "cpu": CPU}} | changed
    sides = {
        ("gvisor", "prime-slices", metric): MetricSide(
            sign * np.log(times) + rng.normal(0, noise, blocks), 100.0, unfit=False
        )
        for metric, sign in (("rate", -1), ("cpu-cost", 1))
    }
    return Summary(f"{facts['id'][:8]}.tare", RECORD.model_copy(update=facts), sides)


def fleet_of(hosts: Mapping[str, Summary], **options: object) -> Fleet:
    gathering = Gathering()
    for name, summary in hosts.items():
        gathering.add(name, summary)
    return merge(gathering, **options)


def hosts(count: int = 20, *, spread: float = 0.02, seed: int = 3) -> dict[str, Summary]:
    rng = np.random.default_rng(seed)
    return {f"web{at}": campaign(1.2 * np.exp(rng.normal(0, spread)), rng) for at in range(count)}


def reasons(fleet: Fleet) -> list[tuple[str, str]]:
    return [(entry.why, entry.text) for entry in fleet.left_out]


def test_the_mean_and_the_spread_over_hosts_are_found() -> None:
    fleet = fleet_of(hosts(60))
    rate, cost = fleet.figures
    assert (rate.metric, rate.headline, cost.metric, cost.headline) == ("rate", True, "cpu-cost", False)
    for figure in fleet.figures:  # worse is positive, whichever way the metric is better
        assert figure.mean.low < np.log(1.2) < figure.mean.high
        assert figure.mean.point == pytest.approx(np.log(1.2), abs=0.01)
        assert figure.spread == pytest.approx(0.02, rel=0.25)
        assert figure.prediction is not None
        inside = (figure.prediction.low <= figure.effects) & (figure.effects <= figure.prediction.high)
        assert 0.8 < inside.mean() <= 1
        assert not figure.odd.any()
        assert figure.mean.half_width < figure.spread
        assert set(figure.values) == {100.0}


def test_a_host_counts_once_whatever_its_number_of_blocks() -> None:
    rng = np.random.default_rng(4)
    long = {"web0": campaign(2.4, rng, blocks=400), **{f"web{at}": campaign(1.2, rng) for at in range(1, 11)}}
    [figure, _] = fleet_of(long).figures
    assert np.exp(figure.mean.point) < 1.4
    assert figure.blocks.tolist() == [400, *[6] * 10]


def test_an_odd_host_is_named_with_what_differs_there() -> None:
    rng = np.random.default_rng(5)
    odd = campaign(
        1.5, rng, host={**RECORD.host, "cpu": CPU | {"microcode": "0x1"}, "huge_pages": "never"}, tare_version="0.2.0"
    )
    fleet = fleet_of(hosts() | {"web99": odd})
    [(place, figures)] = fleet.odd()
    assert fleet.hosts[place].name == "web99"
    assert {figure.metric for figure in figures} == {"rate", "cpu-cost"}
    assert all(figure.deviations[place] > 5 for figure in figures)
    found = {unlike.fact: (unlike.value, unlike.usual, unlike.sharing, unlike.others) for unlike in fleet.unlike(place)}
    assert found == {
        "microcode": ("0x1", "0x2", 0, 20),
        "thp": ("never", "unknown", 0, 20),
        "tare": ("0.2.0", "0.1.0", 0, 20),
    }


def test_what_odd_hosts_have_in_common_is_found() -> None:
    rng = np.random.default_rng(15)
    old = {"host": {**RECORD.host, "cpu": CPU | {"microcode": "0x1"}}}
    odd = {f"old{at}": campaign(1.5, rng, **old) for at in range(3)} | {"other": campaign(1.5, rng)}
    usual = {f"usual{at}": campaign(1.2, rng, **old) for at in range(1)}
    [fact] = fleet_of(hosts(30) | odd | usual).shared()
    assert (fact.fact, fact.value, fact.odd, fact.of_odd, fact.usual, fact.of_usual) == (
        "microcode",
        "0x1",
        3,
        4,
        1,
        31,
    )


def test_a_common_value_is_no_candidate() -> None:
    rng = np.random.default_rng(16)
    half = {
        f"half{at}": campaign(1.2 * np.exp(rng.normal(0, 0.02)), rng, host={**RECORD.host, "kernel": "6.12"})
        for at in range(12)
    }
    odd = {"odd": campaign(1.6, rng, host={**RECORD.host, "kernel": "6.12"})}
    fleet = fleet_of(hosts(20) | half | odd)
    [place] = fleet.odd_places
    assert fleet.hosts[place].name == "odd"
    assert fleet.usual["kernel"] == {"6.1.0-fake": 20, fleet.hosts[place].facts["kernel"]: 12}
    assert fleet.unlike(place) == []


def test_a_group_has_its_own_mean_and_its_own_odd_hosts() -> None:
    rng = np.random.default_rng(6)
    new = {
        f"new{at}": campaign(1.4 * np.exp(rng.normal(0, 0.01)), rng, host={**RECORD.host, "cpu": CPU, "kernel": "6.12"})
        for at in range(15)
    }
    both = hosts(15, spread=0.01) | new | {"between": campaign(1.3, rng)}
    fleet = fleet_of(both, by="kernel")
    [figure, _] = fleet.figures
    assert [(group.value, group.n_hosts) for group in figure.groups] == [("6.1.0-fake", 16), ("6.12", 15)]
    assert [np.exp(group.mean.point) for group in figure.groups] == pytest.approx([1.2, 1.4], abs=0.02)
    assert [fleet.hosts[place].name for place, _ in fleet.odd()] == ["between"]
    assert [fleet_of(both).hosts[place].name for place, _ in fleet_of(both).odd()] == []


def test_a_fact_that_no_host_has_names_those_that_there_are() -> None:
    with pytest.raises(UsageError) as error:
        fleet_of(hosts(3), by="colour")
    assert "no host has a fact 'colour'" in error.value.what
    assert error.value.fix is not None
    assert "microcode" in error.value.fix


def test_more_groups_than_can_be_read_are_refused() -> None:
    rng = np.random.default_rng(7)
    many = {f"web{at}": campaign(1.2, rng, host={"kernel": f"6.{at}"}) for at in range(MAX_GROUPS + 1)}
    with pytest.raises(UsageError, match="41 values of kernel"):
        fleet_of(many, by="kernel")


def test_a_copy_of_a_campaign_counts_once_by_the_longer_one() -> None:
    rng = np.random.default_rng(8)
    long, short = campaign(1.2, rng, blocks=8), campaign(1.2, rng, blocks=4)
    copy = Summary("early.tare", long.record, short.sides)
    fleet = fleet_of({"web1": copy, "web2": long, "web3": short})
    assert reasons(fleet) == [(Why.SAME_CAMPAIGN, long.name)]
    assert [host.name for host in fleet.hosts] == ["web2", "web3"]


def test_a_host_counts_by_its_newest_campaign() -> None:
    rng = np.random.default_rng(9)
    gathering = Gathering()
    for created in (100.0, 300.0, 200.0):
        gathering.add("web1", campaign(1.2, rng, created=created))
    gathering.add("web2", campaign(1.2, rng))
    fleet = merge(gathering)
    assert [host.created for host in fleet.hosts if host.name == "web1"] == [300.0]
    assert [entry.why for entry in fleet.left_out] == [Why.SAME_HOST] * 2


def test_two_names_of_one_machine_count_once_unless_asked_otherwise() -> None:
    rng = np.random.default_rng(10)
    gathering = Gathering()
    for name, boots in (("web1", ["boot-1"]), ("alias", ["boot-0", "boot-1"]), ("web2", ["boot-2"]), ("web3", [])):
        gathering.add(name, campaign(1.2, rng), boots)
    fleet = merge(gathering)
    assert [host.name for host in fleet.hosts] == ["alias", "web2", "web3"]
    assert reasons(fleet) == [(Why.SAME_MACHINE, "alias")]
    assert len(merge(gathering, each_file=True).hosts) == 4


@pytest.mark.parametrize(
    ("changed", "why", "text"),
    [
        ({"baseline": "gvisor"}, Why.BASELINE, "gvisor"),
        ({"design": Design.SEQUENTIAL}, Why.SEQUENTIAL, ""),
        ({"workloads": [RECORD.workloads[0].model_copy(update={"params": {"n": 2}})]}, Why.WORK, "prime-slices"),
        ({"workloads": [RECORD.workloads[0].model_copy(update={"revision": 2})]}, Why.WORK, "prime-slices"),
    ],
)
def test_a_host_that_did_otherwise_than_most_is_left_out(changed: dict, why: Why, text: str) -> None:
    fleet = fleet_of(hosts(5) | {"other": campaign(1.2, np.random.default_rng(11), **changed)})
    assert reasons(fleet) == [(why, text)]
    assert {figure.n_hosts for figure in fleet.figures} == {5}


def test_a_host_with_one_block_is_left_out() -> None:
    fleet = fleet_of(hosts(3) | {"short": campaign(1.2, np.random.default_rng(12), blocks=1)})
    assert reasons(fleet) == [(Why.TOO_FEW_BLOCKS, "")]


def test_one_host_has_no_spread() -> None:
    [figure, _] = fleet_of(hosts(1)).figures
    assert (figure.n_hosts, figure.spread, figure.prediction) == (1, None, None)
    assert np.isnan(figure.mean.low)


def test_no_host_is_an_error() -> None:
    with refused("no campaign"):
        merge(Gathering())


def test_facts_are_short_texts_whatever_a_file_says() -> None:
    hostile = {
        "cpu": {"model": "x" * 5_000, "governors": [1, "a\nb"], "smt": True},
        "memory_bytes": "much",
        "virtualised": None,
        "mitigations": {"a": "b\x1b[31m"},
    }
    facts = facts_of(RECORD.model_copy(update={"host": hostile}))
    assert len(facts["cpu"]) == 200
    assert (facts["governor"], facts["smt"]) == ("1, a b", "on")
    assert (facts["memory"], facts["virtualization"], facts["container"]) == ("unknown", "none", "unknown")
    assert facts_of(RECORD.model_copy(update={"host": {"cpu": 5}}))["cpu"] == "unknown"
