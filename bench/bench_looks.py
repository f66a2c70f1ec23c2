"""The cost of a look at the intervals and of the progress line between two blocks, after 1,000 and 10,000 trials.

    .venv/bin/python bench/bench_looks.py

The campaign is invented by the tests' generator: 6 arms, 5 workloads, 20 rounds where there are slices. Medians of the
last blocks; "whole" is what a resumed campaign does once: it reads the file and works out all blocks.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import fake_campaign
from tare.analysis.estimates import headlines
from tare.campaign.plan.interim import Interim
from tare.report.campaign.report_builder import platform_names, results_of
from tare.report.campaign.report_terminal import headline
from tare.store import Store, open_store, workload_seconds

TIMED_BLOCKS = 7


def look(interim: Interim) -> None:
    interim.estimates.known()
    workload_seconds(interim.trials())


def draw(interim: Interim) -> None:
    record = interim.record
    headline(platform_names(record), results_of(record, headlines(record, interim.estimates, interim.trials())))


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def whole(store: Store, blocks: int) -> None:
    interim = Interim(store)
    for block in range(blocks):
        interim.estimates.close(block)
    look(interim)


def measure(trials: int, folder: Path) -> dict[str, float]:
    """Median milliseconds by what is done."""
    shape = fake_campaign.Shape()
    a_block = len(fake_campaign.arms(shape)) * len(shape.workloads)
    blocks = trials // a_block
    file = fake_campaign.write(folder / f"{trials}.tare", replace(shape, blocks=blocks - TIMED_BLOCKS))
    newest = list(fake_campaign._blocks(replace(shape, blocks=blocks)))[-TIMED_BLOCKS:]
    took: dict[str, list[float]] = {"trials into memory": [], "look": [], "progress line": []}
    with open_store(file) as store, store.working():
        interim = Interim(store)
        for block in range(blocks - TIMED_BLOCKS):
            interim.estimates.close(block)
        draw(interim)
        for block, measured in newest:
            store.plan_block(block, [trial.key for trial in measured])
            store.commit_trials(measured)
            took["trials into memory"].append(seconds(lambda done=measured: [interim.add(trial) for trial in done]))
            interim.estimates.close(block)
            took["look"].append(seconds(lambda: look(interim)))
            took["progress line"].append(seconds(lambda: draw(interim)))
        took["whole"] = [seconds(lambda: whole(store, blocks)) for _ in range(3)]
    return {step: 1e3 * statistics.median(times) for step, times in took.items()}


def main() -> None:
    counts = (1_000, 10_000)
    with tempfile.TemporaryDirectory() as folder:
        figures = [measure(trials, Path(folder)) for trials in counts]
    print("| between two blocks, ms | " + " | ".join(f"{trials:,} trials" for trials in counts) + " |")
    print("| --- " * (1 + len(counts)) + "|")
    for step in figures[0]:
        print(f"| {step} | " + " | ".join(f"{medians[step]:.1f}" for medians in figures) + " |")


if __name__ == "__main__":
    main()
