from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

import fake_campaign
from tare.analysis.verdicts import VerdictKind
from tare.report.campaign.cautions import turned
from tare.report.campaign.report_builder import build
from tare.report.campaign.report_terminal import render, render_all
from tare.report.model import Report, SettingReport, UnmarkedReport
from tare.safe_text import clean
from tare.store import create_store

SNAPSHOT = Path(__file__).parent / "headline.txt"


def printed(report: Report, width: int = 100, **options: bool) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(render(report, width=width, **options))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def test_the_whole_of_it(report: Report) -> None:
    assert printed(report) == SNAPSHOT.read_text()


def test_five_platforms_fit_100_columns_in_one_table(report: Report) -> None:
    lines = printed(report).splitlines()
    assert max(cell_len(line) for line in lines) <= 100
    (head,) = (line for line in lines if line.strip().startswith("workload"))
    assert head.split() == ["workload", *fake_campaign.SLOWDOWN]


@pytest.mark.parametrize("width", [50, 72, 80])
def test_a_narrow_terminal_gets_several_tables_with_all_platforms(report: Report, width: int) -> None:
    lines = printed(report, width).splitlines()
    assert max(cell_len(line) for line in lines) <= width
    heads = [line.split() for line in lines if line.strip().startswith("workload")]
    assert [name for head in heads for name in head[2:]] == list(fake_campaign.SLOWDOWN)[1:]
    assert all(head[:2] == ["workload", "native"] for head in heads)


@pytest.mark.parametrize("width", range(60, 140))
def test_no_name_or_figure_of_a_table_is_broken(report: Report, width: int) -> None:
    """As wide as it is without breaks, a table fits, or has the least columns that one can have."""
    console = Console(width=1000)
    tables = [part for part in render(report, width=width).renderables if isinstance(part, Table)]
    assert tables
    for table in tables:
        assert console.measure(table).maximum <= width or len(table.columns) <= 3


def test_many_platforms_get_a_row_each(tmp_path: Path) -> None:
    names = ["native", *(f"platform-{number}" for number in range(20))]
    shape = fake_campaign.Shape(
        blocks=3, rounds=2, slowdown=dict.fromkeys(names, 1.0), workloads=("iperf3-tcp", "startup")
    )
    lines = printed(build(fake_campaign.write(tmp_path / "many.tare", shape)), 120).splitlines()
    assert max(cell_len(line) for line in lines) <= 120
    head = next(at for at, line in enumerate(lines) if line.startswith(" platform ") and "throughput" in line)
    assert lines[head - 1].split() == ["iperf3-tcp", "iperf3-tcp", "startup"]
    assert lines[head].split() == ["platform", "throughput", "↑", "cpu-cost", "↓", "first-byte", "↓"]
    rows = [line.split() for line in lines[head + 1 : head + 101]]
    assert [row[0] for row in rows if row and row[0] in names] == names
    assert not any(line.startswith(" workload ") for line in lines)


def test_what_comes_from_a_plug_in_is_said(tmp_path: Path) -> None:
    record = fake_campaign.record(fake_campaign.Shape())
    first, *others = record.platforms
    platforms = [first, *(platform.model_copy(update={"package": "tare-x 1.0"}) for platform in others)]
    with create_store(tmp_path / "a.tare", record.model_copy(update={"platforms": platforms})):
        report = build(tmp_path / "a.tare")
    assert report.plugins == {"tare-x 1.0": [platform.name for platform in others]}
    assert "from tare-x 1.0: " in printed(report)


def test_every_metric_on_demand(report: Report) -> None:
    assert "ping ↓" not in printed(report)
    assert "ping ↓" in printed(report, every_metric=True)


def test_several_campaigns_say_that_nothing_is_pooled(report: Report) -> None:
    out = io.StringIO()
    Console(file=out, width=100).print(render_all([report, report]))
    assert "nothing is pooled" in out.getvalue()
    assert out.getvalue().count("tare 0.1.0") == 2


def test_what_a_terminal_would_obey_is_taken_out(report: Report) -> None:
    evil = report.failures[0].model_copy(update={"reason": "\x1b[2Jgone \x9b31m\u202eback [bold]kept[/bold]"})
    text = printed(report.model_copy(update={"failures": [evil]}))
    assert not {"\x1b", "\x9b", "\u202e"} & set(text)
    assert "[bold]kept[/bold]" in text
    assert clean("plain, ünïcode ▲\n") == "plain, ünïcode ▲\n"


def test_a_verdict_that_chance_may_give_in_so_large_a_table_is_marked_and_the_line_below_says_so(
    report: Report,
) -> None:
    assert report.multiplicity is not None
    docker = report.results[0].platforms[2].model_copy(update={"verdict": "slower", "survives_holm": False})
    results = [report.results[0].model_copy(update={"platforms": [*report.results[0].platforms[:2], docker]})]
    many = report.multiplicity.model_copy(update={"n_different": 13, "n_different_sure": 12, "by_chance": 0.87})
    text = printed(report.model_copy(update={"results": results, "multiplicity": many}))
    assert "▲ +0.17 %†" in text
    words = " ".join(text.split())
    assert "13 differ; at most about 1 of these by luck." in words
    assert "If one is luck, it is most likely among the 1 with † (Holm's correction)." in words
    assert "†" not in printed(report)


def test_blocks_that_are_alike_are_the_first_caution(report: Report) -> None:
    assert report.dependence is not None
    note = "neighbouring blocks are alike"
    assert note not in printed(report)
    alike = report.dependence.model_copy(update={"note": note})
    assert f"Cautions\n  {note}\n" in printed(report.model_copy(update={"dependence": alike}))


def test_cautions_are_counted_and_printed_on_demand(report: Report) -> None:
    caution = "iperf3-tcp on docker (cpu-cost): the ratio drifts over the campaign"
    counted = printed(report).split("\nCautions\n")[1].split("\n\n")[0]
    assert "contaminated trials, kept 7, failed trials 2, blocks left out 2, drift 1" in counted
    assert "would be another" not in counted, "where a verdict only lacks the blocks, nothing is said against it"
    assert "drift 1 (all of them: --cautions)" in " ".join(counted.split())
    assert len(counted.splitlines()) <= 2
    assert caution not in printed(report)
    assert caution in printed(report, cautions=True)
    assert "--cautions" not in printed(report, cautions=True)


@pytest.mark.parametrize(
    ("clean", "counts"),
    [("equivalent", True), ("faster", True), ("inconclusive", False), ("no-data", False), ("slower", False)],
)
def test_only_a_verdict_that_turns_without_contaminated_trials_is_counted(
    report: Report, clean: str, counts: bool
) -> None:
    first = report.results[0]
    slow = first.platforms[3]
    unmarked = UnmarkedReport(
        n_trials=1, n_baseline=0, n_blocks=11, op_percent=1.0, op_low_percent=0.0, op_high_percent=2.0,
        verdict=VerdictKind(clean), verdict_text="",
    )  # fmt: skip
    assert slow.verdict == "slower"
    assert turned(slow.model_copy(update={"unmarked": unmarked})) is counts


def test_a_refused_figure_is_told_and_not_counted(report: Report) -> None:
    why = "refused: 3 of 6 samples are zero"
    first = report.results[0]
    docker = first.platforms[2].model_copy(
        update={"verdict": "no-data", "verdict_reason": "unfit", "verdict_text": why}
    )
    results = [first.model_copy(update={"platforms": [*first.platforms[:2], docker]})]
    assert f"  prime-slices on docker (rate): {why}\n" in printed(report.model_copy(update={"results": results}))


def test_the_command_that_tells_the_rest_is_whole_in_every_width(tmp_path: Path) -> None:
    shape = fake_campaign.Shape(blocks=1, rounds=2)
    report = build(fake_campaign.write(tmp_path / "a.tare", shape))
    assert report.settling is not None
    assert report.settling.command
    for width in (50, 100, 200):
        text = printed(report, width)
        joined = " ".join(text.replace("\\\n", "").split())
        assert joined.count(report.settling.command) == 1
        assert max(cell_len(line) for line in text.splitlines()) <= width


def test_what_was_tuned_and_what_could_not_be_is_told_in_a_line_each(report: Report) -> None:
    assert "tuned" not in printed(report)
    quiet = "it goes to CPUs that are not measured"
    tuning = [
        SettingReport(name="swappiness", path="p", outcome="changed", former="60", value="0", why="w"),
        *(
            SettingReport(name=f"interrupt {n}", path="p", outcome="changed", former="0-1", value="0", why=quiet)
            for n in (24, 25)
        ),
        SettingReport(name="ksm", path="p", outcome="as wanted", former="0", value="0", why="w"),
        SettingReport(name="turbo", path="", outcome="not changed", former=None, value=None, why="there is none"),
    ]
    text = printed(report.model_copy(update={"tuning": tuning}))
    assert text.endswith("""
The host was tuned for the campaign
  swappiness: 0, and 60 again after it
  interrupt 24, 25: 0, and 0-1 again after it
  not changed: turbo: there is none
""")


def test_what_a_platform_says_of_a_familys_figures_is_said_once_and_the_shared_cpus_too(report: Report) -> None:
    remark = "systrap's fast path is off with one CPU"
    results = [
        result.model_copy(
            update={
                "platforms": [
                    entry.model_copy(update={"remark": remark if entry.platform == "gvisor-systrap" else None})
                    for entry in result.platforms
                ]
            }
        )
        for result in report.results
        if result.family == "cpu"
    ]
    shared = {"cpus": [0, 1], "memory_bytes": 1 << 30, "probe_cpu": 1, "harness_cpus": [0]}
    shown = " ".join(printed(report.model_copy(update={"results": results, "resources": shared})).split())
    assert shown.count(f"cpu on gvisor-systrap: {remark}") == 1
    assert "tare and the client ran on CPU 0, which instances had too; CPU 1 was left" in shown
