"""Bonnie++: its commands, the figures of captured runs, and the refusals."""

import pytest

from tare.errors import HostError, ParseError
from tare.testing import changed_digits, changed_lines
from tare.workloads import workload_contract, workload_registry
from tare.workloads.base import Surroundings
from workloads import test_mutations as damage
from workloads.captures import captured, completed, text

GIB = 2**30
ROOMY = Surroundings(GIB, 1, 100 * GIB, None, None, None)
#: What the captures of a small file were made with.
SMALL = {"size_mib": 128, "char_mib": 1}
GOOD = [("bonnie", {}), ("bonnie-gvisor", {"size_mib": 512, "char_mib": 1}), ("bonnie-short", SMALL)]
EACH = [pytest.param("bonnie", params, [capture], 0, id=capture) for capture, params in GOOD]


def plan(name, around=ROOMY, profile="quick", **params):
    workload = workload_registry.get(name)
    return workload.plan({**workload.profiles[profile], **params}, around)


def parse(name, params, *results):
    workload = workload_registry.get(name)
    return workload.parse({**workload.profiles["quick"], **params}, results)


def argv(size, char=3):
    return f"bonnie++ -d . -s {size}:8192:8192:5 -r {size // 2} -f{char} -n 0 -u root -m tare -z 1580230295"


def test_a_file_of_twice_the_memory():
    assert [" ".join(command.argv) for command in plan("bonnie", profile="full").measures] == [argv(2048)]
    small = Surroundings(GIB // 4, 1, GIB, None, None, None)
    assert plan("bonnie", small, "full").measures[0].argv == tuple(argv(512).split())
    assert " ".join(plan("bonnie").measures[0].argv) == argv(1024)


def test_a_run_an_iteration():
    assert [" ".join(command.argv) for command in plan("bonnie-trajectory").measures] == 2 * [argv(512, 1)]
    assert len(plan("bonnie-trajectory", profile="full").measures) == 20


@pytest.mark.parametrize("name", ["bonnie", "bonnie-trajectory"])
def test_a_disk_that_is_too_small_for_twice_the_memory_is_refused(name):
    with pytest.raises(
        HostError, match="a file of 2048 MiB needs 2560 MiB free on the data volume, which has 2559"
    ) as no:
        plan(name, Surroundings(GIB, 1, 2560 * 2**20 - 1, None, None, None), "full")
    assert "less memory (--memory)" in no.value.fix


@pytest.mark.parametrize(("capture", "params"), GOOD)
def test_the_figures_are_the_lines(capture, params):
    outcome = parse("bonnie", params, captured(capture))
    cells = text(capture).splitlines()[-1].split(",")[9:21:2]
    order = ("char-write", "block-write", "rewrite", "char-read", "block-read", "seeks")
    units = {metric.name: 1024 if metric.unit == "MiB/s" else 1 for metric in workload_registry.get("bonnie").metrics}
    assert outcome.samples == {
        phase: float(cell) / units[phase] for phase, cell in zip(order, cells, strict=True) if cell != "+++++"
    }
    size, char = (({"size_mib": 1024, "char_mib": 3} | params)[key] for key in ("size_mib", "char_mib"))
    assert outcome.work == 2 * char + 4 * size + 64


def test_what_took_less_than_half_a_second_has_no_figure():
    assert "+++++" in text("bonnie-short")
    outcome = parse("bonnie", SMALL, captured("bonnie-short"))
    assert 0 < len(outcome.samples) < 6
    assert "block-read" not in outcome.samples


def test_a_trial_whose_blocks_were_written_too_fast_says_so_and_what_helps():
    bonnie = workload_registry.get("bonnie")
    outcome = parse("bonnie", SMALL, captured("bonnie-short"))
    with pytest.raises(ParseError, match=r"no speed of what took less than half a second.*--profile full"):
        workload_contract.checked(bonnie, outcome.as_samples())


def test_a_trajectory_is_a_figure_a_run_and_its_time():
    outcome = parse("bonnie-trajectory", SMALL, captured("bonnie-short"), captured("bonnie-short"))
    once = parse("bonnie", SMALL, captured("bonnie-short"))
    assert outcome.samples == {}
    assert outcome.work == 2 * once.work
    assert list(outcome.series) == [metric.name for metric in workload_registry.get("bonnie-trajectory").metrics]
    for name, values in outcome.series.items():
        assert values == ([1.0, 1.0] if name == "iteration" else 2 * [once.samples.get(name)])


@pytest.mark.parametrize(
    ("params", "result", "message"),
    [
        (SMALL, captured("bonnie-killed", signal=9), "killed by signal 9: .*Writing a byte at a time"),
        (SMALL, captured("bonnie-killed"), "something else than its table and line of figures: no output"),
        (SMALL, captured("bonnie-wrong-option", code=1), "invalid option -- 'k'"),
        (SMALL, captured("bonnie-no-user", code=1), 'You must use the "-u" switch when running as root'),
        (SMALL, captured("bonnie-too-small", code=1), "File size should be double RAM for good results"),
        (SMALL, captured("bonnie-no-space", code=1), "No space left on device|Can't write block"),
        ({}, captured("bonnie-short"), "a file of 128 MiB, 1024 were asked for"),
        (SMALL, completed(text("bonnie-short").partition("\n1.98")[0]), "something else than its table and line"),
        (SMALL, completed(text("bonnie-short").replace("tare   ", "rate   ")), "one run in its table, another in its"),
        (SMALL, completed(text("bonnie-short").replace("1580230295", "7")), "something else than was asked: .*seed=7"),
    ],
)
def test_other_runs_are_refused_and_shown(params, result, message):
    with pytest.raises(ParseError, match=message):
        parse("bonnie", params, result)


def test_runs_that_are_missing_are_refused():
    with pytest.raises(ParseError, match=r"2 runs of bonnie\+\+ were planned, 1 results came"):
        parse("bonnie-trajectory", {}, captured("bonnie-short"))


@pytest.mark.parametrize(("name", "params", "captures", "at"), EACH)
def test_cut_off_anywhere(name, params, captures, at):
    damage.test_cut_off_anywhere(name, params, captures, at)


@pytest.mark.parametrize(("name", "params", "captures", "at"), EACH)
def test_a_line_that_is_missing_or_twice_is_refused(name, params, captures, at):
    whole = text(captures[at])
    each_twice = (line for line in whole.splitlines() for _ in range(2))  # it is left out, and doubled
    for line, (how, damaged) in zip(each_twice, changed_lines(whole), strict=True):
        assert (damage.outcome_of(name, params, captures, at, damaged) is None) == bool(line.strip()), how


@pytest.mark.parametrize(("name", "params", "captures", "at"), EACH)
def test_one_other_digit_is_seen_or_below_the_tables_rounding(name, params, captures, at):
    good = damage.outcome_of(name, params, captures)
    for how, damaged in changed_digits(text(captures[at])):
        outcome = damage.outcome_of(name, params, captures, at, damaged)
        if outcome is not None:
            # The table has two digits of a GiB: 1.1 is anything between 1.05 and 1.15.
            assert outcome.samples == pytest.approx(good.samples, rel=0.1), how
            assert outcome.work == good.work, how
