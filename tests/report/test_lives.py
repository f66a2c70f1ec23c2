"""The section "Life of an instance": bars to scale, and the table."""

import io
from types import SimpleNamespace

import polars as pl
import pytest
from markupsafe import escape
from rich.cells import cell_len
from rich.console import Console, Group

from tare.features.life import words
from tare.features.life.views import draw, failures_of, lives, render
from tare.model import FAILURES, Family, Status
from tare.report.campaign import curve_plot
from tare.report.model import Report

#: Means in ms by platform: create, start, execute, stop, remove; and of exec.
LIVES = {
    "native": ((1, 3, 2, 3, 8), 2.4),
    "runc": ((50, 7, 27, 6, 34), 27),
    "docker": ((29, 223, 64, 117, 24), 67),
}
NAMES = list(LIVES)


def _result(report, workload, metric, means, sd=5.0):
    of = report.results[0]
    platforms = [
        of.platforms[0].model_copy(update={"platform": name, "mean": mean, "sd": sd, "n_blocks": 12})
        for name, mean in means.items()
    ]
    facts = {"workload": workload, "metric": metric, "family": Family.LIFE, "unit": "ms", "platforms": platforms}
    return of.model_copy(update=facts)


@pytest.fixture
def lived(report: Report) -> Report:
    parts = {metric: {name: parts[at] for name, (parts, _) in LIVES.items()} for at, metric in enumerate(words.PARTS)}
    results = [
        _result(report, "whole-life", "whole", {name: sum(parts) for name, (parts, _) in LIVES.items()}),
        _result(report, "whole-life", "cpu", {name: sum(parts) / 2 for name, (parts, _) in LIVES.items()}),
        *(_result(report, "whole-life", metric, means) for metric, means in parts.items()),
        _result(report, "exec", "return", {name: ms for name, (_, ms) in LIVES.items()}),
    ]
    facts = [report.platforms[0].model_copy(update={"name": name}) for name in LIVES]
    return report.model_copy(update={"results": results, "platforms": facts, "baseline": "native"})


def _printed(lived, width):
    return _printed_of(lives(lived.results, NAMES), width)


def _printed_of(shown, width):
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(Group(*render(shown, width)))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_campaign_without_lives_has_no_section(report: Report) -> None:
    assert lives(report.results, NAMES) is None


def test_the_parts_of_a_bar_are_as_long_as_their_share(lived: Report) -> None:
    lines = _printed(lived, 120)
    [docker] = [line for line in lines if line.startswith("docker ") and "█" in line]
    assert docker.count("█") / docker.count("▒") == pytest.approx(223 / 64, abs=0.5)
    assert docker.endswith("457 ±3 ms")


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits_the_width_and_has_every_figure(lived: Report, width: int) -> None:
    lines = _printed(lived, width)
    assert max(map(cell_len, lines)) <= width
    text = "\n".join(lines)
    assert all(head in text for head in ("whole", "first command", "remove", "exec"))
    assert "223 ±3" in text


def test_sentences_say_whole_lives_and_commands(lived: Report) -> None:
    assert _printed(lived, 120)[1:3] == [
        "docker: a one-shot command costs 457 ms and 228 ms of CPU from nothing to nothing; runc 124 and 62; native 17"
        " and 8.",
        "One more command in a running instance, in ms: docker 67, runc 27, native 2.4.",
    ]


def test_failures_are_sentences_with_their_reasons(lived: Report) -> None:
    reasons = {"unable to freeze 0123456789ab": 2, "<b>": 1}
    failures = {("pause", "docker"): reasons, ("fork", "runc"): {"no room": 1}}
    shown = lives(lived.results, NAMES, failures)
    assert shown is not None
    assert shown.failed == (
        "docker, pause: 3 pauses failed: unable to freeze 0123456789ab (2); <b> (1).",
        "runc, fork: 1 copy failed: no room.",
    )
    out = io.StringIO()
    Console(file=out, width=120, color_system=None).print(Group(*render(shown, 120)))
    assert shown.failed[0] in out.getvalue()
    from tare.features.life import section  # noqa: PLC0415 (it takes long to load)

    assert "&lt;b&gt; (1)" in section.page(shown, "c1-life")


def test_failures_that_differ_in_ids_alone_are_alike() -> None:
    lines = "`pause tare-0123abcdx7` ended\n`pause tare-4567abcdx8` ended\nno room"
    columns = {"block": [0, 1], "workload": ["pause", "exec"], "platform": ["runc"] * 2, "replica": [1, 1]}
    trials = pl.DataFrame({**columns, "status": [Status.OK.value] * 2})
    store = SimpleNamespace(outputs=lambda _: {FAILURES: SimpleNamespace(data=lines.encode())})
    assert failures_of(store, trials) == {("pause", "runc"): {"`pause tare-0123abcdx7` ended": 2, "no room": 1}}


def test_the_drawing_has_each_part_with_its_interval_to_scale(lived: Report) -> None:
    drawn = str(escape(draw(lives(lived.results, NAMES))))
    assert "docker, start: 223 ±3 ms" in drawn
    assert "docker, exec: 67.0 ±3.2 ms" in drawn
    widths = {
        title: float(part.split('width="')[1].split('"')[0])
        for part in drawn.split("<rect ")[1:]
        for title in [part.split("<title>")[1].split(":")[0]]
    }
    assert widths["docker, start"] / widths["docker, stop"] == pytest.approx(223 / 117, rel=0.02)


def test_a_bar_that_would_flatten_the_others_is_cut_and_says_so(lived: Report) -> None:
    of_whole, *others = lived.results
    far = of_whole.platforms[0].model_copy(update={"platform": "docker", "mean": 90_000.0})
    results = [of_whole.model_copy(update={"platforms": [*of_whole.platforms[:2], far]}), *others]
    shown = lives(results, NAMES)
    assert shown is not None
    assert shown.limit == pytest.approx(4 * 127, rel=0.01)
    assert f"{words.CUT} 90,000 ±3 ms" in str(escape(draw(shown)))


def test_the_page_has_the_section_where_lives_were_measured(lived: Report) -> None:
    from tare.features.life import section  # noqa: PLC0415 (it takes long to load)

    drawn = section.page(lives(lived.results, NAMES), "c1-life")
    assert f"<h2>{words.TITLE}</h2>" in drawn
    assert "<td>223 ±3</td>" in drawn
    assert words.LACKING in drawn
    without_exec = section.page(lives(lived.results[:-1], NAMES), "c1-life")
    assert words.LACKING not in without_exec


def test_bursts_have_the_columns_of_the_largest_that_was_tried(lived: Report) -> None:
    p50s = {1: 10, 2: 15, 4: 30}
    of = [
        _result(lived, "burst", f"{kind}-{count}", {"runc": ms})
        for count, ms in p50s.items()
        for kind in ("ok", "p50", "total")
    ]
    untried = _result(lived, "burst", "ok-8", {"runc": 0})
    untried = untried.model_copy(update={"platforms": [untried.platforms[0].model_copy(update={"mean": None})]})
    shown = lives([*lived.results, *of, untried], NAMES)
    assert shown is not None
    [burst] = shown.bursts
    assert burst.heads == ("p50 in ms of 1", "2", "4", "all of 4", "ok, % of 4")
    assert burst.rows["runc"] == ("10.0 ±3.2", "15.0 ±3.2", "30.0 ±3.2", "30.0 ±3.2", "30.0 ±3.2")


def test_copies_of_an_instance_have_a_table_and_curves(lived: Report) -> None:
    figures = {"ok": 100, "each": 240, "memory": 138, "shared": 49}
    of = [
        _result(lived, "fork", f"{kind}-{count}", {"gvisor": value + count}, sd=0)
        for kind, value in figures.items()
        for count in (1, 4)
    ]
    shown = lives([*lived.results, *of], NAMES)
    assert shown is not None
    [copies] = shown.bursts
    assert copies.rows["gvisor"][copies.heads.index("MiB each, of 4")] == "142"
    assert [len(curve.platforms["gvisor"]) for curve in copies.curves] == [2, 2]
    out = io.StringIO()
    Console(file=out, width=100, color_system=None).print(Group(*render(shown, 100)))
    assert words.COPIES["fork"] in out.getvalue()


def test_a_figure_that_the_baseline_lacks_has_an_interval(lived: Report) -> None:
    result = _result(lived, "snapshot-64", "snapshot", {"gvisor": 89.0})
    alone = result.platforms[0].model_copy(update={"n_blocks": 0, "n_values": 4})
    shown = lives([*lived.results, result.model_copy(update={"platforms": [alone]})], [*NAMES, "gvisor"])
    assert shown is not None
    assert shown.rows["gvisor"][shown.heads.index("snapshot (64 MiB)")] == "89.0 ±8.0"


def test_a_missing_figure_says_what_it_needs(lived: Report) -> None:
    p95 = _result(lived, "exec", "p95", {"runc": 40})
    lacking = p95.platforms[0].model_copy(update={"platform": "docker", "mean": None, "unseen": "needs 12 more"})
    p95 = p95.model_copy(update={"platforms": [*p95.platforms, lacking]})
    shown = lives([*lived.results, p95], NAMES)
    at = shown.heads.index("exec p95")
    assert (shown.rows["runc"][at], shown.rows["docker"][at]) == ("40.0 ±3.2", "needs 12 more")


@pytest.fixture
def burst(lived: Report) -> Report:
    curves = {"runc": {1: 60, 2: 70, 8: 200}, "docker": {1: 300, 2: 650, 8: 2000}}
    results = []
    for count in (1, 2, 8):
        medians = {name: of[count] for name, of in curves.items()}
        results += [
            _result(lived, "burst", f"p50-{count}", medians),
            _result(lived, "burst", f"ok-{count}", dict.fromkeys(curves, 100 - count), sd=0),
        ]
    results.append(_result(lived, "burst", "knee", {"runc": 4.6, "docker": 1.9}, sd=0.5))
    return lived.model_copy(update={"results": [*lived.results, *results]})


@pytest.mark.parametrize("figure", [0.0, 1e-30, -3.0, -1e30, 1e30])
def test_names_and_figures_of_a_strangers_file_are_shown(lived: Report, figure: float) -> None:
    names = [f"ok-{count}" for count in ("", "x", "0", "-4", "9" * 5000, "\N{SUPERSCRIPT TWO}", "1", "4")]
    names += ["p50-1", "p50-4"]
    of = [_result(lived, "burst", name, dict.fromkeys(LIVES, figure)) for name in (*names, "knee")]
    parts = [1.0, *(figure for _ in list(words.PARTS)[1:-1]), -figure]
    wholes = [
        _result(lived, "whole-life", name, dict.fromkeys(LIVES, of))
        for name, of in zip((*words.PARTS, "whole"), (*parts, 1.0), strict=True)
    ]
    shown = lives([*of, *wholes], NAMES)
    assert shown is not None
    [burst] = shown.bursts
    assert [head for head in burst.heads if head.startswith("ok")] == ["ok, % of 4"]
    assert draw(shown).count("<rect") >= len(LIVES)
    for curves in burst.curves:
        assert "nan" not in str(escape(curve_plot.draw(curves, NAMES)))
    assert max(map(cell_len, _printed_of(shown, 100))) <= 100


@pytest.mark.parametrize("width", [80, 120])
def test_a_burst_has_its_medians_its_share_and_its_knee(burst: Report, width: int) -> None:
    lines = _printed(burst, width)
    assert max(map(cell_len, lines)) <= width
    [at] = [number for number, line in enumerate(lines) if line == "Starts at one instant"]
    [docker] = [line.split() for line in lines[at:] if line.strip().startswith("docker")]
    assert docker == ["docker", "300", "±3", "650", "±3", "2,000", "±3", "92.0", "1.90", "±0.32"]


def test_a_bursts_curve_is_logarithmic_both_ways_and_has_the_knee(burst: Report) -> None:
    [curves] = lives(burst.results, NAMES).bursts[0].curves
    drawn = str(escape(curve_plot.draw(curves, ["runc", "docker"])))
    assert "docker, knee: 1.9" in drawn
    heights = [
        float(place.split()[1])
        for place in drawn.split('class="curve curve-1', maxsplit=1)[0]
        .rsplit('d="M', 1)[1]
        .split('"', maxsplit=1)[0]
        .split("L")
    ]
    # Each is lower on the page by the logarithm of the ratio, 650/300 and 2000/650.
    assert (heights[0] - heights[1]) / (heights[1] - heights[2]) == pytest.approx(0.688, abs=0.01)
