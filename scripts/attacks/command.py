"""The command line of this clone, run as its users run it, with what it took."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
TARE = Path(sys.executable).with_name("tare")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its code (124: it had to be killed), its words, its time in s and its peak in bytes."""

    code: int
    text: str
    seconds: float
    peak_bytes: int

    @property
    def fault(self) -> str:
        """That it ended by a traceback, or not by itself; "": neither."""
        if self.code == 124:
            return f"it had to be killed after {self.seconds:.0f} s"
        if "Traceback (most recent call last)" in self.text:
            return f"a traceback: {self.text.strip().splitlines()[-1][:200]}"
        return ""


def tare(*words: str | Path, cwd: Path | None = None, limit_s: float = 120.0, path: str | None = None) -> Ended:
    """Run `tare WORDS`, with an empty standard input; both outputs are in its text. ``path``: a PATH of its own."""
    environment = os.environ if path is None else {**os.environ, "PATH": path}
    with tempfile.TemporaryFile() as output:
        began = time.monotonic()
        process = subprocess.Popen(
            [TARE, *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=cwd,
            env=environment,
        )
        code = None
        while code is None:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                code, peak = os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024
            elif time.monotonic() - began > limit_s:
                process.kill()
                _, _, usage = os.wait4(process.pid, 0)
                code, peak = 124, usage.ru_maxrss * 1024
            else:
                time.sleep(0.05)
        process.returncode = code
        output.seek(0)
        return Ended(code, output.read().decode(errors="replace"), time.monotonic() - began, peak)


def at_once(attempts: Sequence[Callable[[], T]]) -> list[T]:
    """Make attempts that have nothing to do with each other, as many at a time as there are processors."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [each.result() for each in [pool.submit(attempt) for attempt in attempts]]
