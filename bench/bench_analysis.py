"""One million samples, analysed and reported: seconds and peak memory, each step in a process of its own.

    .venv/bin/python bench/bench_analysis.py

The campaign is invented by the tests' generator: 7 arms, 8 metrics, 30 blocks, 600 rounds.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import fake_campaign
from tare.analysis.estimates import headlines
from tare.campaign.plan.interim import Interim
from tare.report.campaign.report_builder import build, platform_names, results_of
from tare.report.campaign.report_terminal import headline
from tare.report.formats.html import write_html
from tare.report.formats.table_export import export
from tare.report.formats.tables import CampaignTable, Format
from tare.store import read_store

PLATFORMS = {"native": 1.0, "runc": 1.0, "docker": 1.01, "podman": 1.02, "gvisor": 1.5, "microvm": 1.1}
SHAPE = fake_campaign.Shape(
    blocks=30, rounds=600, workloads=("unit-costs",), slowdown=PLATFORMS, failing=None, unsupported=None
)


def write(path: Path) -> str:
    fake_campaign.write(path, SHAPE)
    return f"{path.stat().st_size / 2**20:.1f} MiB"


def report(path: Path) -> str:
    return f"{len(build(path).results)} metrics"


def each_block(path: Path) -> str:
    """What a terminal's table and the looks take between two blocks: estimates of the newest, the rest is known."""
    took = []
    with read_store(path) as store:
        interim, record = Interim(store), store.record
        for block in range(SHAPE.blocks):
            began = time.perf_counter()
            interim.estimates.close(block)
            interim.estimates.known()
            results = headlines(record, interim.estimates, interim.trials())
            headline(platform_names(record), results_of(record, results))
            took.append(time.perf_counter() - began)
    return f"{1e3 * max(took[1:]):.0f} ms at most between two blocks"


def page(path: Path) -> str:
    out = path.with_suffix(".html")
    write_html([path], out)
    return f"{out.stat().st_size / 2**20:.1f} MiB"


def export_csv(path: Path) -> str:
    with read_store(path) as store, path.with_suffix(".csv").open("w") as out:
        return f"{export(store, CampaignTable.SAMPLES, Format.CSV, out):,} rows"


def _measure(
    step: Callable[[Path], str], path: Path, results: multiprocessing.SimpleQueue[tuple[float, float, str]]
) -> None:
    began = time.perf_counter()
    summary = step(path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    results.put((time.perf_counter() - began, peak, summary))


def main() -> None:
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million.tare"
        for step in (write, report, each_block, page, export_csv):
            results = context.SimpleQueue()
            process = context.Process(target=_measure, args=(step, path, results))
            process.start()
            process.join()
            if process.exitcode:
                sys.exit(f"{step.__name__} failed")
            seconds, peak, summary = results.get()
            print(f"{step.__name__:<12} {seconds:6.2f} s  {peak:6.0f} MiB peak  {summary}")


if __name__ == "__main__":
    main()
