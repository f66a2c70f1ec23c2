"""Footprints in a campaign's file: what is kept comes back, and what is none is refused in one line."""

import json

import pytest

from campaign.fakes import a_plan, a_record
from tare.errors import StoreError
from tare.footprint.model import ATTACHMENT, Footprint, Level, Phase, Scope
from tare.footprint.record import footprints, keep
from tare.store.store import Store

FACTS = {
    "level": "syscalls",
    "scope": "instance",
    "platform": "native",
    "phase": "steady",
    "workload": "sysbench-cpu",
    "repeat": 0,
    "seconds": 1.5,
    "hits": {"read": 3, "getpid [i386]": 2**40},
    "lost": 2,
    "known": 360,
}


@pytest.fixture
def store(tmp_path):
    with Store.create(tmp_path / "some.tare", a_record(a_plan())) as store:
        yield store


def test_what_is_kept_comes_back_in_its_order_and_other_attachments_are_left_alone(store):
    start = Footprint(
        level=Level.LINES, scope=Scope.HOST, platform="gvisor", phase=Phase.START, workload=None, repeat=1,
        seconds=0.25, hits={"mm/mmap.c:1405": 1},
    )  # fmt: skip
    steady = Footprint.model_validate(FACTS)
    keep(store, steady)
    store.add_attachment("console of runc", b"{}")
    keep(store, start)
    assert footprints(store) == [steady, start]
    with Store.read(store.path) as again:
        assert footprints(again) == [steady, start]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hits": {"read": 0}}, "hits.read: Input should be greater than 0"),
        ({"hits": {"read": -1}}, "hits.read"),
        ({"hits": {"read": 2**63}}, "no kernel can have run so long, or so much"),
        ({"hits": ["read"]}, "hits"),
        ({"seconds": 0}, "seconds"),
        ({"seconds": float("inf")}, "no kernel"),
        ({"seconds": float("nan")}, "seconds"),
        ({"level": "rings"}, "level"),
        ({"repeat": -1}, "repeat"),
    ],
)
def test_what_does_not_hold_is_refused_with_its_place(store, change, said):
    keep(store, Footprint.model_validate(FACTS))
    store.add_attachment(ATTACHMENT, json.dumps(FACTS | change).encode())
    with pytest.raises(StoreError, match="footprint 2 does not hold") as refused:
        footprints(store)
    assert said in refused.value.what


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[]", b"null", b"{" * 5000])
def test_what_is_no_footprint_at_all_is_refused(store, data):
    store.add_attachment(ATTACHMENT, data)
    with pytest.raises(StoreError, match="footprint 1 does not hold"):
        footprints(store)


def test_what_a_newer_tare_tells_of_a_footprint_beside_is_read_past(store):
    store.add_attachment(ATTACHMENT, json.dumps(FACTS | {"more": {"of": "it"}}).encode())
    assert footprints(store) == [Footprint.model_validate(FACTS)]
