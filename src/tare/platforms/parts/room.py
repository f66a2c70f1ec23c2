"""A place for what a program without rights is to reach: a mount namespace with a room that anybody may enter.

TARE_HOME is root's alone, so that nobody else comes to an instance's files by their paths. What a user namespace's root
needs of them is mounted here, before the start instant; on the host nothing of it is seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

#: Folders that are there on every host, and of which none of these programs needs anything: one is mounted over.
ROOMS = ("/run/user", "/mnt")
#: Shows the files and folders named in pairs until ``--``. Of a device it makes a node that anybody may open.
BINDS = """\
while [ "$1" != -- ]; do
    if [ -c "$2" ]; then
        mknod -m 666 "$room/tare/$1" c $(stat -c '0x%t 0x%T' "$2")
    else
        if [ -d "$2" ]; then mkdir "$room/tare/$1"; else : >"$room/tare/$1"; fi
        mount --rbind "$2" "$room/tare/$1"
    fi
    shift 2
done
shift
"""
_ENTER = f"""\
room=$1; shift
mount -t tmpfs -o mode=755 tare "$room"
mkdir "$room/tare"
{BINDS}exec "$@"
"""


def where() -> str:
    """The folder that the room is mounted over."""
    return next(room for room in ROOMS if Path(room).is_dir())


def inside(name: str) -> str:
    """Where something of this name is, in the room."""
    return f"{where()}/tare/{name}"


def named(seen: Mapping[str, Path]) -> list[str]:
    """The words that `BINDS` takes."""
    return [*(word for name, source in seen.items() for word in (name, str(source))), "--"]


def made(seen: Mapping[str, Path]) -> list[str]:
    """What makes a room with these in it (`inside` says where), and then becomes what follows it."""
    # Not private: what is unmounted on the host later must go here too.
    apart = ["unshare", "--mount", "--propagation", "slave"]
    return [*apart, "sh", "-ec", _ENTER, "sh", where(), *named(seen)]
