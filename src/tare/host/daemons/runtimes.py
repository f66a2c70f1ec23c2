"""OCI runtimes: their paths, and hierarchies to hide from them when they start and remove containers."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from tare.host import cgroup, processes, state

#: Runtimes that tare builds because no package has them (`tare.setup`).
BUILT = ("runsc", "youki")
#: The name of `surroundings` in the journal.
WITHOUT_V2 = "without-v2"
#: The script that `crun` writes, in the folder of tare's programs.
WRAPPER = "crun-without-v2"


def find(name: str) -> str | None:
    """Return the runtime that `make` built for tare, or the one on PATH, or None."""
    built = state.home_if_any() / "bin" / name
    return str(built.resolve()) if name in BUILT and os.access(built, os.X_OK) else processes.find(name)


def asked_version(program: str) -> list[str]:
    """Return the command that prints a version.

    crun creates its containers' folder for it, so the command names one.
    """
    return [program, *([f"--root={state.work()}"] if program == "crun" else []), "--version"]


def described(program: str) -> str:
    """Return a runtime's version and path, as "crun 1.21 (/usr/bin/crun)"; only the path if it reports no version."""
    genuine = "crun" if Path(program).name == WRAPPER else program
    asked = asked_version(Path(genuine).name) if Path(genuine).name == "crun" else [genuine, "--version"]
    first = (processes.run(asked, time_limit_s=10).text.splitlines() or [""])[0]
    name, separator, version = first.partition(" version ")
    return f"{name} {version.strip()} ({program})" if separator else program


def podman() -> list[str]:
    """Return Podman's command as root. It prints only errors, because warnings do not explain a failed container.

    Its groups are made by its users' setting, by default systemd. On a host whose groups systemd does not manage,
    Podman makes them itself.
    """
    return ["podman", *([] if cgroup.kept_by_systemd() else ["--cgroup-manager=cgroupfs"]), "--log-level=error"]


def surroundings(tree: cgroup.Hierarchies) -> list[str]:
    """Return the command for a mount namespace without the v2 hierarchy, if the host has it beside v1's.

    crun sees both and fails with `cgroups in hybrid mode not supported`; it uses v1's if it sees no other.
    """
    if tree.unified or tree.v2 is None:
        return []
    # The namespace is not private, so that later unmounts on the host reach it too.
    script = 'umount "$0" && exec "$@"'
    return ["unshare", "--mount", "--propagation", "slave", "sh", "-c", script, str(tree.v2)]


def crun() -> str:
    """Return crun for podman and dockerd: its path, or that of a script that sets up its surroundings first."""
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
