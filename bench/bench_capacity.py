"""How many fit as predicted from a quarter, beside what a real fill held, and what was reserved beside what was used.

    scripts/with-dockerd .venv/bin/python bench/bench_capacity.py            fills now, within budgets of memory
    .venv/bin/python bench/bench_capacity.py FILE.tare...                    of fills that were measured

The budget is small, so that fills are short; what the host's other work moves is some MiB of it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tare.capacity_model import CAPACITY, FILL, memory_used, read_fill
from tare.features.capacity.analysis import reached
from tare.host import processes
from tare.model import Arm, Status, TrialKey
from tare.report.campaign.report_builder import build
from tare.store import read_store

BUDGETS = {"192M": ("runc", "crun", "podman", "lxc", "docker", "gvisor")}
MIB = 2**20


def measured(folder: Path) -> Iterator[Path]:
    """Fill now: one file a budget."""
    tare = Path(sys.executable).with_name("tare")
    for budget, names in BUDGETS.items():
        file = folder / f"{budget}.tare"
        platforms = [word for name in names for word in ("-p", name)]
        argv = [str(tare), "capacity", *platforms, "--fill", "--budget", budget, "--blocks", "2", "-o", str(file)]
        done = processes.run(argv, time_limit_s=3600)
        if done.code != 0:
            sys.exit(done.text)
        yield file


def rows(file: Path) -> Iterator[str]:
    """A line of Markdown for each platform that was filled."""
    report = build(file).sections()["capacity"]
    assert report is not None, "a fill"
    with read_store(file) as store:
        fills: dict[str, list] = {}
        for trial in store.trials().iter_rows(named=True):
            if (str(trial["workload"]), str(trial["status"])) == (CAPACITY, Status.OK):
                arm = Arm(str(trial["platform"]), int(trial["replica"]))
                output = store.outputs(TrialKey(int(trial["block"]), CAPACITY, arm))[FILL]
                fills.setdefault(arm.platform, []).append(read_fill(output.data))
    for platform in report.platforms:
        if platform.filled is None:
            continue
        of = fills[platform.platform]
        memory = next(fit for fit in platform.resources if fit.resource == "memory")
        held = sum(map(reached, of)) / len(of)
        error = 100 * (memory.count / held - 1)
        interval = "" if memory.low is None or memory.high is None else f" ({memory.low:.0f} to {memory.high:.0f})"
        last = [(fill.levels[0], fill.levels[-1]) for fill in of]
        used = sum(memory_used(*pair) for pair in last) / len(last)
        count = sum(level.count for _, level in last) / len(last)
        reserve = platform.reserve
        explained = platform.memory.explained_percent
        share = "not known" if explained is None else f"{explained:.0f} %"
        asked = 0.0 if reserve is None else count * (reserve.memory + reserve.workload_memory)
        yield (
            f"| {platform.platform} | {(report.budget or 0) >> 20} | {memory.count:.0f}{interval} | {held:.0f} |"
            f" {error:+.1f} % | {used / MIB:.0f} | {share} | {100 * (asked / used - 1):+.1f} % |"
        )


if __name__ == "__main__":
    heads = ("platform", "budget, MiB", "predicted", "held", "error", "used, MiB", "of MemAvailable's fall", "reserved")
    print(f"| {' | '.join(heads)} |")
    print(f"|{' --- |' * len(heads)}")
    with tempfile.TemporaryDirectory() as folder:
        for file in [Path(word) for word in sys.argv[1:]] or measured(Path(folder)):
            for row in rows(file):
                print(row)
