"""The site under users: how it is started, and what is read of what its users tell."""

import io
import itertools
import tarfile
from dataclasses import replace

import pytest

from tare.campaign.plan.campaign_plan import WorkloadJob
from tare.errors import HostError, ParseError
from tare.workloads import workload_registry
from tare.workloads.applications import serving, web_site
from tare.workloads.base import Side
from workloads.captures import captured, completed, text
from workloads.test_plans import ROOMY

SITE = workload_registry.get("site-users-50")
SPLIT = workload_registry.get("site-split")
ASKED = SITE.profiles["quick"]
OVERLOADED = workload_registry.get("site-users-1600")


def signed(body):
    """A report with the sum that the agent would have sent with it."""
    return f"{body}sum {sum(body.encode())}\nend\n"


def changed(old, new, name="site-users-50"):
    """The captured report with something else in it, and the sum of that."""
    body = text(name).rpartition("sum ")[0]
    assert old in body
    return completed(signed(body.replace(old, new, 1)))


def test_four_servers_start_in_one_instance_and_the_last_is_asked_for_a_page_of_all():
    plan = SITE.plan(ASKED, ROOMY)
    database, cache, php, _ = plan.servers
    assert {server.side for server in plan.servers} == {Side.INSTANCE}
    questions = [_words_of(server.argv, "--ask") for server in plan.servers]
    assert questions[:3] == [["test", "-S", f"/data/tare-site/{name}"] for name in ("db/s", "memcached", "php")]
    assert questions[3][-2:] == ["127.0.0.1", "5201"]
    assert "GET /like?w=0 " in questions[3][2]
    argvs = [server.argv[server.argv.index("--") + 1 :] for server in plan.servers]
    assert [argv[0] for argv in argvs] == ["mariadbd", "memcached", "setpriv", "nginx"]
    assert "--skip-networking" in database.argv
    assert cache.argv[-5:-2] == ("root", "-s", "/data/tare-site/memcached")
    assert php.argv[-8:-4] == ("setpriv", "--pdeathsig", "TERM", "php-fpm8.2")


def _words_of(argv, option):
    """What an option that may be given again was given, up to the program."""
    words = argv[: argv.index("--")]
    return [value for name, value in itertools.pairwise(words) if name == option]


def test_the_pages_come_with_the_plan_and_as_many_words_as_were_asked_for():
    seed, pages = SITE.plan(ASKED, ROOMY).prepare
    assert seed.argv[5:7] == ("/data/tare-site", "site-5000")
    assert "FROM seq_0_to_4999;" in seed.argv[9]
    assert pages.argv[-5:] == (
        "0.0.0.0:5201",
        str(ROOMY.cpu_count),
        str(4 * ROOMY.cpu_count),
        "unix_socket=/data/tare-site/db/s",
        "/data/tare-site/memcached:0",
    )
    with tarfile.open(fileobj=io.BytesIO(pages.stdin)) as archive:
        assert archive.getnames() == ["index.php", "site.css"]


def test_as_three_instances_php_asks_the_others_at_their_own_addresses():
    around = [
        replace(ROOMY, instance_port=5200 + at, among=f"192.0.2.{10 + at}", listen=f"192.0.2.{10 + at}")
        for at in range(3)
    ]
    database, cache, web = SPLIT.plans(ASKED, around)
    [mariadb], [memcached] = database.servers, cache.servers
    assert {"--bind-address=192.0.2.10", "--port=5200"} <= set(mariadb.argv)
    assert " ".join(memcached.argv).endswith("memcached -u root -l 192.0.2.11 -p 5201 -m 64")
    [pages] = web.prepare
    assert pages.argv[-5] == "192.0.2.12:5202"
    assert pages.argv[-2:] == ("host=192.0.2.10;port=5200", "192.0.2.11:5201")
    assert (database.measures, cache.measures) == ((), ())
    whole = SITE.plan(ASKED, ROOMY)
    assert web.measures == whole.measures
    assert web.servers[0] == whole.servers[2], "PHP takes no orders over a network"


def test_as_three_instances_it_says_so_where_they_have_no_addresses():
    with pytest.raises(HostError, match="cannot reach each other") as refused:
        SPLIT.plans(ASKED, [ROOMY] * 3)
    assert refused.value.fix == "leave out site-split on this platform"


def test_as_three_instances_it_has_the_figures_of_one():
    assert SPLIT.all_metrics == SITE.all_metrics
    assert len(SPLIT.parts) == 3
    assert {level.inner for level in workload_registry.choose(["site-split-users"])} == {SPLIT.inner}
    assert WorkloadJob(SPLIT, ASKED).has_client


def test_users_ask_from_the_clients_side_for_250_requests_each():
    [load] = SITE.plan(ASKED, ROOMY).measures
    assert load.side is Side.CLIENT
    asked = ("users", "http", "192.0.2.3", "20107", "50", "8", "2000000", "50000", "2000", "25", "5000", "1")
    assert load.argv[1:13] == asked
    assert len(load.argv[13:]) * web_site.SEARCHES == 250
    assert load.time_limit_s > ASKED["time_s"] + ASKED["limit_ms"] / 1000 + 5


def test_a_tar_for_an_instance_is_the_same_bytes_each_time():
    assert serving.tar_of({"b": b"2", "a": b"1"}) == serving.tar_of({"a": b"1", "b": b"2"})


def test_what_all_users_of_a_site_that_keeps_up_tell():
    outcome = SITE.parse(ASKED, [captured("site-users-50")])
    figures = outcome.samples
    assert figures["server-errors"] == figures["transport-errors"] == 0
    assert figures["successes"] == (195 + 257 + 279 + 254 + 215 + 282 + 279 + 258) / 8
    assert (figures["median"], figures["p99"], figures["client-late"]) == (1.432, 380.928, 135.168)
    assert figures["cache-hits"] == pytest.approx(46.507, abs=0.001)
    assert outcome.work == 2020


def test_in_overload_errors_are_figures():
    outcome = OVERLOADED.parse(OVERLOADED.profiles["quick"], [captured("site-users-1600-gvisor")])
    figures = outcome.samples
    assert figures["warm-up"] == 1  # from then on who was not answered at all is in the median
    assert figures["successes"] == (661 + 312 + 4 + 112 + 21 + 6 + 1) / 7
    assert figures["server-errors"] == 83 / 7
    assert figures["transport-errors"] == (785 + 948 + 624 + 880 + 791 + 803) / 7
    assert figures["median"] == figures["p99"] == pytest.approx(2000, rel=0.01)
    assert outcome.work == 2142 + 83  # with what was answered after the last second


def test_a_pause_of_the_server_is_in_p99_and_no_warm_up():
    """nginx was stopped for a second, four seconds after the users had begun."""
    figures = SITE.parse(ASKED, [captured("site-users-50-paused")]).samples
    assert 900 < figures["p99"] < 1100
    assert figures["median"] < 5
    assert figures["warm-up"] < 4
    assert figures["transport-errors"] == 0


def test_who_fails_counts_as_slow_in_the_percentiles():
    counts = "due {} successes {} server-errors {} transport-errors 0 timeouts 0 dropped 0 hits 1 misses 0"
    seconds = [f"window {at} {counts.format(100, 98, 2)}\ntook {at} 1000:98 2000000:2\n" for at in range(8)]
    last = f"window 8 {counts.format(0, 0, 0).replace('hits 1', 'hits 0')}\ntook 8\n"
    report = signed("users 50 seconds 8 limit 2000 ms\n" + "".join(seconds) + last + "late 10:799 500:1\n")
    figures = SITE.parse(ASKED, [completed(report)]).samples
    assert (figures["successes"], figures["server-errors"]) == (98, 2)
    assert (figures["median"], figures["p99"]) == (1.0, 2000.0)
    assert (figures["client-late"], figures["cache-hits"], figures["warm-up"]) == (0.01, 100, 0.001)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("users 50 ", "users 51 ", "were asked for"),
        ("seconds 8 ", "seconds 9 ", "were asked for"),
        ("window 3 ", "window 4 ", "strange lines for second 3"),
        ("took 3 ", "took 3 x", "strange lines for second 3"),
        ("\nlate ", "\nlater ", "a strange line: 'later"),
        ("server-errors 0", "server-errors 1", "contradict themselves: "),
        ("timeouts 0", "timeouts 1", "contradict themselves: "),
        ("took 3 ", "took 3 9999999:1 ", "contradict themselves: "),
    ],
)
def test_a_report_that_contradicts_itself_is_refused(old, new, message):
    with pytest.raises(ParseError, match=message):
        SITE.parse(ASKED, [changed(old, new)])


@pytest.mark.parametrize(
    "damage",
    [
        lambda report: "",
        lambda report: report[: len(report) // 2],
        lambda report: report.removesuffix("end\n"),
        lambda report: report.replace("successes 1", "successes 2", 1),
        lambda report: report + "end\n",
    ],
)
def test_a_damaged_report_is_refused(damage):
    with pytest.raises(ParseError, match="not whole, or not as it was sent"):
        SITE.parse(ASKED, [completed(damage(text("site-users-50")))])


def test_an_error_of_the_users_is_no_figure():
    why = "tare-agent: the site answers with HTTP 404: it is not the one to ask"
    with pytest.raises(ParseError, match=r"ended with 1: .*HTTP 404"):
        SITE.parse(ASKED, [completed("", code=1, stderr=why)])
    with pytest.raises(ParseError, match="2 results came"):
        SITE.parse(ASKED, 2 * [captured("site-users-50")])
