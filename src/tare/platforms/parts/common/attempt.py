"""The trial of a platform at its detection: one trivial sandbox, which leaves nothing on the host."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.host import cgroup, processes, state
from tare.host.facts import denials
from tare.host.kernel import pinning
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.model import Resources
from tare.timeouts import stretched

MEMORY = 1 << 30
LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class TrialSite:
    """The site of a detection's sandbox: folder, control group, and the owner of everything else that it makes."""

    folder: Path
    group: cgroup.Group
    cleanup: CleanupStack


def system_folders() -> list[Path]:
    """Return where the host's own programs and libraries are: enough of a root for a trivial program."""
    return [path for path in map(Path, ("/usr", "/bin", "/lib", "/lib64")) if path.exists()]


def complaint(command: Callable[[TrialSite], Sequence[str]], cause: str = "") -> str:
    """Run the command that starts a trivial sandbox; "" when it ends well, else the last line of its output.

    ``cause``: words of the line that gives the cause, where other lines follow it (a kernel's stack).
    """
    label = f"detect{os.getpid()}{secrets.token_hex(2)}"
    site = TrialSite(state.work() / label, cgroup.named(f"tare-{label}"), CleanupStack())
    with site.cleanup as cleanup:
        cleanup.own(removers.folder(site.folder), removers.control_group(site.group.path))
        site.folder.mkdir()
        site.group.create(Resources(tuple(sorted(pinning.usable())), MEMORY))
        argv = [*site.group.surroundings(), *command(site)]
        # In a group of its own: a sandbox that hangs is ended with it, and so are the groups that it makes below.
        procs = site.group.leaf("tool")
        with denials.watched() as denied:
            tried = processes.run(argv, time_limit_s=LIMIT_S, cgroup_procs=procs)
            why = why_not(tried, cause)
            denial = denied() if why else None
    return f"{why}; {denial}" if denial else why


def why_not(tried: processes.Finished, cause: str = "") -> str:
    """Return why a command did not end well, in one line; "" when it did. ``cause``: as of `complaint`."""
    if tried.timed_out:
        return f"no answer within {stretched(LIMIT_S):.0f} s"
    if tried.code == 0:
        return ""
    lines = (tried.stderr or tried.stdout).decode(errors="replace").strip().splitlines()
    matching = [line for line in (tried.stdout + tried.stderr).decode(errors="replace").splitlines() if cause in line]
    last = matching[-1:] if cause and matching else lines[-1:]
    return last[0].strip() if last else f"exit code {tried.code}, and no message"
