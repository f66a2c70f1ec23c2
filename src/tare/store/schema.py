"""The tables of a campaign file, as SQL; `tare.store.migrations` lists the format versions that add them."""

from __future__ import annotations

#: "Tare" in ASCII: SQLite's header holds it in every campaign file.
APPLICATION_ID = 0x54617265
#: Written by versions before 0.1.0, which were never released, together with other format versions.
UNRELEASED_ID = 0x74617265

CAMPAIGN = """
-- One campaign a file. Names are told once: trials, slices and samples refer to them by small integers.
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
-- Contents are zstandard frames. bytes is the length before the cap.
CREATE TABLE output (
    trial INTEGER NOT NULL REFERENCES trial, name TEXT NOT NULL, bytes INTEGER NOT NULL,
    capped INTEGER NOT NULL, zstd BLOB NOT NULL, PRIMARY KEY (trial, name)
);
CREATE TABLE attachment (id INTEGER PRIMARY KEY, at REAL NOT NULL, name TEXT NOT NULL, zstd BLOB NOT NULL);
CREATE TABLE event (id INTEGER PRIMARY KEY, at REAL NOT NULL, level TEXT NOT NULL, text TEXT NOT NULL);
"""
#: Counters of the host at that moment (`tare.model.Tick`).
TELEMETRY = """
CREATE TABLE tick (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, at_ns INTEGER NOT NULL, first INTEGER NOT NULL,
    own_ns INTEGER NOT NULL, tare_ns INTEGER NOT NULL, client_ns INTEGER NOT NULL, daemons_ns INTEGER NOT NULL,
    kernel_ns INTEGER NOT NULL, cpu_pressure_us INTEGER, memory_pressure_us INTEGER, io_pressure_us INTEGER,
    memory_available INTEGER NOT NULL,
    swapped_in INTEGER NOT NULL, swapped_out INTEGER NOT NULL,
    disk_read_bytes INTEGER, disk_written_bytes INTEGER, disk_busy_ms INTEGER,
    net_received_bytes INTEGER NOT NULL, net_sent_bytes INTEGER NOT NULL
);
CREATE TABLE tick_cpu (
    tick INTEGER NOT NULL REFERENCES tick, cpu INTEGER NOT NULL, user_ms INTEGER NOT NULL, nice_ms INTEGER NOT NULL,
    system_ms INTEGER NOT NULL, idle_ms INTEGER NOT NULL, iowait_ms INTEGER NOT NULL, irq_ms INTEGER NOT NULL,
    softirq_ms INTEGER NOT NULL, steal_ms INTEGER NOT NULL, run_ns INTEGER NOT NULL, tare_ns INTEGER,
    PRIMARY KEY (tick, cpu)
) WITHOUT ROWID;
CREATE TABLE tick_instance (
    tick INTEGER NOT NULL REFERENCES tick, arm INTEGER NOT NULL REFERENCES arm, cpu_ns INTEGER NOT NULL,
    memory_bytes INTEGER NOT NULL, throttled INTEGER, throttled_ns INTEGER, PRIMARY KEY (tick, arm)
) WITHOUT ROWID;
"""
#: Working periods of the campaign, in UNIX seconds; every write advances ``ended``.
SEGMENTS = """
CREATE TABLE segment (id INTEGER PRIMARY KEY, began REAL NOT NULL, ended REAL NOT NULL, boot TEXT);
"""
#: Rate and offset of the clock inside against the host's, of trials that it timed (`tare.model.ClockFacts`).
CLOCKS = """
CREATE TABLE inside_clock (
    trial INTEGER PRIMARY KEY REFERENCES trial, offset_ns INTEGER NOT NULL, offset_error_ns INTEGER NOT NULL,
    rate_low REAL NOT NULL, rate_high REAL NOT NULL
);
"""
#: What ran in a host's kernel. The names of system calls, functions, lines and folded stacks are stored once, as
#: ``thing``; they are not unique if names of people and machines were replaced (`tare.store.shared_copy`).
#: ``hits``: ids of the things that ran, in order, with their counts, as numbers (`tare.store.packed.pack_hits`).
FOOTPRINTS = """
CREATE TABLE footprint (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, level TEXT NOT NULL, scope TEXT NOT NULL, platform TEXT NOT NULL,
    phase TEXT NOT NULL, workload TEXT, repeat INTEGER NOT NULL, seconds REAL NOT NULL, lost INTEGER NOT NULL,
    known INTEGER, hits BLOB NOT NULL
);
CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
"""
#: The kernel calls and rights that a platform allows. A row without a task belongs to the whole surface. Lists are in
#: the order of their rows; ``readable``: the calls are known, even if there are none.
SURFACES = """
CREATE TABLE surface (
    id INTEGER PRIMARY KEY, platform TEXT NOT NULL, at REAL NOT NULL, kernel TEXT NOT NULL, total INTEGER NOT NULL,
    readable INTEGER NOT NULL
);
CREATE TABLE surface_task (
    id INTEGER PRIMARY KEY, surface INTEGER NOT NULL REFERENCES surface, pid INTEGER NOT NULL, program TEXT NOT NULL,
    role TEXT NOT NULL, counted INTEGER NOT NULL, seccomp TEXT NOT NULL, filters INTEGER NOT NULL,
    readable INTEGER NOT NULL, unread TEXT, no_new_privs INTEGER NOT NULL, label TEXT, uid INTEGER NOT NULL,
    gid INTEGER NOT NULL
);
CREATE TABLE surface_call (
    id INTEGER PRIMARY KEY, surface INTEGER NOT NULL REFERENCES surface, task INTEGER REFERENCES surface_task,
    name TEXT NOT NULL, outcome TEXT NOT NULL
);
CREATE TABLE surface_answer (
    id INTEGER PRIMARY KEY, surface INTEGER NOT NULL REFERENCES surface, task INTEGER REFERENCES surface_task,
    name TEXT NOT NULL, answer TEXT
);
CREATE TABLE surface_abi (
    id INTEGER PRIMARY KEY, surface INTEGER NOT NULL REFERENCES surface, task INTEGER REFERENCES surface_task,
    name TEXT NOT NULL, reachable INTEGER NOT NULL, total INTEGER NOT NULL, in_kernel INTEGER
);
CREATE TABLE surface_thread (
    id INTEGER PRIMARY KEY, surface INTEGER NOT NULL REFERENCES surface, task INTEGER REFERENCES surface_task,
    name TEXT NOT NULL, threads INTEGER NOT NULL
);
CREATE TABLE surface_place (
    id INTEGER PRIMARY KEY, surface INTEGER NOT NULL REFERENCES surface, task INTEGER REFERENCES surface_task,
    path TEXT NOT NULL, host TEXT, kind TEXT NOT NULL
);
CREATE TABLE surface_detail (
    id INTEGER PRIMARY KEY, surface INTEGER NOT NULL REFERENCES surface, task INTEGER REFERENCES surface_task,
    kind TEXT NOT NULL, detail TEXT NOT NULL
);
"""
#: All tables of format version 1.
TABLES = CAMPAIGN + TELEMETRY + SEGMENTS + FOOTPRINTS + SURFACES + CLOCKS
