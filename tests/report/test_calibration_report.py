"""What a calibration shows: figures, what does not hold in words, and the line that `tare run` begins with."""

import io
import json
import math

import pytest
from rich.console import Console

from tare.analysis.calibration import Injected, Rate, Trust
from tare.estimates.dependence import Dependence
from tare.estimates.intervals import Interval
from tare.report.campaign.calibration_views import LATEST_CALIBRATION, condition, injection, line, render
from tare.report.model.calibration_models import CalibrationReport

MACHINE = "2 x Invented 9000, Linux 6.1.0"


def _trust(**otherwise):
    facts = {
        "metric": "rate",
        "margin": 0.01,
        "false_alarms": Rate.of_counts(0, 200),
        "covered": Rate.of_counts(190, 200),
        "equivalent": Rate.of_counts(100, 200),
        "invalid": 0,
        "bias": Interval(0.0002, -0.0006, 0.001),
        "half_width": 0.004,
        "block_sd": 0.006,
        "seconds": 2.0,
    }
    return Trust(**(facts | otherwise))


def _report(trusts=(), injections=()):
    return CalibrationReport(
        machine=MACHINE,
        at=1_763_712_000.0,
        workload="primes",
        conditions=[condition("quiet", trusted) for trusted in trusts],
        injected=[injection(addition) for addition in injections],
    )


def _shown(report):
    out = io.StringIO()
    Console(width=160, file=out).print(render(report))
    return out.getvalue()


def test_blocks_that_are_alike_are_a_complaint_and_independent_ones_a_figure():
    fine, alike = Dependence(3, 670, -0.011, -0.0015, 0.022, 0.66), Dependence(3, 670, 0.2, -0.0015, 0.022, 0.001)
    text = _shown(_report([_trust(dependence=fine), _trust(metric="cpu-cost", dependence=alike)]))
    lines = [line for line in text.splitlines() if "autocorrelation" in line]
    assert lines[0].startswith("quiet, rate: lag-1 autocorrelation of the blocks")
    assert lines[1].startswith("✗ quiet, cpu-cost: lag-1 autocorrelation of the blocks +0.20, +0.16 to +0.24")
    assert "autocorrelation" not in _shown(_report([_trust()]))


def test_an_instrument_that_holds_is_shown_without_a_complaint():
    text = _shown(_report([_trust()], [Injected("docker", "rate", 0.01, Interval(0.0103, 0.0095, 0.0111), 25)]))
    assert "0 of 200 (0 %, 0 % to 1.8 %)" in text
    assert "190 of 200 (95 %" in text
    assert "+0.03 points" in text
    assert "✗" not in text


@pytest.mark.parametrize(
    ("otherwise", "sentence"),
    [
        ({"false_alarms": Rate.of_counts(20, 200)}, "more than 1 % false alarms"),
        ({"covered": Rate.of_counts(120, 200)}, "hold zero in 60 %"),
        ({"covered": Rate.of_counts(2000, 2000)}, "hold zero in 100 %"),
        ({"bias": Interval(-0.004, -0.006, -0.002)}, "the mean of no difference is \N{MINUS SIGN}0.400 ± 0.20 %"),
    ],
)
def test_what_does_not_hold_is_said(otherwise, sentence):
    [line] = [line for line in _shown(_report([_trust(**otherwise)])).splitlines() if line.startswith("✗ quiet, rate:")]
    assert sentence in line


def test_a_mean_that_is_not_known_well_enough_is_not_called_off():
    text = _shown(_report([_trust(bias=Interval(-0.004, -0.009, 0.001))]))
    assert "\N{MINUS SIGN}0.400 ± 0.50 %" in text
    assert "✗" not in text


def test_longer_comparisons_that_prove_equality_are_shown_by_length_where_there_are_some():
    longer = [(30.0, _trust(equivalent=Rate.of_counts(32, 39))), (180.0, _trust(equivalent=Rate.of_counts(5, 5)))]
    quiet = condition("quiet", _trust(), [*longer, (30.0, _trust(metric="other"))])
    assert [proof.seconds for proof in quiet.proofs] == [30.0]
    text = _shown(_report([_trust()]).model_copy(update={"conditions": [quiet]}))
    assert "32 of 39 (82 %" in text
    assert text.count("too few") == 2


def test_too_few_comparisons_are_not_blamed_for_what_they_cannot_show():
    few = _trust(false_alarms=Rate.of_counts(0, 6), covered=Rate.of_counts(6, 6))
    assert "✗" not in _shown(_report([few]))


def test_added_work_that_is_missed_or_looks_like_other_work_is_said():
    missed = Injected("docker", "rate", 0.005, Interval(0.004, -0.001, 0.009), 25)
    wrong = Injected("native", "rate", 0.01, Interval(0.005, 0.004, 0.006), 25)
    text = _shown(_report([], [missed, wrong]))
    assert "docker, rate: 0.5 % more work was not found" in text
    assert "native, rate: 1 % more work looks like 0.5 %" in text
    assert text.count("✗") == 2


def test_a_time_too_short_for_two_blocks_resolves_nothing():
    slow = condition("quiet", _trust(seconds=40.0))
    assert slow.resolves[0].smallest_effect is None
    assert not math.isnan(slow.resolves[1].smallest_effect)


def test_the_line_is_of_the_widest_figure_of_this_very_machine(tmp_path):
    assert line(tmp_path, MACHINE).startswith("not calibrated")
    (tmp_path / LATEST_CALIBRATION).write_text("{}")
    assert "cannot be read" in line(tmp_path, MACHINE)
    report = _report([_trust(), _trust(metric="cpu-cost", block_sd=0.012)])
    (tmp_path / LATEST_CALIBRATION).write_text(report.model_dump_json(by_alias=True))
    assert line(tmp_path, "another").startswith("calibrated on another processor or kernel")
    sentence = line(tmp_path, MACHINE)
    newer = json.loads(report.model_dump_json(by_alias=True)) | {"weather": "sun"}
    (tmp_path / LATEST_CALIBRATION).write_text(json.dumps(newer))
    assert line(tmp_path, MACHINE) == sentence, "a newer tare's has a field more, and is one all the same"
    widest = report.conditions[1].resolves[0].smallest_effect
    assert sentence.startswith("calibrated 2025-11-21, quiet: primes of one platform tells from none ")
    assert f"{100 * widest:.2f}".rstrip("0") + " % in 1 min 00 s" in sentence
