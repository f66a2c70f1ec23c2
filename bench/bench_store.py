"""One million samples and a hundred footprints, written and read as a campaign and a report do; against other sources.

    .venv/bin/python bench/bench_store.py [--against FOLDER] [--rounds N] [--only samples|footprints]

FOLDER: the checkout of another revision (git worktree add FOLDER REVISION). The two take turns, each step in a process
of its own, so that other load of the host affects both. Shown are medians, in seconds of processor time (of all
threads) and of the clock, and the ratio of each.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # after what the child of another revision is given

import fake_campaign
import tare.store
from tare.footprint_model import Footprint

HERE = Path(__file__).parent.parent
PLATFORMS = {"native": 1.0, "runc": 1.0, "docker": 1.01, "podman": 1.02, "gvisor": 1.5, "microvm": 1.1}
#: Names of kernel functions in a footprint, and those that the other footprints have beside.
NAMES, OTHERS, FOOTPRINTS = 20_000, 2_000, 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, default=None, metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="TEXT", help="steps with this in their names")
    parser.add_argument("--step", nargs=2, metavar=("STEP", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step is not None:
        print(json.dumps(_timed(options.step[0], Path(options.step[1]))))
        return
    sources = {"before": options.against, "now": HERE} if options.against is not None else {"now": HERE}
    steps = [step for step in STEPS if options.only in step]
    took: dict[str, dict[str, list[list[float]]]] = {step: {name: [] for name in sources} for step in steps}
    sizes: dict[str, dict[str, int]] = {}
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            for step in steps:
                for name, checkout in sources.items():
                    file = Path(folder) / f"{name}-{'footprints' if 'footprints' in step else 'samples'}.tare"
                    took[step][name].append(_in_child(checkout.absolute(), step, file))
                    sizes.setdefault(file.stem, {})["bytes"] = file.stat().st_size
    for step, by_source in took.items():
        for number, kind in enumerate(("processor", "clock")):
            medians = {name: statistics.median(run[number] for run in runs) for name, runs in by_source.items()}
            ratio = f"ratio {medians['now'] / medians['before']:.2f}" if len(medians) > 1 else ""
            print(f"{step:<18} {kind:<10}", *(f"{name} {seconds:6.2f} s " for name, seconds in medians.items()), ratio)
    for name, size in sizes.items():
        print(f"{name:<18} {size['bytes'] / 2**20:.1f} MiB")


def _in_child(checkout: Path, step: str, file: Path) -> list[float]:
    path = f"{checkout / 'src'}{os.pathsep}{checkout / 'tests'}"
    argv = [sys.executable, __file__, "--step", step, str(file)]
    done = subprocess.run(argv, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    seconds: list[float] = json.loads(done.stdout)
    return seconds


def _timed(step: str, file: Path) -> list[float]:
    """Seconds of processor time, and of the clock."""
    work = STEPS[step](file)
    used, began = time.process_time(), time.perf_counter()
    work()
    return [time.process_time() - used, time.perf_counter() - began]


# --- steps: what each prepares is not counted ------------------------------------------------------------------


def _write_samples(file: Path) -> Callable[[], None]:
    shape = fake_campaign.Shape(
        blocks=30, rounds=600, workloads=("unit-costs",), slowdown=PLATFORMS, failing=None, unsupported=None
    )
    blocks = list(fake_campaign._blocks(shape))

    def work() -> None:
        with _opener("create")(file, fake_campaign.record(shape)) as store:
            for block, trials in blocks:
                store.plan_block(block, [trial.key for trial in trials])
                for trial in trials:
                    store.commit_trials([trial])

    return work


def _read_samples(file: Path) -> Callable[[], None]:
    def work() -> None:
        with _opener("read")(file) as store, store.snapshot():
            assert store.samples().height > 1_000_000
            assert store.trials().height

    return work


def _read_rows(file: Path) -> Callable[[], None]:
    def work() -> None:
        with _opener("read")(file) as store:
            assert sum(1 for _ in store.rows()) > 1_000_000

    return work


def _footprints() -> Iterator[Footprint]:
    for number in range(FOOTPRINTS):
        names = [*range(NAMES), *range(NAMES + number * OTHERS // 10, NAMES + number * OTHERS // 10 + OTHERS)]
        facts = {"level": "functions", "scope": "host", "platform": "native", "phase": "steady", "workload": "primes"}
        hits = {f"kernel_function_{name}": 1 + name * 7919 % 100_000 for name in names}
        yield Footprint.model_validate({**facts, "repeat": number, "seconds": 10.0, "hits": hits})


def _write_footprints(file: Path) -> Callable[[], None]:
    counted = list(_footprints())

    def work() -> None:
        with _opener("create")(file, fake_campaign.record(fake_campaign.Shape())) as store:
            for footprint in counted:
                if hasattr(store, "add_footprint"):
                    store.add_footprint(footprint)
                else:
                    store.add_attachment("footprint", footprint.model_dump_json().encode())

    return work


def _read_footprints(file: Path) -> Callable[[], None]:
    def work() -> None:
        with _opener("read")(file) as store:
            if hasattr(store, "footprints"):
                read = store.footprints()
            else:
                read = importlib.import_module("tare.report.footprints").read_footprints(store)
            assert sum(len(footprint.hits) for footprint in read) == FOOTPRINTS * (NAMES + OTHERS)

    return work


def _opener(how: str) -> Callable[..., AbstractContextManager[Any]]:
    """The store's opener, by its name of now or of before the store was a protocol."""
    return getattr(tare.store, f"{how}_store", None) or getattr(tare.store.Store, how)


STEPS: dict[str, Callable[[Path], Callable[[], None]]] = {
    "write samples": _write_samples,
    "read samples": _read_samples,
    "read rows": _read_rows,
    "write footprints": _write_footprints,
    "read footprints": _read_footprints,
}

if __name__ == "__main__":
    main()
