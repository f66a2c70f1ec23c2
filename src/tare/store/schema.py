"""The form of a campaign file, as SQL. A change of it is a new format version (docs/report-schema.md)."""

from __future__ import annotations

#: "tare" in ASCII: what SQLite's header holds in every campaign file.
APPLICATION_ID = 0x74617265
FORMAT_VERSION = 1

SCHEMA = """
-- One campaign a file. Names are told once; trials, slices and samples refer to them by small integers.
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE workload (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE metric (
    id INTEGER PRIMARY KEY, workload INTEGER NOT NULL REFERENCES workload, name TEXT NOT NULL, UNIQUE (workload, name)
);
CREATE TABLE arm (
    id INTEGER PRIMARY KEY, platform TEXT NOT NULL, replica INTEGER NOT NULL, UNIQUE (platform, replica)
);
CREATE TABLE schedule (
    seq INTEGER PRIMARY KEY, block INTEGER NOT NULL,
    workload INTEGER NOT NULL REFERENCES workload, arm INTEGER NOT NULL REFERENCES arm,
    UNIQUE (block, workload, arm)
);
CREATE TABLE trial (
    id INTEGER PRIMARY KEY, block INTEGER NOT NULL,
    workload INTEGER NOT NULL REFERENCES workload, arm INTEGER NOT NULL REFERENCES arm,
    status TEXT NOT NULL CHECK (status IN ('ok', 'failed', 'unsupported')), reason TEXT,
    seq INTEGER NOT NULL, started REAL NOT NULL, wall_ns INTEGER NOT NULL,
    cpu_ns INTEGER, daemon_cpu_ns INTEGER, steal REAL, pressure REAL, load REAL NOT NULL,
    UNIQUE (block, workload, arm), CHECK ((status = 'ok') = (reason IS NULL))
);
-- A NULL value is a NaN: SQLite has none.
CREATE TABLE sample (
    trial INTEGER NOT NULL REFERENCES trial, metric INTEGER NOT NULL REFERENCES metric,
    round INTEGER NOT NULL, value REAL, PRIMARY KEY (trial, metric, round)
) WITHOUT ROWID;
CREATE TABLE slice (
    trial INTEGER NOT NULL REFERENCES trial, round INTEGER NOT NULL, position INTEGER NOT NULL,
    start_ns INTEGER NOT NULL, wall_ns INTEGER NOT NULL, cpu_ns INTEGER, daemon_cpu_ns INTEGER,
    late_ns INTEGER NOT NULL, PRIMARY KEY (trial, round)
) WITHOUT ROWID;
-- Contents are zstandard frames; bytes is the length before the cap.
CREATE TABLE output (
    trial INTEGER NOT NULL REFERENCES trial, name TEXT NOT NULL, bytes INTEGER NOT NULL,
    capped INTEGER NOT NULL, zstd BLOB NOT NULL, PRIMARY KEY (trial, name)
);
CREATE TABLE attachment (id INTEGER PRIMARY KEY, at REAL NOT NULL, name TEXT NOT NULL, zstd BLOB NOT NULL);
CREATE TABLE event (id INTEGER PRIMARY KEY, at REAL NOT NULL, level TEXT NOT NULL, text TEXT NOT NULL);
"""
