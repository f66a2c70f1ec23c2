"""Completion by the shell, and the groups of the help."""

import pytest

import fake_campaign
from tare.cli.commands.app import COMMANDS, GROUPS


@pytest.fixture
def completed(commands, tmp_path):
    """The words that bash would be given for a line's last word."""

    def run(line):
        env = {"_TARE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
        done = commands.run(cwd=tmp_path, env=env)
        assert done.stderr == ""
        return done.stdout.split()

    return run


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tare ru", ["run"]),
        ("tare run --pro", ["--profile", "--progress"]),
        ("tare lab bu", ["build"]),
        ("tare run -p runc-user", ["runc-userns"]),
        ("tare run -w udp", ["udp-rtt"]),
        ("tare run -w kern", ["kernel-compile", "kernel"]),
        ("tare export x.tare --format op", ["openmetrics"]),
        ("tare run --profile ka", ["karna-2021"]),
        ("tare export x.tare --metric udp-rtt/me", ["udp-rtt/median"]),
        ("tare setup --with docker,gv", ["docker,gvisor"]),
        ("tare literature li", ["li-2017"]),
    ],
)
def test_the_shell_completes(completed, line, words):
    assert completed(line) == words


@pytest.mark.thorough
def test_the_shell_completes_what_the_campaign_has(completed, tmp_path):
    fake_campaign.write(tmp_path / "night.tare", fake_campaign.Shape(blocks=2, rounds=2))
    assert completed("tare export night.tare --metric startup/") == ["startup/first-byte", "startup/ping"]
    assert completed("tare figure night.tare -p gvisor-p") == ["gvisor-ptrace"]


def test_every_command_has_one_place_in_the_help():
    listed = [name for names in GROUPS.values() for name in names]
    assert len(listed) == len(set(listed))
    assert set(listed) >= set(COMMANDS)  # who is missing there is missing from tare
