"""MariaDB under sysbench's OLTP: read only, write only, and both.

Kärnä 2021 (6.5, databases; MySQL there): sysbench's oltp_read_only, oltp_write_only and oltp_read_write on 8 tables of
a million rows, 10 to 70 threads by tens, transactions a second, for 20 s. His scripts
(github.com/ppeerttu/virtualization-benchmarks) leave sysbench's range queries out and prepare no statements
(``--range_selects=off --db-ps-mode=disable``). sysbench is at the client's side. The tables are made
once by sysbench (`seeds`), and each trial has a fresh copy, so that no trial sees what another wrote. The server
starts with an empty buffer pool on files that were just written: what the host (or a guest) has of them in its page
cache stays, where MariaDB uses it; the warm-up is what fills the pool. Its settings are MariaDB's own, commits are
flushed to the disk, but for the sizes of pool and log, and the binary log, which is off. Each second of sysbench's own
report is a window.

`quick` has all tables in the pool, `full` has tables of eight times the pool, so that pages come from the disk: MariaDB
reads its files past the page cache (``innodb_flush_method`` is O_DIRECT by default).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import ClassVar

from tare.errors import HostError, ParseError
from tare.model import Direction, Family, Layer, Metric
from tare.workloads.applications import load_levels, serving, steady, windows
from tare.workloads.applications.seeds import Seed, with_seeds
from tare.workloads.base import (
    Command,
    Completed,
    CurveLevel,
    Outcome,
    Params,
    RunPlan,
    RunWorkload,
    Side,
    Surroundings,
)
from tare.workloads.output import agree, only, positive, text_of

FOLDER = "/data/tare-mariadb"
GRACE_S = 60.0
#: What a row takes on the disk, with its index, the logs, and room to grow.
ROW_BYTES = 400
FIXED_BYTES = 256 << 20
#: Rows a second that the slowest platform takes up when the tables are made.
SLOWEST = 500.0
_OPTIONS = (
    "--no-defaults", "--user=root", "--skip-log-bin", "--innodb-log-file-size=48M", "--skip-name-resolve",
    "--innodb-buffer-pool-load-at-startup=OFF", "--innodb-buffer-pool-dump-at-shutdown=OFF", "--max-connections=200",
)  # fmt: skip
#: $1: the commands that fill it, the rest: the server's options. `client` asks the server that is being filled.
_FILLED = """
tables=$1; shift
client() { "$@" --user=root --socket="$folder/new/s"; }
mkdir "$folder/new"
mariadb-install-db --no-defaults --user=root --datadir="$folder/new" --auth-root-authentication-method=normal \\
    --skip-test-db --force >"$folder/log" || { cat "$folder/log" >&2; exit 1; } # though the host's name is nobody's
mariadbd "$@" --datadir="$folder/new" --socket="$folder/new/s" --skip-networking 2>"$folder/log" & server=$!
until client mariadb-admin ping >/dev/null 2>&1; do
    kill -0 "$server" || { tail -n 1 "$folder/log" >&2; exit 1; }
    sleep 0.1
done
eval "$tables"
client mariadb-admin shutdown
wait "$server"
"""
#: Fills the database; the arguments are the numbers of tables and of rows.
_FILL = """
client mariadb <<'SQL'
CREATE DATABASE sbtest;
CREATE USER sbtest@'%' IDENTIFIED BY 'tare';
GRANT ALL ON sbtest.* TO sbtest@'%';
SQL
sysbench oltp_common --db-driver=mysql --mysql-socket="$folder/new/s" --mysql-user=root --mysql-db=sbtest \\
    --tables={tables} --table-size={rows} prepare >"$folder/log" || {{ tail -n 1 "$folder/log" >&2; exit 1; }}
"""
_NUMBER = r"\d+(?:\.\d+)?"
_WINDOW = re.compile(
    rf"\[ (?P<at>\d+)s \] thds: \d+ tps: (?P<rate>{_NUMBER}) qps: {_NUMBER} \(r/w/o: {_NUMBER}/{_NUMBER}/{_NUMBER}\)"
    rf" lat \(ms,99%\): (?P<p99>{_NUMBER}) err/s: (?P<errors>{_NUMBER}) reconn/s: (?P<reconnects>{_NUMBER})",
    re.ASCII,
)
_FIELDS = {
    "threads": r"^Number of threads: (\d+)$",
    "transactions": rf"^ +transactions: +(\d+) +\({_NUMBER} per sec\.\)$",
    "rate": rf"^ +transactions: +\d+ +\(({_NUMBER}) per sec\.\)$",
    "errors": rf"^ +ignored errors: +(\d+) +\({_NUMBER} per sec\.\)$",
    "reconnects": rf"^ +reconnects: +(\d+) +\({_NUMBER} per sec\.\)$",
    "seconds": rf"^ +total time: +({_NUMBER})s$",
    "events": r"^ +total number of events: +(\d+)$",
    "average": rf"^ +avg: +({_NUMBER})$",
    "p99": rf"^ +99th percentile: +({_NUMBER})$",
}
#: Upper end of sysbench's latency histogram in ms (OPER_LOG_MAX_VALUE): it records slower transactions as this.
CEILING_MS = 100_000.0
#: Of all transactions, those that the server may refuse because of another's lock; sysbench tries again.
MAX_ERRORS = 0.01


def seed(name: str, tables: str) -> Seed:
    """Return a database; ``tables``: shell commands that fill it, with `client PROGRAM` as the server's root."""
    return Seed(name, _FILLED, (tables, *_OPTIONS))


def _tables(tables: int, rows: int) -> Seed:
    return seed(f"mariadb-{tables}-{rows}", _FILL.format(tables=tables, rows=rows))


#: So many rows that few of 70 threads want the same one: of 10,000 rows 40 threads were refused 2.5 % of transactions.
_QUICK: Params = {
    "tables": 8, "rows": 10_000, "threads": 4, "time_s": 6, "pool_mib": 128, "range_selects": True, "prepared": True,
}  # fmt: skip


class MariaDb(RunWorkload):
    """Parameters: ``tables`` of ``rows``, ``threads`` of the load, ``time_s`` whole seconds, ``pool_mib`` at most.

    The pool takes no more than a quarter of the memory limit. ``range_selects``: whether transactions that read have
    sysbench's four range queries beside its ten of one row. ``prepared``: whether statements are prepared once.
    """

    family = Family.APPLICATION
    revision = 2  # before, a second without a transaction counted with a percentile of 0
    test: ClassVar[str]  # sysbench's name of it
    metrics = (
        Metric("transactions", "transactions/s", Direction.HIGHER, "transactions a second"),
        Metric("average", "ms", Direction.LOWER, "a transaction, on average over the whole run, in a closed loop"),
        Metric(
            "p99",
            "ms",
            Direction.LOWER,
            "99 of 100 took less, in the seconds that had some, in a closed loop",
        ),
        Metric("warm-up", "s", Direction.LOWER, "until the rate was steady; the whole run where it never was"),
    )
    work_unit = "transaction"
    packages = ("bash", "coreutils", "mariadb-server", "sysbench")
    layer = Layer(
        "mariadb",
        with_seeds(
            Path(__file__).with_name("mariadb.toml").read_text(), [_tables(int(_QUICK["tables"]), int(_QUICK["rows"]))]
        ),
    )
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": _QUICK,
        "full": {**_QUICK, "rows": 1_000_000, "threads": 10, "time_s": 60, "pool_mib": 256},
    }
    least: ClassVar[Mapping[str, float]] = {"time_s": steady.MIN_TIME_S}

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        where = serving.place(self.name, around)
        tables, rows, time_s = (int(params[name]) for name in ("tables", "rows", "time_s"))
        require_room("MariaDB", 2 * (tables * rows * ROW_BYTES + FIXED_BYTES), around)
        pool = min(int(params["pool_mib"]), around.memory_bytes // 4 >> 20)
        network = (f"--port={where.inside}", f"--bind-address={where.listen}")
        load = (
            "sysbench", self.test, "--db-driver=mysql", f"--mysql-host={where.address}", f"--mysql-port={where.port}",
            "--mysql-user=sbtest", "--mysql-password=tare", "--mysql-db=sbtest", f"--tables={tables}",
            f"--table-size={rows}", f"--threads={params['threads']}", f"--time={time_s}", "--report-interval=1",
            "--percentile=99", *(() if params["range_selects"] else ("--range_selects=off",)),
            *(() if params["prepared"] else ("--db-ps-mode=disable",)), "run",
        )  # fmt: skip
        limit_s = time_s + GRACE_S
        return RunPlan(
            prepare=(_tables(tables, rows).copied(FOLDER, time_limit_s=tables * rows / SLOWEST),),
            servers=(
                serving.server(server(FOLDER, pool, *network), where, time_limit_s=limit_s + serving.READY_LIMIT_S),
            ),
            measures=(Command(load, side=Side.CLIENT, time_limit_s=limit_s, cwd="/"),),
            cleanup=(Command(("rm", "-rf", f"{FOLDER}/db")),),
        )

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        if len(results) != 1:
            raise ParseError(f"one run of sysbench was planned, {len(results)} results came")
        text = text_of(results[0])
        figures = {name: only("sysbench", name, pattern, text) for name, pattern in _FIELDS.items()}
        if int(figures["threads"]) != int(params["threads"]):
            raise ParseError(f"sysbench ran {figures['threads']:g} threads and not {params['threads']}")
        if figures["errors"] > MAX_ERRORS * figures["transactions"] or figures["reconnects"]:
            raise ParseError(
                f"sysbench reports {figures['errors']:g} errors and {figures['reconnects']:g} reconnects in"
                f" {figures['transactions']:g} transactions"
            )
        seconds = positive("sysbench", "a time", figures["seconds"])
        if seconds < 0.99 * int(params["time_s"]):
            raise ParseError(f"sysbench ended after {seconds:g} s, {params['time_s']} s were asked for")
        agree("sysbench", "transactions a second", figures["transactions"] / seconds, figures["rate"])
        agree("sysbench", "events", figures["events"], figures["transactions"])
        lines = [line for line in text.splitlines() if line.startswith("[ ")]
        all_windows = windows.read("sysbench", lines, _WINDOW, int(params["time_s"]))
        slowest = max(figures["p99"], *(float(window.line["p99"]) for window in all_windows))
        if slowest >= CEILING_MS:
            raise ParseError(f"sysbench tells no latency above {CEILING_MS / 1000:g} s, and a hundredth took longer")
        rates = [window.rate for window in all_windows]
        counted = all_windows[steady.counted(rates) :]
        before_s = max(results[0].wall_ns / 1e9 - seconds, 0.001)  # sysbench connects, and prepares its statements
        return Outcome(
            {
                "transactions": positive("sysbench", "a rate", windows.mean_rate(counted)),
                "average": positive("sysbench", "an average", figures["average"]),
                "p99": positive("sysbench", "a percentile", _p99_ms(counted)),
                "warm-up": steady.warm_up_s(rates, windows.ends_s(all_windows, before_s)),
            },
            work=figures["transactions"],
        )


def _p99_ms(counted: Sequence[windows.ReportWindow]) -> float:
    """Return the median of the seconds' percentiles; sysbench shows 0.00 for a second in which no transaction ended."""
    percentiles = [float(window.line["p99"]) for window in counted if window.rate > 0]
    return median(percentiles) if percentiles else 0.0


def server(folder: str, pool_mib: int, *more: str) -> tuple[str, ...]:
    """Return the server on a copy of a seed, with its socket at ``FOLDER/db/s``."""
    place = (f"--datadir={folder}/db", f"--socket={folder}/db/s")
    return ("mariadbd", *_OPTIONS, *place, *more, f"--innodb-buffer-pool-size={pool_mib}M")


def require_room(name: str, needed: int, around: Surroundings) -> None:
    """Raise `HostError` where the data volume has not so many bytes for a database."""
    free = around.disk_free_bytes
    if free < needed:
        raise HostError(
            f"{name}'s tables need {needed >> 20} MiB free on the data volume, which has {free >> 20}",
            fix="free some space, set TARE_HOME to a larger disk, or ask for fewer rows",
        )


class ReadOnly(MariaDb):
    """Transactions that read."""

    name = "mariadb-read"
    title = "MariaDB: sysbench oltp_read_only"
    test = "oltp_read_only"


class WriteOnly(MariaDb):
    """Transactions that write."""

    name = "mariadb-write"
    title = "MariaDB: sysbench oltp_write_only"
    test = "oltp_write_only"


class ReadWrite(MariaDb):
    """Transactions that do both."""

    name = "mariadb-read-write"
    title = "MariaDB: sysbench oltp_read_write"
    test = "oltp_read_write"


THREADS = range(10, 71, 10)


def _levels(of: type[MariaDb]) -> tuple[RunWorkload, ...]:
    curve = CurveLevel(f"{of.name}-threads", 0, "threads", "transactions", "p99", 100.0)
    return load_levels.levels(of, f"{of.title}, {{}} threads", "threads", THREADS, curve)


WORKLOADS = (
    *(ReadOnly(), WriteOnly(), ReadWrite()),
    *(level for of in (ReadOnly, WriteOnly, ReadWrite) for level in _levels(of)),
)
