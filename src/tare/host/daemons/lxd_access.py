"""Access to a daemon of LXD's or Incus's by its command line client, whose environment names the daemon."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LxdAccess:
    """Location of a client and its daemon.

    ``client``: lxc or incus; ``socket``: of the host's own daemon, or None if ``folder`` holds tare's own;
    ``settings``: the client's own folder.
    """

    client: str
    folder: Path
    socket: Path | None
    settings: Path

    @property
    def environment(self) -> list[str]:
        """Return the command before the client's, which sets the environment that names the daemon.

        Incus's client always creates a folder in the user's cache; this puts it below its settings.
        """
        variable = {"lxc": "LXD", "incus": "INCUS"}[self.client]
        where = f"{variable}_DIR={self.folder}" if self.socket is None else f"{variable}_SOCKET={self.socket}"
        return ["env", where, f"{variable}_CONF={self.settings}", f"{variable}_CACHE={self.settings}/cache"]

    @property
    def argv(self) -> list[str]:
        """Return the client's command, without its arguments."""
        return [*self.environment, self.client]
