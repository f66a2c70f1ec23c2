"""`tare app check` shows what an application's file would run as root, and asks before."""

import os
import pty

import pytest

FILE = """\
name = "mine"
[source]
packages = ["lighttpd"]
[start]
command = ["lighttpd", "-p", "{port}"]
[ready]
tcp = true
[load]
command = ["sh", "-c", "touch /PWN\\nid"]
[metrics.rate]
regex = "([0-9]+)"
unit = "a second"
better = "higher"
"""


@pytest.fixture
def check(reading_commands, tmp_path):
    (tmp_path / "mine.toml").write_text(FILE)
    (tmp_path / "mine.toml").chmod(0o644)
    # Nothing can be run here: without an agent it ends behind the question.
    env = {"TARE_AGENT": "/nowhere/agent", "TARE_HOME": str(tmp_path / "home")}

    def run(*options, answer=None):
        command = ("app", "check", "mine.toml", *options)
        if answer is None:
            return reading_commands.run(*command, cwd=tmp_path, env=env)
        ours, theirs = pty.openpty()
        try:
            os.write(ours, answer.encode())
            return reading_commands.run(*command, cwd=tmp_path, env=env, stdin=os.ttyname(theirs))
        finally:
            os.close(ours)
            os.close(theirs)

    return run


def test_without_a_terminal_nothing_runs_and_the_fix_is_an_option(check):
    done = check()
    assert done.returncode == 2
    assert "mine.toml has no mistake; what it orders would now run as root" in done.stderr
    assert "--trust" in done.stderr
    assert "agent" not in done.stderr


def test_at_a_terminal_it_shows_the_commands_and_takes_no_for_an_answer(check):
    done = check(answer="n\n")
    assert done.returncode == 1
    assert "start: lighttpd -p '{port}'" in done.stderr
    assert "load: sh -c 'touch /PWN\n    id'" in done.stderr
    assert "Run this as root, on this host? [y/N]" in done.stderr


@pytest.mark.parametrize("how", ["answer", "option"])
def test_who_agrees_is_not_asked_again(check, how):
    done = check(answer="y\n") if how == "answer" else check("--trust")
    assert "It would run" in done.stderr
    assert "agent" in done.stderr, done.stderr


def test_mistakes_are_told_without_a_question(check, tmp_path):
    (tmp_path / "mine.toml").write_text(FILE.replace("tcp = true", "tpc = true"))
    done = check()
    assert "mine.toml:7: ready.tpc: there is no such key" in done.stdout
    assert "would run" not in done.stderr
