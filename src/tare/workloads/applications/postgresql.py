"""PostgreSQL under pgbench: its own transaction (five statements, TPC-B's but for the terminals), and its SELECT alone.

The second relational database beside `mariadb`. pgbench is at the client's side, with one thread for all connections.
The tables are made once (`seeds`; a scale is 100,000 accounts, some 15 MiB), and each trial has a fresh copy. A
transaction changes its branch's row, of which there is one a scale: with fewer branches than clients pgbench measures
their waiting for each other, says its manual, so the scale is never below the number of clients. `full` has more
accounts than fit into its shared buffers, or into the default memory limit with the page cache. The server starts with
empty shared buffers; commits are flushed to the disk, as they are by default. PostgreSQL does not run as root: in the
instance it is Debian's user postgres. pgbench has no percentiles without a log of each transaction, so the latency is
the mean, and beside it the standard deviation. Each second of its own report is a window.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tare.errors import HostError, ParseError
from tare.model import Direction, Family, Layer, Metric
from tare.workloads.applications import load_levels, serving, steady, windows
from tare.workloads.applications.mariadb import GRACE_S, require_room
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

FOLDER = "/data/tare-postgresql"
PROGRAMS = "/usr/lib/postgresql/15/bin"
#: What a scale of pgbench's takes on the disk, with the log.
SCALE_BYTES = 24 << 20
FIXED_BYTES = 128 << 20
_AS_POSTGRES = ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups")
#: $1: pgbench's scale, the rest: how a program is run as postgres.
_FILLED = f"""
scale=$1; shift
cd "$folder"
"$@" {PROGRAMS}/initdb -D "$folder/new" -U tare -A trust --no-sync --locale=C -E UTF8 >"$folder/log"
echo 'host all all 0.0.0.0/0 trust' >>"$folder/new/pg_hba.conf"
"$@" {PROGRAMS}/pg_ctl -D "$folder/new" -w -t 300 -l "$folder/server.log" \\
    -o "-k $folder -h '' -c fsync=off -c wal_level=minimal -c max_wal_senders=0 -c max_wal_size=64MB" start >/dev/null
"$@" {PROGRAMS}/pgbench -h "$folder" -U tare -i -q -s "$scale" postgres >/dev/null 2>"$folder/pgbench.log"
"$@" {PROGRAMS}/pg_ctl -D "$folder/new" -w -t 300 -m fast stop >/dev/null
cd /
"""
_NUMBER = r"\d+(?:\.\d+)?"
_WINDOW = re.compile(
    rf"progress: (?P<at>{_NUMBER}) s, (?P<rate>{_NUMBER}) tps, lat ({_NUMBER}|NaN) ms stddev ({_NUMBER}|NaN),"
    r" 0 failed",
    re.ASCII,
)
_FIELDS = {
    "scale": r"^scaling factor: (\d+)$",
    "clients": r"^number of clients: (\d+)$",
    "transactions": r"^number of transactions actually processed: (\d+)$",
    "failed": r"^number of failed transactions: (\d+) ",
    "mean": rf"^latency average = ({_NUMBER}) ms$",
    "deviation": rf"^latency stddev = ({_NUMBER}) ms$",
    "rate": rf"^tps = ({_NUMBER}) \(without initial connection time\)$",
    "connecting": rf"^initial connection time = ({_NUMBER}) ms$",
    "seconds": r"^duration: (\d+) s$",
}


def _scaled(scale: int) -> Seed:
    return Seed(f"postgresql-{scale}", _FILLED, (str(scale), *_AS_POSTGRES), owner="postgres")


_QUICK: Params = {"scale": 4, "clients": 4, "time_s": 6, "buffers_mib": 128}


class PostgreSql(RunWorkload):
    """Parameters: pgbench's ``scale``, the ``clients`` (connections), ``time_s`` whole seconds, ``buffers_mib``.

    The shared buffers take no more than an eighth of the memory limit.
    """

    family = Family.APPLICATION
    revision = 3  # before, with one branch for all clients
    script: ClassVar[str]  # pgbench's name of it
    metrics = (
        Metric("transactions", "transactions/s", Direction.HIGHER, "transactions a second"),
        Metric("average", "ms", Direction.LOWER, "a transaction, on average over the whole run, in a closed loop"),
        Metric("deviation", "ms", Direction.LOWER, "standard deviation of a transaction's time"),
        Metric("warm-up", "s", Direction.LOWER, "until the rate was steady; the whole run where it never was"),
    )
    work_unit = "transaction"
    packages = ("bash", "coreutils", "postgresql-15", "util-linux")
    layer = Layer(
        "postgresql",
        with_seeds(Path(__file__).with_name("postgresql.toml").read_text(), [_scaled(int(_QUICK["scale"]))]),
    )
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": _QUICK,
        "full": {"scale": 100, "clients": 10, "time_s": 60, "buffers_mib": 128},
    }
    least: ClassVar[Mapping[str, float]] = {"time_s": steady.MIN_TIME_S}

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        where = serving.place(self.name, around)
        scale, time_s = int(params["scale"]), int(params["time_s"])
        if scale < int(params["clients"]):
            raise HostError(
                f"{self.name}: {params['clients']} clients would wait for each other's {scale} branches",
                fix=f"give scale {params['clients']} or more",
            )
        require_room("PostgreSQL", 2 * (scale * SCALE_BYTES + FIXED_BYTES), around)
        buffers = min(int(params["buffers_mib"]), around.memory_bytes // 8 >> 20)
        server = (
            *_AS_POSTGRES, f"{PROGRAMS}/postgres", "-D", f"{FOLDER}/db", "-p", str(where.inside),
            "-h", where.listen, "-k", FOLDER, "-c", f"shared_buffers={buffers}MB", "-c", "max_connections=200",
            # initdb writes down what works where it runs, which is not where the seed is served: not all have /dev/shm.
            "-c", "dynamic_shared_memory_type=sysv",
        )  # fmt: skip
        threads = min(around.client_cpus, int(params["clients"]))
        load = (
            f"{PROGRAMS}/pgbench", "-h", where.address, "-p", str(where.port), "-U", "tare", "-b", self.script,
            "-c", str(params["clients"]), "-j", str(threads), "-T", str(time_s), "-P", "1", "-n", "postgres",
        )  # fmt: skip
        # It takes connections before it serves them.
        ready = (f"{PROGRAMS}/pg_isready", "-q", "-h", where.local, "-p", str(where.inside))
        limit_s = time_s + GRACE_S
        return RunPlan(
            prepare=(_scaled(scale).copied(FOLDER, time_limit_s=scale * 60),),
            servers=(serving.server(server, where, ready, time_limit_s=limit_s + serving.READY_LIMIT_S),),
            measures=(Command(load, side=Side.CLIENT, time_limit_s=limit_s, cwd="/"),),
            cleanup=(Command(("rm", "-rf", f"{FOLDER}/db")),),
        )

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        if len(results) != 1:
            raise ParseError(f"one run of pgbench was planned, {len(results)} results came")
        text = text_of(results[0])
        figures = {name: only("pgbench", name, pattern, text) for name, pattern in _FIELDS.items()}
        for name, parameter in (("scale", "scale"), ("clients", "clients"), ("seconds", "time_s")):
            if figures[name] != int(params[parameter]):
                raise ParseError(f"pgbench ran with {name} of {figures[name]:g} and not {params[parameter]}")
        if figures["failed"]:
            raise ParseError(f"pgbench reports {figures['failed']:g} failed transactions")
        lines = text_of(results[0], "stderr").splitlines()
        all_windows = windows.read("pgbench", lines, _WINDOW, int(params["time_s"]))
        average = positive("pgbench", "an average", figures["mean"])
        rate = positive("pgbench", "a rate", figures["rate"])
        # All clients wait for an answer all the time (Little's law), but for what pgbench itself takes.
        if rate * average / 1000 > figures["clients"] * 1.05:
            raise ParseError(f"pgbench contradicts itself: {rate:g} transactions a second of {average:g} ms each")
        busy_s = figures["seconds"] - figures["connecting"] / 1000  # where connecting is slow, a good part is gone
        agree("pgbench", "transactions", figures["transactions"], rate * busy_s, slack=rate)
        # Without the seconds in which nothing was asked yet, but as many as it takes to see a warm-up.
        connected = [window for window in all_windows if int(window.ended_s) > int(figures["connecting"] / 1000)]
        connected = max(connected, all_windows[-steady.MIN_WINDOWS :], key=len)
        rates = [window.rate for window in connected]
        counted = connected[steady.counted(rates) :]
        before_s = max(results[0].wall_ns / 1e9 - figures["seconds"], 0.001)
        return Outcome(
            {
                "transactions": positive("pgbench", "a rate", windows.mean_rate(counted)),
                "average": average,
                "deviation": positive("pgbench", "a deviation", figures["deviation"]),
                "warm-up": steady.warm_up_s(rates, windows.ends_s(connected, before_s)),
            },
            work=figures["transactions"],
        )


class TpcB(PostgreSql):
    """pgbench's own transaction."""

    name = "postgresql"
    title = "PostgreSQL: pgbench's own transaction"
    script = "tpcb-like"


class SelectOnly(PostgreSql):
    """One statement."""

    name = "postgresql-select"
    title = "PostgreSQL: pgbench's SELECT of one row"
    script = "select-only"


CLIENTS = range(10, 71, 10)
_CURVE = CurveLevel("postgresql-clients", 0, "clients", "transactions", "average", 100.0)
WORKLOADS = (
    *(TpcB(), SelectOnly()),
    *load_levels.levels(TpcB, f"{TpcB.title}, {{}} clients", "clients", CLIENTS, _CURVE, {"scale": CLIENTS[-1]}),
)
