"""Code that all servers share: their address, and the check that they listen."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tare.errors import HostError
from tare.model import EVERYWHERE
from tare.workloads.base import Command, Surroundings
from tare.workloads.network.exchange import AGENT

#: What the agent prints once a server answers (`agent/src/run.rs`).
READY = b"tare: the application is ready"
#: A database that was not ended well reads its log first, and an emulated processor takes some thirty times as long.
READY_LIMIT_S = 120.0
#: The agent waits for longer than the host does, whose limit `TARE_PATIENCE` stretches.
_NEVER_S = "86400"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of a server inside, and for the client."""

    address: str
    port: int
    inside: int  # the port as seen in the instance
    listen: str  # the address that it listens on there

    @property
    def local(self) -> str:
        """The address at which it is asked for from inside."""
        return "127.0.0.1" if self.listen == EVERYWHERE else self.listen


def place(name: str, around: Surroundings) -> ServerAddress:
    """Return where a workload of this name has its server. Raises `HostError` where the instance has no network."""
    if around.address is None or around.port is None or around.instance_port is None:
        raise HostError(f"{name} needs an instance with a network", fix=f"leave out {name} on this platform")
    return ServerAddress(around.address, around.port, around.instance_port, around.listen)


def when_open(where: ServerAddress, path: str | None = None) -> tuple[str, ...]:
    """Return the agent's options for a server that is in service once its port takes connections, or answers a path."""
    check = f"tcp:{where.inside}" if path is None else f"http:{where.inside}:{path}"
    return ("--ready", check, "--at", where.local)


def when_answered(question: Sequence[str]) -> tuple[str, ...]:
    """Return the agent's options for a server that is in service once a command ends with 0, which it asks inside."""
    return ("--ready", "command", *(word for argument in question for word in ("--ask", argument)))


def server(
    argv: tuple[str, ...], where: ServerAddress, question: tuple[str, ...] = (), *, time_limit_s: float
) -> Command:
    """Return the command of a server that is in service once its port takes connections.

    ``question``: a command instead, which ends with 0 once the server answers.
    """
    ready = when_answered(question) if question else when_open(where)
    return Command(
        (AGENT, "run", *ready, "--within", _NEVER_S, "--", *argv),
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
