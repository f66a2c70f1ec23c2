"""Kernel settings for packets on bridges and in the host's rules, read only."""

from __future__ import annotations

from pathlib import Path

from tare.host.kernel import settings

_FOLDER = Path("/proc/sys/net/bridge")
#: Settings of the module br_netfilter; they exist once it is loaded.
FILES = tuple(_FOLDER / f"bridge-nf-call-{kind}" for kind in ("iptables", "ip6tables", "arptables"))
#: It exists once connections are tracked in a network namespace.
_TRACKING = Path("/proc/sys/net/netfilter/nf_conntrack_count")


def switched_on() -> list[Path]:
    """Return the settings by which each frame that crosses a bridge passes the host's packet rules."""
    return [file for file in FILES if settings.read(file) == "1"]


def tracks_connections() -> bool:
    """Return True if the kernel tracks connections of the host's network, or may once a rule requests it."""
    return _TRACKING.exists()
