"""Counted instructions beside measured CPU cost: ranks of platforms, and who is far from the usual rate."""

import pytest
from typer.testing import CliRunner

import fake_campaign
import fake_footprints
from tare.analysis.comparisons.agreement import agreement, costs
from tare.cli import app
from tare.footprint_model import Footprint, Phase, Scope
from tare.model import Level
from tare.report.sentences.agreement_words import lines
from tare.store import read_store

COUNTED = {"native": 300, "runc": 310, "docker": 400, "gvisor-systrap": 35_000, "gvisor-ptrace": 28_000}
MEASURED = {"native": 150.0, "runc": 151.0, "docker": 190.0, "gvisor-systrap": 18_900.0, "gvisor-ptrace": 22_400.0}


#: Of a real host, on 2026-11-23: instructions (medians of five seeds) and CPU ns (`tare run`, three blocks) of a unit.
REAL = {
    "call-getpid": {
        "native": (323, 150.3), "bubblewrap": (323, 147.4), "crun": (323, 145.3), "youki": (323, 144.4),
        "runc": (323, 145.7), "runc-seccomp": (460, 186.5), "lxc": (460, 197.9),
    },
    "call-open": {
        "native": (7006, 2332.6), "bubblewrap": (6975, 2356.6), "crun": (6976, 2450.8), "youki": (6975, 2464.2),
        "runc": (6978, 2332.5), "runc-seccomp": (7250, 2770.8), "lxc": (7250, 2500.3),
    },
    "proc-fork": {
        "native": (249582, 97223.8), "bubblewrap": (222702, 90136.3), "crun": (220777, 94060.9),
        "youki": (224748, 92694.7), "runc": (225825, 95797.9), "runc-seccomp": (228828, 100064.1),
        "lxc": (221103, 96519.3),
    },
}  # fmt: skip


def unit(platform, instructions, workload):
    return Footprint(
        level=Level.INSTRUCTIONS, scope=Scope.HOST, platform=platform, phase=Phase.STEADY, workload=workload, repeat=0,
        seconds=1.0, hits={"piece;0;units": 1, "piece;0;kernel": instructions},
    )  # fmt: skip


def footprints(workload="call-getpid", counted=COUNTED):
    return [unit(platform, instructions, workload) for platform, instructions in counted.items()]


def measured(workload="call-getpid"):
    return {(platform, workload): ns for platform, ns in MEASURED.items()}


def test_the_rank_correlation_is_spearmans_and_the_swapped_pair_is_seen():
    ranking = agreement(footprints(), measured())
    assert ranking.ranks == {"call-getpid": pytest.approx(0.9)}  # two of five ranks are swapped: 1 - 6 * 2 / 120
    assert ranking.together == pytest.approx(0.9)
    assert [point.platform for point in ranking.outliers] == ["gvisor-ptrace"]
    text = "\n".join(lines(ranking))
    assert "call-getpid: rank correlation 0.90 over 5 platforms" in text
    assert "call-getpid on gvisor-ptrace: 28,000 instructions in 22,400 ns, 1.2 a nanosecond where 2 is usual" in text


def test_of_a_real_host_counts_rank_what_they_tell_apart_as_times_do():
    counted = [
        unit(platform, count, name)
        for name, by_platform in REAL.items()
        for platform, (count, _) in by_platform.items()
    ]
    times = {(platform, name): ns for name, by_platform in REAL.items() for platform, (_, ns) in by_platform.items()}
    ranking = agreement(counted, times)
    assert {name: round(rank, 2) for name, rank in ranking.ranks.items()} == {
        "call-getpid": 0.79, "call-open": 0.38, "proc-fork": 0.57,
    }  # fmt: skip
    assert round(ranking.together, 2) == 0.96
    assert ranking.outliers == ()


def test_two_platforms_have_no_ranks_and_equal_figures_no_correlation():
    assert agreement(footprints(counted={"native": 1, "runc": 2}), measured()) is None
    same = agreement(footprints(counted=dict.fromkeys(COUNTED, 300)), measured())
    assert same.ranks == {"call-getpid": None}
    assert "unknown" in "\n".join(lines(same))


@pytest.mark.thorough
def test_a_report_of_both_files_prints_it_and_of_one_file_nothing(tmp_path):
    times = fake_campaign.write(tmp_path / "times.tare", fake_campaign.Shape(blocks=3))
    with read_store(times) as store:
        mean_costs = costs(store)
    workload = next(workload for _, workload in mean_costs)
    slow, quick = (mean_costs[platform, workload] for platform in ("gvisor-ptrace", "native"))
    assert 3.0 < slow / quick < 3.6
    counts = fake_footprints.write(tmp_path / "counts.tare", footprints(workload))
    done = CliRunner().invoke(app, ["report", str(counts), str(times)])
    assert done.exit_code == 0, done.output
    assert f"{workload}: rank correlation" in done.output
    assert "rank correlation" not in CliRunner().invoke(app, ["report", str(times)]).output
