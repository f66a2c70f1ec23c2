"""Mistakes on the command line: one line that says what is wrong, and one that says what to type."""

import pytest


@pytest.mark.parametrize(
    ("typed", "what", "fix"),
    [
        ("run --blocks many", "--blocks is no number", "give a whole number, such as 10"),
        ("run --cpu-quota much", "--cpu-quota is no number", "give a number, such as 1.5"),
        ("run --design latin", "--design cannot be 'latin'", "one of blocks, sequential, duet"),
        ("run --blok 3", "tare run has no option --blok", "did you mean --blocks"),
        ("run --duration 5m", "tare run has no option --duration", "did you mean --time?"),
        ("benchmark", "there is no command 'benchmark'", "did you mean tare run?"),
        ("repport x", "there is no command 'repport'", "did you mean report"),
        ("list workload", "tare list cannot be 'workload'", "did you mean workloads?"),
        ("export x.tare --format xlsx", "--format cannot be 'xlsx'", "one of csv, jsonl"),
        ("report --format json x.tare", "tare report has no option --format", "did you mean --json"),
        ("export x.tare --format csv --table figures", "--table cannot be 'figures'", "one of results, overheads"),
        ("run -w nosuch", "there is no workload 'nosuch'", "tare list workloads has all"),
        ("run -p wasm", "there is no platform 'wasm'", "tare list platforms has all"),
        ("run -w postgres", "there is no workload 'postgres'", "did you mean postgresql or postgresql-select or"),
        ("diff -p docker a b", "--platform compares two platforms of one campaign", "tare diff FILE -p docker -p"),
        ("capacity --budget=-18", "--budget -18 has room for no instance", "give some memory: --budget 2G"),
        ("capacity --budget 0M", "--budget 0M has room for no instance", "give some memory: --budget 2G"),
        ("report", "missing argument 'FILE'", "tare report --help"),
        ("image export", "missing argument", "tare image export --help"),
    ],
)
def test_a_mistake_is_told_with_what_to_type(typed, what, fix, commands, tmp_path):
    done = commands.run(*typed.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    said = done.stderr.splitlines()
    assert said[0].startswith(f"error: {what}")
    assert said[1].startswith(f"fix: {fix}")
    assert len(said) == 2


def test_a_command_line_without_a_command_says_so_below_the_help(commands, tmp_path):
    done = commands.run(cwd=tmp_path)
    assert (done.returncode, "Usage: tare" in done.stdout) == (2, True)
    assert done.stderr.splitlines() == [
        "error: a command is missing",
        "fix: tare quick, tare doctor or tare COMMAND --help",
    ]
