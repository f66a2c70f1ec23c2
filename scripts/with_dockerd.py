"""Run a command with a Docker daemon: the one that answers, else one that is started and always stopped again.

The started one (`tare.host.own_dockerd`) knows crun and gVisor's runtimes, and gives back what it changes on the host.
Ends as the command ends; 2 when there is no daemon to be had.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType

from tare.errors import HostError, TareError
from tare.host import own_dockerd, state
from tare.host.resources.journal import Journal, clear_the_way


def main(argv: Sequence[str]) -> int:
    """Find or start the daemon, run the command."""
    if not argv:
        sys.stderr.write("with-dockerd: no command is given (fix: scripts/with-dockerd COMMAND...)\n")
        return 2
    # Told to stop, the command is told, and the daemon is stopped after it; a Ctrl-C reaches the command by itself.
    follower = _Foreground()
    try:
        # A journal of its own: what the command finds in the host's, and removes, is the command's.
        journal = Journal(state.home() / "dockerd" / "journal")
        clear_the_way(journal)
        with own_dockerd.lent(journal):
            return follower.run(argv)
    except TareError as error:
        sys.stderr.write(f"with-dockerd: {error}\n")
        return 2


class _Foreground:
    """Runs the command in the foreground, and passes on what we are told."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._stop: int | None = None
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where the parent ignores it, exit codes are lost
        signal.signal(signal.SIGINT, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._pass_on)

    def run(self, argv: Sequence[str]) -> int:
        """The command's exit code, as a shell gives it."""
        if self._stop is not None:
            return 128 + self._stop
        try:
            self._child = subprocess.Popen(list(argv))  # noqa: S603 (the caller's own command, in his terminal)
        except OSError as error:
            raise HostError(f"{argv[0]} does not start: {error.strerror}", fix="name a program on PATH") from error
        code = self._child.wait()
        return code if code >= 0 else 128 - code

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        self._stop = number
        if self._child is not None:
            self._child.send_signal(number)


if __name__ == "__main__":
    state.home()
    sys.exit(main(sys.argv[1:]))
