from __future__ import annotations

import itertools
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from one_trial import KEY, TRIAL

import fake_campaign
from tare.errors import StoreError
from tare.host import processes
from tare.store import Store, create_store, open_store, read_store
from tare.store.migrations import FORMAT_VERSION
from tare.store.schema import UNRELEASED_ID

SHAPE = fake_campaign.Shape(blocks=3, rounds=2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.tare"


def test_a_clean_close_leaves_one_file(path: Path) -> None:
    fake_campaign.write(path, SHAPE)
    assert [entry.name for entry in path.parent.iterdir()] == ["run.tare"]


def test_a_reader_that_stays_does_not_keep_the_writer_from_closing(path: Path) -> None:
    writer = create_store(path, fake_campaign.record(SHAPE))
    writer.commit_trials([TRIAL])
    with read_store(path) as reader:
        reader.done()
        writer.close()
        assert reader.done() == {KEY}
    with open_store(path) as again:
        assert again.done() == {KEY}


def test_an_existing_file_is_never_overwritten(path: Path) -> None:
    path.write_bytes(b"precious")
    with pytest.raises(StoreError, match="exists"):
        create_store(path, fake_campaign.record(SHAPE))
    assert path.read_bytes() == b"precious"


def test_a_place_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        create_store(tmp_path / "no" / "run.tare", fake_campaign.record(SHAPE))


_OTHER = "import sys; from pathlib import Path; from tare.store import open_store; open_store(Path(sys.argv[1]))"


def test_a_writer_in_another_process_is_refused(path: Path) -> None:
    with create_store(path, fake_campaign.record(SHAPE)):
        other = processes.run([sys.executable, "-P", "-c", _OTHER, str(path)])
        assert other.code == 1
        assert b"being written by another run" in other.stderr


_DIES = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import fake_campaign
from tare.store import create_store
shape = fake_campaign.Shape(blocks=2, rounds=2)
store = create_store(Path(sys.argv[1]), fake_campaign.record(shape))
for block, trials in fake_campaign._blocks(shape):
    store.plan_block(block, [trial.key for trial in trials])
    store.commit_trials(trials[:-1] if block else trials)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_committed_before_a_sigkill_is_there_after_it(path: Path) -> None:
    tests = str(Path(fake_campaign.__file__).parent)
    ended = processes.run([sys.executable, "-P", "-c", _DIES, str(path), tests])
    assert ended.code == -9
    with read_store(path) as store:
        assert len(store.schedule()) == len(store.done()) + 1
    with open_store(path) as store:
        missing = set(store.schedule()) - store.done()
        assert missing == {store.schedule()[-1]}
    assert [entry.name for entry in path.parent.iterdir()] == ["run.tare"]


@pytest.mark.parametrize("opener", [open_store, read_store])
class TestRefusals:
    def test_missing(self, path: Path, opener: type) -> None:
        with pytest.raises(StoreError, match="does not exist"):
            opener(path)

    def test_folder(self, tmp_path: Path, opener: type) -> None:
        with pytest.raises(StoreError, match="is not a file"):
            opener(tmp_path)

    def test_not_sqlite(self, path: Path, opener: type) -> None:
        path.write_bytes(b"once upon a time, " * 100)
        with pytest.raises(StoreError, match=r"not SQLite \(fix: name a file that `tare run -o` made"):
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
        with pytest.raises(
            StoreError, match=f"version {FORMAT_VERSION + 1}, and the newest .* reads is {FORMAT_VERSION}"
        ):
            opener(path)
        assert path.read_bytes() == before

    def test_a_format_of_before_the_first_release_is_refused_by_name(self, path: Path, opener: type) -> None:
        fake_campaign.write(path, SHAPE)
        with sqlite3.connect(path) as db:
            db.execute(f"PRAGMA application_id = {UNRELEASED_ID}")
            db.execute("PRAGMA user_version = 5")
        db.close()
        before = path.read_bytes()
        with pytest.raises(StoreError, match=r"format version 5 of before tare 0\.1\.0.*\(fix: read it with"):
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


def test_an_interrupt_anywhere_in_a_write_leaves_a_store_that_can_be_told_of_it(path: Path) -> None:
    """Of `_run`: what ends a campaign is in the file as its status, and no other error comes in its place."""
    calls = 0
    with create_store(path, fake_campaign.record(SHAPE)) as store:
        while _interrupted(partial(store.add_event, "note", str(calls)), calls, store):
            calls += 1
        texts = [event.text for event in store.events()]
    assert calls > 20
    assert len(set(texts)) == len(texts), "what is written is written once"
    assert texts[-1] == str(calls)


def _interrupted(write: Callable[[], None], after: int, store: Store) -> bool:
    """Whether so many steps of Python's are less than the write takes; it is interrupted after them."""
    steps = itertools.count()

    def step(*_: object) -> Callable[..., object]:
        if next(steps) == after:
            raise KeyboardInterrupt
        return step

    former = sys.gettrace()
    try:
        sys.settrace(step)
        try:
            write()
        finally:
            sys.settrace(former)
    except KeyboardInterrupt:
        store.set_status("interrupted")
        assert store.status == "interrupted"
        return True
    return False
