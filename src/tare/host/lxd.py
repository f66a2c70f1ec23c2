"""How a daemon of LXD's or Incus's is reached: its command line client, told by the environment where the daemon is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Reach:
    """``client``: lxc or incus; ``socket``: of the host's own daemon, or None where ``folder`` has one of tare's.

    ``settings``: the client's own folder.
    """

    client: str
    folder: Path
    socket: Path | None
    settings: Path

    @property
    def environment(self) -> list[str]:
        """The command that tells the client where its daemon is, to be put before it."""
        variable = {"lxc": "LXD", "incus": "INCUS"}[self.client]
        where = f"{variable}_DIR={self.folder}" if self.socket is None else f"{variable}_SOCKET={self.socket}"
        return ["env", where, f"{variable}_CONF={self.settings}"]

    @property
    def argv(self) -> list[str]:
        """The client, to be followed by its words."""
        return [*self.environment, self.client]
