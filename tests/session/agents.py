"""The real agent as a process, for tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tare.host import processes
from tare.session import PipeStream


class RunningAgent:
    """The agent's process with a stream to it."""

    def __init__(self, binary: Path, *options: str, within: Sequence[str] = ()) -> None:
        self.process = processes.start(
            [*within, str(binary), "serve", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stream = PipeStream(os.dup(self.process.stdout.fileno()), os.dup(self.process.stdin.fileno()))
        self.process.stdin.close()
        self.process.stdout.close()

    def end(self) -> int:
        """Close the stream and wait for the process; returns its exit code."""
        self.stream.close()
        try:
            return self.process.wait(10)
        finally:
            processes.kill_group(self.process)
            self.process.wait()
            assert self.process.stderr is not None
            self.process.stderr.close()
