"""A program of the host's that serves a guest, confined so that a guest that takes it over reaches nothing else.

It becomes root of a user namespace (`host.userns`), a user without rights outside, in a mount namespace whose root,
pivoted to, is an empty read-only folder with the files named; pid, ipc and uts namespaces are its own. By bubblewrap:
it pivots, makes what binds need, reaps in the pid namespace, and forbids new privileges, all of which a script around
``unshare`` and ``pivot_root`` would do again, worse. The network namespace stays: a TAP is looked for in that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tare.host import distribution, userns
from tare.platforms.parts.common import room

PROGRAM = "bwrap"
FIX = distribution.install("bubblewrap")
#: What a file server needs to treat files of all of the namespace's users as its guest's root does. Outside of that
#: namespace they give no rights.
CAPABILITIES = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID")


@dataclass(frozen=True, slots=True)
class Jail:
    """All that the program sees, beside a /dev/shm of its own: the host's paths, by their paths inside."""

    program: str  # as it is called inside
    users: Path  # the user namespace
    files: Sequence[str]  # of the host's system, at their own paths, to be read: the program's libraries
    read: Mapping[str, Path] = field(default_factory=dict)
    written: Mapping[str, Path] = field(default_factory=dict)
    devices: Sequence[str] = ()  # at their own paths; anybody may open them
    capabilities: Sequence[str] = CAPABILITIES


def within(jail: Jail) -> list[str]:
    """Return the command prefix that sets up the mounts that need root, and then gives up root's rights."""
    sources = {**jail.read, **jail.written, **{device: Path(device) for device in jail.devices}}
    named = {_name(inside): source for inside, source in sources.items()}
    return [*room.made(named), *userns.entered(jail.users), *_bounded(jail.capabilities)]


def _bounded(capabilities: Sequence[str]) -> list[str]:
    """Return the command prefix that drops all other capabilities from the bounding set.

    bwrap drops capabilities, but leaves the bounding set as it is. It mounts as root, and a program that root executes
    has what the bounding set or the inheritable one has: so the latter keeps them for bwrap, which then drops them.
    """
    kept = "".join(f",+{name.removeprefix('CAP_').lower()}" for name in capabilities)
    return [*("setpriv", "--inh-caps=+all", "--"), *("setpriv", f"--bounding-set=-all{kept}", "--")]


def command(jail: Jail, words: Sequence[str]) -> list[str]:
    """Return the command that runs the program with these arguments, to be started behind `within`."""
    mounts = [word for file in jail.files for word in ("--ro-bind", file, file)]
    for option, places in (("--ro-bind", jail.read), ("--bind", jail.written), ("--dev-bind", jail.devices)):
        mounts += [word for inside in places for word in (option, room.inside(_name(inside)), inside)]
    cap_add = [word for name in jail.capabilities for word in ("--cap-add", name)]
    isolation = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108
    return [
        PROGRAM,
        *isolation,
        *mounts,
        "--remount-ro",
        "/",
        "--chdir",
        "/",
        "--cap-drop",
        "ALL",
        *cap_add,
        jail.program,
        *words,
    ]


def _name(inside: str) -> str:
    return inside.strip("/").replace("/", "-")
