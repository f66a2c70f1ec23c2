"""Sets which control group a BPF program takes for the instance (``instance.bpf.h``, included by such programs)."""

from __future__ import annotations

from tare.footprint.kernel.bpf import Loaded
from tare.host import cgroup

#: The same in ``instance.bpf.h``.
PATH = 256


def look_for(loaded: Loaded, group: str) -> None:
    """From now on the instance is this group, with all below it. ``group``: below the root of each hierarchy."""
    # By its path, which a group that is yet to be made will have, and by its number, if it is there. It may be made
    # between the two, and then both mean the same group.
    loaded.put("instances", 0, instance(0, group))
    if number := group_number(group):
        loaded.put("instances", 0, instance(number, group))


def instance(number: int, group: str) -> bytes:
    """``struct instance`` of the program: the group's number, 0 when it is not there, and its path."""
    path = f"/{group}".encode()
    assert len(path) < PATH, "paths of tare's groups are short"
    return number.to_bytes(8, "little") + path.ljust(PATH, b"\0")


def group_number(group: str) -> int:
    """The kernel's number of a control group in the hierarchy with the controller cpu: its inode's; 0: not there."""
    tree = cgroup.hierarchies()
    root = tree.v2 if tree.unified else tree.v1["cpu"]
    assert root is not None
    try:
        return (root / group).stat().st_ino
    except FileNotFoundError:
        return 0
