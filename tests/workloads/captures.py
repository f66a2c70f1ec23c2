"""Outputs of the real tools, as they were captured in the image; `captured/README.md` says how."""

from functools import cache
from pathlib import Path

from tare.workloads.base import Completed

FOLDER = Path(__file__).parent / "captured"


@cache
def text(name, suffix=".txt"):
    file = FOLDER / f"{name}{suffix}"
    return file.read_text() if file.exists() else ""


def completed(stdout="", *, stderr="", code=0, signal=None, timed_out=False, argv=("tool", "run")):
    """A command that left this; by default it ended well."""
    ended_by_signal = signal is not None or timed_out
    return Completed(
        argv=argv,
        exit_code=None if ended_by_signal else code,
        stdout=stdout.encode() if isinstance(stdout, str) else stdout,
        stderr=stderr.encode(),
        wall_ns=1_000_000_000,
        timed_out=timed_out,
        signal=signal,
    )


def captured(name, **ended):
    """A command that left the captured output of this name."""
    return completed(text(name), stderr=text(name, ".err"), **ended)
