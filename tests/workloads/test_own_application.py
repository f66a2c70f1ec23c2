"""A user's own application: the file's lines and mistakes, the commands that it becomes, and how its load is read."""

import json
import re
import subprocess
import time
import tomllib
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tare.errors import HostError, ParseError, UsageError
from tare.model import Application, Direction
from tare.workloads import workload_registry
from tare.workloads.applications import serving
from tare.workloads.base import Completed, Side, Surroundings
from tare.workloads.own import file, own_application, toml_lines
from tare.workloads.workload_contract import problems, require_params
from workloads import captures

HERE = Path(__file__).parent / "own"
WHOLE = """\
name = "broker"
[source]
image = "broker.oci"
[start]
arguments = ["-p", "{port}", "{other}", "{messages}"]
env = { LISTEN = "{address}:{port}" }
[start.files]
"/etc/broker.conf" = "port {port} { {unknown} }"
[ready]
output = "running"
within = 3
[load]
command = ["bench", "-h", "{address}", "-p", "{port}", "-n", "{messages}"]
packages = ["broker-tools"]
[metrics.rate]
regex = 'rate: ([0-9.]+)'
unit = "messages/s"
better = "higher"
[metrics.p99]
json = "all[1].p99"
unit = "ms"
better = "lower"
[work]
regex = 'messages: ([0-9]+)'
unit = "message"
[resources]
memory = 300
[parameters]
messages = { quick = 10, full = 1000 }
other = "x"
"""
AROUND = Surroundings(1 << 30, 2, 1 << 40, "192.0.2.7", 20100, 5201)
IMAGE = Application(("broker",), ("-v",), {"A": "b"}, "/var/lib/broker", "broker")


@pytest.fixture
def described(tmp_path):
    """Writes a file, and returns the workload of it."""

    def write(text):
        place = tmp_path / "broker.toml"
        place.write_text(text)
        return workload_registry.get(f"app:{place}")

    return write


def test_processes_beyond_the_usual_are_asked_for(described):
    assert described(WHOLE).pids == 4096
    assert described(WHOLE.replace("memory = 300", "processes = 10000")).pids == 10_000


def _mistakes(tmp_path, text):
    place = tmp_path / "app.toml"
    place.write_text(text)
    described, mistakes = file.examine(place)
    assert (described is None) == bool(mistakes)
    return [(mistake.line, mistake.what) for mistake in mistakes]


def test_five_mistakes_are_five_errors_each_with_its_line():
    described, mistakes = file.examine(HERE / "five_mistakes.toml")
    assert described is None
    assert [(mistake.line, mistake.what) for mistake in mistakes] == [
        (1, "name: it is not lower case words, joined by dashes"),
        (8, "start.command[4]: nothing stands for {prot}"),
        (9, "start.usr: there is no such key"),
        (15, "ready.http: it does not begin with /, or has spaces or letters that no address has"),
        (21, "resources.memory: it is not a whole number"),
    ]
    assert [mistake.fix for mistake in mistakes][1:3] == ["did you mean port?", "did you mean user?"]


def test_what_is_no_toml_is_told_with_the_rest_and_hides_nothing_but_itself(tmp_path):
    text = (
        'name = oops\n[source]\npackages = ["x"\n[start]\ncommand = [\n "a",\n "{port}"\n]\ncommand = ["b"]\nusr = 1\n'
    )
    assert _mistakes(tmp_path, text) == [
        (1, "this is not TOML: invalid value"),
        (3, "this is not TOML: unclosed array"),
        (9, "this is not TOML: cannot overwrite a value"),
        (10, "start.usr: there is no such key"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "line", "what"),
    [
        ('image = "broker.oci"', 'image = "a"\nfolder = "b"', 2, "exactly one of image, folder and packages"),
        ('image = "broker.oci"', 'folder = "b"', 4, "only an image says by itself how it is started"),
        ('image = "broker.oci"', 'packages = ["No Package"]', 3, "is no name of a Debian package"),
        ('output = "running"', 'output = "a"\ntcp = true', 9, "exactly one of tcp"),
        ("within = 3", "within = 0", 11, "greater than 0"),
        ('better = "higher"', 'better = "more"', 18, "'higher' or 'lower'"),
        ("[metrics.rate]", "[metrics.cpu-cost]", 15, "tare has a metric of this name itself"),
        ("rate: ([0-9.]+)", "rate: [0-9.]+", 16, "it has 0 groups"),
        ("rate: ([0-9.]+)", "rate: ([0-9.+", 16, "not a regular expression"),
        ('json = "all[1].p99"', 'json = "all[x]..p99"', 20, "no path such as"),
        ("quick = 10", "quik = 10", 29, "one value, or a value for quick and one for full"),
        ("quick = 10", 'quick = "a"', 29, "a number in one profile and a text in the other"),
        ('other = "x"', "port = 3", 30, "this name cannot be given"),
        ('command = ["bench"', 'built_in = "http-get"\ncommand = ["bench"', 12, "exactly one of built_in and command"),
        ("memory = 300", "memory = 300\n[more]", 28, "more: there is no such key"),
    ],
)
def test_each_mistake_is_told_at_its_line(tmp_path, before, after, line, what):
    assert before in WHOLE
    mistakes = _mistakes(tmp_path, WHOLE.replace(before, after, 1))
    assert any(at == line and what in message for at, message in mistakes), mistakes


def test_a_port_that_is_not_tares_is_told(tmp_path):
    text = WHOLE.replace("{port}", "1883")
    assert _mistakes(tmp_path, text) == [
        (4, "start: nothing in it names {port}, and tare gives every instance a port of its own to listen on")
    ]


def test_the_file_to_begin_with_has_no_mistakes_and_shows_every_key(tmp_path):
    text = resources.files("tare.workloads.own").joinpath("example.toml").read_text()
    assert _mistakes(tmp_path, text) == []
    tables = (
        file.OwnFile, file.SourceTable, file.StartTable, file.ReadyTable, file.LoadTable, file.MetricTable,
        file.FigureTable, file.ResourcesTable,
    )  # fmt: skip
    for table in tables:
        for name, key in table.model_fields.items():
            shown = key.alias or name
            assert re.search(rf"^(# )?(\[+(\w+\.)*{shown}[\].]|{shown} = )", text, re.MULTILINE), shown


@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.integers() | st.text(), max_size=5))
def test_values_are_tomllibs_and_every_key_has_its_line(values):
    text = "# first\n\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())
    try:
        expected = tomllib.loads(text)
    except tomllib.TOMLDecodeError:  # JSON's surrogates
        return
    read = toml_lines.parse(text)
    assert read.values == expected
    assert read.lines == {(name,): number for number, name in enumerate(values, start=3)}


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("".join(f"a{number} = 1\n" for number in range(6000)), 0),
        ("".join(f"a{number} = 1\n" for number in range(6000)) + "b =\n", 1),
        ("a = [\n" + "[1],\n" * 12_000 + "]\n", 0),
        ("a = [\n" + "[1],\n" * 12_000, 1),
        ("a = '''\n" + "]\n" * 30_000 + "'''\n", 0),
        ("a = '''\n" + "]\n" * 30_000, 1),
        ("[a]\n" * 16_000, 500),
    ],
)
def test_no_file_of_the_largest_size_takes_long(text, mistakes):
    began = time.monotonic()
    read = toml_lines.parse(text)
    assert time.monotonic() - began < 20
    assert len(read.mistakes) == mistakes
    assert read.line(("a",)) == 1


def test_lines_of_values_over_several_lines_and_of_tables():
    read = toml_lines.parse('a = """\n[no]\nb = 1\n"""\n[t.u]\nc = [\n 1,\n]\nd.e = 2\n[[l]]\nf = 1')
    assert read.lines == {
        ("a",): 1, ("t",): 5, ("t", "u"): 5, ("t", "u", "c"): 6, ("t", "u", "d"): 9, ("t", "u", "d", "e"): 9,
        ("l",): 10,
    }  # fmt: skip
    assert read.mistakes == []
    assert read.line(("t", "u", "nothing")) == 5


def test_a_byte_order_mark_and_what_parts_lines_elsewhere_are_no_mistakes(tmp_path):
    text = WHOLE.replace('name = "broker"', 'name = "broker"  # a\u2028b\x85c').replace('"x"', '"x\u2028y\x85z"')
    (tmp_path / "app.toml").write_bytes(b"\xef\xbb\xbf" + text.encode())
    described, mistakes = file.examine(tmp_path / "app.toml")
    assert mistakes == []
    assert described.contents.parameters["quick"]["other"] == "x\u2028y\x85z"
    assert described.at("parameters") == f"{tmp_path}/app.toml:28"


def test_a_file_that_everybody_may_write_to_is_refused_until_its_fix(tmp_path):
    open_to_all = tmp_path / "open; to all.toml"
    open_to_all.write_text(WHOLE)
    open_to_all.chmod(0o666)
    with pytest.raises(UsageError, match="everybody may write to it") as refused:
        file.examine(open_to_all)
    subprocess.run(["sh", "-ec", refused.value.fix], check=True)
    assert file.examine(open_to_all)[1] == []


def test_a_value_of_the_wrong_kind_is_said_with_how_it_is_written(tmp_path):
    text = WHOLE.replace("[start]", '[start]\ncommand = "lighttpd -D -p {port} \\"a b\\""', 1)
    text = text.replace('output = "running"', "http = true").replace("within = 3", 'within = "3s"')
    place = tmp_path / "app.toml"
    place.write_text(text.replace('A = "b"', "A = 5").replace('"{address}:{port}" }', '"{port}", N = 5 }'))
    _, mistakes = file.examine(place)
    assert [(mistake.what, mistake.fix) for mistake in mistakes] == [
        ("start.command: it is not a list of words", 'write a list: ["lighttpd", "-D", "-p", "{port}", "a b"]'),
        ("start.env.N: it is not a text in quotes", 'write "5"'),
        ("ready.http: it is not a text in quotes", 'write the path of a page: http = "/"'),
        ("ready.within: it is not a number", ""),
    ]


def test_a_text_that_ends_with_its_line_is_said_in_plain_words(tmp_path):
    text = WHOLE.replace('name = "broker"', 'name = "broker')
    assert _mistakes(tmp_path, text) == [
        (1, "this is not TOML: a text in quotes ends with its line, without the second quote")
    ]


def test_two_files_with_one_name_are_refused(tmp_path):
    for name in ("a.toml", "b.toml"):
        (tmp_path / name).write_text(WHOLE)
    with pytest.raises(UsageError, match="two files describe an application of the name app:broker"):
        workload_registry.choose([f"app:{tmp_path / name}" for name in ("a.toml", "b.toml")])


def test_a_record_from_before_applications_had_names_keeps_its_own(tmp_path):
    (tmp_path / "a.toml").write_text(WHOLE)
    origin = f"app:{tmp_path / 'a.toml'}"
    assert workload_registry.recorded(origin, "").name == origin
    assert workload_registry.recorded("app:broker", origin).name == "app:broker"
    assert workload_registry.recorded("startup", "").name == "startup"


def test_a_campaign_says_the_first_mistake_and_how_to_see_all():
    with pytest.raises(UsageError, match=r"five_mistakes.toml:1: name: .* \(and 4 more: tare app check"):
        workload_registry.choose([f"app:{HERE / 'five_mistakes.toml'}"])


def test_the_workload_is_one_as_all_others(described):
    workload = described(WHOLE)
    assert [problem for problem in problems(workload) if "name that is not lower case" not in problem] == []
    assert [(metric.name, metric.unit, metric.direction) for metric in workload.metrics] == [
        ("rate", "messages/s", Direction.HIGHER),
        ("p99", "ms", Direction.LOWER),
    ]
    assert {metric.name for metric in workload.all_metrics} >= {"cpu-cost", "client-cost"}
    assert workload.source.place.endswith("/broker.oci")
    assert tomllib.loads(workload.layer.text) == {"recorded": {"packages": ["broker-tools"]}}
    quick, full = (workload.profiles[name] for name in ("quick", "full"))
    assert (quick["messages"], full["messages"], quick["other"]) == (10, 1000, "x")
    require_params(workload, quick)
    assert workload.name == "app:broker"
    assert [chosen.name for chosen in workload_registry.choose([workload.origin, workload.origin])] == ["app:broker"]


def test_a_file_that_was_changed_is_not_resumed(described):
    params = dict(described(WHOLE).profiles["quick"])
    with pytest.raises(UsageError, match="cannot have file"):
        require_params(described(WHOLE.replace("within = 3", "within = 4")), params)


def test_without_work_there_is_no_cost_of_it(described):
    text = WHOLE.replace("[work]\nregex = 'messages: ([0-9]+)'\nunit = \"message\"\n", "")
    workload = described(text)
    assert workload.all_metrics == workload.metrics


def test_the_commands_have_the_places_of_their_side_filled_in(described):
    workload = described(WHOLE)
    plan = workload.plan(workload.profiles["quick"], _with(IMAGE))
    (as_user, config), (server,), (load,) = plan.prepare, plan.servers, plan.measures
    assert as_user.argv[1:] == ("run", "--user", "broker", "--", as_user.argv[0], "nothing")
    assert config.argv[1:] == ("write", "/etc/broker.conf")
    assert config.stdin == b"port 5201 { {unknown} }"
    before, after = server.argv.index("run"), server.argv.index("--")
    assert server.argv[before + 1 : after] == ("--user", "broker", "--ready", "output", "--within", "3")
    assert server.argv[after + 1 :] == ("broker", "-p", "5201", "x", "10")
    assert (server.cwd, server.env) == ("/var/lib/broker", {"A": "b", "LISTEN": "0.0.0.0:5201"})
    assert (server.ready, server.ready_limit_s) == (b"running", 3 + own_application.GRACE_S)
    assert load.argv == ("bench", "-h", "192.0.2.7", "-p", "20100", "-n", "10")
    assert (load.side, load.env) == (Side.CLIENT, {})


def _with(image):
    fields = {name: getattr(AROUND, name) for name in AROUND.__slots__}
    return Surroundings(**{**fields, "application": image})


def test_the_load_may_come_out_of_the_applications_own_image(described):
    workload = described(WHOLE.replace('packages = ["broker-tools"]', 'program = "application"'))
    assert workload.layer is None
    (load,) = workload.plan(workload.profiles["quick"], _with(IMAGE)).measures
    assert (load.side, load.env) == (Side.CLIENT_OWN, {"A": "b"})


def test_readiness_by_a_port_or_a_page_is_the_agents_to_see(described):
    for key, condition in (
        ("tcp = true", "tcp:5201"),
        ('http = "/up"', "http:5201:/up"),
        ('command = ["x"]', "command"),
    ):
        workload = described(WHOLE.replace('output = "running"', key))
        (server,) = workload.plan(workload.profiles["quick"], _with(IMAGE)).servers
        assert server.argv[server.argv.index("--ready") + 1] == condition
        assert server.ready == serving.READY
    source = Path(__file__).parents[2] / "agent/src/run.rs"
    assert f'pub const READY: &str = "{serving.READY.decode()}";' in source.read_text()


def test_on_the_hosts_network_it_listens_on_the_bridge_and_is_asked_for_there(described):
    text = WHOLE.replace('output = "running"', 'command = ["ask", "{address}:{port}"]')
    there = replace(_with(IMAGE), listen="192.0.2.1")
    for around, listen, address in ((_with(IMAGE), "0.0.0.0", "127.0.0.1"), (there, "192.0.2.1", "192.0.2.1")):
        (server,) = described(text).plan(described(text).profiles["quick"], around).servers
        assert server.env["LISTEN"] == f"{listen}:5201"
        asks = server.argv.index("--ask")
        assert server.argv[asks - 2 : asks + 4] == ("--ready", "command", "--ask", "ask", "--ask", f"{address}:5201")
        port = described(WHOLE.replace('output = "running"', "tcp = true"))
        (server,) = port.plan(port.profiles["quick"], around).servers
        assert server.argv[server.argv.index("--at") + 1] == address


def test_what_cannot_be_started_is_said_with_its_line_or_its_fix(described):
    workload = described(WHOLE)
    with pytest.raises(HostError, match="300 MiB of memory, and instances have 256"):
        workload.plan(workload.profiles["quick"], Surroundings(256 << 20, 1, 1 << 30, "192.0.2.7", 1, 2))
    with pytest.raises(HostError, match="with a network"):
        workload.plan(workload.profiles["quick"], Surroundings(1 << 30, 1, 1 << 30, None, None, None))
    bare = described(WHOLE.replace('arguments = ["-p", "{port}", "{other}", "{messages}"]\n', ""))
    with pytest.raises(HostError, match="does not say how it is started") as caught:
        bare.plan(bare.profiles["quick"], _with(Application()))
    assert re.search(r"broker\.toml:4$", caught.value.fix)


def _done(stdout, *, code=0, stderr=b""):
    return Completed(("bench",), code, stdout, stderr, 10**9)


GOOD = b'{"all": [{}, {"p99": 1.5}]}'


def test_figures_are_read_by_expression_and_by_path(described):
    workload = described(WHOLE)
    outcome = workload.parse(workload.profiles["quick"], [_done(GOOD, stderr=b"rate: 12.5\nmessages: 10\n")])
    assert (outcome.samples, outcome.work) == ({"rate": 12.5, "p99": 1.5}, 10)


@pytest.mark.parametrize(
    ("done", "what"),
    [
        (_done(GOOD, code=1), "ended with 1"),
        (_done(GOOD), r"broker\.toml:15: metrics\.rate: the load printed nothing that its regex matches"),
        (_done(b"rate: 1\nmessages: 1"), r"broker\.toml:19: metrics\.p99: the load did not print JSON"),
        (_done(b'{"all": []}', stderr=b"rate: 1\nmessages: 1"), r"metrics\.p99: the JSON has no \[1\] there"),
        (_done(b'{"all": [1, {"p99": "x"}]}', stderr=b"rate: 1\nmessages: 1"), "it is no number but 'x'"),
        (_done(GOOD, stderr=b"rate: 1.2.3\nmessages: 1"), r"it is no number but '1\.2\.3'"),
    ],
)
def test_an_output_without_the_figures_fails_with_the_files_line(described, done, what):
    workload = described(WHOLE)
    with pytest.raises(ParseError, match=what):
        workload.parse(workload.profiles["quick"], [done])


OF_ONE = """
name = "one"
[source]
packages = ["lighttpd"]
[start]
command = ["x", "{port}"]
[ready]
tcp = true
[load]
command = ["bench"]
[metrics.it]
better = "lower"
"""


def _read(described, table, output):
    workload = described(OF_ONE + table)
    return workload.parse(workload.profiles["quick"], [_done(output.encode())]).samples["it"]


@pytest.mark.parametrize(
    ("table", "output", "figure"),
    [
        ("regex = 'tps = ([0-9.]+)'\nunit = 'tps'\nwhich = 'last'", "tps = 1.5\ntps = 2.5 (without)", 2.5),
        ("regex = 'tps = ([0-9.]+)'\nunit = 'tps'\nwhich = 'first'", "tps = 1.5\ntps = 2.5 (without)", 1.5),
        ("regex = '^tps = ([0-9.]+)$'\nunit = 'tps'", "tps = 1.5\ntps = 2.5 (without)", 1.5),
        ("regex = 'p99 ([0-9.]+)(us|ms)'\nunit = 'ms'\nunits = { us = 0.001, ms = 1 }", "p99 835.12us", 0.83512),
        ("regex = 'p99 ([0-9.]+)(us|ms)'\nunit = 'ms'\nunits = { us = 0.001, ms = 1 }", "p99 1.20ms", 1.2),
        ("regex = 'rate ([0-9.]+)(k?)'\nunit = 'a second'\nunits = { \"\" = 1, k = 1e3 }", "rate 12", 12),
        ("regex = 'rate ([0-9.]+)(k?)'\nunit = 'a second'\nunits = { \"\" = 1, k = 1e3 }", "rate 1.5k", 1500),
        ("regex = 'p99 ([0-9.]+)'\nunit = 'ms'", "p99 1.2 ms", 1.2),
        ("regex = 'sent ([0-9.]+)'\nunit = 'MB/s'", "sent 1.2MB", 1.2),
        ("regex = 'rate ([0-9]+)'\nunit = 'requests/s'", "rate 12 a second", 12),
        ("regex = ',([0-9]+),'\nunit = 'us'", "x,12,34", 12),
        ("regex = 'took ([-+.eE0-9]+)'\nunit = 's'", "took 1.5e-3", 0.0015),
        ("json = 'a'\nunit = 's'", '{"a": 3}', 3),
        ("json = 'a'\nunit = 's'", '{"a": "1e3"}', 1000),
    ],
)
def test_a_figure_is_read_with_its_unit(described, table, output, figure):
    assert _read(described, table, output) == pytest.approx(figure)


@pytest.mark.parametrize(
    ("table", "output", "what"),
    [
        (
            "regex = 'tps = ([0-9.]+)'\nunit = 'tps'",
            "tps = 1.5 (with)\ntps = 2.5 (without)",
            r"metrics\.it: the regex matches 2 times \('tps = 1\.5', 'tps = 2\.5'\): write more of the line into it, "
            r'or which = "first" or "last"',
        ),
        ("regex = 'p99 ([0-9.]+)'\nunit = 'us'", "p99 1.20ms", "'ms' stands behind the number, and unit is 'us'"),
        ("regex = 'p99 ([0-9.]+)'\nunit = 'us'", "p99 1.20 ms", "'ms' stands behind the number, and unit is 'us'"),
        ("regex = 'p99 ([0-9.]+)'\nunit = 'ms'", "p99 1.20m", "'m' stands behind the number"),
        ("regex = 'rate ([0-9.]+)'\nunit = 'requests/s'", "rate 1.20k", "'k' stands behind the number"),
        ("regex = 'rate ([0-9.]+)'\nunit = 'requests/s'", "rate 1.20 M", "'M' stands behind the number"),
        ("regex = 'busy ([0-9.]+)'\nunit = 'CPUs'", "busy 120%", "'%' stands behind the number"),
        (
            "regex = 'p99 ([0-9.]+)([a-z]+)'\nunit = 'ms'\nunits = { us = 0.001, ms = 1 }",
            "p99 1.20s",
            "the load printed the unit 's', and units has 'us', 'ms'",
        ),
        ("regex = 'rate.*([0-9.]+)'\nunit = 'tps'", "rate: 123.4", "takes '4', a part of a number: 'rate: 123.4'"),
        ("regex = 'rate: ([0-9]+)'\nunit = 'tps'", "rate: 123.4", "takes '123', a part of a number"),
        ("regex = 'rate: ([0-9.]+)'\nunit = 'tps'", "rate: 1,234.5", "takes '1', a part of a number"),
        ("regex = 'rate: ([0-9.]+)'\nunit = 'tps'", "rate: 1.2e+06", "takes '1.2', a part of a number"),
        ("regex = 'rate: ([0-9,.]+)'\nunit = 'tps'", "rate: 1,234.5", "it is no number but '1,234.5'"),
        ("regex = 'rate: (\\S+)'\nunit = 'tps'", "rate: nan", "it is no number but 'nan'"),
        ("regex = 'rate: (\\S+)'\nunit = 'tps'", "rate: 1_000", "it is no number but '1_000'"),
        ("regex = 'rate: (\\S+)'\nunit = 'tps'", "rate: 1e999", "it is no number but '1e999'"),
        ("regex = 'rate: (\\S+)'\nunit = 'tps'", "rate: ١٢", "it is no number but '١٢'"),
        ("regex = 'rate: (?:([0-9]+)|-)'\nunit = 'tps'", "rate: -", "its group nothing of it"),
        ("regex = '(x|[0-9])'\nunit = 'tps'\nwhich = 'last'", "x" * 2000, "more than 1000 times"),
        ("json = 'a'\nunit = 's'", '{"a": true}', "it is no number but 'True'"),
        ("json = 'a'\nunit = 's'", '{"a": NaN}', "it is no number but 'nan'"),
        ("json = 'a'\nunit = 's'", '{"a": 1, "a": 2}', r"did not print JSON \(it has 'a' twice\)"),
    ],
)
def test_what_can_be_read_in_two_ways_fails_the_trial(described, table, output, what):
    with pytest.raises(ParseError, match=what):
        _read(described, table, output)


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ("regex = '([0-9]+)(us|ms)'\nunit = 'ms'", "units says what each text of the regex's second group is worth"),
        ("regex = '([0-9]+)'\nunit = 'ms'\nunits = { us = 1 }", "units says what each text"),
        ("regex = '([0-9]+)(us)(x)'\nunit = 'ms'", "it has 3 groups"),
        ("regex = '([0-9]+)(us)'\nunit = 'ms'\nunits = { us = 0 }", "greater than 0"),
        ("json = 'a'\nwhich = 'last'\nunit = 'ms'", "which chooses among the matches of a regex"),
        ("regex = '(?<=x)([0-9]+)'\nunit = 'ms'", "not a regular expression as RE2 knows them"),
    ],
)
def test_a_figure_that_says_too_little_of_its_unit_is_a_mistake(tmp_path, table, what):
    mistakes = _mistakes(tmp_path, OF_ONE + table)
    assert any(what in message for _, message in mistakes), mistakes


def _of_the_guide(described):
    """The load and metrics that the guide shows for wrk."""
    guide = (Path(__file__).parents[2] / "docs" / "applications-own.md").read_text()
    shown = next(block for block in guide.split("```toml\n") if block.startswith("[load]")).partition("```")[0]
    return described(OF_ONE.partition("[load]")[0] + shown)


@pytest.mark.parametrize(
    ("name", "rate", "p99_ms", "requests"),
    [("fast", 38777.13, 118.47, 155906), ("middling", 4398.05, 27.37, 17976), ("slow", 5.98, 1210, 24)],
)
def test_wrk_is_read_as_the_guide_says(described, name, rate, p99_ms, requests):
    workload = _of_the_guide(described)
    outcome = workload.parse(workload.profiles["quick"], [_done(captures.text(f"wrk-{name}").encode())])
    assert (outcome.samples, outcome.work) == ({"rate": rate, "p99": pytest.approx(p99_ms)}, requests)
    in_microseconds = captures.text(f"wrk-{name}").replace("99%", "98%").replace("50%", "99%").encode()
    figures = workload.parse(workload.profiles["quick"], [_done(in_microseconds)]).samples
    assert figures["p99"] == pytest.approx({"fast": 0.147, "middling": 1.34, "slow": 1200}[name])


def test_requests_that_wrk_gave_up_are_not_left_out_of_its_percentiles_in_silence(described):
    workload = _of_the_guide(described)
    with pytest.raises(ParseError, match=r"toml:\d+: the load printed 'Socket errors: connect 0, .* timeout 8'"):
        workload.parse(workload.profiles["quick"], [_done(captures.text("wrk-timeouts").encode())])


def test_an_application_can_fill_a_host(described, tmp_path):
    described(WHOLE)
    filling = workload_registry.get(f"fill:{tmp_path / 'broker.toml'}")
    application = filling.application
    assert (filling.name, filling.origin) == ("capacity", f"fill:{tmp_path / 'broker.toml'}")
    assert (filling.source, filling.layer, filling.packages, filling.pids) == (
        application.source,
        application.layer,
        application.packages,
        4096,
    )
    assert filling.profiles["quick"]["file"] == application.profiles["quick"]["file"]
    assert application.name == "app:broker"
    assert workload_registry.recorded("capacity", filling.origin).application.name == "app:broker"
    assert workload_registry.get("capacity").application is None
