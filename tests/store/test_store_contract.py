"""What a store of campaigns has to do, whatever it keeps them in: the tests that every backend passes.

A new one (say, of a database server) is named in `BACKENDS`, by a function that gives one which keeps nothing yet, and
has to pass as it is. The tests give it a bare name (`PLACE`) for a location; elsewhere it gets ``SCHEME:/...``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from dict_store import DictBackend
from one_trial import KEY, TRIAL

import fake_campaign
import fake_footprints
import fake_surfaces
from tare.errors import StoreError
from tare.model import Arm, Sample, Status, Trial
from tare.report.campaign.report_builder import report_on
from tare.store import OUTPUT_CAP, Store, read_store
from tare.store.opening import Backend, backend

SHAPE = fake_campaign.Shape(blocks=3, rounds=2)
RECORD = fake_campaign.record(SHAPE)
PLACE = "run.tare"
BACKENDS = {"sqlite": lambda: backend(PLACE), "dict": DictBackend}


@pytest.fixture(params=BACKENDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Backend:
    """A backend that keeps nothing yet."""
    monkeypatch.chdir(tmp_path)
    return BACKENDS[request.param]()


def test_samples_of_some_blocks_only(stores: Backend) -> None:
    with stores.create(PLACE, RECORD) as store:
        fake_campaign.fill(store, SHAPE)
    with stores.read(PLACE) as store:
        whole = store.samples()
        for first, end in ((1, None), (0, 1), (1, 3), (3, None)):
            block = whole["block"]
            expected = whole.filter((block >= first) & (block < (99 if end is None else end)))
            assert store.samples(first, end).equals(expected)


def test_a_trial_comes_back_as_it_was_written(stores: Backend) -> None:
    with stores.create(PLACE, RECORD) as store:
        store.commit_trials([TRIAL])
    with stores.read(PLACE) as store:
        samples = {(r["metric"], r["round"]): r["value"] for r in store.samples().iter_rows(named=True)}
        assert samples.pop(("rate", 0)) == 2.5
        assert math.isnan(samples.pop(("rate", 1)))
        assert samples == {("cpu-cost", 0): math.inf}
        assert store.trials().row(0, named=True) == {
            "seq": 0,
            "block": 0,
            "workload": "prime-slices",
            "platform": "native",
            "replica": 0,
            "status": "ok",
            "reason": None,
            "started": 1.5,
            "wall_ns": 10,
            "cpu_ns": 2**60 + 1,
            "daemon_cpu_ns": None,
            "steal": 0.01,
            "pressure": None,
            "load": 0.25,
            "clock_offset_ns": -(2**60),
            "clock_offset_error_ns": 8,
            "clock_rate_low": -0.25,
            "clock_rate_high": 1e6,
            "turn_s": pytest.approx(1e-8),
        }
        assert store.slices().row(0)[4:] == (0, 1, 2**60 + 3, 4, None, 6, 7)
        assert store.outputs(KEY)["stdout"].data == b"hello"
        assert store.record == RECORD


def test_schedule_keeps_its_order_and_done_is_what_was_committed(stores: Backend) -> None:
    keys = [replace(KEY, arm=arm) for arm in reversed(fake_campaign.arms(SHAPE))]
    later = [replace(key, block=1) for key in keys]
    with stores.create(PLACE, RECORD) as store:
        store.plan_block(0, keys)
        store.plan_block(1, later)
        store.commit_trials([TRIAL])
        assert store.schedule() == keys + later
        assert store.done() == {KEY}


def test_a_block_cannot_be_planned_twice_nor_under_another_number(stores: Backend) -> None:
    with stores.create(PLACE, RECORD) as store:
        store.plan_block(0, [KEY])
        with pytest.raises(StoreError, match="in the file already"):
            store.plan_block(0, [KEY])
        with pytest.raises(StoreError, match="does not belong to block 1"):
            store.plan_block(1, [KEY])
        assert store.schedule() == [KEY]


def test_a_doubled_trial_is_refused_and_nothing_of_its_transaction_stays(stores: Backend) -> None:
    other = replace(TRIAL, key=replace(KEY, block=1))
    with stores.create(PLACE, RECORD) as store:
        store.commit_trials([TRIAL])
        with pytest.raises(StoreError, match=r"prime-slices on native in block 0.*already"):
            store.commit_trials([other, TRIAL])
        assert store.done() == {KEY}
        assert store.samples().height == 3
        store.commit_trials([other])
        assert store.done() == {KEY, other.key}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("trial", "message"),
    [
        (replace(TRIAL, key=replace(KEY, workload="fortune")), "does not name it"),
        (replace(TRIAL, key=replace(KEY, arm=Arm("kata"))), "does not name it"),
        (replace(TRIAL, samples=(Sample("speed", 1.0),)), "metric speed"),
        (replace(TRIAL, samples=(Sample("rate", 1.0), Sample("rate", 2.0))), "same round twice"),
        (replace(TRIAL, reason="but"), "is not valid"),
        (replace(TRIAL, status=Status.FAILED), "is not valid"),
    ],
)
def test_a_trial_that_makes_no_sense_is_refused(stores: Backend, trial: Trial, message: str) -> None:
    with stores.create(PLACE, RECORD) as store:
        with pytest.raises(StoreError, match=message):
            store.commit_trials([trial])
        assert store.done() == set()


def test_samples_of_a_failed_trial_stay_out_of_the_estimates(stores: Backend) -> None:
    with stores.create(PLACE, RECORD) as store:
        store.commit_trials([replace(TRIAL, status=Status.FAILED, reason="died")])
        assert store.samples().is_empty()
        assert store.trials()["reason"].to_list() == ["died"]


def test_long_outputs_are_capped_and_say_so(stores: Backend) -> None:
    flood = b"x" * (OUTPUT_CAP + 5)
    with stores.create(PLACE, RECORD) as store:
        store.commit_trials([replace(TRIAL, outputs={"stderr": flood})])
        output = store.outputs(KEY)["stderr"]
        assert output.capped
        assert (len(output.data), output.full_bytes) == (OUTPUT_CAP, OUTPUT_CAP + 5)
        assert store.outputs(replace(KEY, block=2)) == {}


def test_events_status_and_attachments(stores: Backend) -> None:
    with stores.create(PLACE, RECORD) as store:
        assert store.status == "planned"
        store.set_status("interrupted")
        store.add_event("warning", "the disk is slow")
        store.add_attachment("console", b"\x00boot")
        store.add_attachment("console", b"again")
    with stores.read(PLACE) as store:
        assert store.status == "interrupted"
        assert [(event.level, event.text) for event in store.events()] == [("warning", "the disk is slow")]
        assert store.attachments() == [("console", b"\x00boot"), ("console", b"again")]


@pytest.mark.thorough
def test_footprints_and_surfaces_come_back_in_order(stores: Backend) -> None:
    counted, read = list(fake_footprints.invented(repeats=1)), fake_surfaces.captured()
    with stores.create(PLACE, RECORD) as store:
        for footprint in counted:
            store.add_footprint(footprint)
        store.add_attachment("console", b"boot")
        for surface in read:
            store.add_surface(surface)
    with stores.read(PLACE) as store:
        footprints = list(store.footprints())
        assert footprints == counted
        assert [list(footprint.hits) for footprint in footprints] == [list(footprint.hits) for footprint in counted], (
            "in their order"
        )
        assert list(store.surfaces()) == read


def test_no_calls_and_unknown_calls_are_not_the_same_nor_no_answer_and_none_told(stores: Backend) -> None:
    tasks = fake_surfaces.tasks(calls={}, outcomes={"clone": (), "mount": ("errno 1", "allow")})
    read = [fake_surfaces.surface("a", tasks, calls={}), fake_surfaces.surface("b", calls=None, unread=("x", "y"))]
    with stores.create(PLACE, RECORD) as store:
        for surface in read:
            store.add_surface(surface)
        assert list(store.surfaces()) == read


def test_ticks_come_back_as_they_were_written(stores: Backend) -> None:
    ticks = list(fake_campaign.ticks(SHAPE, 2))
    with stores.create(PLACE, RECORD) as store:
        store.commit_trials([TRIAL], ticks[:3])
        store.commit_trials((), ticks[3:])
    with stores.read(PLACE) as store:
        telemetry = store.telemetry()
    assert telemetry.host.height == len(ticks)
    assert telemetry.host.row(4, named=True) == {
        "tick": 5,
        **{name: value for name, value in asdict(ticks[4]).items() if name not in {"cpus", "instances"}},
    }
    of_fifth = telemetry.cpus.filter(telemetry.cpus["tick"] == 5).drop("tick")
    assert list(of_fifth.iter_rows(named=True)) == [asdict(cpu) for cpu in ticks[4].cpus]
    arms = [(row["platform"], row["replica"]) for row in telemetry.instances.tail(6).iter_rows(named=True)]
    assert arms == [(arm.platform, arm.replica) for arm in fake_campaign.arms(SHAPE)]
    assert telemetry.instances["memory_bytes"].to_list() == [1 << 20] * (6 * len(ticks))


def test_ticks_go_with_their_trials_or_not_at_all(stores: Backend) -> None:
    ticks = list(fake_campaign.ticks(SHAPE, 2))
    with stores.create(PLACE, RECORD) as store:
        store.commit_trials([TRIAL], ticks[:1])
        with pytest.raises(StoreError, match="already"):
            store.commit_trials([TRIAL], ticks[1:])
        assert store.telemetry().host.height == 1


def test_reading_works_while_a_run_writes_and_sees_what_is_committed(stores: Backend) -> None:
    with stores.create(PLACE, RECORD) as writer:
        with stores.read(PLACE) as reader:
            assert reader.done() == set()
            writer.commit_trials([TRIAL])
            assert reader.done() == {KEY}
            with pytest.raises(StoreError):
                reader.set_status("complete")
        assert writer.status == "planned"


def test_a_second_writer_is_refused_and_the_first_goes_on(stores: Backend) -> None:
    with stores.create(PLACE, RECORD) as first:
        with pytest.raises(StoreError, match="being written"):
            stores.open(PLACE)
        first.commit_trials([TRIAL])
    with stores.open(PLACE) as second:
        assert second.done() == {KEY}


def test_nothing_is_overwritten_and_nothing_is_read_where_nothing_is(stores: Backend) -> None:
    for opener in (stores.open, stores.read):
        with pytest.raises(StoreError, match="does not exist"):
            opener(PLACE)
    with stores.create(PLACE, RECORD) as store:
        store.add_event("info", "first")
    with pytest.raises(StoreError, match="exists"):
        stores.create(PLACE, RECORD)
    with stores.read(PLACE) as store:
        assert [event.text for event in store.events()] == ["first"]


def test_the_record_comes_back_to_the_letter_with_the_mark_of_who_wrote_it(stores: Backend) -> None:
    with stores.create(PLACE, RECORD, lambda text: f"mark of {len(text)}") as store:
        written = store.record_text, store.mark
    with stores.read(PLACE) as store:
        assert (store.record_text, store.mark) == written == (RECORD.model_dump_json(), f"mark of {len(written[0])}")
        assert (store.record, store.unknown_fields) == (RECORD, ())
        assert (store.location, store.name) == (PLACE, PLACE)


def test_work_is_counted_by_what_is_written_in_it(stores: Backend) -> None:
    with stores.create(PLACE, RECORD) as store:
        store.set_status("running")
        assert store.segments() == []
        with store.working("boot one"):
            time.sleep(0.01)
            store.set_status("interrupted")
        with store.working():
            pass
        first, second = store.segments()
        assert (first.boot, second.boot) == ("boot one", None)
        assert 0.01 <= first.seconds <= second.began - first.began
    with stores.read(PLACE) as store:
        assert store.segments() == [first, second]


def test_a_snapshot_is_of_one_instant(stores: Backend) -> None:
    with stores.create(PLACE, RECORD) as writer, stores.read(PLACE) as reader:
        with reader.snapshot():
            before = reader.status
            writer.set_status("running")
            writer.commit_trials([TRIAL])
            assert (reader.status, reader.done()) == (before, set())
        assert (reader.status, reader.done()) == ("running", {KEY})


def test_what_is_left_out_of_every_estimate_is_in_the_rows(stores: Backend) -> None:
    failed = replace(TRIAL, key=replace(KEY, block=1), status=Status.FAILED, reason="died", samples=(), seq=1)
    with stores.create(PLACE, RECORD) as store:
        store.commit_trials([TRIAL, failed])
        rows = list(store.rows())
    assert [(row["block"], row["metric"], row["round"], row["reason"]) for row in rows] == [
        (0, "rate", 0, None),
        (0, "rate", 1, None),
        (0, "cpu-cost", 0, None),
        (1, None, None, "died"),
    ]
    assert math.isnan(rows[1]["value"])


@pytest.fixture
def both(stores: Backend, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """The same campaign in a file and in the store that is tried."""
    shape = fake_campaign.Shape(blocks=4, rounds=3)
    fake_campaign.write(tmp_path / "file.tare", shape)
    with stores.create(PLACE, fake_campaign.record(shape)) as store:
        fake_campaign.fill(store, shape)
    with read_store(tmp_path / "file.tare") as file, stores.read(PLACE) as store:
        yield file, store


@pytest.mark.parametrize("what", ["samples", "trials", "slices"])
def test_frames_are_those_of_a_file_to_the_type(both: tuple[Store, Store], what: str) -> None:
    file, store = (getattr(backend, what)() for backend in both)
    assert file.schema == store.schema
    assert file.equals(store)
    assert file.height > 0


def test_telemetry_and_rows_are_those_of_a_file(both: tuple[Store, Store]) -> None:
    file, store = (backend.telemetry() for backend in both)
    for table in ("host", "cpus", "instances"):
        assert getattr(file, table).equals(getattr(store, table))
    assert list(both[0].rows()) == list(both[1].rows())


@pytest.mark.thorough
def test_analysis_and_report_need_no_file(both: tuple[Store, Store]) -> None:
    file, store = (report_on(backend, backend.samples()).model_dump(exclude={"file", "events"}) for backend in both)
    assert file == store
