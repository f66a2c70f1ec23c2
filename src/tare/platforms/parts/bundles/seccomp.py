"""Docker's own seccomp profile for a bundle, which has none by itself.

``seccomp-docker.json`` is ``default.json`` of the Go module github.com/moby/profiles/seccomp v0.2.4 (Apache 2.0) to the
letter. Some of its rules hold for certain capabilities, architectures or kernels only; an engine works that out for
each container, and so does `docker_profile`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("seccomp-docker.json")
#: By the kernel's name of a machine: Go's, and libseccomp's.
_MACHINES = {"x86_64": ("amd64", "SCMP_ARCH_X86_64"), "aarch64": ("arm64", "SCMP_ARCH_AARCH64")}


def docker_profile(
    capabilities: Collection[str], machine: str = os.uname().machine, kernel: str = os.uname().release
) -> dict[str, Any]:
    """Docker's profile as a bundle's ``linux.seccomp`` (OCI runtime specification) with these capabilities."""
    profile = json.loads(_FILE.read_text())
    architecture, native = _MACHINES.get(machine, (machine, ""))
    entries = [entry for entry in profile["archMap"] if entry["architecture"] == native]
    rules = [
        {name: rule[name] for name in ("names", "action", "errnoRet", "args") if rule.get(name) is not None}
        for rule in profile["syscalls"]
        if _holds(rule.get("includes") or {}, capabilities, architecture, kernel)
        and not _excluded(rule.get("excludes") or {}, capabilities, architecture)
    ]
    return {
        "defaultAction": profile["defaultAction"],
        "defaultErrnoRet": profile["defaultErrnoRet"],
        "architectures": [name for entry in entries for name in (entry["architecture"], *entry["subArchitectures"])],
        "syscalls": rules,
    }


def _holds(includes: Mapping[str, Any], capabilities: Collection[str], architecture: str, kernel: str) -> bool:
    """Return True if a rule is for such a container: one of the architectures, all of the capabilities, the kernel."""
    if "arches" in includes and architecture not in includes["arches"]:
        return False
    if not all(name in capabilities for name in includes.get("caps", ())):
        return False
    return "minKernel" not in includes or _version(kernel) >= _version(includes["minKernel"])


def _excluded(excludes: Mapping[str, Any], capabilities: Collection[str], architecture: str) -> bool:
    return architecture in excludes.get("arches", ()) or any(name in capabilities for name in excludes.get("caps", ()))


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int("".join(char for char in minor if char.isdigit()))
