"""Selection of the control group that a BPF program treats as the instance (``instance.bpf.h``)."""

from __future__ import annotations

from tare.features.kernel.reading.bpf import Loaded
from tare.host import cgroup

#: Must match ``instance.bpf.h``.
PATH = 256


def look_for(loaded: Loaded, group: str) -> None:
    """Treat ``group`` and all groups below it as the instance. ``group``: path below the root of each hierarchy."""
    # Set the path, which also matches a group that is created later, and the number, if the group exists. If it is
    # created between the two calls, both mean the same group.
    loaded.put("instances", 0, instance(0, group))
    if number := group_number(group):
        loaded.put("instances", 0, instance(number, group))


def instance(number: int, group: str) -> bytes:
    """Return the program's ``struct instance``: the group's number (0 if it does not exist) and its path."""
    path = f"/{group}".encode()
    assert len(path) < PATH, "paths of tare's groups are short"
    return number.to_bytes(8, "little") + path.ljust(PATH, b"\0")


def group_number(group: str) -> int:
    """Return a control group's inode number in the hierarchy of the controller cpu; 0 if it does not exist."""
    tree = cgroup.hierarchies()
    root = tree.v2 if tree.unified else tree.v1["cpu"]
    assert root is not None
    try:
        return (root / group).stat().st_ino
    except FileNotFoundError:
        return 0
