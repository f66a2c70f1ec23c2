"""Whether `tare diff` finds 3 % more work, and stays silent where nothing changed.

A try is three campaigns of native and bubblewrap: two that are alike, and one in which bubblewrap's probe really does
3 % more of the same work (the agent's ``extra_ppm``: three searches of a hundred are done twice and counted once).
`tare diff` compares the first with each of the others by its own thresholds; its exit code is what counts. Where it
cannot tell and says how many blocks would, both campaigns are run anew with so many, as its user would. Campaigns stay
in the folder, if one is given: the same command again goes on where it was ended.

    scripts/own-host bench .venv/bin/python bench/bench_diff.py [FOLDER [TRIES]]

Ten tries take 17 minutes at least, and took 38 in a noisy hour; the load is printed beside each.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from bench_designs import Silent

from tare.campaign.execution import run_campaign
from tare.campaign.execution.slowed import EXTRA
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.store import read_store

PLATFORM, WORKLOAD = "bubblewrap", "primes"
SHARE, BLOCKS, TRIES = 0.03, 10, 10
#: No try is given more than these.
MAX_BLOCKS = 60
#: Twice the rounds of `quick`: a second of work for an arm and block.
PARAMS = {WORKLOAD: {"rounds": 8}}
ARMS = ("alike", "again", "slower")
OUTCOMES = {0: "no regression", 1: "regression", 3: "cannot tell"}


def main() -> None:
    """Measure in the folder of the arguments, or in one that goes with the bench."""
    tries = int(sys.argv[2]) if len(sys.argv) > 2 else TRIES
    with tempfile.TemporaryDirectory() as unnamed:
        measure(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(unnamed), tries)


def measure(folder: Path, tries: int) -> None:
    """Measure what the folder lacks of so many tries, and print their rows and sums."""
    folder.mkdir(parents=True, exist_ok=True)
    print(f"| try | 3 % more work | changes | nothing changed | changes | load |\n|{' --- |' * 6}", flush=True)
    ends: list[tuple[int, int]] = []
    for number in range(tries):
        (again, unchanged), (slower, changed) = (told(folder, number, arm) for arm in ARMS[1:])
        loads = os.getloadavg()
        ends.append((slower, again))
        cells = [str(number + 1), OUTCOMES[slower], changed, OUTCOMES[again], unchanged, f"{loads[1]:.1f}"]
        print(f"| {' | '.join(cells)} |", flush=True)
    detected, alarms = sum(slower == 1 for slower, _ in ends), sum(again == 1 for _, again in ends)
    print(
        f"\n3 % more work was found in {detected} of {tries}; false alarms where nothing changed: {alarms} of {tries}"
    )


def told(folder: Path, number: int, arm: str) -> tuple[int, str]:
    """What `tare diff` ends with between a try's first campaign and another one, with as many blocks as it asks for."""
    blocks = BLOCKS
    while True:
        old, new = (campaign(folder, number, name, blocks) for name in (ARMS[0], arm))
        code, changes, needed = compared(old, new)
        if OUTCOMES[code] != "cannot tell" or needed is None or blocks == MAX_BLOCKS:
            return code, f"{changes}, {blocks} blocks"
        # At least half as many again: a number that two noisy campaigns tell is no more than a hint.
        blocks = min(max(needed, blocks * 3 // 2), MAX_BLOCKS)


def campaign(folder: Path, number: int, arm: str, blocks: int) -> Path:
    """The file of a try's campaign; measured unless it is there and whole."""
    file = folder / f"{number:02}-{arm}-{blocks}.tare"
    if file.exists():
        with read_store(file) as store:
            whole = store.status == "complete"
        if whole:
            return file
        file.unlink()
    request = CampaignRequest(
        platforms=[PLATFORM], workloads=[WORKLOAD], blocks=blocks, seed=3 * number + ARMS.index(arm), params=PARAMS
    )
    with more_work() if arm == "slower" else contextlib.nullcontext():
        run_campaign.begin(request, file, Silent())
    return file


@contextlib.contextmanager
def more_work() -> Iterator[None]:
    """Whatever the platform's own probe does, it does so much more: as in `tare calibrate`, but under its own name."""
    extra = {PLATFORM: {EXTRA: round(1_000_000 * SHARE)}}
    with mock.patch.object(run_campaign, "extra_work", return_value=extra):
        yield


def compared(old: Path, new: Path) -> tuple[int, str, int | None]:
    """What `tare diff` ends with, the platform's changes with their intervals, and how many blocks would tell."""
    argv = [sys.executable, "-P", "-m", "tare", "diff", str(old), str(new), "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode not in OUTCOMES:
        sys.exit(done.stderr)
    of_platform = [change for change in json.loads(done.stdout)["changes"] if change["platform"] == PLATFORM]
    changes = {change["metric"]: change["interval"] for change in of_platform if change["interval"] is not None}
    form = "{point:+.2%} ({low:+.2%} to {high:+.2%})"
    text = "; ".join(f"{metric} {form.format(**changes[metric])}" for metric in sorted(changes))
    return (
        done.returncode,
        text,
        max((change["blocks"] for change in of_platform if change["blocks"] is not None), default=None),
    )


if __name__ == "__main__":
    began = time.monotonic()
    main()
    print(f"{time.monotonic() - began:.0f} s")
