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

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Layer, Metric
from tare.workloads.applications import load_levels, mariadb, serving, steady, users
from tare.workloads.applications.seeds import Seed, with_seeds
from tare.workloads.base import Command, Completed, CurveLevel, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.output import text_of

FOLDER = "/data/tare-site"
#: In `quick`'s dictionary.
WORDS = 5_000
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


def _file(name: str) -> bytes:
    return resources.files("tare.workloads.applications").joinpath("dictionary", name).read_bytes()


def _words(words: int) -> Seed:
    """Return the database of a dictionary of so many words."""
    filled = _file("seed.sql").decode().replace("WORDS_less_one", str(words - 1))
    return mariadb.seed(f"site-{words}", f"client mariadb <<'SQL'\n{filled}SQL\n")


class WebSite(RunWorkload):
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
        users.MEDIAN,
        users.P99,
        Metric("cache-hits", "%", Direction.HIGHER, "pages out of memcached, of those that it may have"),
        users.LATE,
        users.WARM_UP,
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
        run = users.read(text_of(results[0]), params)
        sums, figures, seconds = run.sums(), run.figures(), len(run.counted())
        lookups = sums["hits"] + sums["misses"]
        if not sums["successes"] or not lookups:
            raise ParseError(
                f"of {sums['due']} requests {sums['successes']} were answered well, {lookups} out of cache or database"
            )
        rates = {name: sums[name] / seconds for name in ("successes", "server-errors", "transport-errors")}
        return Outcome({**rates, **figures, "cache-hits": 100 * sums["hits"] / lookups}, work=run.answered())


def servers_limit_s(params: Params) -> float:
    """Return the longest time that a server may run, in seconds: until all are in service, and under the load."""
    return users.limit_s(params) + 4 * serving.READY_LIMIT_S


def load(params: Params, where: serving.ServerAddress) -> Command:
    """Return the command that is the users of the site, at the client's side."""
    think_us, pace_us = int(params["think_ms"]) * 1000, PACE_MS * 1000
    return users.load("http", where, params, SEARCH, think_us=think_us, pace_us=pace_us, searches=SEARCHES)


def seeded(params: Params, around: Surroundings) -> Command:
    """Make the dictionary's database. Raises `HostError` if the data volume has no room for it."""
    words = int(params["words"])
    mariadb.require_room("the site", 2 * (words * WORD_BYTES + FIXED_BYTES), around)
    return _words(words).copied(FOLDER, time_limit_s=words / SLOWEST)


def pages(where: serving.ServerAddress, around: Surroundings, database: str, cache: str) -> Command:
    """Write the pages, and the settings of nginx and PHP.

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
    """Return the words of memcached; ``network``: those that say where it listens."""
    return ("memcached", "-u", "root", *network, "-m", str(min(CACHE_MIB, around.memory_bytes // 16 >> 20)))


def _at_socket(argv: tuple[str, ...], where: serving.ServerAddress, socket: str, *, limit_s: float) -> Command:
    return serving.server(argv, where, ("test", "-S", socket), time_limit_s=limit_s)


#: Doublings, as the study's 2000 to 16,000: on two CPUs the last are beyond what they serve.
USERS = (50, 100, 200, 400, 800, 1600)
_TITLE = "a site (nginx, PHP, memcached, MariaDB) under {} users"
_CURVE = CurveLevel("site-users", 0, "users", "successes", "p99", 500.0)
WORKLOADS = (WebSite(), *load_levels.levels(WebSite, _TITLE, "users", USERS, _CURVE))
