"""A site under users: nginx, PHP, memcached and MariaDB, and people who look words up.

`site` has all four in one instance, where they ask each other at sockets of the file system; `site-split` is the same
as three instances of one platform.

Giallorenzo 2021 (section 5, figure 8): the website of a dictionary, on nginx, PHP, Memcache and databases, and its
operators' simulated users: each makes 25 searches of several requests, 250 in all; where a request fails, what would
have followed in that search is dropped. The study counts what was answered well, HTTP 50* and errors of the transport,
a second, at 2000 to 16,000 users on eight processors.

The site here is a dictionary of ours (``dictionary/``), of the same four parts: a page comes out of memcached, else
out of MariaDB. The users are the agent's (`agent/src/users`): every request has an instant at which it is due, drawn
beforehand and whatever the site does (an open loop), and its latency counts from then on, sent or not. So a site that
stands still for a second has a second in its percentiles, as its users have it. A request that failed counts as one
that took the time limit.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Layer, Metric
from tare.workloads.applications import levels, mariadb, serving, steady
from tare.workloads.applications.seeds import Seed, with_seeds
from tare.workloads.base import Command, Completed, Level, Outcome, Params, RunPlan, RunWorkload, Side, Surroundings
from tare.workloads.network.exchange import AGENT
from tare.workloads.output import shown, text_of

FOLDER = "/data/tare-site"
#: In `quick`'s dictionary.
WORDS = 5_000
GRACE_S = 20.0
#: What a word takes on the disk, with its indexes; the logs, and room to grow.
WORD_BYTES = 1000
FIXED_BYTES = 256 << 20
#: Words a second that the slowest platform takes up.
SLOWEST = 500.0
POOL_MIB = 128
CACHE_MIB = 64
#: PHP's processes for each CPU: some wait for the database while others compute.
PHP_PROCESSES = 4
#: How far apart the requests of one search are due.
PACE_MS = 50
#: Each user makes so many searches of `SEARCH`: 250 requests.
SEARCHES = 25
#: A search: the front page, suggestions while the word is typed, its page, its neighbours, and what was looked up last.
SEARCH = (
    "/", "/site.css", "/suggest?w={1}", "/suggest?w={2}", "/suggest?w={3}", "/suggest?w={4}", "/word?w={7}",
    "/site.css", "/like?w={7}", "/last",
)  # fmt: skip
#: $1: the folder, $2: address and port, $3: nginx's workers, $4: PHP's processes, $5: where these find MariaDB, as PDO
#: has it, $6: and memcached, its port behind a colon. The pages come as a tar.
_PREPARE = """
mkdir -p "$1" && cd "$1" && rm -rf pages && mkdir -p pages logs && tar -x -C pages
cat >nginx.conf <<end
user root;
worker_processes $3;
worker_rlimit_nofile 8192;
pid $1/nginx.pid;
error_log $1/nginx.log crit;
events { worker_connections 4096; }
http {
    access_log off;
    keepalive_timeout 300s;
    keepalive_requests 1000000000;
    sendfile on;
    types { text/css css; }
    client_body_temp_path $1/body; proxy_temp_path $1/proxy; fastcgi_temp_path $1/fastcgi;
    uwsgi_temp_path $1/uwsgi; scgi_temp_path $1/scgi;
    server {
        listen $2 backlog=4096;
        root $1/pages;
        location = /site.css { }
        location / {
            fastcgi_pass unix:$1/php;
            fastcgi_param SCRIPT_FILENAME $1/pages/index.php;
            fastcgi_param REQUEST_METHOD \\$request_method;
            fastcgi_param DOCUMENT_URI \\$document_uri;
            fastcgi_param QUERY_STRING \\$query_string;
        }
    }
}
end
cat >php.conf <<end
[global]
pid = $1/php.pid
error_log = $1/php.log
[site]
listen = $1/php
env[DATABASE] = "$5"
env[CACHE] = "$6"
user = root
group = root
pm = static
pm.max_children = $4
end
"""
#: $1: the folder. All but the seeds goes, once PHP's processes have ended.
_CLEAN = """
while kill -0 "$(cat "$1/php.pid" 2>/dev/null)" 2>/dev/null; do sleep 0.05; done
find "$1" -mindepth 1 -maxdepth 1 ! -name 'seed-*' -exec rm -rf {} +
"""
#: Whether the site answers with a word of the dictionary: all four took part. $0 is the address, $1 the port.
_ANSWERS = """
exec 3<>"/dev/tcp/$0/$1"
printf 'GET /like?w=0 HTTP/1.0\\r\\n\\r\\n' >&3
answer=$(cat <&3)
[[ $answer == 'HTTP/1.1 200 '*'<dt>'* ]]
"""
_COUNTS = ("due", "successes", "server-errors", "transport-errors", "timeouts", "dropped", "hits", "misses")
_WINDOW = re.compile("window (?P<at>[0-9]+) " + " ".join(rf"{name} ([0-9]+)" for name in _COUNTS), re.ASCII)
_TOOK = re.compile(r"took (?P<at>[0-9]+)(?P<counts>(?: [0-9]+:[0-9]+)*)", re.ASCII)
_LATE = re.compile(r"late(?P<counts>(?: [0-9]+:[0-9]+)*)", re.ASCII)


def _file(name: str) -> bytes:
    return resources.files("tare.workloads.applications").joinpath("dictionary", name).read_bytes()


def _words(words: int) -> Seed:
    """The database of a dictionary of so many words."""
    filled = _file("seed.sql").decode().replace("WORDS_less_one", str(words - 1))
    return mariadb.seed(f"site-{words}", f"client mariadb <<'SQL'\n{filled}SQL\n")


class Site(RunWorkload):
    """Parameters: ``users`` for ``time_s`` whole seconds.

    Each begins a search every ``think_ms``, half as much or half more, and gives a request up ``limit_ms`` after it was
    due. ``words``: how many the dictionary has; some are looked up far more often than others (Zipf). ``seed``: of all
    that is drawn.
    """

    name = "site"
    title = "a site (nginx, PHP, memcached, MariaDB) under 20 users"
    family = Family.APPLICATION
    metrics = (
        Metric("successes", "requests/s", Direction.HIGHER, "requests answered well, a second"),
        Metric("server-errors", "requests/s", Direction.LOWER, "requests answered with HTTP 5xx, a second"),
        Metric("transport-errors", "requests/s", Direction.LOWER, "requests refused, broken off or given up, a second"),
        Metric("median", "ms", Direction.LOWER, "half of the requests were answered so long after they were due"),
        Metric("p99", "ms", Direction.LOWER, "99 of 100 were; one that failed counts as the time limit"),
        Metric("cache-hits", "%", Direction.HIGHER, "pages out of memcached, of those that it may have"),
        Metric("client-late", "ms", Direction.LOWER, "99 of 100 requests were sent so long after they were due"),
        Metric("warm-up", "s", Direction.LOWER, "until the median was steady; the whole run where it never was"),
    )
    work_unit = "request"
    #: And what these start, which the layer has.
    packages = ("bash", "coreutils", "mariadb-server", "memcached", "nginx-light", "util-linux")
    layer = Layer("site", with_seeds(Path(__file__).with_name("site.toml").read_text(), [_words(WORDS)]))
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"users": 20, "time_s": 8, "think_ms": 2000, "limit_ms": 2000, "words": WORDS, "seed": 1},
        "full": {"users": 20, "time_s": 60, "think_ms": 2000, "limit_ms": 2000, "words": 100_000, "seed": 1},
    }
    least: ClassVar[Mapping[str, float]] = {"time_s": steady.MIN_WINDOWS}

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        where = serving.place(self.name, around)
        limit_s = servers_limit_s(params)
        socket, cache = f"{FOLDER}/db/s", f"{FOLDER}/memcached"
        return RunPlan(
            prepare=(seeded(params, around), pages(where, around, f"unix_socket={socket}", f"{cache}:0")),
            servers=(
                _at_socket(database(around, "--skip-networking"), where, socket, limit_s=limit_s),
                _at_socket(memcached(around, "-s", cache), where, cache, limit_s=limit_s),
                *web(where, limit_s=limit_s),
            ),
            measures=(load(params, where),),
            cleanup=(Command(("bash", "-c", _CLEAN, "clean", FOLDER)),),
        )

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        if len(results) != 1:
            raise ParseError(f"one run of users was planned, {len(results)} results came")
        return _read(text_of(results[0]), params).outcome()


def servers_limit_s(params: Params) -> float:
    """The longest time that a server may run, in seconds: while the others come into service, and under the load."""
    return _load_limit_s(params) + 4 * serving.READY_LIMIT_S


def _load_limit_s(params: Params) -> float:
    return int(params["time_s"]) + int(params["limit_ms"]) / 1000 + GRACE_S


def load(params: Params, where: serving.ServerAddress) -> Command:
    """The command that is the users of the site, at the client's side."""
    argv = (
        AGENT, "users", where.address, str(where.port),
        *(str(params[name]) for name in ("users", "time_s", "think_ms")), str(PACE_MS), str(params["limit_ms"]),
        str(SEARCHES), str(params["words"]), str(params["seed"]), *SEARCH,
    )  # fmt: skip
    return Command(argv, side=Side.CLIENT, time_limit_s=_load_limit_s(params), cwd="/")


def seeded(params: Params, around: Surroundings) -> Command:
    """Makes the dictionary's database. Raises `HostError` where the data volume has no room for it."""
    words = int(params["words"])
    mariadb.require_room("the site", 2 * (words * WORD_BYTES + FIXED_BYTES), around)
    return _words(words).copied(FOLDER, time_limit_s=words / SLOWEST)


def pages(where: serving.ServerAddress, around: Surroundings, database: str, cache: str) -> Command:
    """Writes the pages, and the settings of nginx and PHP.

    ``database``: where PHP finds it, as PDO has it. ``cache``: an address and its port, or a socket and 0, with a colon
    between.
    """
    listen = f"{where.listen}:{where.inside}"
    settings = (FOLDER, listen, str(around.cpu_count), str(PHP_PROCESSES * around.cpu_count), database, cache)
    packed = serving.tar_of({name: _file(name) for name in ("index.php", "site.css")})
    return Command(("bash", "-eu", "-c", _PREPARE, "prepare", *settings), stdin=packed)


def web(where: serving.ServerAddress, *, limit_s: float) -> tuple[Command, ...]:
    """PHP, and nginx, which is in service once it answers with a page that all four made."""
    # PHP makes itself a process group of its own, which is not ended with its parent's: so it asks for a signal.
    php = ("setpriv", "--pdeathsig", "TERM", "php-fpm8.2", "-F", "-R", "-y", f"{FOLDER}/php.conf")
    nginx = ("nginx", "-p", FOLDER, "-c", f"{FOLDER}/nginx.conf", "-g", "daemon off;")
    answers = ("bash", "-c", _ANSWERS, where.local, str(where.inside))
    return (
        _at_socket(php, where, f"{FOLDER}/php", limit_s=limit_s),
        serving.server(nginx, where, answers, time_limit_s=limit_s),
    )


def database(around: Surroundings, *network: str) -> tuple[str, ...]:
    """MariaDB's words; ``network``: those that say where it listens."""
    return mariadb.server(FOLDER, min(POOL_MIB, around.memory_bytes // 8 >> 20), *network)


def memcached(around: Surroundings, *network: str) -> tuple[str, ...]:
    """The words of memcached; ``network``: those that say where it listens."""
    return ("memcached", "-u", "root", *network, "-m", str(min(CACHE_MIB, around.memory_bytes // 16 >> 20)))


def _at_socket(argv: tuple[str, ...], where: serving.ServerAddress, socket: str, *, limit_s: float) -> Command:
    return serving.server(argv, where, ("test", "-S", socket), time_limit_s=limit_s)


@dataclass(slots=True)
class _Window:
    """A second: what was due in it and how long that took, by microseconds; and what ended in it."""

    counts: Mapping[str, int]
    took: Counter[int] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Run:
    """What the users tell: a window a second, and after the last one what was still under way."""

    windows: Sequence[_Window]
    after: _Window
    late: Counter[int]

    def outcome(self) -> Outcome:
        """The figures of the windows that count."""
        # The rate is the users' own, and steady from the first; what warms up is how soon they are answered.
        medians = [_percentile(window.took, 50) for window in self.windows]
        counted = self.windows[steady.counted(medians, steady.settled_from) :]
        sums: Counter[str] = Counter()
        took: Counter[int] = Counter()
        for window in counted:
            sums.update(window.counts)
            took.update(window.took)
        lookups = sums["hits"] + sums["misses"]
        if not sums["successes"] or not lookups:
            raise ParseError(
                f"of {sums['due']} requests {sums['successes']} were answered well, {lookups} out of cache or database"
            )
        ends = [0.001, *range(1, len(self.windows) + 1)]  # a time of 0 has no ratio
        everything = [window.counts for window in (*self.windows, self.after)]
        return Outcome(
            {
                **{name: sums[name] / len(counted) for name in ("successes", "server-errors", "transport-errors")},
                "median": _percentile(took, 50),
                "p99": _percentile(took, 99),
                "cache-hits": 100 * sums["hits"] / lookups,
                "client-late": _percentile(self.late, 99),
                "warm-up": steady.warm_up_s(medians, ends, steady.settled_from),
            },
            work=sum(counts["successes"] + counts["server-errors"] for counts in everything),
        )


def _read(text: str, params: Params) -> _Run:
    """The users' report, line by line. Raises `ParseError`."""
    lines = text.splitlines()
    body, ending = "".join(f"{line}\n" for line in lines[:-2]), lines[-2:]
    if ending != [f"sum {sum(body.encode())}", "end"]:
        raise ParseError(f"the users' report is not whole, or not as it was sent: {shown(text)}")
    expected = f"users {params['users']} seconds {params['time_s']} limit {params['limit_ms']} ms"
    time_s = int(params["time_s"])
    if lines[0] != expected or len(lines) != 2 * (time_s + 1) + 4:
        raise ParseError(f"the users were asked for {expected!r} and report {shown(text)}")
    windows = [_window(number, *lines[1 + 2 * number : 3 + 2 * number]) for number in range(time_s + 1)]
    late = _LATE.fullmatch(lines[-3])
    if late is None:
        raise ParseError(f"the users printed a strange line: {lines[-3][:200]!r}")
    run = _Run(windows[:-1], windows[-1], _histogram(late["counts"]))
    _require_all(run, int(params["limit_ms"]))
    return run


def _window(number: int, counts: str, took: str) -> _Window:
    counted, timed = _WINDOW.fullmatch(counts), _TOOK.fullmatch(took)
    if counted is None or timed is None or not int(counted["at"]) == int(timed["at"]) == number:
        raise ParseError(f"the users printed strange lines for second {number}: {counts[:200]!r}, {took[:200]!r}")
    return _Window(
        dict(zip(_COUNTS, map(int, counted.groups()[1:]), strict=True)),
        _histogram(timed["counts"]),
    )


def _histogram(text: str) -> Counter[int]:
    return Counter({int(us): int(count) for us, count in (pair.split(":") for pair in text.split())})


def _require_all(run: _Run, limit_ms: int) -> None:
    """Every request that was due was answered, failed or was dropped, and has a time. Raises `ParseError`."""
    windows = (*run.windows, run.after)
    sums = Counter({name: sum(window.counts[name] for window in windows) for name in _COUNTS})
    ended = sums["successes"] + sums["server-errors"] + sums["transport-errors"]
    timed = sum(window.took.total() for window in windows)
    if not sums["due"] == ended == timed or any(w.took.total() != w.counts["due"] for w in windows):
        raise ParseError(
            f"the users contradict themselves: {sums['due']} requests were due, {ended} ended, {timed} have a time"
        )
    if sums["timeouts"] > sums["transport-errors"] or sums["hits"] + sums["misses"] > sums["successes"]:
        raise ParseError(f"the users contradict themselves: {dict(sums)}")
    if max((us for window in windows for us in window.took), default=0) > 1000 * limit_ms * 1.01:
        raise ParseError(f"a request took longer than the {limit_ms} ms after which a user gives up")


def _percentile(counts: Counter[int], percent: float) -> float:
    """Of microseconds, in ms: the least within which so many per cent are."""
    rank = math.ceil(counts.total() * percent / 100)
    for us, count in sorted(counts.items()):
        rank -= count
        if rank <= 0:
            return max(us, 1) / 1000
    raise ParseError("the users asked for nothing in one of the seconds: it takes more of them")


#: Doublings, as the study's 2000 to 16,000: on two CPUs the last are beyond what they serve.
USERS = (50, 100, 200, 400, 800, 1600)
_TITLE = "a site (nginx, PHP, memcached, MariaDB) under {} users"
_CURVE = Level("site-users", 0, "users", "successes", "p99", 500.0)
WORKLOADS = (Site(), *levels.levels(Site, _TITLE, "users", USERS, _CURVE))
