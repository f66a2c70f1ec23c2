"""Outputs of the real tools, as they were captured in the image; `captured/README.md` says how."""

import re
from functools import cache
from pathlib import Path

from tare.testing import Capture
from tare.workloads.base import Completed

FOLDER = Path(__file__).parent / "captured"
#: With what the outputs were captured where that is not what `quick` has.
CAPTURED_WITH = {
    "sysbench-cpu": {"events": 0},
    "sysbench-memory": {"total_mib": 0, "block_kib": 1024},
    "sysbench-fileio-seqrd": {"total_mib": 256},
    "sysbench-fileio-seqwr": {"passes": 0},
}


@cache
def text(name, suffix=".txt"):
    file = FOLDER / f"{name}{suffix}"
    return file.read_text() if file.exists() else ""


def wall_s(name):
    """How long the whole command took: of sysbench its own total, and what its start and end took (10 to 36 ms)."""
    total = re.search(r"total time: +([0-9.]+)s", text(name))
    return float(total[1]) + 0.02 if total else 1.0


def completed(stdout="", *, stderr="", code=0, signal=None, timed_out=False, argv=("tool", "run"), wall_s=1.0):
    """A command that left this; by default it ended well."""
    ended_by_signal = signal is not None or timed_out
    return Completed(
        argv=argv,
        exit_code=None if ended_by_signal else code,
        stdout=stdout.encode() if isinstance(stdout, str) else stdout,
        stderr=stderr.encode(),
        wall_ns=int(1e9 * wall_s),
        timed_out=timed_out,
        signal=signal,
    )


def captured(name, **ended):
    """A command that left the captured output of this name."""
    return completed(text(name), stderr=text(name, ".err"), **{"wall_s": wall_s(name), **ended})


def outputs_of(names):
    """The captured outputs of these names as `tare.testing` takes them."""
    return [Capture(stdout=text(name), stderr=text(name, ".err"), wall_s=wall_s(name)) for name in names]
