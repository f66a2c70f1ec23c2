"""A Dockerfile or a compose file with one service as a file of ours; what is not plain is a mistake at its line."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tare.cli.commands import application_command
from tare.errors import UsageError
from tare.workloads.own import compose, dockerfile, file, foreign, service

DOCKERFILE = """\
# escape=`
ARG BASE=python:3.12
FROM ${BASE} AS base
ENV PORT=8080 `
    # a comment

    MODE="very fast"
FROM base
expose $PORT/tcp
VOLUME ["/var/lib/thing"]
WORKDIR /srv
WORKDIR app
USER www-data
LABEL a=b
HEALTHCHECK --interval=5s --start-period=1m CMD curl -fsS http://localhost:8080/health?now || exit 1
CMD ["python", "-m", "http.server", "8080", "--bind", "0.0.0.0", "--version", "1.8080.2"]
"""
COMPOSE = """\
name: mine
services:
  Cache_1:
    image: redis:${TAG:-7}
    restart: always
    command: redis-server --port 6379 --save "" --pass $${HOME}
    ports: ["127.0.0.1:6379:6379"]
    environment:
      MODE: fast
      TOKEN:
    user: redis
    working_dir: /srv
    volumes: [data:/var/lib/redis, /scratch]
    healthcheck:
      test: ["CMD", "redis-cli", "-h", "127.0.0.1", "-p", "6379", "ping"]
      interval: 2s
      retries: 5
volumes: {data: }
"""


def _of_dockerfile(text, built=None):
    read, mistakes = dockerfile.read(text, built is not None)
    return tomllib.loads(service.toml_of(read, "Dockerfile", built)), _messages(mistakes)


def _of_compose(text, built=None, **environment):
    read, mistakes = compose.read(text, built is not None, environment)
    return tomllib.loads(service.toml_of(read, "compose.yaml", built)), _messages(mistakes)


def _messages(mistakes):
    return [(mistake.line, mistake.what) for mistake in mistakes]


def test_where_a_health_check_has_0_its_default_is_meant_in_both():
    text = COMPOSE.replace("interval: 2s", "interval: 0s").replace("retries: 5", "retries: 0")
    described, _ = _of_compose(text)
    usual, _ = _of_compose(COMPOSE.replace("      interval: 2s\n", "").replace("      retries: 5\n", ""))
    assert described["ready"] == usual["ready"]


def test_a_dockerfile_that_builds_nothing_is_read_whole():
    described, mistakes = _of_dockerfile(DOCKERFILE)
    assert mistakes == []
    words = ["python", "-m", "http.server", "{port}", "--bind", "{address}", "--version", "1.8080.2"]
    assert described == {
        "name": "python",
        "source": {"image": "docker://python:3.12"},
        "start": {
            "arguments": words,
            "directory": "/srv/app",
            "user": "www-data",
            "env": {"PORT": "{port}", "MODE": "very fast"},
        },
        "ready": {"http": "/health?now", "within": 75},
        "load": {"built_in": "http-get", "path": "/health?now"},
    }


def test_of_an_image_that_was_built_only_what_names_the_port_is_repeated():
    text = DOCKERFILE.replace("LABEL a=b", "RUN make <<EOF\nCMD not this\nEOF\nENV PATH=/x:$PATH")
    described, mistakes = _of_dockerfile(text, "mine.tar")
    assert mistakes == []
    assert described["source"] == {"image": "mine.tar"}
    assert described["start"].keys() == {"arguments", "env"}
    assert described["start"]["env"] == {"PORT": "{port}"}


def test_an_entry_point_takes_the_command_and_a_shells_line_is_a_shells():
    described, _ = _of_dockerfile(
        'FROM a\nEXPOSE 80\nENTRYPOINT ["a", "--port=80"]\nCMD ["--all"]\nHEALTHCHECK CMD a -p 80\n'
    )
    assert described["start"] == {"command": ["a", "--port={port}", "--all"]}
    assert described["ready"] == {"command": ["/bin/sh", "-c", "a -p {port}"], "within": 90}
    described, _ = _of_dockerfile("FROM a\nEXPOSE 80\nCMD a --port 80\nHEALTHCHECK NONE\n")
    assert described["start"] == {"arguments": ["/bin/sh", "-c", "a --port {port}"]}
    assert described["ready"] == {"tcp": True}


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("RUN make\n", 1, "RUN stands before FROM"),
        ("", 1, "there is no FROM"),
        ("# a\nFROM a\n\n# b\nRUN a && \\\n  b\nEXPOSE 1", 5, "RUN builds an image, and tare builds none"),
        ("FROM a\nEXPOSE 1\nCOPY <<X /x\nRUN\nX\nADD y /\n", 3, "COPY builds an image"),
        ("FROM scratch\nEXPOSE 1", 1, "scratch is an empty image"),
        ("FROM ${BASE}\nEXPOSE 1", 1, "BASE has no value"),
        ("FROM a b\nEXPOSE 1", 1, "is not FROM IMAGE"),
        ("FROM a\nENV A=1 \\\n B=${OTHER}\nEXPOSE 1", 2, "ENV B: OTHER has no value here"),
        ("FROM a\nENV A=${B:?no}\nEXPOSE 1", 2, "ENV A: B has no value: no here"),
        ("FROM a\nEXPOSE 80 443", 2, "EXPOSE 443: 80 is exposed too"),
        ("FROM a\nEXPOSE 53/udp", 2, "EXPOSE 53/udp is not one TCP port"),
        ("FROM a\nCMD run", 1, "no port is named"),
        ("FROM a\nEXPOSE 1\nWORKDIR b", 3, "only the image knows"),
        ('FROM a\nEXPOSE 1\nCMD ["a", 1]', 3, "CMD: this is no JSON list"),
        ('FROM a\nEXPOSE 1\nENV A="b', 3, "this is not whole"),
        ("FROM a\nEXPOSE 1\nCMD run {memory}", 3, "{memory} would stand for something of tare's"),
        ("FROM a\nEXPOSE 1\nHEALTHCHECK --interval=often CMD a", 3, "no HEALTHCHECK"),
        ('FROM a\nEXPOSE 1\nSHELL ["b"]', 3, "SHELL is not read"),
        ("FROM a\nEXPOSE 1\nRUN <<EOF\nCMD x\n EOF\n", 3, "RUN: no line is 'EOF', which would end its text"),
        ("FROM a\nEXPOSE 1\nENV A='$B'", 3, "a dollar sign that is no variable is not read: '$B'"),
        ("FROM a\nEXPOSE 1\nENV A=\\$B", 3, "a dollar sign that is no variable is not read: \\$"),
        ("FROM a\nEXPOSE 1\nENV A=1 B", 3, "ENV: B has no value"),
        ('FROM a\nEXPOSE 1\nENV A "b c"', 3, "is not NAME=VALUE, nor NAME and a text without quotation marks"),
        ("FROM a\nEXPOSE 1\nENV A=${B##x}", 3, "ENV A: ${B##x} is not read here"),
        ("FROM a\nEXPOSE 70000", 2, "70000 is no TCP port"),
        ("FROM a\nEXPOSE " + "9" * 5000, 2, "is not one TCP port"),
        (f"FROM a\nEXPOSE 1\nHEALTHCHECK --retries={'9' * 5000} CMD a", 3, "no HEALTHCHECK"),
        ("FROM a\nEXPOSE 1\nHEALTHCHECK --often=1 CMD a", 3, "--often is not read"),
        ("# escape=x\nFROM a\nEXPOSE 1", 1, "the escape 'x' is neither"),
        ('FROM a\nEXPOSE 1\nVOLUME ["/a\\n[start.files]"]', 3, "has a control character"),
    ],
)
def test_what_is_not_plain_in_a_dockerfile_is_told_at_its_line(text, line, what):
    assert any(at == line and what in message for at, message in _of_dockerfile(text)[1]), _of_dockerfile(text)[1]


@pytest.mark.parametrize(
    "instruction",
    [
        "RUN sed s/a/b/ <<<'hello' >/etc/x",
        'RUN echo "a <<EOF b"',
        "RUN echo '<<EOF'",
        "RUN echo $((1<<2))",
        "RUN echo $((1 << 2))",
        "RUN cat <<-\n",
        "RUN cat <<'END-OF FILE' >/x\nCMD not this\nEND-OF FILE",
        'COPY <<-a-b.conf <<"c" /\n\ta\n\ta-b.conf\nCMD not this\nc',
        "RUN cat <<EOF\n EOF\nEOF\t\nEOF",
        "RUN a \\\n# a comment\n\n  && b",
    ],
)
def test_what_follows_a_builders_instruction_is_read(instruction):
    """A text of lines begins only where BuildKit has one begin, and ends at its own end alone."""
    text = f'FROM a\nCMD one\n{instruction}\nENV A=80\nUSER u\nEXPOSE 80\nCMD ["two", "--threads", "4"]\n'
    read, mistakes = dockerfile.read(text, built=False)
    assert [message for _, message in _messages(mistakes) if "builds an image" not in message] == []
    assert (read.command, read.env, read.user, read.port) == (("two", "--threads", "4"), {"A": "80"}, "u", 80)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffFROM a\nEXPOSE 80\nCMD run  it\n",
        "FROM\ta\nEXPOSE\t80\nCMD\trun  it\n",
        "FROM a\r\nEXPOSE 80\r\nCMD run  it\r\n",
        "FROM a\nEXPOSE 80\nCMD run\\\n  it\n",
        "FROM a\nEXPOSE 80\nCMD run  it\n# a\u2028CMD b\x85CMD c\x0bCMD d\n",
        "FROM a\nEXPOSE 80\nCMD \\ \nrun  it",
    ],
)
def test_lines_and_white_space_are_those_of_docker(text):
    read, mistakes = dockerfile.read(text, built=False)
    assert _messages(mistakes) == []
    assert (read.image, read.port, read.command) == ("a", 80, ("/bin/sh", "-c", "run  it"))


def test_two_escapes_at_a_lines_end_are_no_escape():
    read, mistakes = dockerfile.read("FROM a\nEXPOSE 80\nCMD echo \\\\\nUSER u\n", built=False)
    assert _messages(mistakes) == []
    assert (read.command, read.user) == (("/bin/sh", "-c", "echo \\\\"), "u")


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${A:?no}", "a"), ("${A?no}", "a"), ("${A:+x}", "x"), ("${E:+x}", ""), ("${E+x}", "x"), ("${B+x}", ""),
        ("${B:-${C:-d}}", "d"), ("${B:-${A}}", "a"), ("${B-}", ""), ("${E-d}", ""), ("${E:-d}", "d"),
        ("$A${A}b$", "aab$"), ("${B:-a}b}", "ab}"), ("${A:-${Z}}", "a"), ("$(id) $1", "$(id) $1"),
    ],
)  # fmt: skip
def test_variables_are_filled_in_as_both_kinds_of_file_know_them(text, filled):
    read = service.substituted(text, {"A": "a", "E": ""})
    assert (read.text, read.problem) == (filled, "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("${B:?say it}", "B has no value: say it"), ("$B", "B has no value"), ("${B:-${C}}", "C has no value"),
        ("${A", "${A is not read"), ("${A:x}", "${A:x} is not read"), ("${1}", "${1} is not read"),
        ("${B:-" * 40 + "}" * 40, " is not read"), ("${B:-" * 20_000, " is not read"),
    ],
)  # fmt: skip
def test_a_variable_without_a_value_or_in_another_form_is_told(text, problem):
    assert problem in service.substituted(text, {"A": "a", "E": ""}).problem


def test_values_of_whoever_reads_the_file_are_not_written_down():
    text = COMPOSE.replace("TOKEN:", "TOKEN: ${SECRET}\n      PORT: ${PORT}\n      PASSED:\n      KEPT: ${NO:-ne}")
    read, mistakes = compose.read(text, False, {"SECRET": "hush", "PORT": "6379", "PASSED": "hush", "TAG": "7"})
    assert _messages(mistakes) == []
    written = service.toml_of(read, "compose.yaml", None)
    assert "hush" not in written
    assert tomllib.loads(written)["start"]["env"] == {"MODE": "fast", "KEPT": "ne", "PORT": "{port}"}
    for name in ("TOKEN", "PASSED"):
        assert f"# {name} has its value from your environment there" in written


def test_a_compose_file_with_one_service_is_read_whole():
    described, mistakes = _of_compose(COMPOSE, TOKEN="t", TAG="")
    assert mistakes == []
    assert described == {
        "name": "cache-1",
        "source": {"image": "docker://redis:7"},
        "start": {
            "arguments": ["redis-server", "--port", "{port}", "--save", "", "--pass", "${HOME}"],
            "directory": "/srv",
            "user": "redis",
            "env": {"MODE": "fast"},
        },
        "ready": {"command": ["redis-cli", "-h", "{address}", "-p", "{port}", "ping"], "within": 10},
    }


def test_a_health_check_that_names_no_port_is_told_and_the_port_asked_in_its_place():
    """It would ask the program's usual port: as most health checks of databases do."""
    text = COMPOSE.replace(
        '["CMD", "redis-cli", "-h", "127.0.0.1", "-p", "6379", "ping"]', '["CMD", "redis-cli", "ping"]'
    )
    assert text != COMPOSE
    read, mistakes = compose.read(text, built=False, environment={"TOKEN": "t"})
    assert mistakes == []
    written = service.toml_of(read, "compose.yaml", None)
    assert tomllib.loads(written)["ready"] == {"tcp": True, "within": 10}
    assert '# {port} in it: command = ["redis-cli", "ping"]' in written


@pytest.mark.parametrize(
    ("before", "after", "line", "what"),
    [
        ("redis:${TAG:-7}", "redis:${TAG}", 4, "TAG has no value"),
        ("MODE: fast", "MODE: ${B:?say which}", 9, "B has no value: say which"),
        ("MODE: fast", "MODE: ${B#x}", 9, "${B#x} is not read"),
        ("MODE: fast", "MODE: ${B", 9, "${B is not read"),
        ("MODE: fast", "MODE: $(id)", 9, "a dollar sign in '$(id)' is no variable"),
        ("MODE: fast", "MODE: 1.10", 9, "environment.MODE: 1.10 is a number that is written in another way too"),
        ("MODE: fast", "MODE: 0o17", 9, "0o17 is a number that is written in another way too"),
        ("user: redis", "user: 010", 11, "user: 010 is a number that is written in another way too"),
        ('["127.0.0.1:6379:6379"]', "!reset null", 7, "!reset is not read"),
        ('["127.0.0.1:6379:6379"]', "!override [80]", 7, "!override is not read"),
        ('["127.0.0.1:6379:6379"]', '["70000"]', 7, "70000 is no TCP port"),
        ('["127.0.0.1:6379:6379"]', f'["{"9" * 5000}"]', 7, "is no TCP port"),
        ("retries: 5", f"retries: {'9' * 5000}", 17, "healthcheck.retries is no number of at most nine digits"),
        ("interval: 2s", "disable: perhaps", 16, "healthcheck.disable is neither true nor false"),
        ("/scratch]", '"/a\\n[start.files]\\n"]', 13, "the volume '/a\\n[start.files]\\n' has a control character"),
        ("image: redis:${TAG:-7}", "build: .", 4, "services.Cache_1.build builds an image, and tare builds none"),
        ("    image: redis:${TAG:-7}\n", "", 4, "has no image"),
        ("restart: always", "privileged: true", 5, "services.Cache_1.privileged is nothing that every platform"),
        ("restart: always", "env_file: .env", 5, "services.Cache_1.env_file is nothing"),
        ("restart: always", "<<: {a: b}", 5, "takes keys from elsewhere"),
        ('["127.0.0.1:6379:6379"]', '["80", "443"]', 7, "ports: 443 comes after 80"),
        ('["127.0.0.1:6379:6379"]', '["53:53/udp"]', 7, "53:53/udp is not one TCP port"),
        ('["127.0.0.1:6379:6379"]', '["8000-8001"]', 7, "8000-8001 is not one TCP port"),
        ("data:/var/lib/redis", "./conf:/etc/conf:ro", 13, "./conf is of this host"),
        ('["CMD", "redis-cli"', '["redis-cli"', 15, "begins with none of CMD, CMD-SHELL and NONE"),
        ("interval: 2s", "interval: often", 16, "healthcheck.interval is no duration"),
        ("volumes: {data: }", "secrets: {a: b}", 18, "secrets is not read"),
        ("volumes: {data: }", "volumes: {data: ", 19, "this is not YAML"),
        ("volumes: {data: }", "  db: {image: postgres}", 18, "there are 2 services (Cache_1, db)"),
        ("name: mine", "name: mine\nname: yours", 2, "a key twice"),
        ("name: mine", 'name: mine\n"a\\nb": 1', 2, "a\\nb is not read"),
        ('["127.0.0.1:6379:6379"]', '["a\\ud800"]', 7, "a\\ud800 has half a character"),
        ('["127.0.0.1:6379:6379"]', '["\\U00164381"]', 7, "this is not YAML: an escape names no character"),
        ('["127.0.0.1:6379:6379"]', '["\\UFFFFFFFF"]', 7, "this is not YAML: an escape names no character"),
    ],
)
def test_what_is_not_plain_in_a_compose_file_is_told_at_its_line(before, after, line, what):
    assert before in COMPOSE
    _, mistakes = _of_compose(COMPOSE.replace(before, after, 1), TOKEN="t")
    assert any(at == line and what in message for at, message in mistakes), mistakes


def test_a_port_that_yaml_may_take_for_a_time_is_a_port():
    text = COMPOSE.replace('["127.0.0.1:6379:6379"]', "[22:22]").replace("6379", "22")
    assert _of_compose(text, TOKEN="t")[1] == []


def test_long_forms_and_a_health_check_without_one_are_read():
    described, mistakes = _of_compose(
        "services:\n  a:\n    image: a\n    entrypoint: [a, -p]\n    command: ['80']\n"
        "    ports: [{target: 80, published: 8080}]\n"
        "    environment: [A=0.0.0.0:80]\n    volumes: [{type: volume, source: b, target: /b}]\n"
        "    healthcheck: {disable: true}\n"
    )
    assert mistakes == []
    assert described["start"] == {"command": ["a", "-p", "{port}"], "env": {"A": "{address}:{port}"}}
    assert described["ready"] == {"tcp": True}


@pytest.mark.parametrize(
    ("command", "page"),
    [
        ("wget -q --spider http://127.0.0.1/up", "/up"),
        ("curl --fail http://localhost || exit 1", "/"),
        ("curl -f http://localhost:81/", None),
        ("curl -f http://example.org/", None),
        ("curl -f -X POST http://localhost/", None),
        ("curl -f http://localhost/ && rm x", None),
        ("curl -f http://localhost/ 'open", None),
    ],
)
def test_a_health_check_that_fetches_its_own_page_alone_is_one_of_ours(command, page):
    described, _ = _of_dockerfile(f"FROM a\nEXPOSE 80\nENV P=80\nHEALTHCHECK CMD {command}\n")
    assert described["ready"].get("http") == page
    assert ("command" in described["ready"]) == (page is None)


@given(
    st.text() | st.lists(st.sampled_from([*DOCKERFILE.splitlines(), *COMPOSE.splitlines(), "}{[", "\\"])).map("\n".join)
)
def test_whatever_is_in_a_file_there_is_a_toml_or_a_mistake(text):
    for described, _ in (_of_dockerfile(text), _of_compose(text)):
        assert described.keys() <= {"name", "source", "start", "ready", "load"}
        assert described["start"].keys() <= {"command", "arguments", "directory", "user", "env"}


def test_what_is_written_is_a_file_of_ours_and_what_it_lacks_is_said(tmp_path, capfd, monkeypatch):
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    (tmp_path / "compose.yml").write_text(COMPOSE)
    application_command.init(tmp_path / "a.toml", tmp_path / "Dockerfile", None)
    described, mistakes = file.examine(tmp_path / "a.toml")
    assert mistakes == []
    assert described.contents.ready.http == "/health?now"
    assert "lacks" not in capfd.readouterr().out
    monkeypatch.setenv("TOKEN", "t")
    application_command.init(tmp_path / "b.toml", tmp_path / "compose.yml", None)
    printed = capfd.readouterr().out.replace("\n", "")
    assert "b.toml:1: load: it is missing" in printed


def test_what_cannot_be_read_writes_nothing(tmp_path, capfd):
    (tmp_path / "Dockerfile").write_text("FROM a\nRUN b\nEXPOSE 1\n")
    with pytest.raises(UsageError, match="has one mistake"):
        application_command.init(tmp_path / "a.toml", tmp_path / "Dockerfile", None)
    assert "Dockerfile:2: RUN builds an image" in capfd.readouterr().out.replace("\n", "")
    assert not (tmp_path / "a.toml").exists()
    with pytest.raises(UsageError, match="--image goes with --from"):
        application_command.init(tmp_path / "a.toml", None, "x.tar")
    (tmp_path / "other").write_text("FROM a\n")
    with pytest.raises(UsageError, match="neither by its name"):
        foreign.converted(tmp_path / "other", None)
    (tmp_path / "x.yml").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="not UTF-8"):
        foreign.converted(tmp_path / "x.yml", None)
