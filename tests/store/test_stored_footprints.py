"""Footprints and surfaces in a campaign's file: what is kept comes back, and what is none is refused in one line.

What an older tare kept as attachments is read, and taken over, by the same strictness.
"""

import contextlib
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fake_campaign
import fake_surfaces
from tare.errors import StoreError
from tare.footprint_model import Footprint, Phase, Scope
from tare.model import Level
from tare.store import create_store, open_store, read_store
from tare.store.limits import MAX
from tare.store.packed import pack_hits, unpack_hits
from tare.store.row_rules import BrokenError

RELEASED = Path(__file__).parent / "released"
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
STEADY = Footprint.model_validate(FACTS)
START = Footprint(
    level=Level.LINES, scope=Scope.HOST, platform="gvisor", phase=Phase.START, workload=None, repeat=1,
    seconds=0.25, hits={"mm/mmap.c:1405": 1, "read": 7},
)  # fmt: skip


@pytest.fixture
def file(tmp_path):
    create_store(tmp_path / "some.tare", fake_campaign.record(fake_campaign.Shape())).close()
    return tmp_path / "some.tare"


@pytest.fixture
def edited(file):
    """Statements by hand on a file with two footprints."""

    def run(*statements):
        with open_store(file) as store:
            store.add_footprint(STEADY)
            store.add_footprint(START)
        with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as db:
            for statement in statements:
                db.execute(statement)
        return file

    return run


def footprints(file):
    with read_store(file) as store:
        return list(store.footprints())


def version(file):
    with contextlib.closing(sqlite3.connect(file)) as db:
        return db.execute("PRAGMA user_version").fetchone()[0]


def test_a_name_is_one_object_throughout(edited):
    first, second = footprints(edited())
    assert next(name for name in first.hits if name == "read") is next(name for name in second.hits if name == "read")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE footprint SET hits = x'0200' WHERE id = 2", "hits is 0"),
        (
            "UPDATE footprint SET hits = x'02ffffffffffffffff7f0201' WHERE id = 2",
            "footprint 2 is not valid: no kernel",
        ),
        ("UPDATE footprint SET hits = x'02ffffffffffffffffff01' WHERE id = 2", "no pairs of numbers"),
        ("UPDATE footprint SET hits = x'02010001' WHERE id = 2", "has the same thing twice"),
        ("UPDATE footprint SET hits = x'0201ff' WHERE id = 2", "no pairs of numbers"),
        ("UPDATE footprint SET hits = x'020102' WHERE id = 2", "no pairs of numbers"),
        ("UPDATE footprint SET hits = x'ffff' WHERE id = 2", "no pairs of numbers"),
        ("UPDATE footprint SET hits = zeroblob(9000000) WHERE id = 2", "more than 8 MiB of hits"),
        ("UPDATE footprint SET hits = 'often' WHERE id = 2", "packed hits is not"),
        ("UPDATE footprint SET hits = 7 WHERE id = 2", "packed hits is not"),
        ("UPDATE footprint SET hits = x'800101' WHERE id = 2", "2 is not valid: it has a thing without a name"),
        ("UPDATE footprint SET hits = x'0101' WHERE id = 2", "2 is not valid: it has a thing without a name"),
        ("UPDATE thing SET id = id + 70", "1 is not valid: it has a thing without a name"),
        ("UPDATE thing SET id = 2147483647 WHERE id = 1", "thing is 2147483647"),
        ("UPDATE thing SET id = 9223372036854775807 WHERE id = 1", "not of its column's type"),
        ("UPDATE thing SET id = -1 WHERE id = 1", "thing is -1"),
        ("UPDATE footprint SET seconds = 0 WHERE id = 2", "footprint 2 is not valid: seconds"),
        ("UPDATE footprint SET seconds = 9e999 WHERE id = 2", "footprint 2 is not valid: no kernel"),
        ("UPDATE footprint SET level = 'rings' WHERE id = 2", "footprint 2 is not valid: level"),
        ("UPDATE footprint SET repeat = -1 WHERE id = 2", "repeat is -1"),
    ],
)
def test_rows_that_do_not_hold_are_refused_in_one_line(edited, statement, message):
    file = edited(statement)
    with pytest.raises(StoreError) as refused:
        footprints(file)
    assert message in refused.value.what
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE surface_call SET outcome = 'perhaps' WHERE task IS NULL", "surface 1 is not valid: calls."),
        ("UPDATE surface_task SET pid = 'init'", "not of its column's type"),
        ("UPDATE surface SET at = 9e999", "at is inf"),
    ],
)
def test_rows_of_a_surface_that_do_not_hold_are_refused_in_one_line(file, statement, message):
    with open_store(file) as store:
        store.add_surface(fake_surfaces.surface())
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute(statement)
    with read_store(file) as store, pytest.raises(StoreError) as refused:
        list(store.surfaces())
    assert message in refused.value.what


# --- how hits are packed --------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 2**31 - 2), st.integers(1, MAX))))
def test_hits_come_back_from_their_packing_in_order(pairs):
    ids, hits = (np.array(numbers, np.int64) for numbers in (zip(*pairs, strict=True) if pairs else ((), ())))
    unpacked = unpack_hits(pack_hits(ids, hits))
    assert [numbers.tolist() for numbers in unpacked] == [ids.tolist(), hits.tolist()]


@given(st.binary(max_size=60))
def test_any_bytes_are_hits_or_refused(data):
    with contextlib.suppress(BrokenError):
        ids, hits = unpack_hits(data)
        assert len(ids) == len(hits) <= len(data) / 2
        assert hits.min(initial=1) >= 1


def test_hits_are_packed_as_they_were_released():
    ids, hits = np.array([1, 2, 70, 3, 2**31 - 2]), np.array([1, 127, 128, 16384, MAX])
    assert pack_hits(ids, hits).hex(" ") == (
        "02 01 02 7f 88 01 80 01 85 01 80 80 01 f6 ff ff ff 0f ff ff ff ff ff ff ff ff 7f"
    )


def test_a_footprint_of_nothing_comes_back(file):
    nothing = STEADY.model_copy(update={"hits": {}})
    with open_store(file) as store:
        store.add_footprint(nothing)
    assert footprints(file) == [nothing]


def test_hits_are_a_few_bytes_each_and_a_name_is_kept_once(file):
    hits = {f"some_function_of_a_kernel_{number}": 1 + number * 7919 % 100_000 for number in range(1000)}
    with open_store(file) as store:
        before = store._db.execute("SELECT * FROM pragma_page_count").fetchone()[0]
        for repeat in range(20):
            store.add_footprint(STEADY.model_copy(update={"hits": hits, "repeat": repeat}))
        assert store._db.execute("SELECT count(*) FROM thing").fetchone() == (1000,)
        assert store._db.execute("SELECT max(length(hits)) FROM footprint").fetchone()[0] < 4000
        assert store._db.execute("SELECT * FROM pragma_page_count").fetchone()[0] - before < 40


def test_one_with_more_hits_than_are_read_or_with_none_of_a_thing_is_not_written(file, monkeypatch):
    with open_store(file) as store:
        for hits in ({"read": 0}, {"read": -1}, {"read": 2**63}):
            with pytest.raises(StoreError, match="footprint 1 is not valid"):
                store.add_footprint(STEADY.model_copy(update={"hits": hits}))
        monkeypatch.setattr("tare.store.footprint_rows.HITS_CAP", 5)
        with pytest.raises(StoreError, match="footprint 1 is not valid: it has more than"):
            store.add_footprint(STEADY)
        store.add_footprint(STEADY.model_copy(update={"hits": {"write": 1}}))
        assert [footprint.hits for footprint in store.footprints()] == [{"write": 1}]


def test_names_are_right_after_a_write_that_failed(file, monkeypatch):
    with open_store(file) as store:
        store.add_footprint(STEADY)
        with monkeypatch.context() as patch:
            patch.setattr("tare.store.footprint_rows.HITS_CAP", 1)  # which is found once its names are written
            with pytest.raises(StoreError):
                store.add_footprint(START)
        store.add_footprint(START)
        assert list(store.footprints()) == [STEADY, START]
    with open_store(file) as store:
        store.add_footprint(START)
        assert list(store.footprints()) == [STEADY, START, START]
        assert store._db.execute("SELECT count(*), count(DISTINCT name) FROM thing").fetchone() == (3, 3)
