"""Rights that a session needs, checked before it creates anything: root's capabilities, users, control groups."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from tare.errors import HostError
from tare.host import cgroup, own_namespaces
from tare.host.kernel import host_text, mounts

#: Capabilities by number (linux/capability.h), without which no instance can be made, fed or removed.
CAPABILITIES = {
    0: "chown", 1: "dac_override", 3: "fowner", 5: "kill", 6: "setgid", 7: "setuid", 8: "setpcap",
    10: "net_bind_service", 12: "net_admin", 13: "net_raw", 18: "sys_chroot", 21: "sys_admin", 27: "mknod",
}  # fmt: skip
_NULL = Path("/dev/null")
_RIGHTS_FIX = (
    "run tare as root of the host, with all capabilities: in a container with --privileged, in a service without"
    " CapabilityBoundingSet="
)


def require() -> None:
    """Raise the error of `lacking`."""
    error = lacking()
    if error is not None:
        raise error


def lacking() -> HostError | None:
    """Return why root cannot start instances here, with the fix, or None."""
    if Path("/proc/self").readlink().name != str(os.getpid()):
        return HostError("/proc shows the processes of another namespace", fix="mount -t proc proc /proc")
    if own_namespaces.inside():
        return None if own_namespaces.is_ours() else _of_others()
    held = int(_capabilities() or "0", 16)
    missing = [name for number, name in CAPABILITIES.items() if not held >> number & 1]
    if missing:
        return HostError(f"root lacks capabilities here: {', '.join(missing)}", fix=_RIGHTS_FIX)
    return _no_null_device() or _read_only_groups()


def _of_others() -> HostError:
    return HostError(
        "tare is root only of a user namespace that it did not make",
        fix="run tare outside of it: for a user without root it makes namespaces of its own",
    )


def _capabilities() -> str:
    lines = host_text.said("/proc/self/status").splitlines()
    return next((line.split()[1] for line in lines if line.startswith("CapEff:")), "")


def _no_null_device() -> HostError | None:
    """Return the error for a /dev/null that is missing or a plain file, which programs of root's may turn it into."""
    try:
        is_device = stat.S_ISCHR(_NULL.stat().st_mode)
    except FileNotFoundError:
        is_device = False
    return None if is_device else HostError(f"{_NULL} is no device", fix=f"rm -f {_NULL}; mknod -m 666 {_NULL} c 1 3")


def _read_only_groups() -> HostError | None:
    table = mounts.table()
    tops = set(cgroup.hierarchies_among(table).mounted)
    points = [mount.point for mount in table if mount.point in map(str, tops) and "ro" in mount.options]
    if not points:
        return None
    return HostError(
        f"control groups are mounted read-only on {', '.join(points)}",
        fix=f"for group in {shlex.join(points)}; do mount -o remount,bind,rw $group; done",
    )
