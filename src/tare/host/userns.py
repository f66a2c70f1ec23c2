"""User namespaces, whose root is an unprivileged user outside: on the host, the ids inside belong to nobody.

The image's files stay root's: an idmapped mount shows them to the namespace as its own root's, and files written above
them belong to the namespace's users on the disk too. A set-user-id file of a guest's belongs to a user that the host
does not have.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tare.errors import HostError
from tare.host import processes
from tare.host.kernel import mounts
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack

#: Ids that no distribution assigns.
FIRST = 2_000_000_000
#: Covers all ids in the image's files (nobody is 65534).
COUNT = 1 << 16
#: Prints a line once it has its namespaces, and ends with its standard input, and so with tare.
_HOLDER = ("unshare", "--user", "--net", "sh", "-c", "echo; read _")
FIX = "see /proc/sys/user/max_user_namespaces: user namespaces must be allowed"


@contextlib.contextmanager
def new(cleanup: CleanupStack, place: Path, first: int = FIRST) -> Iterator[int]:
    """Create a user namespace, bound to ``place``, and its own network namespace; yield a process in both.

    ``first``: the host's id of its root; the others follow. Raises `HostError` if the host does not allow it.
    """
    pipe = subprocess.PIPE
    holder = processes.start(_HOLDER, stdin=pipe, stdout=pipe)
    try:
        assert holder.stdout is not None
        if not holder.stdout.read(1):
            raise HostError("no user namespace can be made", fix=FIX)
        for kind in ("uid", "gid"):
            Path(f"/proc/{holder.pid}/{kind}_map").write_text(f"0 {first} {COUNT}\n")
        place.touch()
        cleanup.own(removers.mount(place))
        mounts.mount("none", place, source=f"/proc/{holder.pid}/ns/user", flags=mounts.BIND, fix=FIX)
        yield holder.pid
    finally:
        processes.end(holder)


def show(cleanup: CleanupStack, source: Path, target: Path, users: Path) -> None:
    """Mount a folder or file of root's read-only, so that it belongs to the namespace's root."""
    cleanup.own(removers.mount(target))
    namespace = os.open(users, os.O_RDONLY | os.O_CLOEXEC)
    try:
        mounts.mapped(source, target, namespace)
    finally:
        os.close(namespace)


def give(*places: Path, first: int = FIRST) -> None:
    """Make files and folders belong to the root of a namespace whose root is ``first`` (`new`)."""
    for place in places:
        os.chown(place, first, first, follow_symlinks=False)


def entered(users: Path) -> list[str]:
    """Return the command that executes the following words as root of the namespace."""
    return ["nsenter", f"--user={users}", "--setuid=0", "--setgid=0", "--"]
