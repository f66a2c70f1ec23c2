"""How a platform is tried without an instance: one trivial sandbox, of which nothing stays."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.host import cgroup, pinning, processes, removers, state
from tare.host.journal import CleanupStack, Journal
from tare.model import Resources
from tare.timeouts import stretched

MEMORY = 1 << 30
LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Ground:
    """What an attempt may use: a folder, a control group, and who removes what else it makes."""

    folder: Path
    group: cgroup.Group
    cleanup: CleanupStack


def system_folders() -> list[Path]:
    """Where the host's own programs and libraries are: enough of a root for a trivial program."""
    return [path for path in map(Path, ("/usr", "/bin", "/lib", "/lib64")) if path.exists()]


def complaint(command: Callable[[Ground], Sequence[str]], telling: str = "") -> str:
    """Run the command that starts a trivial sandbox; "" when it ends well, else the last line of what it says.

    ``telling``: words of the line that says why, where others follow (a kernel's stack).
    """
    label = f"detect{os.getpid()}{secrets.token_hex(2)}"
    ground = Ground(state.work() / label, cgroup.Group(f"tare-{label}"), CleanupStack(Journal(state.journal())))
    with ground.cleanup as cleanup:
        cleanup.own(removers.folder(ground.folder), removers.control_group(ground.group.path))
        ground.folder.mkdir()
        ground.group.create(Resources(tuple(sorted(pinning.usable())), MEMORY))
        argv = command(ground)
        # In a group of its own: a sandbox that hangs goes with it, and so do the groups that it makes below.
        procs = ground.group.leaf("tool", everywhere=True)
        tried = processes.run(argv, time_limit_s=LIMIT_S, cgroup_procs=procs)
    return why_not(tried, telling)


def why_not(tried: processes.Finished, telling: str = "") -> str:
    """Why a command did not end well, in one line; "" when it did. ``telling``: as of `complaint`."""
    if tried.timed_out:
        return f"no answer within {stretched(LIMIT_S):.0f} s"
    if tried.code == 0:
        return ""
    lines = (tried.stderr or tried.stdout).decode(errors="replace").strip().splitlines()
    told = [line for line in (tried.stdout + tried.stderr).decode(errors="replace").splitlines() if telling in line]
    last = told[-1:] if telling and told else lines[-1:]
    return last[0].strip() if last else f"exit code {tried.code}, and no message"
