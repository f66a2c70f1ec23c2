"""An open loop at a constant rate: what it asks, what it reads, and a server that stands still for a known time."""

import socketserver
import subprocess
import threading
import time
from dataclasses import replace

import pytest

from tare.errors import ParseError
from tare.image import image_build
from tare.workloads import workload_registry
from tare.workloads.base import Completed, Side
from workloads.captures import captured, completed, text
from workloads.test_plans import ROOMY

NGINX, REDIS = workload_registry.get("nginx-open"), workload_registry.get("redis-open")
STALL_S = 1.0
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"


@pytest.mark.parametrize(
    ("workload", "protocol", "think_us", "pace_us", "requests"),
    [
        (NGINX, "http", 50_000, 0, ("/favicon.ico",)),
        (REDIS, "redis", 100_000, 25_000, ("SET {7} " + 64 * "x", "GET {7}")),
    ],
    ids=["nginx", "redis"],
)
def test_as_many_requests_are_due_as_the_rate_says(workload, protocol, think_us, pace_us, requests):
    params = workload.profiles["quick"]
    [load] = workload.plan(params, ROOMY).measures
    assert load.side is Side.CLIENT
    assert load.argv[1:3] == ("users", protocol)
    assert load.argv[5:9] == ("50", "8", str(think_us), str(pace_us))
    assert load.argv[13:] == requests
    assert int(load.argv[5]) * len(requests) / (think_us / 1e6) == params["rate"]
    assert load.time_limit_s > params["time_s"] + params["limit_ms"] / 1000


@pytest.mark.parametrize("name", ["nginx-open", "redis-open"])
def test_figures_are_read(name):
    outcome = workload_registry.get(name).parse(workload_registry.get(name).profiles["quick"], [captured(name)])
    figures = outcome.samples
    assert figures["answered"] == pytest.approx(1000, rel=0.05)
    assert figures["transport-errors"] == 0
    assert 0 < figures["median"] < figures["p99"]
    assert outcome.work == pytest.approx(8000, rel=0.05)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [("users 50", "users 5", "not whole"), ("\nend", "", "not whole"), (" due ", " owed ", "not whole")],
)
def test_another_report_is_refused(old, new, message):
    with pytest.raises(ParseError, match=message):
        NGINX.parse(NGINX.profiles["quick"], [completed(text("nginx-open").replace(old, new))])


class _Stalling(socketserver.ThreadingTCPServer):
    """Answers each line of a command, or the head of a request, but for one second in which it stands still."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, answers, begins_s):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers, self.begin = answers, time.monotonic() + begins_s


class _Handler(socketserver.BaseRequestHandler):
    def handle(self):
        while asked := self.request.recv(4096):
            into_s = time.monotonic() - self.server.begin
            if 0 <= into_s < STALL_S:
                time.sleep(STALL_S - into_s)
            self.request.sendall(next(answer for word, answer in self.server.answers if asked.startswith(word)))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("workload", "answers"),
    [(NGINX, [(b"GET /favicon.ico", PAGE)]), (REDIS, [(b"SET ", b"+OK\r\n"), (b"GET ", b"$1\r\nx\r\n")])],
    ids=["nginx", "redis"],
)
def test_a_server_that_stands_still_for_a_second_has_it_in_its_percentiles(workload, answers, awake):
    """An eighth of all requests is due meanwhile, so 99 of 100 waited for most of the second. Nothing is wrong else.

    Where the machine stood still meanwhile, requests waited for that too, and the last are answered later.
    """
    params = {**workload.profiles["quick"], "rate": 200, "users": 20}
    with _Stalling(answers, begins_s=4) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        around = replace(ROOMY, address="127.0.0.1", port=server.server_address[1])
        [load] = workload.plan(params, around).measures
        argv = (str(image_build.agent_path()), *load.argv[1:])
        ended = subprocess.run(argv, capture_output=True, timeout=load.time_limit_s, check=False)
        server.shutdown()
    result = Completed(load.argv, ended.returncode, ended.stdout, ended.stderr, int(8e9))
    figures = workload.parse(params, [result]).samples
    assert 1000 * STALL_S * 0.85 < figures["p99"] <= 1000 * (STALL_S * 1.3 + awake.still_s)
    assert figures["median"] < 100 + 1000 * awake.still_s
    assert figures["transport-errors"] == 0
    assert figures["answered"] == pytest.approx(200, rel=0.1 + awake.still_s / params["time_s"])
