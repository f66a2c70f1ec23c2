"""A daemon of tare's own, for platforms that need one and find none: started on demand, and always stopped.

It runs with all its children in a control group of its own, so that their CPU time is separate from the instances', and
none of them remains, even after a kill (`tare clean`).
"""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tare.errors import HostError
from tare.host import cgroup, processes
from tare.host.daemons import keyring
from tare.host.kernel import pinning
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.model import Resources
from tare.timeouts import stretched, until

#: Time for a daemon to end after its connections closed: its memory is freed in between.
DYING_S = 1.0
#: Prefix of the daemons' control groups, which are siblings of the instances' parent.
PREFIX = "tare-daemon"


@dataclass(frozen=True, slots=True)
class Daemon:
    """A daemon in service. ``group``: its control group, for reading its CPU time."""

    name: str
    process: subprocess.Popen[bytes]
    group: cgroup.Group

    def ended(self, within_s: float = 0.0) -> str | None:
        """Return how it ended: ``was ended by signal 9`` or ``ended with 1``; None while it runs.

        ``within_s``: how long to wait for an end that others may already have noticed. The kernel closes the
        connections of a dying process before it notifies the parent.
        """
        try:
            code = self.process.wait(stretched(within_s))
        except subprocess.TimeoutExpired:
            return None
        return f"was ended by signal {-code}" if code < 0 else f"ended with {code}"

    def stop(self, time_limit_s: float = 10.0) -> None:
        """Ask it to end. Its owner removes its control group, with any process that does not end."""
        self.process.terminate()
        processes.end(self.process, grace_s=time_limit_s)


def start(
    cleanup: CleanupStack,
    name: str,
    argv: Sequence[str],
    *,
    ready: Callable[[], bool],
    log: Path,
    env: Mapping[str, str] = MappingProxyType({}),
    time_limit_s: float = 30.0,
) -> Daemon:
    """Start a daemon and wait until ``ready`` returns True.

    Raises `HostError` with its last line if it ends or does not answer within the limit.
    """
    # A unique name, because another tare on the host (`tare doctor` beside a campaign) may start its own.
    group = cgroup.named(f"{PREFIX}-{name}-{os.getpid()}{secrets.token_hex(2)}")
    cleanup.own(removers.control_group(group.path))
    group.create(Resources(tuple(sorted(pinning.usable())), _all_memory(), pids=None))
    with log.open("wb") as file:
        procs = group.leaf("daemon")
        process = processes.start(keyring.apart(argv), stdout=file, stderr=file, env=env, cgroup_procs=procs)
    daemon = Daemon(name, process, group)
    deadline = until(time_limit_s)
    while not ready():
        how = daemon.ended()
        if how is not None or time.monotonic() > deadline:
            daemon.stop(0)
            lines = log.read_text(errors="replace").strip().splitlines()
            last = lines[-1][:300] if lines else "it said nothing"
            raise HostError(f"{name} {how or 'does not answer'}: {last}", fix=f"see {log}")
        time.sleep(0.05)
    return daemon


def _all_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
