"""A storm of SIGKILLs over campaigns, each followed by `tare clean`, an independent look at the host, and `--resume`.

    python tests/storm.py --kills 200 --seed 1        # as root; parts with other seeds add up

A campaign over several platforms is killed at a random moment, again and again; one that ends is followed by another.
After each kill the host is compared with what it was before all (`host_state`, which knows nothing of tare), and no
trial that was written may be lost or different. Prints one line a kill and a summary; exit code 1 when anything was
found.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import host_state

PLATFORMS = ("native", "runc", "crun", "bubblewrap", "gvisor", "lxc", "qemu-tcg")
WORKLOADS = ("startup", "primes", "udp-rtt", "sysbench-fileio-seqrd")
#: The command, and what it runs as: a process of its own, as a user starts it.
TARE = (sys.executable, "-c", "from tare.cli import main; main()")
#: How long a campaign may take that is not killed, and a cleaning.
LIMIT_S = 1200.0
CLEAN_LIMIT_S = 120.0

Rows = dict[tuple[object, ...], tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill: when, in what, and what was found after it."""

    at_s: float
    phase: str
    trials: int
    resumed: bool
    faults: tuple[str, ...]


class Storm:
    """Campaigns that are killed, one file after the other."""

    def __init__(self, platforms: Sequence[str], blocks: int, folder: Path, ignored: str) -> None:
        self._plan = [word for name in platforms for word in ("-p", name)]
        self._plan += [word for name in WORKLOADS for word in ("-w", name)] + ["--blocks", str(blocks)]
        self._folder = folder
        self._ignored = "|".join(filter(None, (re.escape(str(folder)), ignored)))
        self._rows: Rows = {}
        self.campaigns = 0
        self.ended = 0
        self._next()

    def warm_up(self) -> None:
        """Make what is made once a host and kept, and see how long a campaign takes; then look at the host."""
        began = time.monotonic()
        self._finish([*self._plan, "-o", str(self._folder / "first.tare")])
        self.length_s = time.monotonic() - began
        self._before = host_state.snapshot()

    def kill(self, moments: random.Random) -> Kill:
        """Start or resume, kill at a random moment, clean, and look."""
        resumed = self._file.exists()
        words = ["--resume", str(self._file)] if resumed else [*self._plan, "-o", str(self._file)]
        log = self._folder / "said"
        with log.open("wb") as file:
            process = subprocess.Popen([*TARE, "run", *words], stdout=file, stderr=file)
            began = time.monotonic()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self._moment(moments))
            at_s = time.monotonic() - began
            process.send_signal(signal.SIGKILL)
            code = process.wait()
        lines = log.read_text(errors="replace").splitlines()
        faults = list(self._faults(code, lines))
        phase = "ended before" if code == 0 else _phase(lines, len(self._rows))
        kill = Kill(at_s, phase, len(self._rows), resumed, tuple(faults))
        if code == 0:
            self.ended += 1
            self._next()
        return kill

    def finish(self) -> list[str]:
        """Let the last campaign come to its end, and look."""
        if self._file.exists():
            self._finish(["--resume", str(self._file)])
            self.ended += 1
        return list(self._faults(0, []))

    def _moment(self, moments: random.Random) -> float:
        """Half of the kills fall into the set-up, where most is made in the least time."""
        return moments.uniform(0.1, 6.0) if moments.random() < 0.5 else moments.uniform(0.1, self.length_s)

    def _faults(self, code: int, lines: Sequence[str]) -> Iterator[str]:
        if code not in {0, -signal.SIGKILL}:
            yield f"it ended with {code}: {' | '.join(lines[-2:])}"
        cleaned = subprocess.run([*TARE, "clean"], capture_output=True, text=True, timeout=CLEAN_LIMIT_S, check=False)
        if cleaned.returncode != 0 or re.search(r"^kept ", cleaned.stdout, re.MULTILINE):
            yield f"`tare clean` ended with {cleaned.returncode}: {(cleaned.stdout + cleaned.stderr).strip()[-500:]}"
        yield from host_state.settled(self._before, ignored=self._ignored)
        rows = _rows(self._file)
        lost = [key for key, row in self._rows.items() if rows.get(key) != row]
        if lost:
            yield f"trials lost or changed: {lost[:3]}"
        self._rows = rows

    def _finish(self, words: Sequence[str]) -> None:
        done = subprocess.run([*TARE, "run", *words], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if done.returncode != 0:
            sys.exit(f"a campaign that nobody killed ended with {done.returncode}: {done.stderr.strip()[-800:]}")

    def _next(self) -> None:
        self.campaigns += 1
        self._file = self._folder / f"storm{self.campaigns}.tare"
        self._rows = {}


def _rows(file: Path) -> Rows:
    """The trials of a campaign's file, by what each is of."""
    if not file.exists():
        return {}
    with contextlib.closing(sqlite3.connect(file)) as store:
        try:
            columns = [row[1] for row in store.execute("PRAGMA table_info(trial)")]
            rows = store.execute("SELECT * FROM trial").fetchall()
        except sqlite3.OperationalError:  # killed before its tables were there
            return {}
    keys = [columns.index(name) for name in ("block", "arm", "workload") if name in columns]
    return {tuple(row[key] for key in keys): tuple(row) for row in rows}


def _phase(lines: Sequence[str], trials: int) -> str:
    """What it was doing: by the last line that it printed, as a user sees it."""
    last = next((line for line in reversed(lines) if line.strip()), "")
    for word, phase in (("looking for", "detection"), ("trying", "trial starts"), ("block", "blocks")):
        if word in last:
            return phase
    if trials:
        return "blocks"
    return "before anything was said" if not last else "set-up"


def main() -> int:
    """Run the storm and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--time", type=float, default=float("inf"), help="seconds after which no more kills begin")
    parser.add_argument("--platforms", default=",".join(PLATFORMS))
    parser.add_argument("--ignore", default="", help="a regular expression: differences of somebody else's making")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("the storm needs root")
    moments = random.Random(options.seed)
    began = time.monotonic()
    kills: list[Kill] = []
    with tempfile.TemporaryDirectory(prefix="storm-") as folder:
        storm = Storm(options.platforms.split(","), options.blocks, Path(folder), options.ignore)
        storm.warm_up()
        print(
            f"{options.platforms}: a campaign takes {storm.length_s:.0f} s; {options.kills} kills, seed {options.seed}"
        )
        while len(kills) < options.kills and time.monotonic() - began < options.time:
            kills.append(storm.kill(moments))
            print(_line(len(kills), kills[-1]), flush=True)
        last = storm.finish()
    return _summary(storm, kills, last)


def _line(number: int, kill: Kill) -> str:
    how = "resumed" if kill.resumed else "new"
    faults = "; ".join(kill.faults) or "host as before"
    return f"{number:4} at {kill.at_s:5.1f} s, {how:7}, in {kill.phase}, {kill.trials} trials kept: {faults}"


def _summary(storm: Storm, kills: Sequence[Kill], last: Sequence[str]) -> int:
    phases = collections.Counter(kill.phase for kill in kills)
    faults = [fault for kill in kills for fault in kill.faults] + list(last)
    killed = sum(kill.phase != "ended before" for kill in kills)
    print(f"kills: {killed}, of them in resumed campaigns: {sum(kill.resumed for kill in kills)}")
    print(f"campaigns: {storm.campaigns}, ended whole: {storm.ended}")
    print("phases: " + ", ".join(f"{phase} {count}" for phase, count in phases.most_common()))
    print(f"differences and faults found: {len(faults)}")
    for fault in faults:
        print(f"  {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
