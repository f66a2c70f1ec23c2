"""Files that nobody's tare wrote: each is made here of a real one, in a few statements, and named for what it tries."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import zstandard

_RELEASED = Path(__file__).parent / "released"
REAL = _RELEASED / "whole-1.tare"
_FOOTPRINTS = _RELEASED / "footprints-1.tare"
#: The shell's way to say that it was here; no test may ever find it.
TRAP = "/tmp/tare-was-here"

Maker = Callable[[Path], None]
MAKERS: dict[str, Maker] = {}
_CORES = {"siblings": [[[1]], 5, "x"], "model": {}}
_ENDLESS = "WITH RECURSIVE more(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM more)"


def maker(make: Maker) -> Maker:
    """Have it in `MAKERS`, under the name of the function."""
    MAKERS[make.__name__] = make
    return make


@contextlib.contextmanager
def _real(path: Path, released: Path = REAL) -> Iterator[sqlite3.Connection]:
    shutil.copy(released, path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        for pragma in ("ignore_check_constraints = ON", "foreign_keys = OFF", "legacy_alter_table = ON"):
            db.execute(f"PRAGMA {pragma}")
        yield db


def _by_sql(name: str, *statements: str, released: Path = REAL) -> None:
    def make(path: Path) -> None:
        with _real(path, released) as db:
            for statement in statements:
                db.execute(statement)

    MAKERS[name] = make


def _by_record(name: str, change: Callable[[dict], object]) -> None:
    def make(path: Path) -> None:
        with _real(path) as db:
            record = json.loads(db.execute("SELECT value FROM fact WHERE name = 'record'").fetchone()[0])
            change(record)
            db.execute("UPDATE fact SET value = ? WHERE name = 'record'", (json.dumps(record),))

    MAKERS[name] = make


def _by_place(name: str, put: Callable[[Path], object]) -> None:
    MAKERS[name] = lambda path: (put(path), None)[1]


# --- a schema that is a program ------------------------------------------------------------------------------
_by_sql(
    "an_endless_view_of_facts",
    "ALTER TABLE fact RENAME TO kept",
    f"CREATE VIEW fact AS {_ENDLESS} SELECT 'other' AS name, n AS value FROM more",
)
_by_sql(
    "an_endless_view_of_samples",
    "ALTER TABLE sample RENAME TO kept",
    f"CREATE VIEW sample AS {_ENDLESS} SELECT 1 AS trial, 0 AS metric, n AS round, 1.0 AS value FROM more",
)
_by_sql(
    "a_view_as_large_as_memory",
    "ALTER TABLE fact RENAME TO kept",
    "CREATE VIEW fact AS SELECT name, zeroblob(900000000) AS value FROM kept",
)
_by_sql(
    "a_newer_version_with_an_endless_view",
    "ALTER TABLE fact RENAME TO kept",
    f"CREATE VIEW fact AS {_ENDLESS} SELECT 'other' AS name, n AS value FROM more",
    "PRAGMA user_version = 99",
)
_by_sql("a_trigger", "CREATE TRIGGER t AFTER UPDATE ON fact BEGIN DELETE FROM trial; END")
_by_sql(
    "a_generated_column", "ALTER TABLE event ADD COLUMN more BLOB GENERATED ALWAYS AS (zeroblob(900000000)) VIRTUAL"
)
_by_sql("an_index_over_an_expression", "CREATE INDEX i ON event (abs(length(text)))")
_by_sql("a_virtual_table", "CREATE VIRTUAL TABLE v USING fts5(text)")
_by_sql("a_table_more", "CREATE TABLE more (id)")
_by_sql("a_table_less", "DROP TABLE slice")
_by_sql("a_column_more", "ALTER TABLE trial ADD COLUMN colour TEXT")
_by_sql(
    "a_constraint_less",
    "PRAGMA writable_schema = ON",
    "UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '') WHERE name = 'trial'",
)

# --- values that no column of ours has -------------------------------------------------------------------------
_by_sql("an_arm_that_is_not", "UPDATE trial SET arm = 99 WHERE id = 1")
_by_sql("an_arm_below_zero", "UPDATE trial SET arm = -1 WHERE id = 1")
_by_sql("a_workload_that_is_not", "UPDATE schedule SET workload = 4000000 WHERE seq = 0")
_by_sql("a_metric_that_is_not", "UPDATE sample SET metric = metric + 77 WHERE trial = 1")
_by_sql("a_block_beyond_all", "UPDATE trial SET block = 1099511627776 WHERE id = 1")
_by_sql("the_last_block_that_can_be", "UPDATE trial SET block = 2147483646 WHERE id = 1")
_by_sql("a_text_for_a_time", "UPDATE trial SET started = 'yesterday' WHERE id = 1")
_by_sql("a_blob_for_a_figure", "UPDATE sample SET value = x'00'")
_by_sql("a_text_for_a_figure", "UPDATE sample SET value = 'fast' WHERE trial = 2")
_by_sql("an_endless_load", "UPDATE trial SET load = 9e999")
_by_sql("a_start_beyond_all_time", "UPDATE trial SET started = 9e300 WHERE id = 2")
_by_sql("endless_figures", "UPDATE sample SET value = 9e999")
_by_sql("figures_as_large_as_can_be", "UPDATE sample SET value = 1.7e308")
_by_sql("figures_of_nothing", "UPDATE sample SET value = 0.0")
_by_sql("figures_that_are_missing", "UPDATE sample SET value = NULL")
_by_sql("times_as_long_as_can_be", "UPDATE trial SET wall_ns = 9223372036854775807, cpu_ns = 9223372036854775807")
_by_sql("a_status_of_its_own", "UPDATE trial SET status = 'splendid', reason = NULL")
_by_sql("an_event_that_is_no_text", "INSERT INTO event (at, level, text) VALUES (1.0, 'info', CAST(x'ff41' AS TEXT))")
_by_sql(
    "a_trial_without_a_time",
    "PRAGMA writable_schema = ON",
    "UPDATE sqlite_schema SET sql = replace(sql, 'started REAL NOT NULL', 'started REAL') WHERE name = 'trial'",
    "PRAGMA writable_schema = RESET",
    "UPDATE trial SET started = NULL",
    "PRAGMA writable_schema = ON",
    "UPDATE sqlite_schema SET sql = replace(sql, 'started REAL', 'started REAL NOT NULL') WHERE name = 'trial'",
)
_by_sql("an_event_at_no_time", "INSERT INTO event (at, level, text) VALUES ('noon', 'info', 'x')")
_by_sql(
    "more_events_than_can_be_read",
    "INSERT INTO event (at, level, text)"
    f" SELECT n, 'info', 'resumed' FROM ({_ENDLESS} SELECT n FROM more LIMIT 200000)",
)
_by_sql("a_segment_without_end", "UPDATE segment SET ended = 9e999")
_by_sql("ticks_of_text", "UPDATE tick SET at_ns = 'late'")
_by_sql("ticks_of_no_cpu", "UPDATE tick_cpu SET cpu = -4 WHERE cpu = 0")
_by_sql(
    "an_attachment_that_is_no_blob",
    "INSERT INTO attachment (at, name, zstd) VALUES (1.0, 'console', 5)",
)
_by_sql(
    "an_attachment_that_is_not_packed",
    "INSERT INTO attachment (at, name, zstd) VALUES (1.0, 'console', x'0102')",
)
_by_sql("footprints_without_names", "DELETE FROM thing", released=_FOOTPRINTS)
_by_sql("a_footprint_of_another_kind", "UPDATE footprint SET level = 'rings', scope = x'00'", released=_FOOTPRINTS)
_by_sql("a_footprint_without_end", "UPDATE footprint SET seconds = 9e999 WHERE id = 1", released=_FOOTPRINTS)
_by_sql(
    "hits_beyond_all", "UPDATE footprint SET hits = x'02ffffffffffffffff7f02ffffffffffffffff7f'", released=_FOOTPRINTS
)
_by_sql("hits_of_text", "UPDATE footprint SET hits = 'often' WHERE id = 1", released=_FOOTPRINTS)
_by_sql("hits_of_zeros", "UPDATE footprint SET hits = zeroblob(8000000)", released=_FOOTPRINTS)
_by_sql("hits_that_end_in_a_number", "UPDATE footprint SET hits = x'020181' WHERE id = 1", released=_FOOTPRINTS)
_by_sql("hits_of_a_number_without_end", f"UPDATE footprint SET hits = x'02{'ff' * 5000}'", released=_FOOTPRINTS)
_by_sql(
    "more_hits_than_can_be_read", "UPDATE footprint SET hits = zeroblob(60000000) WHERE id = 1", released=_FOOTPRINTS
)
_by_sql("names_at_the_last_row", "UPDATE thing SET id = 9223372036854775807 WHERE id = 1", released=_FOOTPRINTS)
_by_sql("a_surface_of_no_tasks", "DELETE FROM surface_task", released=_FOOTPRINTS)
_by_sql("a_surface_of_other_outcomes", "UPDATE surface_call SET outcome = 'perhaps'", released=_FOOTPRINTS)
_by_sql("a_surface_with_numbers_of_text", "UPDATE surface_task SET pid = 'init', uid = -1", released=_FOOTPRINTS)
_by_sql("a_record_that_is_no_text", "UPDATE fact SET value = x'00ff' WHERE name = 'record'")
_by_sql("a_record_that_is_not_utf_8", "UPDATE fact SET value = CAST(x'ff7b7d' AS TEXT) WHERE name = 'record'")
_by_sql("a_status_that_is_no_text", "UPDATE fact SET value = x'ff' WHERE name = 'status'")

# --- records ---------------------------------------------------------------------------------------------------
_by_record("created_at_no_time", lambda record: record.update(created=1e300))
_by_record("memory_without_end", lambda record: record["resources"].update(memory_bytes=int("9" * 400)))
_by_record("a_replica_of_a_million", lambda record: record["arms"].append(["native", 10**6]))
_by_record("an_arm_twice", lambda record: record["arms"].append(record["arms"][0]))
_by_record("a_workload_twice", lambda record: record["workloads"].append(record["workloads"][0]))
_by_record("a_seed_without_end", lambda record: record.update(seed=10**30))
_by_record("a_cpu_without_end", lambda record: record["resources"].update(cpus=[10**12]))
_by_record("a_baseline_that_is_not", lambda record: record.update(baseline="nobody"))
_by_record("no_platforms", lambda record: record.update(platforms=[], arms=[]))
_by_record("no_arms", lambda record: record.update(arms=[]))
_by_record("a_host_of_other_facts", lambda record: record.update(host={"cpu": 5, "kernel": [], "memory_bytes": "x"}))
_by_record(
    "a_host_whose_cores_are_text", lambda record: record["host"].update(cpu={"siblings": [[[1]], 5, "x"], "model": {}})
)
_by_record("fairness_of_text", lambda record: record.update(fairness={"native": "x", "runc": [1]}))
_by_record("an_image_of_lists", lambda record: record.update(image={"hash": [], "packages": 5}))
_by_record("a_profile_that_leads_out", lambda record: record.update(profile="../../../etc/passwd"))
_by_record("a_scale_of_its_own", lambda record: record.update(profile="karna-2021", scale="huge"))
_by_record(
    "names_that_move_the_cursor", lambda record: record["platforms"][0].update(title="\x1b[2J\x1b]0;x\x07[bold]y[/]")
)
_by_record(
    "parameters_that_are_commands",
    lambda record: record["workloads"][0].update(params={"work_mib": f"1; touch {TRAP}; echo "}),
)
_by_record(
    "a_platform_elsewhere",
    lambda record: record["platforms"].append({"name": "ssh:root@192.0.2.1", "title": "", "version": ""}),
)
_by_record(
    "a_report_of_a_million_cells",
    lambda record: record.update(
        arms=[[f"p{n}", 0] for n in range(2000)],
        platforms=[{"name": f"p{n}", "title": "", "version": ""} for n in range(2000)],
        workloads=[record["workloads"][0] | {"name": f"w{n}"} for n in range(500)],
    ),
)


@maker
def a_record_five_thousand_deep(path: Path) -> None:
    """In a field that takes anything."""
    with _real(path) as db:
        text = db.execute("SELECT value FROM fact WHERE name = 'record'").fetchone()[0]
        deep = text.replace('"host":{', '"host":{"x":' + "[" * 5000 + "]" * 5000 + ",", 1)
        db.execute("UPDATE fact SET value = ? WHERE name = 'record'", (deep,))


@maker
def a_record_of_twenty_million_characters(path: Path) -> None:
    """Most of them white space, so that it holds."""
    with _real(path) as db:
        db.execute("UPDATE fact SET value = value || ? WHERE name = 'record'", (" " * 20_000_000,))


@maker
def footprints_of_one_thing_four_million_times(path: Path) -> None:
    """As many as a footprint may have hits, in each of some."""
    with _real(path, _FOOTPRINTS) as db:
        db.execute("UPDATE footprint SET hits = ? WHERE id <= 5", (b"\x02\x01" + b"\x00\x01" * ((4 << 20) - 1),))


@maker
def attachments_that_unpack_to_gigabytes(path: Path) -> None:
    """Of some KiB each."""
    packed = zstandard.ZstdCompressor().compress(b" " * (60 << 20))
    with _real(path) as db:
        for _ in range(20):
            db.execute("INSERT INTO attachment (at, name, zstd) VALUES (1.0, 'console', ?)", (packed,))


# --- no database, or none that is whole ------------------------------------------------------------------------
_by_place("nothing_in_it", lambda path: path.write_bytes(b""))
_by_place("no_database", lambda path: path.write_bytes(b"SQLite format 2" * 1000))
_by_place("cut_short", lambda path: path.write_bytes(REAL.read_bytes()[:50_000]))
_by_place("a_header_alone", lambda path: path.write_bytes(REAL.read_bytes()[:100]))
_by_place(
    "pages_of_noise",
    lambda path: path.write_bytes(REAL.read_bytes()[:4096] + bytes(n * 97 % 251 for n in range(100_000))),
)
_by_place("a_folder", lambda path: path.mkdir())
_by_place("a_pipe", os.mkfifo)
_by_place("a_device", lambda path: path.symlink_to("/dev/zero"))
_by_place("a_link_to_nothing", lambda path: path.symlink_to("nowhere"))
_by_place("a_link_to_itself", lambda path: path.symlink_to(path.name))


@maker
def a_pipe_for_a_journal(path: Path) -> None:
    """SQLite looks for one beside each database."""
    shutil.copy(REAL, path)
    os.mkfifo(f"{path}-journal")


@maker
def a_schema_that_is_not_utf_8(path: Path) -> None:
    """SQLite's own words for what is wrong with it quote it."""
    contents = (_RELEASED / "whole-1.tare").read_bytes()
    path.write_bytes(contents.replace(b"CREATE TABLE event", b"CREATE TABLE \x80vent"))


@maker
def a_pipe_for_a_log(path: Path) -> None:
    """Whoever opens it waits."""
    shutil.copy(REAL, path)
    os.mkfifo(f"{path}-wal")


@maker
def a_log_without_end(path: Path) -> None:
    """A tebibyte of holes, which SQLite would read whole."""
    shutil.copy(REAL, path)
    Path(f"{path}-wal").touch()
    os.truncate(f"{path}-wal", 1 << 40)


@maker
def a_journal_that_names_a_file(path: Path) -> None:
    """The file would be removed."""
    shutil.copy(REAL, path)
    victim = path.with_name("victim")
    victim.touch()
    plant_journal(path, victim)


def plant_journal(file: Path, victim: Path) -> None:
    """Put a hot rollback journal beside a database, of no pages, whose end names a super-journal: SQLite removes that.

    https://sqlite.org/fileformat2.html#the_rollback_journal
    """
    magic, sector, page = bytes.fromhex("d9d505f920a163d7"), 512, 4096
    header = magic + struct.pack(">5I", 0, 1234, file.stat().st_size // page, sector, page)
    name = os.fsencode(victim)
    locked_page = (1 << 30) // page + 1
    end = struct.pack(">I", locked_page) + name + struct.pack(">2I", len(name), sum(name)) + magic
    Path(f"{file}-journal").write_bytes(header.ljust(sector, b"\0") + end)


#: Begins lines, and stands in them, as the logs of CIs obey it.
_ORDERS = (
    "::error::pwned\n::error::pwned\n  ::stop-commands::pwned\r\n##[error]pwned\x85::add-mask::pwned"
    " ##vso[task.complete result=Failed]pwned ##teamcity[pwned] \u2028::error::pwned"
)
_NAME = "::error::pwned\n::warning::pwned ##vso[pwned]"


def _with_orders(value: object) -> object:
    if isinstance(value, dict):
        return {key: _with_orders(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_orders(item) for item in value]
    return f"{_ORDERS} {value}" if isinstance(value, str) else value


@maker
def orders_to_the_log_of_a_ci(path: Path) -> None:
    with _real(path) as db:
        text = db.execute("SELECT value FROM fact WHERE name = 'record'").fetchone()[0]
        record = json.loads(text.replace('"gvisor"', json.dumps(_NAME)))
        for key in ("host", "image", "fairness"):
            record[key] = _with_orders(record[key])
        for platform in record["platforms"]:
            platform |= {key: _with_orders(platform[key]) for key in ("title", "version", "details", "network_path")}
            platform["not_honoured"] = [_ORDERS]
        for workload in record["workloads"]:
            workload |= {key: _with_orders(workload[key]) for key in ("title", "work_unit")}
            workload["metrics"] = [
                metric | {key: _with_orders(metric[key]) for key in ("title", "unit")} for metric in workload["metrics"]
            ]
        record["left_out"] = [{"platform": _NAME, "reason": _ORDERS, "fix": _ORDERS}]
        db.execute("UPDATE fact SET value = ? WHERE name = 'record'", (json.dumps(record),))
        db.execute("UPDATE arm SET platform = ? WHERE platform = 'gvisor'", (_NAME,))
        db.execute("UPDATE trial SET status = 'failed', reason = ? WHERE arm = 2 AND block = 0", (_ORDERS,))
        db.execute("INSERT INTO event VALUES (NULL, 1.0, 'warning', ?)", (_ORDERS,))


@maker
def orders_to_the_log_of_a_ci_in_footprints(path: Path) -> None:
    with _real(path, _FOOTPRINTS) as db:
        db.execute("UPDATE thing SET name = ? || id || char(10) || ? || name", (_NAME, _NAME))
        db.execute("UPDATE footprint SET platform = ? WHERE platform <> 'native'", (_NAME,))
        db.execute("UPDATE surface_task SET program = ?, role = ?", (_NAME, _ORDERS))
        db.execute("UPDATE surface_thread SET name = ? || id", (_NAME,))
        db.execute("UPDATE surface_detail SET detail = ?", (_ORDERS,))
