"""The "room": a folder in a mount namespace by which a program without rights reaches files of an instance.

Only root can enter TARE_HOME, so nobody else reaches an instance's files by their paths. The files that the root of a
user namespace needs are mounted in the room, before the start instant; the mounts are not visible on the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

#: Folders that exist on every host and that none of these programs needs: the room is mounted over one of them.
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
    """Return the folder that the room is mounted over."""
    return next(room for room in ROOMS if Path(room).is_dir())


def inside(name: str) -> str:
    """Return the path in the room of the file or folder that has this name there."""
    return f"{where()}/tare/{name}"


def named(seen: Mapping[str, Path]) -> list[str]:
    """Return the arguments of `BINDS`: names in the room and the host's paths in pairs, then ``--``."""
    return [*(word for name, source in seen.items() for word in (name, str(source))), "--"]


def made(seen: Mapping[str, Path]) -> list[str]:
    """Return the command prefix that makes a room with these files (`inside`: their paths) and runs the rest in it."""
    # Not private: what is unmounted on the host later must go here too.
    apart = ["unshare", "--mount", "--propagation", "slave"]
    return [*apart, "sh", "-ec", _ENTER, "sh", where(), *named(seen)]
