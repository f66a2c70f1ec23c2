"""OCI runtimes: where they are, and what they must not see, both when they start and when they remove containers."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from tare.host import cgroup, processes, state

#: Those that tare builds where no package has them (`tare.setup`).
BUILT = ("runsc", "youki")
#: The name of `surroundings` in the journal.
WITHOUT_V2 = "without-v2"
#: What `crun` writes, in the folder of tare's programs.
WRAPPER = "crun-without-v2"


def find(name: str) -> str | None:
    """The runtime that `make` built for tare, else one on PATH; None where there is none."""
    built = state.home_if_any() / "bin" / name
    return str(built.resolve()) if name in BUILT and os.access(built, os.X_OK) else processes.find(name)


def asked_version(program: str) -> list[str]:
    """The command that prints a program's version. crun makes the folder of its containers for it, so names one."""
    return [program, *([f"--root={state.work()}"] if program == "crun" else []), "--version"]


def described(program: str) -> str:
    """A runtime's version and path, as "crun 1.21 (/usr/bin/crun)"; of one that does not say a version the path."""
    genuine = "crun" if Path(program).name == WRAPPER else program
    asked = asked_version(Path(genuine).name) if Path(genuine).name == "crun" else [genuine, "--version"]
    first = (processes.run(asked, time_limit_s=10).text.splitlines() or [""])[0]
    name, separator, version = first.partition(" version ")
    return f"{name} {version.strip()} ({program})" if separator else program


def podman() -> list[str]:
    """Podman as root. It says nothing but errors: warnings are not why a container fails.

    It has groups made by whom its users have: systemd, unless they say otherwise. Elsewhere there is none to ask.
    """
    return ["podman", *([] if cgroup.kept_by_systemd() else ["--cgroup-manager=cgroupfs"]), "--log-level=error"]


def surroundings(tree: cgroup.Hierarchies) -> list[str]:
    """The command that makes a mount namespace without the v2 hierarchy, where the host has one beside v1's.

    crun sees both and says `cgroups in hybrid mode not supported`; it uses v1's when there is nothing else to see.
    """
    if tree.unified or tree.v2 is None:
        return []
    # Not private: what is unmounted on the host later must go here too.
    script = 'umount "$0" && exec "$@"'
    return ["unshare", "--mount", "--propagation", "slave", "sh", "-c", script, str(tree.v2)]


def crun() -> str:
    """Crun as a runtime for podman and dockerd: its path, or that of a script that makes its surroundings first."""
    program = processes.find("crun") or "crun"
    within = surroundings(cgroup.hierarchies())
    if not within:
        return program
    place = state.home() / "bin" / WRAPPER
    text = f'#!/bin/sh\nexec {shlex.join([*within, program])} "$@"\n'
    if not place.exists() or place.read_text() != text:
        place.parent.mkdir(exist_ok=True)
        part = place.with_suffix(f".{os.getpid()}")
        part.write_text(text)
        part.chmod(0o755)
        part.rename(place)
    return str(place)
