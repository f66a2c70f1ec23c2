"""Runs a command beside a host that ssh reaches; see with-sshd."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType

from platforms.remote_host import remote_host
from tare.errors import TareError


def main(argv: Sequence[str]) -> int:
    """Start the host, say its name, run the command; without one, wait to be told to stop."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        with remote_host() as remote:
            sys.stdout.write(f"with-sshd: the host is {remote.platform}\n")
            sys.stdout.flush()
            if not argv:
                signal.pause()
            words = [remote.platform if word == "FAR" else word for word in argv]
            return subprocess.run(words, check=False).returncode  # noqa: S603 (the caller's own command)
    except KeyboardInterrupt:
        return 130
    except (TareError, OSError) as error:
        sys.stderr.write(f"with-sshd: {error}\n")
        return 2


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
