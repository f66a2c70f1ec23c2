from __future__ import annotations

import math
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import fake_campaign
from tare.errors import StoreError
from tare.host import processes
from tare.model import Arm, Sample, SliceFacts, Status, Trial, TrialKey
from tare.store import OUTPUT_CAP, Store
from tare.store.schema import FORMAT_VERSION

SHAPE = fake_campaign.Shape(blocks=3, rounds=2)
KEY = TrialKey(0, "prime-slices", Arm("native"))
TRIAL = Trial(
    key=KEY,
    status=Status.OK,
    reason=None,
    seq=0,
    started=1.5,
    wall_ns=10,
    cpu_ns=2**60 + 1,
    daemon_cpu_ns=None,
    steal=0.01,
    pressure=None,
    load=0.25,
    samples=(Sample("rate", 2.5, 0), Sample("rate", math.nan, 1), Sample("cpu-cost", math.inf, 0)),
    slices=(SliceFacts(0, 1, 2**60 + 3, 4, None, 6, 7),),
    outputs={"stdout": b"hello"},
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.tare"


def test_samples_of_some_blocks_only(path: Path) -> None:
    fake_campaign.write(path, SHAPE)
    with Store.read(path) as store:
        whole = store.samples()
        for first, end in ((1, None), (0, 1), (1, 3), (3, None)):
            block = whole["block"]
            expected = whole.filter((block >= first) & (block < (99 if end is None else end)))
            assert store.samples(first, end).equals(expected)


def test_a_trial_comes_back_as_it_was_written(path: Path) -> None:
    with Store.create(path, fake_campaign.record(SHAPE)) as store:
        store.commit_trials([TRIAL])
    with Store.read(path) as store:
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
        }
        assert store.slices().row(0)[4:] == (0, 1, 2**60 + 3, 4, None, 6, 7)
        assert store.outputs(KEY)["stdout"].data == b"hello"
        assert store.record == fake_campaign.record(SHAPE)


def test_schedule_keeps_its_order_and_done_is_what_was_committed(path: Path) -> None:
    keys = [replace(KEY, arm=arm) for arm in reversed(fake_campaign.arms(SHAPE))]
    later = [replace(key, block=1) for key in keys]
    with Store.create(path, fake_campaign.record(SHAPE)) as store:
        store.plan_block(0, keys)
        store.plan_block(1, later)
        store.commit_trials([TRIAL])
        assert store.schedule() == keys + later
        assert store.done() == {KEY}


def test_a_block_cannot_be_planned_twice_nor_under_another_number(path: Path) -> None:
    with Store.create(path, fake_campaign.record(SHAPE)) as store:
        store.plan_block(0, [KEY])
        with pytest.raises(StoreError, match="in the file already"):
            store.plan_block(0, [KEY])
        with pytest.raises(StoreError, match="does not belong to block 1"):
            store.plan_block(1, [KEY])
        assert store.schedule() == [KEY]


def test_a_doubled_trial_is_refused_and_nothing_of_its_transaction_stays(path: Path) -> None:
    other = replace(TRIAL, key=replace(KEY, block=1))
    with Store.create(path, fake_campaign.record(SHAPE)) as store:
        store.commit_trials([TRIAL])
        with pytest.raises(StoreError, match=r"prime-slices on native in block 0.*already"):
            store.commit_trials([other, TRIAL])
        assert store.done() == {KEY}
        assert store.samples().height == 3
        store.commit_trials([other])
        assert store.done() == {KEY, other.key}


@pytest.mark.parametrize(
    ("trial", "said"),
    [
        (replace(TRIAL, key=replace(KEY, workload="fortune")), "does not name it"),
        (replace(TRIAL, key=replace(KEY, arm=Arm("kata"))), "does not name it"),
        (replace(TRIAL, samples=(Sample("speed", 1.0),)), "metric speed"),
        (replace(TRIAL, samples=(Sample("rate", 1.0), Sample("rate", 2.0))), "same round twice"),
        (replace(TRIAL, reason="but"), "does not hold"),
        (replace(TRIAL, status=Status.FAILED), "does not hold"),
    ],
)
def test_a_trial_that_makes_no_sense_is_refused(path: Path, trial: Trial, said: str) -> None:
    with Store.create(path, fake_campaign.record(SHAPE)) as store:
        with pytest.raises(StoreError, match=said):
            store.commit_trials([trial])
        assert store.done() == set()


def test_samples_of_a_failed_trial_stay_out_of_the_estimates(path: Path) -> None:
    with Store.create(path, fake_campaign.record(SHAPE)) as store:
        store.commit_trials([replace(TRIAL, status=Status.FAILED, reason="died")])
        assert store.samples().is_empty()
        assert store.trials()["reason"].to_list() == ["died"]


def test_long_outputs_are_capped_and_say_so(path: Path) -> None:
    flood = b"x" * (OUTPUT_CAP + 5)
    with Store.create(path, fake_campaign.record(SHAPE)) as store:
        store.commit_trials([replace(TRIAL, outputs={"stderr": flood})])
        output = store.outputs(KEY)["stderr"]
        assert output.capped
        assert (len(output.data), output.full_bytes) == (OUTPUT_CAP, OUTPUT_CAP + 5)
        assert store.outputs(replace(KEY, block=2)) == {}


def test_events_status_and_attachments(path: Path) -> None:
    with Store.create(path, fake_campaign.record(SHAPE)) as store:
        assert store.status == "planned"
        store.set_status("interrupted")
        store.add_event("warning", "the disk is slow")
        store.add_attachment("console", b"\x00boot")
        store.add_attachment("console", b"again")
    with Store.read(path) as store:
        assert store.status == "interrupted"
        assert [(event.level, event.text) for event in store.events()] == [("warning", "the disk is slow")]
        assert store.attachments() == [("console", b"\x00boot"), ("console", b"again")]
        assert list(store.attached("console")) == [b"\x00boot", b"again"]
        assert list(store.attached("other")) == []


def test_attachments_of_one_name_are_replaced_all_at_once(path: Path) -> None:
    with Store.create(path, fake_campaign.record(SHAPE)) as store:
        for name in ("footprint", "console", "footprint"):
            store.add_attachment(name, b"before")
        store.replace_attachments("footprint", [b"one", b"two", b"three"])

        def failing() -> Iterator[bytes]:
            yield b"half"
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            store.replace_attachments("footprint", failing())
    with Store.read(path) as store:
        kept = [("console", b"before"), *(("footprint", data) for data in (b"one", b"two", b"three"))]
        assert store.attachments() == kept


def test_a_clean_close_leaves_one_file(path: Path) -> None:
    fake_campaign.write(path, SHAPE)
    assert [entry.name for entry in path.parent.iterdir()] == ["run.tare"]


def test_reading_works_while_a_run_writes_and_sees_what_is_committed(path: Path) -> None:
    with Store.create(path, fake_campaign.record(SHAPE)) as writer:
        with Store.read(path) as reader:
            assert reader.done() == set()
            writer.commit_trials([TRIAL])
            assert reader.done() == {KEY}
            with pytest.raises(StoreError):
                reader.set_status("complete")
        assert writer.status == "planned"


def test_a_reader_that_stays_does_not_keep_the_writer_from_closing(path: Path) -> None:
    writer = Store.create(path, fake_campaign.record(SHAPE))
    writer.commit_trials([TRIAL])
    with Store.read(path) as reader:
        reader.done()
        writer.close()
        assert reader.done() == {KEY}
    with Store.open(path) as again:
        assert again.done() == {KEY}


def test_an_existing_file_is_never_overwritten(path: Path) -> None:
    path.write_bytes(b"precious")
    with pytest.raises(StoreError, match="exists"):
        Store.create(path, fake_campaign.record(SHAPE))
    assert path.read_bytes() == b"precious"


def test_a_place_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        Store.create(tmp_path / "no" / "run.tare", fake_campaign.record(SHAPE))


def test_a_second_writer_is_refused_and_the_first_goes_on(path: Path) -> None:
    with Store.create(path, fake_campaign.record(SHAPE)) as first:
        with pytest.raises(StoreError, match="being written"):
            Store.open(path)
        first.commit_trials([TRIAL])
    with Store.open(path) as second:
        assert second.done() == {KEY}


_OTHER = "import sys; from pathlib import Path; from tare.store import Store; Store.open(Path(sys.argv[1]))"


def test_a_writer_in_another_process_is_refused(path: Path) -> None:
    with Store.create(path, fake_campaign.record(SHAPE)):
        other = processes.run([sys.executable, "-c", _OTHER, str(path)])
        assert other.code == 1
        assert b"being written by another run" in other.stderr


_DIES = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import fake_campaign
from tare.store import Store
shape = fake_campaign.Shape(blocks=2, rounds=2)
store = Store.create(Path(sys.argv[1]), fake_campaign.record(shape))
for block, trials in fake_campaign._blocks(shape):
    store.plan_block(block, [trial.key for trial in trials])
    store.commit_trials(trials[:-1] if block else trials)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_committed_before_a_sigkill_is_there_after_it(path: Path) -> None:
    tests = str(Path(fake_campaign.__file__).parent)
    ended = processes.run([sys.executable, "-c", _DIES, str(path), tests])
    assert ended.code == -9
    with Store.read(path) as store:
        assert len(store.schedule()) == len(store.done()) + 1
    with Store.open(path) as store:
        missing = set(store.schedule()) - store.done()
        assert missing == {store.schedule()[-1]}
    assert [entry.name for entry in path.parent.iterdir()] == ["run.tare"]


def test_ticks_come_back_as_they_were_written(path: Path) -> None:
    ticks = list(fake_campaign.ticks(SHAPE, 2))
    with Store.create(path, fake_campaign.record(SHAPE)) as store:
        store.commit_trials([TRIAL], ticks[:3])
        store.commit_trials((), ticks[3:])
    with Store.read(path) as store:
        found = store.telemetry()
    assert found.host.height == len(ticks)
    assert found.host.row(4, named=True) == {
        "tick": 5,
        **{name: value for name, value in asdict(ticks[4]).items() if name not in {"cpus", "instances"}},
    }
    of_fifth = found.cpus.filter(found.cpus["tick"] == 5).drop("tick")
    assert list(of_fifth.iter_rows(named=True)) == [asdict(cpu) for cpu in ticks[4].cpus]
    arms = [(row["platform"], row["replica"]) for row in found.instances.tail(6).iter_rows(named=True)]
    assert arms == [(arm.platform, arm.replica) for arm in fake_campaign.arms(SHAPE)]
    assert found.instances["memory_bytes"].to_list() == [1 << 20] * (6 * len(ticks))


def test_ticks_go_with_their_trials_or_not_at_all(path: Path) -> None:
    ticks = list(fake_campaign.ticks(SHAPE, 2))
    with Store.create(path, fake_campaign.record(SHAPE)) as store:
        store.commit_trials([TRIAL], ticks[:1])
        with pytest.raises(StoreError, match="already"):
            store.commit_trials([TRIAL], ticks[1:])
        assert store.telemetry().host.height == 1


@pytest.fixture
def old(path: Path) -> Path:
    """A campaign as a tare of format version 1 left it."""
    shutil.copy(Path(__file__).parent / "data" / "format-1.sqlite", path)
    return path


def test_a_file_of_version_1_is_read_as_it_is(old: Path) -> None:
    before = old.read_bytes()
    with Store.read(old) as store:
        assert store.status == "complete"
        assert store.samples().height == 2 * 3 * 2 * 2  # blocks, arms, rounds, metrics
        telemetry = store.telemetry()
        assert (telemetry.host.height, telemetry.cpus.height, telemetry.instances.height) == (0, 0, 0)
        assert {"at", "own_ns"} < set(telemetry.host.columns)
        assert {"platform", "replica", "cpu_ns"} < set(telemetry.instances.columns)
        assert store.record.tuning is None
    assert old.read_bytes() == before


def test_a_campaign_goes_on_in_a_file_of_version_1_which_then_takes_telemetry(old: Path) -> None:
    ticks = list(fake_campaign.ticks(SHAPE, 2))
    with Store.read(old) as store:
        samples, done = store.samples(), store.done()
    with Store.open(old) as store:
        kept = [replace(tick, instances=()) for tick in ticks]
        store.commit_trials([replace(TRIAL, key=replace(KEY, block=2))], kept)
    for _ in range(2):
        with Store.open(old) as store:
            assert store.done() == done | {replace(KEY, block=2)}
            assert store.samples().head(samples.height).equals(samples)
            assert store.telemetry().host.height == len(ticks)


@pytest.mark.parametrize("opener", [Store.open, Store.read])
class TestRefusals:
    def test_missing(self, path: Path, opener: type) -> None:
        with pytest.raises(StoreError, match="does not exist"):
            opener(path)

    def test_folder(self, tmp_path: Path, opener: type) -> None:
        with pytest.raises(StoreError, match="is not a file"):
            opener(tmp_path)

    def test_not_sqlite(self, path: Path, opener: type) -> None:
        path.write_bytes(b"once upon a time, " * 100)
        with pytest.raises(StoreError, match="not SQLite"):
            opener(path)
        assert path.read_bytes() == b"once upon a time, " * 100

    def test_not_ours(self, path: Path, opener: type) -> None:
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE holiday (photo BLOB)")
        db.close()
        before = path.read_bytes()
        with pytest.raises(StoreError, match="not one of tare's"):
            opener(path)
        assert path.read_bytes() == before

    def test_empty(self, path: Path, opener: type) -> None:
        path.touch()
        with pytest.raises(StoreError, match="not one of tare's"):
            opener(path)

    def test_another_version_says_both(self, path: Path, opener: type) -> None:
        fake_campaign.write(path, SHAPE)
        with sqlite3.connect(path) as db:
            db.execute(f"PRAGMA user_version = {FORMAT_VERSION + 1}")
        db.close()
        before = path.read_bytes()
        with pytest.raises(StoreError, match=f"version {FORMAT_VERSION + 1}.*reads versions 1 and {FORMAT_VERSION}"):
            opener(path)
        assert path.read_bytes() == before

    def test_damaged_pages(self, path: Path, opener: type) -> None:
        fake_campaign.write(path, SHAPE)
        data = bytearray(path.read_bytes())
        data[4096 * 2 : 4096 * 8] = b"\xa5" * (4096 * 6)
        path.write_bytes(data)
        with pytest.raises(StoreError, match="damaged"):
            opener(path)

    def test_cut_off(self, path: Path, opener: type) -> None:
        fake_campaign.write(path, SHAPE)
        path.write_bytes(path.read_bytes()[:-20_000])
        with pytest.raises(StoreError, match="damaged"):
            opener(path)

    def test_record_that_does_not_hold(self, path: Path, opener: type) -> None:
        fake_campaign.write(path, SHAPE)
        with sqlite3.connect(path) as db:
            db.execute("UPDATE fact SET value = json_remove(value, '$.seed') WHERE name = 'record'")
        db.close()
        with pytest.raises(StoreError, match="seed: Field required"):
            opener(path)

    def test_no_record(self, path: Path, opener: type) -> None:
        fake_campaign.write(path, SHAPE)
        with sqlite3.connect(path) as db:
            db.execute("DELETE FROM fact")
        db.close()
        for _ in range(2):  # a refusal leaves nothing locked
            with pytest.raises(StoreError, match="holds no campaign"):
                opener(path)
