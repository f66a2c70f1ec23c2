"""What reading a file may take: signals end it, and so does its time; what nobody's tare wrote is said in one line."""

import contextlib
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import hostile_files
import pytest
import zstandard

from tare.errors import StoreError
from tare.store import attachments, connection, limits, open_store, read_store

_ENDLESS = "WITH RECURSIVE more(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM more) SELECT count(*) FROM more"


def _endless(path):
    db, _ = connection.view(path)
    with connection.translated(path, db):
        db.execute(_ENDLESS).fetchone()


def test_a_statement_that_takes_too_long_for_its_file_is_ended(monkeypatch):
    monkeypatch.setattr(limits, "STATEMENT_LIMIT_S", 0.2)
    monkeypatch.setattr(limits, "STATEMENT_LIMIT_S_A_MIB", 0.0)
    with pytest.raises(StoreError, match="takes too long for its size"):
        _endless(hostile_files.REAL)


@pytest.mark.thorough
@pytest.mark.parametrize("number", [15, 2], ids=["SIGTERM", "SIGINT"])
def test_a_signal_ends_what_sqlite_is_at(number, awake):
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from tare.cli import interrupts; import test_bounds\n"
        "interrupts.take_over()\n"
        "print('begun', flush=True)\n"
        "try:\n    test_bounds._endless(test_bounds.hostile_files.REAL)\nexcept KeyboardInterrupt:\n    sys.exit(130)"
    )
    argv = [sys.executable, "-c", script, str(Path(__file__).parent)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.5)
        began = awake.seconds
        process.send_signal(number)
        assert process.wait(10) == 130, process.stderr.read()
        assert awake.seconds - began < 5


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("an_endless_view_of_facts", "it has a table 'kept', which tare does not make"),
        ("a_trigger", "it has a trigger 't', which tare does not make"),
        ("a_generated_column", "its table 'event' is not as tare makes it"),
        ("an_index_over_an_expression", "it has an index 'i', which tare does not make"),
        ("a_table_less", "it has no table 'slice'"),
        ("a_constraint_less", "its table 'trial' is not as tare makes it"),
        ("a_newer_version_with_an_endless_view", "has format version 99"),
        ("a_trial_without_a_time", "is damaged: NULL value in trial.started"),
        ("an_arm_twice", "the arm ('native', 0) is there 2 times"),
        ("created_at_no_time", "created: Input should be less than or equal to 100000000000"),
        ("memory_without_end", "resources.memory_bytes"),
        ("a_record_of_twenty_million_characters", "its record is longer than 16 Mi characters"),
        ("a_pipe_for_a_journal", "-journal is there, and tare never makes one"),
        ("a_pipe_for_a_log", "-wal is not a file, and SQLite would open it"),
        ("a_log_without_end", "-wal has more than the 1 GiB that are read of it"),
        ("a_pipe", "is not a file"),
    ],
)
def test_what_is_wrong_is_said(name, why, tmp_path):
    file = tmp_path / "x.tare"
    hostile_files.MAKERS[name](file)
    for opener in (read_store, open_store):
        with pytest.raises(StoreError) as refused:
            opener(file)
        assert why in refused.value.what
        assert "\n" not in str(refused.value)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "read", "why"),
    [
        ("an_arm_that_is_not", "trials", "arm 99 is not in the record"),
        ("a_text_for_a_time", "trials", "not of its column's type"),
        ("a_start_beyond_all_time", "trials", "started is 9e+300"),
        ("a_metric_that_is_not", "samples", "is not in the record, which names"),
        ("a_workload_that_is_not", "schedule", "workload 4000000 is not in the record"),
        ("an_event_that_is_no_text", "events", "Could not decode to UTF-8"),
        ("more_events_than_can_be_read", "events", "more than 100,000 rows"),
        ("an_attachment_that_is_no_blob", "attachments", "packed bytes is not"),
        ("attachments_that_unpack_to_gigabytes", "attachments", "hold more than 1024 MiB"),
        ("a_segment_without_end", "segments", "ended is inf"),
        ("ticks_of_no_cpu", "telemetry", "cpu is -4"),
    ],
)
def test_a_row_that_no_tare_writes_is_damage(name, read, why, tmp_path):
    file = tmp_path / "x.tare"
    hostile_files.MAKERS[name](file)
    with read_store(file) as store, pytest.raises(StoreError) as refused:
        getattr(store, read)()
    assert "is damaged: " in refused.value.what
    assert why in refused.value.what


def test_no_file_is_attached_and_nothing_is_longer_than_it_may_be():
    db, _ = connection.view(hostile_files.REAL)
    with pytest.raises(sqlite3.OperationalError, match="too many attached"):
        db.execute("ATTACH ':memory:' AS other")
    with pytest.raises(sqlite3.DataError, match="too big"):
        db.execute("SELECT zeroblob(200000000)").fetchone()
    assert db.execute("PRAGMA trusted_schema").fetchone() == (0,)


def test_attachments_that_say_they_are_too_long_are_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(attachments, "unpack", pytest.fail)
    file = tmp_path / "x.tare"
    hostile_files.MAKERS["attachments_that_unpack_to_gigabytes"](file)
    with read_store(file) as store, pytest.raises(StoreError, match="hold more than 1024 MiB"):
        store.attachments()


def test_attachments_that_do_not_say_how_long_they_are_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(attachments, "ATTACHED_CAP", 5000)
    packed = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(2000))
    file = tmp_path / "x.tare"
    file.write_bytes(hostile_files.REAL.read_bytes())
    with contextlib.closing(sqlite3.connect(file)) as db, db:
        for _ in range(3):
            db.execute("INSERT INTO attachment (at, name, zstd) VALUES (1.0, 'console', ?)", (packed,))
    with read_store(file) as store, pytest.raises(StoreError, match="its attachments hold more than"):
        store.attachments()


def test_a_folder_that_is_gone_is_one_line(tmp_path):
    with pytest.raises(StoreError, match="is gone") as gone:
        connection.await_space(tmp_path / "out" / "x.tare")
    assert gone.value.fix
