"""How a daemon of LXD's or Incus's is reached: by its command line client, whose environment names the daemon."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a client and its daemon are.

    ``client``: lxc or incus; ``socket``: of the host's own daemon, or None where ``folder`` has one of tare's;
    ``settings``: the client's own folder.
    """

    client: str
    folder: Path
    socket: Path | None
    settings: Path

    @property
    def environment(self) -> list[str]:
        """The command before the client's: it sets the environment by which the client finds its daemon.

        Incus's client makes a folder in the user's cache whatever it is asked; here that is below its settings.
        """
        variable = {"lxc": "LXD", "incus": "INCUS"}[self.client]
        where = f"{variable}_DIR={self.folder}" if self.socket is None else f"{variable}_SOCKET={self.socket}"
        return ["env", where, f"{variable}_CONF={self.settings}", f"{variable}_CACHE={self.settings}/cache"]

    @property
    def argv(self) -> list[str]:
        """The client's command, to be followed by its arguments."""
        return [*self.environment, self.client]
