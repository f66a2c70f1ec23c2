"""A storm over campaigns: SIGKILLs, or other signals, readers that leave and terminals that hang up.

    python tests/storm.py --kills 200 --seed 1        # as root; parts with other seeds add up
    python tests/storm.py --signals 60 --platforms native,runc

A campaign over several platforms is struck at a random moment, again and again; one that is complete is followed by
another. Each time the exit code must be a documented one (docs/exit-codes.md), and the file one that `tare report`
reads, with no trial lost or changed. The host is compared with what it was before all (`host_state`, which knows
nothing of tare): after `tare clean` if nothing of the campaign could run any more, and at once otherwise. Prints one
line a strike and a summary; exit code 1 when anything was found.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import random
import re
import select
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
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
class Blow:
    """What happens to a campaign, and how it may end then."""

    name: str
    codes: frozenset[int]  # besides 0, of a campaign that was complete before; as `subprocess` has them
    deliver: Callable[[Run], object]
    cleans: bool = True  # tare removes what it made; otherwise `tare clean` does


@dataclass(frozen=True, slots=True)
class Strike:
    """One blow: when, in what, and what was found after it."""

    blow: str
    at_s: float
    code: int
    phase: str
    trials: int
    resumed: bool
    faults: tuple[str, ...]


class Run:
    """One `tare run` on a terminal or with pipes; all that it prints is read and kept."""

    def __init__(self, words: Sequence[str], *, terminal: bool) -> None:
        self.printed = bytearray()
        self._readers: dict[int, int] = {}  # what is read, by the number that the process has for it
        self._leaving = threading.Event()
        given: list[int] = []
        for number in (2,) if terminal else (1, 2):
            self._readers[number], theirs = os.openpty() if terminal else os.pipe()
            given.append(theirs)
        self.process = subprocess.Popen(
            [*(("setsid", "--ctty") if terminal else ()), *TARE, "run", *words],
            stdin=given[0] if terminal else subprocess.DEVNULL,
            stdout=given[0],
            stderr=given[-1],
        )
        for theirs in given:
            os.close(theirs)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def send(self, *numbers: int) -> None:
        """Send signals, one right after the other."""
        for number in numbers:
            self.process.send_signal(number)

    def pause(self) -> None:
        """Stop its process for two seconds."""
        self.send(signal.SIGSTOP)
        time.sleep(2)
        self.send(signal.SIGCONT)

    def hang_up(self, *numbers: int) -> None:
        """Close the other ends of what the process has as these numbers; of a terminal the kernel sends SIGHUP."""
        self._leaving.set()
        self._thread.join()
        for number in numbers:
            os.close(self._readers.pop(number))
        self._leaving.clear()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def end(self, limit_s: float) -> int:
        """Wait for its end and return its code. Raises `subprocess.TimeoutExpired`; it is killed then."""
        try:
            return self.process.wait(limit_s)
        finally:
            self.process.kill()
            self.process.wait()
            self._leaving.set()
            self._thread.join()
            self._read_rest()
            for reader in self._readers.values():
                os.close(reader)

    def _read(self) -> None:
        while not self._leaving.is_set() and self._readers:
            self._take(0.05)

    def _read_rest(self) -> None:
        while self._take(0):
            pass

    def _take(self, limit_s: float) -> bool:
        """Read what there is; return whether there was anything."""
        ready = select.select(list(self._readers.values()), [], [], limit_s)[0]
        taken = False
        for reader in ready:
            with contextlib.suppress(OSError):  # of a terminal that nobody has anymore
                piece = os.read(reader, 1 << 16)
                self.printed += piece
                taken |= bool(piece)
        if ready and not taken:
            self._leaving.wait(0.05)
        return taken


INTERRUPTED, CLOSED = 130, 141
#: The phase of a strike that found the campaign complete.
COMPLETE = "complete before"
KILL = Blow("KILL", frozenset({-signal.SIGKILL}), lambda run: run.send(signal.SIGKILL), cleans=False)
BLOWS = (
    Blow("INT", frozenset({INTERRUPTED}), lambda run: run.send(signal.SIGINT)),
    Blow("TERM", frozenset({INTERRUPTED}), lambda run: run.send(signal.SIGTERM)),
    Blow("HUP", frozenset({INTERRUPTED}), lambda run: run.send(signal.SIGHUP)),
    Blow("INT and TERM", frozenset({INTERRUPTED}), lambda run: run.send(signal.SIGINT, signal.SIGTERM)),
    Blow("QUIT", frozenset({-signal.SIGQUIT}), lambda run: run.send(signal.SIGQUIT), cleans=False),
    Blow("USR1", frozenset({-signal.SIGUSR1}), lambda run: run.send(signal.SIGUSR1), cleans=False),
    Blow("PIPE", frozenset(), lambda run: run.send(signal.SIGPIPE)),
    Blow("STOP and CONT", frozenset(), Run.pause),
    Blow("reader of messages leaves", frozenset(), lambda run: run.hang_up(2)),
    Blow("reader of all leaves", frozenset({CLOSED}), lambda run: run.hang_up(1, 2)),
    Blow("terminal hangs up", frozenset({INTERRUPTED}), lambda run: run.hang_up(2)),
)
#: Before its first lines are carried out, a process ends by the signal itself, with nothing made.
STARTING_S = 0.5


class Storm:
    """Campaigns that are struck, one file after the other."""

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

    def strike(self, moments: random.Random, blow: Blow) -> Strike:
        """Start or resume, deliver the blow at a random moment, and look."""
        resumed = self._file.exists()
        words = ["--resume", str(self._file)] if resumed else [*self._plan, "-o", str(self._file)]
        run = Run(words, terminal="terminal" in blow.name)
        began = time.monotonic()
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.process.wait(self._moment(moments))
        at_s = time.monotonic() - began
        complete = run.process.returncode is not None
        if not complete:
            blow.deliver(run)
        code = run.end(LIMIT_S)
        allowed = {0} if complete else {0, *blow.codes}
        if at_s < STARTING_S:
            allowed |= {-signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP}
        lines = run.printed.decode(errors="replace").splitlines()
        faults = [] if code in allowed else [f"it ended with {code}: {' | '.join(lines[-15:])}"]
        faults += self._faults(cleaned=blow.cleans and not complete)
        phase = COMPLETE if complete else _phase(lines, len(self._rows))
        strike = Strike(blow.name, at_s, code, phase, len(self._rows), resumed, tuple(faults))
        if code in {0, CLOSED}:
            self.ended += 1
            self._next()
        return strike

    def finish(self) -> list[str]:
        """Let the last campaign come to its end, and look."""
        if self._file.exists():
            self._finish(["--resume", str(self._file)])
            self.ended += 1
        return list(self._faults())

    def _moment(self, moments: random.Random) -> float:
        """Half of the strikes fall into the set-up, where most is made in the least time."""
        return moments.uniform(0.1, 6.0) if moments.random() < 0.5 else moments.uniform(0.1, self.length_s)

    def _faults(self, *, cleaned: bool = False) -> Iterator[str]:
        """What is wrong with the host and the file. ``cleaned``: nothing is left for `tare clean`."""
        if cleaned:
            left = host_state.settled(self._before, ignored=self._ignored)
            yield from (f"before `tare clean`: {line}" for line in left)
        done = subprocess.run([*TARE, "clean"], capture_output=True, text=True, timeout=CLEAN_LIMIT_S, check=False)
        if done.returncode != 0 or re.search(r"^kept ", done.stdout, re.MULTILINE):
            yield f"`tare clean` ended with {done.returncode}: {(done.stdout + done.stderr).strip()[-500:]}"
        if not cleaned:
            yield from host_state.settled(self._before, ignored=self._ignored)
        rows = _rows(self._file)
        lost = [key for key, row in self._rows.items() if rows.get(key) != row]
        if lost:
            yield f"trials lost or changed: {lost[:3]}"
        self._rows = rows
        if rows:
            words = [*TARE, "report", str(self._file), "--json"]
            done = subprocess.run(words, capture_output=True, text=True, timeout=CLEAN_LIMIT_S, check=False)
            if done.returncode != 0:
                yield f"`tare report` ended with {done.returncode}: {done.stderr.strip()[-500:]}"

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
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--signals", type=int, default=0, help="strikes by other means than SIGKILL")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--time", type=float, default=float("inf"), help="seconds after which no more strikes begin")
    parser.add_argument("--platforms", default=",".join(PLATFORMS))
    parser.add_argument("--ignore", default="", help="a regular expression: differences of somebody else's making")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("the storm needs root")
    moments = random.Random(options.seed)
    blows = [KILL] * options.kills + [BLOWS[number % len(BLOWS)] for number in range(options.signals)]
    moments.shuffle(blows)
    began = time.monotonic()
    strikes: list[Strike] = []
    with tempfile.TemporaryDirectory(prefix="storm-") as folder:
        storm = Storm(options.platforms.split(","), options.blocks, Path(folder), options.ignore)
        storm.warm_up()
        print(
            f"{options.platforms}: a campaign takes {storm.length_s:.0f} s; {len(blows)} strikes, seed {options.seed}"
        )
        while blows and time.monotonic() - began < options.time:
            strikes.append(storm.strike(moments, blows[-1]))
            print(_line(len(strikes), strikes[-1]), flush=True)
            if strikes[-1].phase != COMPLETE:  # otherwise the blow came too late, and is still to come
                blows.pop()
        last = storm.finish()
    return _summary(storm, strikes, last)


def _line(number: int, strike: Strike) -> str:
    how = "resumed" if strike.resumed else "new"
    faults = "; ".join(strike.faults) or "host as before"
    where = f"in {strike.phase}, {strike.trials} trials kept"
    return f"{number:4} {strike.blow} at {strike.at_s:.1f} s, {how}, {where}, code {strike.code}: {faults}"


def _summary(storm: Storm, strikes: Sequence[Strike], last: Sequence[str]) -> int:
    delivered = [strike for strike in strikes if strike.phase != COMPLETE]
    faults = [fault for strike in strikes for fault in strike.faults] + list(last)
    print(f"strikes: {len(delivered)}, of them in resumed campaigns: {sum(strike.resumed for strike in delivered)}")
    print(f"campaigns: {storm.campaigns}, ended whole: {storm.ended}")
    for title, values in (
        ("blows", (strike.blow for strike in delivered)),
        ("phases", (strike.phase for strike in delivered)),
        ("exit codes", (strike.code for strike in delivered)),
    ):
        print(
            f"{title}: " + ", ".join(f"{value} {count}" for value, count in collections.Counter(values).most_common())
        )
    print(f"differences and faults found: {len(faults)}")
    for fault in faults:
        print(f"  {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
