from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

import pytest

from refused import refused
from tare.errors import UsageError
from tare.features.studies import literature
from tare.features.studies.analysis.profile import Feature, checked, evaluate, load, parse, points
from tare.model import Direction
from tare.workloads.workload_registry import all_workloads

GOOD = """\
title = "mine"
priorities = { must = 3.0, nice = 1.0 }

[[feature]]
name = "speed"
workload = "sysbench-cpu"
metric = "events-per-second"
direction = "higher"
priority = "must"
thresholds = [0.6, 0.7, 0.8, 0.9]
least = 2

[[feature]]
name = "delay"
direction = "lower"
priority = "nice"
thresholds = [1.4, 1.1]
"""
SPEED = Feature(name="s", priority="p", direction=Direction.HIGHER, thresholds=[0.6, 0.7, 0.8, 0.9])
DELAY = Feature(name="d", priority="p", direction=Direction.LOWER, thresholds=[1.4, 1.3, 1.2, 1.1])


@pytest.mark.parametrize(
    ("feature", "figure", "expected"),
    [
        (SPEED, 59.9, 0),
        (SPEED, 60.0, 1),
        (SPEED, 79.9, 2),
        (SPEED, 80.0, 3),
        (SPEED, 300.0, 4),
        (DELAY, 140.1, 0),
        (DELAY, 140.0, 1),
        (DELAY, 110.0, 4),
        (DELAY, 1.0, 4),
    ],
)
def test_points_at_and_around_every_threshold(feature: Feature, figure: float, expected: int) -> None:
    assert points(feature, figure, 100.0) == expected


def test_a_threshold_is_reached_in_spite_of_the_last_bit() -> None:
    assert 0.567 / 0.81 < 0.7
    assert points(SPEED, 0.567, 0.81) == 2


def test_a_reference_takes_the_place_of_the_baseline() -> None:
    boot = Feature(name="b", priority="p", direction=Direction.LOWER, thresholds=[0.4, 0.1], reference=1000.0)
    assert [points(boot, figure, 3.0) for figure in (401.0, 399.0, 99.0)] == [0, 1, 2]
    assert points(boot, 99.0, None) == 2


def test_sheets_have_points_sums_weights_and_what_is_not_acceptable() -> None:
    profile = parse(GOOD, "mine")
    native = {"speed": 100.0, "delay": 10.0}
    figures = {"native": native, "a": {"speed": 95.0, "delay": 13.0}, "b": {"speed": 65.0}, "c": {}}
    a, b, c = evaluate(profile, figures, "native")
    assert (a.platform, a.points, a.sums) == ("a", {"speed": 4, "delay": 1}, {"must": 4, "nice": 1})
    assert (a.total, a.weighted, a.attainable, a.unacceptable) == (5, 13.0, 6, ())
    assert (b.points, b.total, b.attainable, b.unacceptable) == ({"speed": 1, "delay": None}, 1, 4, ("speed",))
    assert (c.points, c.total, c.attainable, c.unacceptable) == ({"speed": None, "delay": None}, 0, 0, ())


def test_points_have_the_range_that_the_ends_of_their_figures_reach() -> None:
    figures = {"native": {"speed": 100.0, "delay": 10.0}, "a": {"speed": 85.0, "delay": 11.5}}
    ends = {"native": {}, "a": {"speed": (55.0, 120.0), "delay": (11.4, 11.6)}}
    [sure] = evaluate(parse(GOOD, "mine"), figures, "native")
    [doubtful] = evaluate(parse(GOOD, "mine"), figures, "native", ends)
    assert (sure.ranges, sure.total_range) == ({}, (sure.total, sure.total))
    assert doubtful.points == sure.points
    assert doubtful.ranges["speed"] == (0, 4)
    fewest, most = doubtful.ranges["delay"]
    assert fewest == most == doubtful.points["delay"]
    assert doubtful.total_range == (fewest, 4 + most)


@pytest.mark.parametrize(
    ("figures", "why"),
    [
        ({"native": {"speed": 0.0}, "a": {"speed": 1.0}}, "speed: the baseline's figure is 0"),
        ({"native": {"speed": 1.0}, "a": {"speed": 0.0}}, "speed: the figure is 0"),
        ({"native": {"speed": 1.0}, "a": {"speed": float("nan")}}, "speed: the figure is nan"),
        ({"native": {}, "a": {"speed": 1.0}}, "speed: the baseline has no figure"),
        ({"native": {"speed": 1.0}, "a": {"sped": 1.0}}, "a: the profile has no feature 'sped'"),
    ],
)
def test_no_points_where_there_is_no_answer(figures, why: str) -> None:
    with refused(why):
        evaluate(parse(GOOD, "mine"), figures, "native")


def test_the_shipped_profile_names_workloads_and_metrics_that_exist() -> None:
    metrics = {
        workload.name: {metric.name: metric for metric in workload.all_metrics} for workload in all_workloads().values()
    }
    for workload in all_workloads().values():
        if workload.level is not None:
            metrics[workload.level.curve] = metrics[workload.name]
    for feature in load().feature:
        assert feature.workloads
        for name in feature.workloads:
            assert metrics[name][feature.metric].direction is feature.direction


def test_the_shipped_profile_has_all_features_of_the_study() -> None:
    shipped = {feature.name: (feature.direction, feature.priority, feature.thresholds) for feature in load().feature}
    study = checked(literature.load("karna-2021").profile or {}, "the study's")
    assert len(shipped) == 12
    assert shipped == {
        feature.name: (feature.direction, feature.priority, feature.thresholds) for feature in study.feature
    }


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('title = "mine"', 'title = "mine"\nweight = 2', "mine: weight: there is no such key"),
        ("least = 2", "leest = 2", "mine: feature.1.leest: there is no such key"),
        ('name = "delay"\n', "", "mine: feature.2.name: Field required"),
        ('name = "delay"', 'name = ""', "mine: feature.2.name: "),
        ('name = "delay"', 'name = "speed"', "mine: there are two features 'speed'"),
        ("[1.4, 1.1]", "[1.1, 1.4]", "feature.2: thresholds must fall where lower is better: 1.4 comes after 1.1"),
        ("0.7, 0.8", "0.8, 0.7", "feature.1: thresholds must rise where higher is better: 0.7 comes after 0.8"),
        ("0.7, 0.8", "0.8, 0.8", "feature.1: thresholds must rise where higher is better: 0.8 comes after 0.8"),
        ("[1.4, 1.1]", "[]", "mine: feature.2.thresholds: "),
        ("[1.4, 1.1]", "[1.4, -1.1]", "mine: feature.2.thresholds.2: "),
        ("[1.4, 1.1]", "[1.4, nan]", "mine: feature.2.thresholds.2: "),
        ("[1.4, 1.1]", '["140 %"]', "mine: feature.2.thresholds.1: "),
        ('"lower"', '"less"', "mine: feature.2.direction: Input should be 'higher' or 'lower'"),
        ('priority = "nice"', 'priority = "high"', "delay: priority 'high' is none of [priorities]: must, nice"),
        ("nice = 1.0", "nice = 0.0", "mine: priorities.nice: "),
        ("least = 2", "least = 5", "feature.1: least is 5, there are only 4 points to get"),
        ("least = 2", "least = 0", "mine: feature.1.least: "),
        ("[[feature]]", "[[features]]", "mine: "),
        ("title", "title =", "mine is not TOML: "),
    ],
)
def test_what_is_wrong_with_a_profile_is_said_in_one_line(old: str, new: str, why: str) -> None:
    assert old in GOOD
    with pytest.raises(UsageError) as caught:
        parse(GOOD.replace(old, new), "mine")
    assert why in caught.value.what
    assert "\n" not in str(caught.value)
    assert caught.value.fix


def test_a_profile_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD)
    assert load(file) == parse(GOOD, "mine")


def test_the_shipped_profile_says_what_every_key_is_for() -> None:
    text = resources.files("tare.features.studies.analysis").joinpath("profile.toml").read_text()
    for key in {*Feature.model_fields, *tomllib.loads(text)} - {"title"}:
        assert key in text
