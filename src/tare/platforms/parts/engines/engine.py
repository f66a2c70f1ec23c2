"""A Docker engine's answers about itself, its images and containers, in any version: pure functions.

``info`` is the answer to `GET /info`, ``version`` that to `GET /version`, ``container`` that to
`GET /containers/ID/json`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The options of runsc that make it another platform, with what a current one does without them.
RUNSC_DEFAULTS = {"platform": "systrap", "network": "sandbox"}
#: Of an engine's parts those that have no hand in a container of tare's, or are named elsewhere.
_OTHER_PARTS = {"Engine", "docker-init"}
#: The first version that drops what comes to a container's own address by other links; that can be told not to.
DROPS_SINCE, LETS_THROUGH_SINCE = (28, 0), (28, 2)
#: A containerd that keeps the images has this as a storage driver's type.
_SNAPSHOTTER = "io.containerd.snapshotter.v1"


@dataclass(frozen=True, slots=True)
class EngineRuntime:
    """An OCI runtime that a daemon is configured with."""

    name: str
    #: as the daemon has it: a program's name or path; "" where it is a shim of containerd's, of which no engine up to
    #: 29 says more than its name in the settings, neither its type nor its options
    path: str
    args: tuple[str, ...] = ()

    @property
    def program(self) -> str:
        """The program that it is: "runsc", "crun", "runc"."""
        program = self.path.rpartition("/")[2] or self.name
        # A script that hides a hierarchy from crun is crun (`runtimes.crun`).
        return "crun" if program.startswith("crun") else program

    @property
    def options(self) -> dict[str, str]:
        """The settings among `RUNSC_DEFAULTS` that its arguments change."""
        words = [word for arg in self.args for word in arg.split("=", 1)]
        return {
            name.lstrip("-"): value
            for name, value in itertools.pairwise(words)
            if name.startswith("-") and name.lstrip("-") in RUNSC_DEFAULTS
        }

    def __str__(self) -> str:
        words = " ".join([self.path or "a shim, of which the daemon tells no options", *self.args])
        return f"{self.name} ({words})" if words != self.name else self.name


def runtimes(info: Mapping[str, Any]) -> list[EngineRuntime]:
    """Return the runtimes that the daemon has, by name."""
    configured = []
    for name, facts in sorted((info.get("Runtimes") or {}).items()):
        args = tuple(facts.get("runtimeArgs") or facts.get("args") or ())
        configured.append(EngineRuntime(name, facts.get("path") or "", args))
    return configured


def runtime(
    info: Mapping[str, Any],
    program: str,
    options: Mapping[str, str],
    default_trap: Callable[[str], str] = lambda _path: RUNSC_DEFAULTS["platform"],
) -> EngineRuntime | None:
    """Return the daemon's runtime that is this program with these options of runsc's; None where it has none.

    What a runtime is called is the user's choice: the one that is called like its program comes first.
    ``default_trap``: how the runsc at a path traps system calls where no option says it.
    """
    config = {**RUNSC_DEFAULTS, **options}
    fitting = [
        entry
        for entry in runtimes(info)
        if entry.program == program
        # containerd's own names for runc's shim
        and not entry.name.startswith("io.containerd.")
        and (program != "runsc" or {**RUNSC_DEFAULTS, "platform": default_trap(entry.path), **entry.options} == config)
    ]
    return min(fitting, key=lambda entry: (entry.name != program, entry.name), default=None)


def details(info: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of the daemon that its figures depend on."""
    options = _security(info)
    users = {"rootless": "a rootless daemon's", "userns": "remapped (userns-remap)"}
    filters = [f"{name} ({profile})" if profile else name for name, profile in options.items() if name not in users]
    return {
        "storage": str(info.get("Driver", "unknown")),
        "image store": "containerd" if _SNAPSHOTTER in _driver_types(info) else "the daemon's own",
        "cgroup driver": str(info.get("CgroupDriver", "unknown")),
        "security": ", ".join(filters) or "none",
        "users": next((text for name, text in users.items() if name in options), "the host's"),
    }


def versions(version: Mapping[str, Any], spoken: str) -> dict[str, str]:
    """Return the API that is spoken with the daemon, among those that it knows, and the versions of what it starts."""
    parts = [f"{part['Name']} {part['Version']}" for part in version.get("Components") or ()]
    return {
        "api": f"{spoken} (the daemon's: {version.get('MinAPIVersion')} to {version.get('ApiVersion')})",
        "parts": ", ".join(part for part in parts if part.split()[0] not in _OTHER_PARTS) or "unknown",
    }


def image(inspected: Mapping[str, Any], listed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what `GET /images/NAME/json` says, with the size of the list of images, `GET /images/json`.

    Where containerd keeps the images, that is what the packed and the unpacked image take together. Until Docker 29 the
    first answer had the packed one alone there.
    """
    sizes = [entry["Size"] for entry in listed if entry["Id"] == inspected["Id"]]
    return {**inspected, "Size": max(sizes, default=inspected["Size"])}


def rootless(info: Mapping[str, Any]) -> bool:
    """Return True if the daemon is a user's own, without root's rights."""
    return "rootless" in _security(info)


def remapped(info: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the host's user and group id that are a container's root by ``userns-remap``.

    None: they are the host's root.
    """
    if "userns" not in _security(info):
        return None
    uid, _, gid = str(info.get("DockerRootDir", "")).rpartition("/")[2].partition(".")
    return (int(uid), int(gid)) if uid.isdigit() and gid.isdigit() else None


def address(container: Mapping[str, Any]) -> str:
    """Return a container's address on the daemon's network; "" where it has none of its own.

    Since version 1.52 of the API (Docker 29) only ``Networks`` has it.
    """
    settings = container["NetworkSettings"]
    networks = (settings.get("Networks") or {}).values()
    addresses = (network.get("IPAddress") for network in networks if network)
    return str(next((ip for ip in addresses if ip), settings.get("IPAddress") or ""))


def unpinged(info: Mapping[str, Any]) -> str:
    """Return why pings that come by another link than the container's bridge get no answer from its own address.

    Since version 28 the daemon drops them, unless it is told to let them through, which it can be since 28.2 ("Direct
    routing" in Docker's manual on port publishing); an older one does not start with that setting.
    """
    why = "nothing comes back from the container's own address: a packet filter drops what comes to it by other links"
    version = tuple(map(int, re.findall(r"\d+", str(info.get("ServerVersion", "")))[:2]))
    if version < DROPS_SINCE:
        return why
    setting = '"allow-direct-routing": true in /etc/docker/daemon.json lets it through'
    remedy = f' ({setting}, but not with "firewall-backend": "nftables")' if version >= LETS_THROUGH_SINCE else ""
    return f"{why}, as Docker {DROPS_SINCE[0]} and newer do{remedy}"


def leftovers(container: Mapping[str, Any]) -> tuple[Path, list[str]]:
    """Return where a daemon keeps a container's record, and the mounts that it made for it."""
    record = Path(container.get("ResolvConfPath") or "/var/lib/docker/containers/none/resolv.conf").parent
    root = ((container.get("GraphDriver") or {}).get("Data") or {}).get("MergedDir")
    if not root:  # where containerd keeps the images, the daemon mounts the root below its own folder
        root = record.parents[1] / "rootfs" / str(container.get("Driver") or "overlayfs") / str(container["Id"])
    network = container["NetworkSettings"].get("SandboxKey") or ""
    if network.endswith("/default"):  # the host's own, which all containers share that have it
        network = None
    points = [Path(point).resolve() for point in (root, network, record / "mounts" / "shm") if point]
    return record, [str(point) for point in points]


def _security(info: Mapping[str, Any]) -> dict[str, str]:
    """Return the profile, or "", by name, of what ``SecurityOptions`` has: ``name=seccomp,profile=builtin``."""
    options: dict[str, str] = {}
    for text in info.get("SecurityOptions") or ():
        facts = dict(_pairs(text.split(",")))
        options[facts.get("name", text)] = facts.get("profile", "")
    return options


def _pairs(words: Sequence[str]) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (word.partition("=") for word in words)]


def _driver_types(info: Mapping[str, Any]) -> list[str]:
    return [value for name, value in info.get("DriverStatus") or () if name == "driver-type"]
