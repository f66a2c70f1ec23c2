"""CPU time of short commands, user and system, of the whole process: how soon the command line answers.

Goal: at most 0.3 s each. Started as the installed command starts: one interpreter, `tare.cli.main`.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile

GOAL_S = 0.3
TIMES = 10
MAIN = "from tare.cli import main; main()"
COMMANDS = (
    ("--version",),
    ("--help",),
    ("run", "--help"),
    ("list", "platforms"),
    ("list", "workloads"),
    ("list", "metrics"),
    ("clean", "--dry-run"),
    ("nonsense",),
    ("run", "--time", "inf"),
    ("run", "-p", "dokcer"),
    ("run", "--resume", "nowhere.tare"),
    ("report", "nowhere.tare"),
)


def main() -> None:
    """Print a row a command."""
    print(f"| command | CPU time, median of {TIMES} | least | goal |")
    print("| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for words in COMMANDS:
            cpu_s(words)  # what is compiled and cached is not counted
            taken = [cpu_s(words) for _ in range(TIMES)]
            print(
                f"| `tare {' '.join(words)}` | {statistics.median(taken):.2f} s | {min(taken):.2f} s | {GOAL_S} s |",
                flush=True,
            )


def cpu_s(words: tuple[str, ...]) -> float:
    """User and system time of one command, in seconds."""
    process = os.posix_spawn(
        sys.executable,
        [sys.executable, "-P", "-c", MAIN, *words],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)],
    )
    used = os.wait4(process, 0)[2]
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
