"""The stream of a platform whose start command hands its stdin and stdout to the agent."""

from __future__ import annotations

import os
import subprocess

from tare.host import processes
from tare.session.streams import PipeStream


class ProcessStream(PipeStream):
    """Pipes to a process; closing them ends it, by force if it does not go by itself."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        super().__init__(os.dup(process.stdout.fileno()), os.dup(process.stdin.fileno()))
        process.stdin.close()
        process.stdout.close()
        self._process = process

    def close(self) -> None:
        """End the process: its stdin ends, and it has 5 s to follow."""
        super().close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            processes.kill_group(self._process)
            self._process.wait()


def pipe_stream(process: subprocess.Popen[bytes]) -> ProcessStream:
    """Wrap a process that was started with pipes for stdin and stdout."""
    return ProcessStream(process)
