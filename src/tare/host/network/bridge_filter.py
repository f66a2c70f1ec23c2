"""The module br_netfilter, which takes each frame that crosses a bridge through the host's packet rules.

Docker and Kubernetes load it. A frame passes the rules where the host's setting or the bridge's own is on. It costs a
round trip on tare's bridge some microseconds: containers' alone, and not that of what has the host's network. So the
host's setting is off during a campaign, and each other bridge gets it as its own for that time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tare.host import processes
from tare.host.kernel import bridged, settings
from tare.host.network.fence import BRIDGE
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack

_LINKS = Path("/sys/class/net")


def switch_off(cleanup: CleanupStack) -> str:
    """Switch it off for tare's bridge until ``cleanup``; returns why it stays on, "" where it does not."""
    on = bridged.switched_on()
    others = others_bridges(_bridges())
    own = [_LINKS / name / "bridge" / own_name(file) for name in others for file in on]
    if lost := [file for file in own if settings.read(file) is None]:
        return f"frames on tare's bridge pass the host's packet rules (br_netfilter): {lost[0]} is not there"
    # The host's own setting last: until then every bridge has what it had.
    for file, wanted in [*((file, "1") for file in own), *((file, "0") for file in on)]:
        former = settings.read(file) or ""
        if former == wanted:
            continue
        cleanup.own(removers.setting(file, former, wanted))
        try:
            settings.write(file, wanted)
        except OSError as error:
            return f"frames on tare's bridge pass the host's packet rules: {file} cannot be written: {error.strerror}"
    return ""


def own_name(file: Path) -> str:
    """Return what a setting of the host's is called where it is a bridge's own: ``nf_call_iptables``."""
    return file.name.removeprefix("bridge-").replace("-", "_")


def others_bridges(listed: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the bridges besides tare's, from what ``ip -j link show type bridge`` prints."""
    return sorted(name for bridge in listed if (name := str(bridge.get("ifname", ""))) not in {"", BRIDGE})


def _bridges() -> list[Mapping[str, Any]]:
    listed = processes.run(["ip", "-j", "link", "show", "type", "bridge"])
    return [bridge for bridge in json.loads(listed.text or "[]") if bridge] if listed.code == 0 else []
