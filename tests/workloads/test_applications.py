"""Servers as workloads: what is run, what their load tools print, and when a run is warm."""

import io
import re
import tarfile
from dataclasses import replace

import pytest

from tare.campaign.plan.campaign_plan import make_jobs
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.campaign.plan.presets import ordered
from tare.errors import HostError, ParseError, UsageError
from tare.model import EVERYWHERE, Scale
from tare.workloads import workload_contract, workload_registry
from tare.workloads.applications import postgresql, serving, steady
from tare.workloads.applications import windows as windows_of
from tare.workloads.base import RunWorkload, Side
from workloads.captures import captured, completed, text
from workloads.test_plans import ROOMY, disk

#: Bytes that a row of sysbench's and a scale of pgbench's take at least, without indexes.
SBTEST_ROW, PGBENCH_SCALE = 190, 12 << 20
REDIS = workload_registry.get("redis")
#: With what the outputs were captured.
REDIS_ASKED = {**REDIS.profiles["quick"], "requests": 10_000, "keys": 10_000}


def of_redis(platform=""):
    return [captured(f"redis-{number}{platform}") for number in range(7)]


def test_redis_is_loaded_from_the_clients_side_on_the_port_that_is_open():
    plan = REDIS.plan(REDIS.profiles["quick"], ROOMY)
    [server] = plan.servers
    assert server.side is Side.INSTANCE
    assert server.argv[1:6] == ("run", "--ready", "tcp:5201", "--at", "127.0.0.1")
    separator = server.argv.index("--")
    assert server.argv[separator + 1 : separator + 6] == ("redis-server", "--port", "5201", "--bind", "0.0.0.0")
    assert (server.ready, server.ready_limit_s) == (serving.READY, serving.READY_LIMIT_S)
    fill, *windows = plan.measures
    common = "redis-benchmark -h 192.0.2.3 -p 20107 -t {} -n {} -c 50 -P 1 -d 64 -r 3000 --csv"
    assert {command.side for command in plan.measures} == {Side.CLIENT}
    assert " ".join(fill.argv) == common.format("set", 9000)
    assert [" ".join(window.argv) for window in windows] == 6 * [common.format("set,get", 3000)]


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, candidate in workload_registry.all_workloads().items()
        if candidate.family == "application" and isinstance(candidate, RunWorkload) and candidate.loaded
    ],
)
def test_an_application_needs_a_network(name):
    workload = workload_registry.get(name)
    with pytest.raises(HostError, match="needs an instance with a network"):
        workload.plan(workload.profiles["quick"], disk(1 << 40))


@pytest.mark.parametrize(
    "name", ["redis", "memcached", "nginx", "nginx-ab", "mariadb-read-write", "postgresql", "site", "site-split"]
)
def test_a_load_too_short_to_show_a_warm_up_is_refused_before_a_campaign_and_not_failed_after(name):
    """Of the last second some load tools tell nothing: so long a load always has the windows, a shorter one may."""
    workload = workload_registry.get(name)
    [(parameter, least)] = workload.least.items()
    workload_contract.require_params(workload, {**workload.profiles["quick"], parameter: least})
    with pytest.raises(UsageError, match=f"{name} gives no figures with {parameter} {least - 1}") as refused:
        workload_contract.require_params(workload, {**workload.profiles["quick"], parameter: least - 1})
    assert refused.value.fix == f"at least {least}"


@pytest.mark.parametrize(
    "name", ["redis", "memcached", "nginx", "nginx-ab", "mariadb-read", "postgresql", "site", "http-get", "tcp-rr"]
)
def test_a_server_on_the_hosts_network_listens_where_the_client_is_and_nowhere_else(name):
    """It has no password: what reaches the host's own addresses must not reach it."""
    workload = workload_registry.get(name)
    plan = workload.plan(workload.profiles["quick"], replace(ROOMY, listen="192.0.2.1"))
    words = " ".join(word for command in (*plan.prepare, *plan.servers) for word in command.argv)
    assert "192.0.2.1" in words
    assert EVERYWHERE not in words.replace(f"{EVERYWHERE}/0", "")  # whom a database lets in, once they reach it


def test_a_database_is_in_service_once_its_own_program_says_so():
    workload = workload_registry.get("postgresql")
    [server] = workload.plan(workload.profiles["quick"], replace(ROOMY, listen="192.0.2.1")).servers
    question = [server.argv[at + 1] for at, word in enumerate(server.argv) if word == "--ask"]
    assert question[0].endswith("/pg_isready")
    assert question[1:] == ["-q", "-h", "192.0.2.1", "-p", "5201"]
    assert server.argv[-1] == "dynamic_shared_memory_type=sysv"  # and not what initdb found where the seed was made


def test_redis_has_the_rate_over_all_warm_windows_and_all_requests_as_work():
    outcome = REDIS.parse(REDIS_ASKED, of_redis())
    gets = [12771.39, 25188.92, 11709.60, 13368.98, 14705.88]  # the first window was slower, and is left out
    seconds = sum(10_000 / rate for rate in gets)
    assert outcome.samples["get"] == pytest.approx(50_000 / seconds)
    assert outcome.samples["get-p99"] == pytest.approx(7.103)
    assert outcome.samples["warm-up"] == pytest.approx(2.0)  # of a second each: the run that makes the keys, a window
    assert outcome.work == 30_000 + 6 * 20_000


def test_on_a_busy_host_windows_that_vary_by_half_are_one_noise():
    outcome = REDIS.parse(REDIS_ASKED, of_redis("-gvisor"))
    assert outcome.samples["warm-up"] == pytest.approx(1.0)
    assert outcome.samples["get"] == pytest.approx(5330.49, abs=0.01)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda output: "", "another table"),
        (lambda output: output.replace('"GET"', '"PING"'), "another table"),
        (lambda output: output.replace('"rps"', '"qps"'), "another table"),
        (lambda output: output.replace('"10341.26"', '"0.00"'), "a figure of 0.00"),
        (lambda output: output.replace('"10341.26"', '"fast"'), "a figure of fast"),
        (lambda output: output.replace('"31.215"', '"3.215"'), "contradicts itself on latencies"),
    ],
)
def test_another_table_of_redis_benchmark_is_refused(damage, message):
    results = of_redis()
    results[1] = completed(damage(text("redis-1")))
    with pytest.raises(ParseError, match=message):
        REDIS.parse(REDIS_ASKED, results)


def test_latencies_at_redis_benchmarks_ceiling_are_no_figure():
    """Of a server that stood still for 4 s while 50 of 3,000 SETs waited for it."""
    assert '"3000.319","3000.319"' in text("redis-stalled")
    with pytest.raises(ParseError, match="no latency above 3 s, and a hundredth of its SETs took more"):
        REDIS.parse(REDIS_ASKED, [*of_redis()[:-1], captured("redis-stalled")])


def test_a_shortest_latency_that_rounds_to_nothing_is_read_and_the_slowest_one_may_be_at_the_ceiling():
    header, rows = text("redis-1").split("\n", 1)
    at = header.split(",").index('"min_latency_ms"')
    cells = [row.split(",") for row in rows.splitlines()]
    for row in cells:
        row[at], row[-1] = '"0.000"', '"3000.319"'
    damaged = "\n".join([header, *map(",".join, cells)])
    assert damaged.count('"0.000"') == 2
    results = [*of_redis()[:1], completed(damaged, wall_s=1.0), *of_redis()[2:]]
    assert REDIS.parse(REDIS_ASKED, results).samples == REDIS.parse(REDIS_ASKED, of_redis()).samples


@pytest.mark.parametrize(
    ("ended", "message"),
    [
        ({"code": 1, "stderr": "Could not connect to server"}, "ended with 1: .*Could not connect"),
        ({"timed_out": True}, "at its time limit"),
        ({"stderr": "Error from server: OOM command not allowed"}, "reports: Error from server: OOM"),
    ],
)
def test_an_error_of_redis_benchmark_is_no_figure(ended, message):
    results = [*of_redis()[:-1], completed(text("redis-6"), **ended)]
    with pytest.raises(ParseError, match=message):
        REDIS.parse(REDIS_ASKED, results)


@pytest.mark.parametrize(
    ("rates", "first"),
    [
        ([100, 101, 99, 100], 0),
        ([100, 100, 100, 100, 100, 100], 0),
        ([20, 100, 101, 99, 100, 101, 99, 100], 1),
        ([10, 40, 100, 101, 99, 100, 101, 99, 100, 100], 2),
        ([100, 60, 140, 90, 110, 100], 0),  # noise, and no trend
        ([10, 20, 30, 40, 50, 60, 70, 80], None),  # it was still growing
    ],
)
def test_a_run_is_warm_from_where_its_halves_are_alike(rates, first):
    assert steady.warm_from(rates) == first
    ends = list(range(10, 11 + len(rates)))
    assert steady.warm_up_s(rates, ends) == (ends[-1] if first is None else ends[first])
    assert steady.counted(rates) == (len(rates) // 2 if first is None else first)


@pytest.mark.parametrize(
    ("latencies", "first"),
    [
        ([1, 1, 1, 1], 0),
        ([9, 3, 1, 1.02, 1, 1.01, 0.99, 1], 2),
        ([1, 1, 1, 500, 1, 1, 1, 1], 0),  # a pause is no warm-up, in either half
        ([1, 1, 1, 1, 1, 500, 1, 1], 0),
        ([9, 1, 1, 500, 500, 1, 1, 1], 1),
        ([1, 4, 2, 3, 1.5, 4, 2, 3], 0),  # noise
        ([1, 100, 400, 1000, 2000, 2000, 2000, 2000], 4),  # a queue that fills up
        ([1, 2, 4, 8, 100, 101, 102, 103], 4),
        ([1, 1, 1, 1, 1, 200, 101, 102, 103, 104], None),
    ],
)
def test_latencies_have_settled_where_they_are_as_those_of_later_windows(latencies, first):
    assert steady.settled_from(latencies) == first
    ends = list(range(10, 11 + len(latencies)))
    assert steady.warm_up_s(latencies, ends, steady.settled_from) == (ends[-1] if first is None else ends[first])
    assert steady.counted(latencies, steady.settled_from) == (len(latencies) // 2 if first is None else first)


def test_too_few_windows_show_no_warm_up():
    for criterion in (steady.warm_from, steady.settled_from):
        with pytest.raises(ParseError, match="3 windows"):
            criterion([1.0, 1.0, 1.0])


NGINX = workload_registry.get("nginx")


def of_nginx(platform=""):
    return [captured(f"nginx-{number}{platform}") for number in range(5)]


def test_wrk_asks_nginx_for_one_file_in_windows():
    plan = NGINX.plan(NGINX.profiles["quick"], ROOMY)
    assert plan.prepare[0].argv[-4:] == ("/data/tare-web", "0.0.0.0:5201", "1150", str(ROOMY.cpu_count))
    words = plan.servers[0].argv
    assert (words[3], words[words.index("--") + 1]) == ("tcp:5201", "nginx")
    wrk = "wrk -t 1 -c 50 -d 1s --latency --timeout 10s http://192.0.2.3:20107/favicon.ico"
    assert [" ".join(command.argv) for command in plan.measures] == 5 * [wrk]


def test_nginx_has_the_rate_of_the_windows_that_count():
    outcome = NGINX.parse(NGINX.profiles["quick"], of_nginx())
    assert outcome.samples["rate"] == pytest.approx((5769.17 + 7261.41 + 17075.84 + 8957.11) / 4)
    assert outcome.samples["p99"] == pytest.approx((44.56 + 47.75) / 2)
    assert outcome.work == 17073 + 5858 + 7525 + 17356 + 9057
    slowing = NGINX.parse(NGINX.profiles["quick"], of_nginx("-gvisor")).samples
    assert slowing["warm-up"] == pytest.approx(
        5.0
    )  # as long as the run: it was never steady, and the later half counts
    assert slowing["median"] == pytest.approx((14.80 + 11.30) / 2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Requests/sec", "  Socket errors: connect 3, read 0, write 0, timeout 0\nRequests/sec", "Socket errors: conn"),
        ("Requests/sec", "  Non-2xx or 3xx responses: 12\nRequests/sec", "Non-2xx or 3xx responses: 12"),
        ("50 connections", "10 connections", "which was not asked"),
        ("5769.17", "9769.17", "contradicts itself"),
        ("7.77MB", "7.77KB", "read 7.77 KB in"),
        ("18.42ms", "8.42us", "contradicts itself: median"),
        ("  Latency Distribution\n", "", "strange line"),
    ],
)
def test_another_report_of_wrk_is_refused(old, new, message):
    results = of_nginx()
    results[1] = completed(text("nginx-1").replace(old, new))
    with pytest.raises(ParseError, match=message):
        NGINX.parse(NGINX.profiles["quick"], results)


MARIADB = workload_registry.get("mariadb-read-write")


def test_sysbench_loads_tables_that_are_made_once_and_copied():
    plan = MARIADB.plan(MARIADB.profiles["quick"], ROOMY)
    [seed] = plan.prepare
    assert seed.argv[4:8] == ("prepare", "/data/tare-mariadb", "mariadb-8-10000", "root")
    assert "--tables=8 --table-size=10000 prepare" in seed.argv[9]
    assert "--innodb-buffer-pool-size=128M" in plan.servers[0].argv
    [load] = plan.measures
    assert load.side is Side.CLIENT
    assert load.argv[:4] == ("sysbench", "oltp_read_write", "--db-driver=mysql", "--mysql-host=192.0.2.3")
    assert {"--tables=8", "--table-size=10000", "--threads=4", "--time=6"} <= set(load.argv)


@pytest.mark.parametrize("name", ["mariadb-read", "postgresql", "site"])
def test_a_database_that_does_not_fit_is_refused(name):
    workload = workload_registry.get(name)
    with pytest.raises(HostError, match=r"tables need .* MiB free on the data volume, which has 100"):
        workload.plan(workload.profiles["full"], replace(ROOMY, disk_free_bytes=100 << 20))


def test_mariadb_has_the_mean_of_the_seconds_that_count():
    outcome = MARIADB.parse(MARIADB.profiles["quick"], [captured("mariadb-read-write")])
    seconds = [107.88, 133.05, 106.97, 112.03, 81.01, 97.85]
    assert outcome.samples["transactions"] == pytest.approx(sum(seconds) / 6)
    assert outcome.samples["p99"] == pytest.approx((75.82 + 87.56) / 2)
    assert outcome.work == 643


def test_a_second_of_sysbenchs_that_came_late_counts_for_its_time():
    """sysbench stood still for 1.9 s: its second line tells of three seconds, and the third of a part of the last."""
    outcome = MARIADB.parse(MARIADB.profiles["quick"], [captured("mariadb-read-write-late")])
    assert outcome.samples["transactions"] == pytest.approx((338.38 + 3 * 102.41 + 208.75 + 219.37) / 6)
    assert outcome.samples["transactions"] == pytest.approx(outcome.work / 6.0577, rel=0.01)


def test_a_second_without_a_transaction_has_no_percentile():
    """sysbench shows 0.00 for it, as if the server had been fastest when it stood still."""
    whole = text("mariadb-read-write")
    second = re.search(r"^\[ 5s \] .*$", whole, re.MULTILINE)[0]
    still = re.sub(r"(tps|qps|lat \(ms,99%\)): [0-9.]+", r"\1: 0.00", second)
    assert still != second
    outcome = MARIADB.parse(MARIADB.profiles["quick"], [completed(whole.replace(second, still), wall_s=6.2)])
    rest = sorted(float(p99) for p99 in re.findall(r"lat \(ms,99%\): ([0-9.]+)", whole.replace(second, "")))
    assert outcome.samples["p99"] == pytest.approx(rest[2])
    assert outcome.samples["transactions"] < 110


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ignored errors:                      0 ", "ignored errors:                      9 ", "reports 9 errors"),
        ("reconnects:                          0 ", "reconnects:                          1 ", "1 reconnects"),
        ("Number of threads: 4", "Number of threads: 8", "8 threads and not 4"),
        ("[ 3s ]", "[ 9s ]", "seconds in a strange order: 0, 1, 2, 9, 4, 5, 6"),
        ("tps: 106.97", "tps: fast", "strange line: .* tps: fast"),
        ("(106.24 per sec.)", "(206.24 per sec.)", "contradicts itself"),
        ("total number of events:              643", "", "its events 0 times"),
        ("lat (ms,99%): 75.82", "lat (ms,99%): 100000.00", "no latency above 100 s, and a hundredth took longer"),
        ("99th percentile:", "99th percentile:  100000.00\n x", "no latency above 100 s|its p99"),
    ],
)
def test_another_report_of_sysbench_is_refused(old, new, message):
    with pytest.raises(ParseError, match=message):
        MARIADB.parse(
            MARIADB.profiles["quick"], [completed(text("mariadb-read-write").replace(old, new, 1), wall_s=6.2)]
        )


PIPELINE = workload_registry.get("build-pipeline")
STAGES = ["configure", "compile", "test", "coverage", "analysis"]


def of_pipeline():
    return [captured(f"build-pipeline-{number}", wall_s=number + 1.0) for number in range(5)]


def test_the_program_is_the_same_checkout_each_time():
    plans = [PIPELINE.plan(PIPELINE.profiles["quick"], ROOMY) for _ in range(2)]
    assert plans[0] == plans[1]
    with tarfile.open(fileobj=io.BytesIO(plans[0].prepare[0].stdin)) as archive:
        assert {"CMakeLists.txt", "ledger.cpp", "test_ledger.cpp"} <= set(archive.getnames())


def test_each_stage_of_the_pipeline_is_timed():
    outcome = PIPELINE.parse(PIPELINE.profiles["quick"], of_pipeline())
    assert outcome.samples == {"time": 15.0, **{stage: at + 1.0 for at, stage in enumerate(STAGES)}}


@pytest.mark.parametrize(
    ("at", "old", "new"),
    [
        (0, "Build files have been written", "Configuring incomplete"),
        (1, "[100%] Built target", "[ 85%] Built target"),
        (2, "100% tests passed, 0 tests failed out of 1", "0% tests passed, 1 tests failed out of 1"),
        (3, "TOTAL                                        118      33", "TOTAL   118   0"),
        (4, "Checking words.cpp ...\n", ""),
    ],
)
def test_a_stage_that_does_not_say_that_it_was_done_is_refused(at, old, new):
    results = of_pipeline()
    results[at] = completed(text(f"build-pipeline-{at}").replace(old, new))
    with pytest.raises(ParseError, match=f"{STAGES[at]} did not say"):
        PIPELINE.parse(PIPELINE.profiles["quick"], results)


def test_a_window_of_wrks_without_an_answer_says_so():
    """It prints shares of nothing then, which are no numbers."""
    with pytest.raises(ParseError, match="wrk was not answered once in 1 s"):
        workload_registry.get("nginx").read(captured("nginx-silent"), {"connections": 1000, "window_s": 1})


AB = workload_registry.get("nginx-ab")


def of_ab():
    return [captured(f"nginx-ab-{number}") for number in range(5)]


def test_ab_has_the_rate_and_the_mean_of_its_windows():
    plan = AB.plan(AB.profiles["quick"], ROOMY)
    assert " ".join(plan.measures[0].argv) == "ab -q -t 1 -n 100000000 -c 50 http://192.0.2.3:20107/favicon.ico"
    outcome = AB.parse(AB.profiles["quick"], of_ab())
    assert outcome.samples["rate"] == pytest.approx((4588.79 + 5216.10 + 4871.76 + 2787.72) / 4)
    assert outcome.samples["mean"] == pytest.approx((10.263 + 10.896) / 2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Failed requests:        0", "Failed requests:        7", "7 failed requests"),
        ("Total transferred", "Non-2xx responses:      9\nTotal transferred", "Non-2xx responses: +9"),
        ("Complete requests:      4590", "Complete requests:      459", "contradicts itself"),
        ("Concurrency Level:      50", "Concurrency Level:      5", "on 5 connections"),
        ("1150 bytes", "153 bytes", "for 153 bytes"),
        ("Requests per second:", "Requests:", "its rate 0 times"),
    ],
)
def test_another_report_of_ab_is_refused(old, new, message):
    results = of_ab()
    results[1] = completed(text("nginx-ab-1").replace(old, new))
    with pytest.raises(ParseError, match=message):
        AB.parse(AB.profiles["quick"], results)


MEMCACHED = workload_registry.get("memcached")


def test_memaslap_has_the_rate_of_the_time_that_counts():
    [load] = MEMCACHED.plan(MEMCACHED.profiles["quick"], ROOMY).measures
    assert " ".join(load.argv) == "memcaslap -s 192.0.2.3:20107 -T 1 -c 50 -t 6s -S 1s -X 64"
    outcome = MEMCACHED.parse(MEMCACHED.profiles["quick"], [captured("memcached", wall_s=6.5)])
    assert outcome.samples["rate"] == pytest.approx(34603)
    assert outcome.samples["average"] == 1445
    assert outcome.work == 207665


def test_a_second_of_memaslaps_that_took_longer_counts_for_its_time():
    """memaslap stood still for 1.9 s and took 7.8 s for its six seconds, whose mean would be 24,223 a second."""
    outcome = MEMCACHED.parse(MEMCACHED.profiles["quick"], [captured("memcached-late", wall_s=8)])
    assert outcome.samples["rate"] == pytest.approx(18538)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Run time: 6.0s", "Run time: 3.0s", "ended after 3 s"),
        ("Ops: 207665", "Ops: 20766", "contradicts itself"),
        ("Run time:", "Ran:", "did not come to its end"),
        ("Total Statistics (207615 events)", "", "did not come to its end"),
        ("Global   2 ", "Global   9 ", "does not report each second"),
    ],
)
def test_another_report_of_memaslap_is_refused(old, new, message):
    with pytest.raises(ParseError, match=message):
        MEMCACHED.parse(MEMCACHED.profiles["quick"], [completed(text("memcached").replace(old, new))])


POSTGRESQL = workload_registry.get("postgresql")
#: With what the reports were captured.
ONE_BRANCH = {**POSTGRESQL.profiles["quick"], "scale": 1}


def test_there_are_never_fewer_branches_than_clients():
    """pgbench's manual: else it measures how its clients wait for each other."""
    for workload in workload_registry.all_workloads().values():
        if isinstance(workload, postgresql.PostgreSql):
            for params in workload.profiles.values():
                assert params["scale"] >= params["clients"], workload.name
    with pytest.raises(HostError, match="4 clients would wait for each other's 1 branches") as refused:
        POSTGRESQL.plan(ONE_BRANCH, ROOMY)
    assert refused.value.fix == "give scale 4 or more"


def test_a_study_without_range_queries_and_prepared_statements_has_its_load():
    load = " ".join(
        workload_registry.get("mariadb-read")
        .plan(workload_registry.get("mariadb-read").profiles["quick"], ROOMY)
        .measures[0]
        .argv
    )
    assert "--range_selects" not in load
    assert "--db-ps-mode" not in load
    order = ordered(CampaignRequest(profile="karna-2021"), Scale.FULL)
    [job] = make_jobs([workload_registry.get("mariadb-read-threads-30")], order.base, order.params)
    planned = job.workload.plan(job.params, ROOMY)
    load, [server] = " ".join(planned.measures[0].argv), planned.servers
    assert "--threads=30 --time=20" in load
    assert "--range_selects=off --db-ps-mode=disable run" in load
    assert "--innodb-buffer-pool-size=128M" in server.argv


def test_in_full_a_databases_tables_are_several_times_its_pool():
    maria, postgres = workload_registry.get("mariadb-read").profiles["full"], POSTGRESQL.profiles["full"]
    assert maria["tables"] * maria["rows"] * SBTEST_ROW > 4 * (maria["pool_mib"] << 20)
    assert postgres["scale"] * PGBENCH_SCALE > 4 * (postgres["buffers_mib"] << 20)
    # And with more memory than by default, which gives the pool a quarter: it is no larger.
    roomy = replace(ROOMY, memory_bytes=64 << 30)
    [server] = workload_registry.get("mariadb-read").plan(maria, roomy).servers
    assert f"--innodb-buffer-pool-size={maria['pool_mib']}M" in server.argv
    [server] = POSTGRESQL.plan(postgres, roomy).servers
    assert f"shared_buffers={postgres['buffers_mib']}MB" in server.argv


def test_pgbenchs_figures_are_read():
    outcome = POSTGRESQL.parse(ONE_BRANCH, [captured("postgresql", wall_s=6.3)])
    assert outcome.samples["average"] == 10.405
    assert outcome.work == 2299


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("failed transactions: 0", "failed transactions: 3", "3 failed"),
        ("number of clients: 4", "number of clients: 8", "clients of 8 and not 4"),
        ("latency average = 10.405", "latency average = 50.405", "contradicts itself"),
        ("processed: 2299", "processed: 1299", "contradicts itself"),
        ("tps = 381.650560", "", "its rate 0 times"),
    ],
)
def test_another_report_of_pgbench_is_refused(old, new, message):
    damaged = completed(text("postgresql").replace(old, new), stderr=text("postgresql", ".err"))
    with pytest.raises(ParseError, match=message):
        POSTGRESQL.parse(ONE_BRANCH, [damaged])


def test_the_second_in_which_pgbench_connects_is_no_window():
    outcome = POSTGRESQL.parse(ONE_BRANCH, [captured("postgresql-gvisor", wall_s=6.3)])
    assert outcome.samples["transactions"] == pytest.approx((0.9 * 311.7 + 321.0 + 124.4 + 140.6 + 305.0) / 4.9)
    assert outcome.samples["warm-up"] == pytest.approx(0.3 + 1.1)


def test_a_second_of_pgbenchs_that_came_late_counts_for_its_time():
    """pgbench stood still for 1.9 s: a mean of its lines would be 564 a second."""
    lines = text("postgresql-late", ".err").splitlines()
    all_windows = windows_of.read("pgbench", lines, postgresql._WINDOW, 6)
    assert [window.ended_s for window in all_windows] == [1.0, 3.9, 4.0, 5.0, 6.0]
    assert windows_of.mean_rate(all_windows) == pytest.approx(
        int(re.search(r"processed: (\d+)", text("postgresql-late"))[1]) / 6, rel=0.01
    )
    outcome = POSTGRESQL.parse(ONE_BRANCH, [captured("postgresql-late", wall_s=6.3)])
    later_half = all_windows[2:]  # it was never steady
    assert outcome.samples["transactions"] == pytest.approx(windows_of.mean_rate(later_half))


def test_a_line_of_pgbenchs_that_is_no_second_is_refused():
    aborted = text("postgresql", ".err") + "pgbench: error: client 2 aborted\n"
    with pytest.raises(ParseError, match="strange line: 'pgbench: error: client 2 aborted'"):
        POSTGRESQL.parse(ONE_BRANCH, [completed(text("postgresql"), stderr=aborted)])


@pytest.mark.parametrize(("cpus", "threads"), [(1, "1"), (4, "4"), (64, "50")])
def test_wrk_has_a_thread_for_each_of_the_clients_cpus_and_no_more_than_connections(cpus, threads):
    nginx = workload_registry.get("nginx")
    plan = nginx.plan(nginx.profiles["quick"], replace(ROOMY, client_cpus=cpus))
    argv = plan.measures[0].argv
    assert argv[argv.index("-t") + 1] == threads


def test_pgbench_has_a_thread_for_each_of_the_clients_cpus_and_no_more_than_clients():
    postgresql = workload_registry.get("postgresql")
    plan = postgresql.plan(postgresql.profiles["quick"], replace(ROOMY, client_cpus=8))
    argv = plan.measures[0].argv
    assert argv[argv.index("-j") + 1] == "4"
