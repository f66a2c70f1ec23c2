"""What the kernel does to packets on the way that bridges and the host's rules share: settings, read."""

from __future__ import annotations

from pathlib import Path

from tare.host.kernel import settings

_FOLDER = Path("/proc/sys/net/bridge")
#: Of the module br_netfilter; it is there once that is loaded.
FILES = tuple(_FOLDER / f"bridge-nf-call-{kind}" for kind in ("iptables", "ip6tables", "arptables"))
#: It is there once connections are tracked in a network namespace.
_TRACKING = Path("/proc/sys/net/netfilter/nf_conntrack_count")


def switched_on() -> list[Path]:
    """The settings by which each frame that crosses a bridge passes the host's packet rules."""
    return [file for file in FILES if settings.read(file) == "1"]


def tracks_connections() -> bool:
    """Whether the kernel tracks connections of the host's network, or may once a rule asks for it."""
    return _TRACKING.exists()
