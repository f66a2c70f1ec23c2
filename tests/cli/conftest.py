import functools
import os
import subprocess
import sys

import pytest

from tare.cli import interrupts


@pytest.fixture(autouse=True)
def _no_interrupt_of_another_test(monkeypatch):
    monkeypatch.setattr(interrupts, "_raised_at", float("-inf"))


@pytest.fixture
def tare(request, tmp_path):
    """Runs the command as a user does, in a folder of its own; about the host in an interpreter of its own."""
    if not request.node.get_closest_marker("host"):
        commands = request.getfixturevalue("reading_commands")
        return functools.partial(commands.run, cwd=tmp_path)

    def run(*arguments, env=None, time_limit_s=120):
        return subprocess.run(
            [sys.executable, "-c", "from tare.cli import main; main()", *arguments],
            cwd=tmp_path,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=time_limit_s,
            check=False,
        )

    return run
