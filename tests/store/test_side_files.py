"""What lies beside a campaign's file is obeyed only where tare itself put it there: its log, and nothing else."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import hostile_files
import pytest
from one_trial import KEY, TRIAL

import fake_campaign
from tare.errors import StoreError
from tare.host.kernel import mounts
from tare.model import Trial
from tare.store import Store, connection, create_store, open_store, places, private_copy, read_store

SHAPE = fake_campaign.Shape(blocks=3, rounds=2)
OPENERS = [open_store, read_store]
#: A user of this host who has no part in these tests.
OTHER = 54321
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    return fake_campaign.write(folder / "night.tare", SHAPE)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    there = tmp_path / "victim"
    there.write_text("precious")
    return there


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal that came after the check for one: what another user of a shared folder may try."""
    monkeypatch.setattr(places, "require_file", Path)


def test_sqlite_obeys_the_planted_journal(file: Path, victim: Path) -> None:
    # Otherwise the tests below could not fail.
    hostile_files.plant_journal(file, victim)
    with sqlite3.connect(file) as db:
        db.execute("SELECT count(*) FROM fact")
    assert not victim.exists()


@pytest.mark.parametrize("opener", OPENERS)
def test_a_journal_beside_a_file_is_refused(file: Path, victim: Path, opener: Callable[[Path], Store]) -> None:
    hostile_files.plant_journal(file, victim)
    with pytest.raises(StoreError, match=r"night\.tare-journal is there, and tare never makes one") as refused:
        opener(file)
    assert f"rm {file}-journal" in str(refused.value.fix)
    assert victim.exists()


def test_a_journal_beside_the_file_that_a_link_names_is_refused(file: Path, victim: Path, tmp_path: Path) -> None:
    hostile_files.plant_journal(file, victim)
    link = tmp_path / "link.tare"
    link.symlink_to(file)
    with pytest.raises(StoreError, match=r"night\.tare-journal is there"):
        open_store(link)
    assert victim.exists()


@pytest.fixture(params=["folded", "with_a_log"])
def writable(request: pytest.FixtureRequest, file: Path) -> Path:
    """A file whose log is folded in, as after a clean end, and one whose writer was killed."""
    if request.param == "with_a_log":
        _leave_a_log(file)
    return file


@pytest.mark.usefixtures("unchecked")
def test_a_journal_planted_after_the_check_is_not_played_back(writable: Path, victim: Path) -> None:
    hostile_files.plant_journal(writable, victim)
    with open_store(writable) as store:
        store.set_status(store.status)
    assert victim.exists()


@pytest.mark.usefixtures("unchecked")
def test_a_journal_planted_during_a_run_is_not_played_back(writable: Path, victim: Path) -> None:
    with open_store(writable) as store:
        hostile_files.plant_journal(writable, victim)
        store.set_status(store.status)
    assert victim.exists()


@pytest.mark.usefixtures("unchecked")
def test_a_journal_planted_while_a_file_is_made_is_not_played_back(tmp_path: Path, victim: Path) -> None:
    file = tmp_path / "new.tare"
    Path(f"{file}-journal").write_bytes(b"x")
    with create_store(file, fake_campaign.record(SHAPE)) as store:
        hostile_files.plant_journal(file, victim)
        store.commit_trials([TRIAL])
    assert victim.exists()


@pytest.mark.usefixtures("unchecked")
def test_a_journal_planted_before_a_read_is_not_played_back(file: Path, victim: Path) -> None:
    hostile_files.plant_journal(file, victim)
    with pytest.raises(StoreError, match="tare never makes one"):
        read_store(file).close()
    assert victim.exists()


def test_no_write_ever_needs_a_journal(tmp_path: Path) -> None:
    # So no kill, however timed, leaves one. SQLite follows no link, and makes no file in the place of one.
    file = tmp_path / "new.tare"
    Path(f"{file}-journal").symlink_to("nowhere")
    with create_store(file, fake_campaign.record(SHAPE)) as store:
        store.commit_trials([TRIAL])
    assert _is_folded(file)
    lock = connection.Lock(file)
    db, _ = connection._attached(file, lock)
    db.execute("UPDATE fact SET value = 'complete' WHERE name = 'status'")
    connection.fold(db)
    db.close()
    lock.release()
    assert _is_folded(file)


def test_a_file_that_was_swapped_while_it_was_opened_is_refused(
    file: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Path(shutil.copy(file, file.with_name("other.tare")))
    hostile_files.plant_journal(file, victim)
    monkeypatch.setattr(places, "require_file", Path)
    _before_it_is_opened(lambda: other.replace(file), monkeypatch)
    with pytest.raises(StoreError, match="was replaced"):
        open_store(file)
    assert victim.exists()


@as_root
def test_an_index_of_another_user_that_comes_after_the_check_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of root's files SQLite makes root the owner, so this is tried as a user.
    with tempfile.TemporaryDirectory() as folder:
        mine = Path(shutil.move(file, folder))
        for place in (mine, folder):
            os.chown(place, OTHER, OTHER)

        def plant() -> None:
            os.seteuid(0)
            Path(f"{mine}-shm").touch()
            Path(f"{mine}-shm").chmod(0o666)
            os.seteuid(OTHER)

        _before_it_is_opened(plant, monkeypatch)
        os.seteuid(OTHER)
        try:
            with pytest.raises(StoreError, match=r"night\.tare-shm belongs to another user"):
                open_store(mine)
        finally:
            os.seteuid(0)


@as_root
def test_a_file_of_another_user_is_not_written_to(file: Path) -> None:
    os.chown(file, OTHER, OTHER)
    with pytest.raises(StoreError, match=r"belongs to user 54321.*copy"):
        open_store(file)


@as_root
@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_a_log_of_another_user_is_not_written_to(file: Path, ending: str) -> None:
    Path(f"{file}{ending}").touch()
    os.chown(f"{file}{ending}", OTHER, OTHER)
    with pytest.raises(StoreError, match=rf"night\.tare{ending} belongs to another user"):
        open_store(file)


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_a_log_with_a_second_name_is_refused(
    file: Path, victim: Path, ending: str, opener: Callable[[Path], Store]
) -> None:
    # SQLite empties what it finds there: a hard link would be another file's end.
    os.link(victim, f"{file}{ending}")
    with pytest.raises(StoreError, match="has another name"):
        opener(file)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("opener", OPENERS)
def test_a_log_beyond_all_size_is_refused(file: Path, opener: Callable[[Path], Store]) -> None:
    Path(f"{file}-wal").touch()
    os.truncate(f"{file}-wal", 1 << 40)
    with pytest.raises(StoreError, match="more than"):
        opener(file)


@as_root
def test_a_file_of_another_user_is_read_from_a_private_copy_with_its_log(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = _leave_a_log(file)
    for beside in file.parent.iterdir():
        os.chown(beside, OTHER, OTHER)
    before = _contents(file.parent)
    made: list[Path] = []
    copied = private_copy.copied
    monkeypatch.setattr(private_copy, "copied", lambda place: made.append(place) or copied(place))
    with read_store(file) as store:
        # As its owner may do to one who reads in place: whoever maps such a file is killed.
        os.truncate(f"{file}-shm", 0)
        with store.snapshot():
            assert store.done() == expected
        assert store.samples().height > 0
    assert made == [file]
    assert _contents(file.parent) == before | {"night.tare-shm": b""}


@as_root
def test_a_file_of_another_user_without_a_log_is_read_where_it_is(file: Path) -> None:
    os.chown(file, OTHER, OTHER)
    os.chown(file.parent, OTHER, OTHER)
    with read_store(file) as store:
        assert store.status == "complete"
        assert [entry.name for entry in file.parent.iterdir()] == [file.name]


@as_root
def test_a_copy_that_cannot_be_made_is_said(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _leave_a_log(file)
    os.chown(file, OTHER, OTHER)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=0))
    with pytest.raises(StoreError, match="a copy to read has no room") as refused:
        read_store(file)
    assert "TMPDIR" in str(refused.value.fix)
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nowhere")
    with pytest.raises(StoreError, match=r"night\.tare cannot be read: No such file"):
        read_store(file)


def test_a_copy_is_whole_although_its_writer_goes_on(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(file) as writer:
        writer.commit_trials([_another(0)])
        take, rounds = private_copy._take, iter(range(1, 4))

        def meanwhile(source: int, target: Path) -> None:
            take(source, target)
            if number := next(rounds, None):
                writer.commit_trials([_another(number)])
                writer._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # type: ignore[attr-defined]

        monkeypatch.setattr(private_copy, "_take", meanwhile)
        with private_copy.copied(file) as copy, read_store(copy) as reader:
            assert reader.done() == writer.done()


@as_root
@pytest.mark.thorough
@pytest.mark.parametrize("kib", [4, 40, 100, 130, 150, 170])
def test_a_new_file_on_a_full_disk_is_an_error_and_not_left(tmp_path: Path, kib: int) -> None:
    mounts.mount("tmpfs", tmp_path, options=f"size={kib}k")
    try:
        with pytest.raises(StoreError, match=r"No space left|its disk is full"):
            create_store(tmp_path / "new.tare", fake_campaign.record(SHAPE)).close()
        assert list(tmp_path.iterdir()) == []
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@as_root
def test_a_log_without_its_index_is_read_on_a_medium_that_cannot_be_written(file: Path) -> None:
    expected = _leave_a_log(file)
    Path(f"{file}-shm").unlink()
    mounts.on_itself(file.parent, mounts.READ_ONLY)
    try:
        with read_store(file) as store:
            assert store.done() == expected
    finally:
        subprocess.run(["umount", str(file.parent)], check=True)


def _before_it_is_opened(act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect

    def connecting(*words: object, **named: object) -> object:
        if str(words[0]).startswith("file:"):
            act()
        return connect(*words, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(sqlite3, "connect", connecting)


def _leave_a_log(file: Path) -> set[object]:
    """What a killed writer leaves: a trial that is in the log alone. Returns all trials."""
    kept = file.with_name("kept")
    kept.mkdir()
    with open_store(file) as store:
        store.commit_trials([_another(0)])
        done = store.done()
        for place in (file, *places.sqlite_files(file)):
            if place.exists():
                shutil.copy(place, kept)
    file.unlink()
    for place in kept.iterdir():
        place.rename(file.with_name(place.name))
    kept.rmdir()
    assert Path(f"{file}-wal").stat().st_size > 0
    return set(done)


def _another(number: int) -> Trial:
    return replace(TRIAL, key=replace(KEY, block=100 + number))


def _is_folded(file: Path) -> bool:
    return file.read_bytes()[18:20] == b"\x01\x01" and not Path(f"{file}-wal").exists()


def _contents(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}
