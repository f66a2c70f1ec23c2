"""Commands as a user types them: how they are split, scanned and named, and what is refused."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tare.errors import UsageError
from tare.model import UserProgram
from tare.safe_text import clean
from tare.workloads.own import commands
from tare.workloads.own.commands import Typed, programs

COMMON = UserProgram(argv=(), warmup=2, time_limit_s=5.0)


def _named(**typed):
    return [(name, program.argv) for name, program in programs(Typed(**typed), COMMON)]


def test_words_behind_the_dashes_stay_as_they_are():
    words = ["./job.py", "a b", "{x}", "${y}", "", "--", "n\nm"]
    [(name, program)] = programs(Typed(argv=words), COMMON)
    assert program == dataclasses.replace(COMMON, argv=tuple(words))
    assert name == "job.py 'a b' '{x}' '${y}' '' -- 'n m'"


def test_a_text_is_split_as_a_shell_splits_words():
    assert _named(texts=["sh -c 'a b; c' \"d e\" f\\ g"]) == [
        ("sh -c 'a b; c' 'd e' 'f g'", ("sh", "-c", "a b; c", "d e", "f g"))
    ]


@pytest.mark.parametrize("text", ["a | b", "a && b", "make > log", "a 2>&1", "a & b"])
def test_what_only_a_shell_understands_asks_for_one(text):
    with pytest.raises(UsageError, match="only a shell understands") as refused:
        _named(texts=[text])
    assert "--shell" in refused.value.fix
    assert _named(texts=[text], shell=True) == [(text, ("/bin/sh", "-c", text))]


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"texts": ["a 'b"]}, "cannot be split"),
        ({"texts": [""]}, "a command is empty"),
        ({"texts": ["  "], "shell": True}, "a command is empty"),
        ({"argv": [""]}, "no program"),
        ({"argv": ["a"], "names": ["b", "c"]}, "2 times, for 1 commands"),
        ({"argv": ["a"], "names": [" "]}, "is no name"),
        ({"argv": ["a"], "names": ["two\nlines"]}, "is no name"),
        ({"argv": ["a"], "names": ["\x1b[2J"]}, "is no name"),
        ({"argv": ["a"], "names": ["::error::x"]}, "is no name"),
        ({"argv": ["a"], "names": ["x" * 81]}, "is no name"),
        ({"argv": ["a"], "env": ["NAME"]}, "no variable"),
        ({"argv": ["a"], "env": ["A B=1"]}, "no variable"),
        ({"argv": ["a"], "scans": ["n"]}, "no parameter with values"),
        ({"argv": ["{n}"], "scans": ["n="]}, "an empty value"),
        ({"argv": ["{n}"], "scans": ["n=1,1"]}, "one twice"),
        ({"argv": ["{n}"], "scans": ["n=1:8:0"]}, "by no step"),
        ({"argv": ["{n}"], "scans": ["n=1:8:-1"]}, "by no step"),
        ({"argv": ["{n}"], "scans": ["n=1:1000000000:0.000001"]}, "has 999999999000001 values"),
        ({"argv": ["{n}"], "scans": ["n=1", "n=2"]}, "names a parameter twice"),
        ({"argv": ["a"], "scans": ["n=1,2"]}, r"no command has \{n\}"),
        ({"argv": ["a\0b"]}, "no text"),
        ({"argv": ["a\udcff"]}, "no text"),
        ({"argv": ["a"] * 241}, "241 words"),
        ({"argv": ["a" * (1 << 18)]}, "256 KiB"),
        ({"argv": ["a"], "prepare": "b 'c"}, "cannot be split"),
    ],
)
def test_what_cannot_be_run_is_refused(typed, message):
    with pytest.raises(UsageError, match=message):
        _named(**typed)


@pytest.mark.parametrize(
    ("scan", "values"),
    [
        ("n=1,2,4", ["1", "2", "4"]),
        ("n=1:4:1", ["1", "2", "3", "4"]),
        ("n=1:4", ["1", "2", "3", "4"]),
        ("n=1:8:3", ["1", "4", "7"]),
        ("n=0.5:1.5:0.5", ["0.5", "1.0", "1.5"]),
        ("n=3:1:-1", ["3", "2", "1"]),
        ("n=a:b", ["a:b"]),
        ("n=fast,very slow", ["fast", "very slow"]),
    ],
)
def test_a_parameter_takes_each_of_its_values(scan, values):
    assert [argv for _, argv in _named(argv=["run", "--n={n}"], scans=[scan])] == [
        ("run", f"--n={value}") for value in values
    ]


def test_parameters_are_filled_in_everywhere_and_other_braces_stay():
    typed = Typed(
        argv=["a", "{n}{m}", "{x}", "{{n}}"],
        scans=["n=1,2", "m={n},y"],
        prepare="mk {n}",
        cleanup="rm {m}",
        env=["N={n}"],
    )
    made = [program for _, program in programs(typed, COMMON)]
    assert [program.argv for program in made] == [
        ("a", "1{n}", "{x}", "{1}"), ("a", "1y", "{x}", "{1}"), ("a", "2{n}", "{x}", "{2}"), ("a", "2y", "{x}", "{2}"),
    ]  # fmt: skip
    assert (made[1].prepare, made[1].cleanup, made[1].env) == (("mk", "1"), ("rm", "y"), {"N": "1"})


def test_commands_are_told_apart_by_name():
    long = "sysbench cpu --cpu-max-prime=20000 --time=0 --threads={n}"
    assert [name for name, _ in _named(texts=["a", "a", "b"])] == ["a", "a #2", "b"]
    assert [name for name, _ in _named(texts=["a", "b"], names=["first"])] == ["first", "b"]
    assert [name for name, _ in _named(texts=["a {n}"], names=["job"], scans=["n=1,2"])] == ["job (n=1)", "job (n=2)"]
    assert [name for name, _ in _named(texts=["a {n}"], names=["job {n}"], scans=["n=1,2"])] == ["job 1", "job 2"]
    assert [name for name, _ in _named(texts=[long], scans=["n=1,2"])] == [
        "sysbench cpu --cpu-max-prime=20000 --ti… (n=1)",
        "sysbench cpu --cpu-max-prime=20000 --ti… (n=2)",
    ]


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_a_name_is_one_clean_line_whatever_is_in_the_command(words):
    try:
        [(name, _)] = programs(Typed(argv=words), COMMON)
    except UsageError:
        return
    assert name
    assert name == clean(name)
    assert len(name.splitlines()) == 1
    assert len(name) <= commands.MAX_NAME
