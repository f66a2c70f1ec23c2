"""What third parties run in their tests finds a sloppy parser, and is content with the strict ones of the tree."""

import pytest

from tare.errors import ParseError
from tare.testing import Capture, damage, junk, outcome, problems
from tare.workloads import workload_registry
from tare.workloads.base import Outcome
from tare.workloads.output import text_of
from workloads.captures import outputs_of
from workloads.test_mutations import GOOD, params_of

CAPTURE = [Capture(stdout="ran 1500 turns\nrate 300\n")]


def _workload(parse):
    primes = workload_registry.get("sysbench-cpu")
    return type("Tried", (type(primes),), {"parse": lambda self, params, results: parse(text_of(results[0]))})()


@pytest.mark.parametrize(("name", "params", "captures"), GOOD[:3], ids=str)
def test_strict_parsers_give_no_wrong_figure(name, params, captures):
    workload = workload_registry.get(name)
    all_params, outputs = params_of(name, params), outputs_of(captures)
    assert list(damage(workload, all_params, outputs)) == []
    assert junk(workload, all_params, outputs, "nothing of it") is None
    assert problems(workload) == []


def test_a_sloppy_parser_is_told_how_it_can_be_fooled():
    def last_number(output):
        try:
            return Outcome({"events-per-second": float(output.split()[-1])}, work=1)
        except (IndexError, ValueError) as error:
            raise ParseError("no number") from error

    damages = list(damage(_workload(last_number), {}, CAPTURE))
    hows = {damaged.how.removeprefix("stdout of measure 0: ") for damaged in damages}
    assert {"cut off after 22 characters", "character 20 is 9"} <= hows
    assert all(damaged.outcome.samples != {"events-per-second": 300.0} for damaged in damages)


def test_what_breaks_the_contract_of_figures_is_refused():
    assert outcome(_workload(lambda output: Outcome({"other": 1.0}, work=1)), {}, CAPTURE) is None
    assert outcome(_workload(lambda output: Outcome({"events-per-second": 1.0}, work=0)), {}, CAPTURE) is None
    with pytest.raises(AssertionError, match="the whole output is refused"):
        list(damage(_workload(lambda output: Outcome({}, work=1)), {}, CAPTURE))


def test_digits_without_a_check_can_be_left_out():
    def exact(output):
        lines = output.split("\n")
        if len(lines) != 3 or not lines[1].startswith("rate ") or lines[0] != "ran 1500 turns" or lines[2]:
            raise ParseError("strange")
        if not lines[1].removeprefix("rate ").isdecimal():
            raise ParseError("strange")
        return Outcome({"events-per-second": float(lines[1].removeprefix("rate "))}, work=1)

    assert list(damage(_workload(exact), {}, CAPTURE, digits=False)) == []
    assert list(damage(_workload(exact), {}, CAPTURE)) != []
