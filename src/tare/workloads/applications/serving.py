"""What all servers share: where they listen, and how it is known that they do."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass

from tare.errors import HostError
from tare.model import EVERYWHERE
from tare.workloads.base import Command, Surroundings

#: What a server says on its standard output once its port takes connections.
READY = b"tare: it listens"
#: A database that was not ended well reads its log first, and an emulated processor takes some thirty times as long.
READY_LIMIT_S = 120.0
#: Starts a server and tells when it answers, which hardly any server says by itself in a line to wait for. $1: how many
#: words the question has, which ends with 0 once it answers; then the question and the server's command. Where the
#: server ends before, its exit code is the script's.
_SCRIPT = """
question=("${@:2:$1}"); shift "$(($1 + 1))"
"$@" & server=$!
until "${question[@]}" 2>/dev/null; do
    kill -0 "$server" 2>/dev/null || { wait "$server"; exit; }
    sleep 0.05
done
echo 'tare: it listens'
wait "$server"
"""
#: Whether a port takes connections: $0 is the address, $1 the port.
_CONNECTS = ': <"/dev/tcp/$0/$1"'


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server listens inside, and where the client finds it."""

    address: str
    port: int
    inside: int  # the port as seen in the instance
    listen: str  # the address that it listens on there

    @property
    def local(self) -> str:
        """The address at which it is asked for from inside."""
        return "127.0.0.1" if self.listen == EVERYWHERE else self.listen


def place(name: str, around: Surroundings) -> Place:
    """Where a workload of this name has its server. Raises `HostError` where the instance has no network."""
    if around.address is None or around.port is None or around.instance_port is None:
        raise HostError(f"{name} needs an instance with a network", fix=f"leave out {name} on this platform")
    return Place(around.address, around.port, around.instance_port, around.listen)


def server(argv: tuple[str, ...], where: Place, question: tuple[str, ...] = (), *, time_limit_s: float) -> Command:
    """The command of a server that is in service once its port takes connections.

    ``question``: a command instead, which ends with 0 once the server answers.
    """
    asked = question or ("bash", "-c", _CONNECTS, where.local, str(where.inside))
    return Command(
        ("bash", "-c", _SCRIPT, "serve", str(len(asked)), *asked, *argv),
        time_limit_s=time_limit_s,
        ready=READY,
        ready_limit_s=READY_LIMIT_S,
    )


def tar_of(files: Mapping[str, bytes]) -> bytes:
    """Files by name as a tar for an instance, the same bytes each time."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, contents in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(contents)
            archive.addfile(entry, io.BytesIO(contents))
    return packed.getvalue()
