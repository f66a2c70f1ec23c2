"""Overlaps of sets of things: all regions of their Venn diagram, also by directory of the kernel's source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet

from tare.model import Level

#: The directories by which Anjali 2020 divides the kernel (figures 4, 6, 13 and 18).
PAPER_DIRECTORIES = (
    "virt", "arch", "arch/x86/kvm", "net", "net/core", "net/bridge", "mm", "arch/x86/mm", "fs", "fs/ext4",
    "fs/overlayfs", "block", "kernel",
)  # fmt: skip
#: Directory of a thing whose file is unknown.
UNKNOWN = "unknown"

Sets = Mapping[str, AbstractSet[str]]
Region = tuple[str, ...]
#: The source file of a thing, relative to the kernel's tree; None: unknown.
Place = Callable[[str], str | None]


def regions(sets: Sets) -> dict[Region, int]:
    """Return the number of things in exactly these sets and in no other, largest first, without empty regions.

    A region is the names of its sets, in the order of ``sets``. Regions do not overlap: they add up to the union.
    """
    masks: dict[str, int] = {}
    for bit, members in enumerate(sets.values()):
        for member in members:
            masks[member] = masks.get(member, 0) | 1 << bit
    names = list(sets)
    counts = Counter(masks.values())
    return {
        tuple(name for bit, name in enumerate(names) if mask >> bit & 1): count
        for mask, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    }


def shared(counts: Mapping[Region, int], names: Iterable[str], without: Iterable[str] = ()) -> int:
    """Return the number of things in all of ``names``, in any other sets, and in none of ``without``."""
    inside, outside = set(names), set(without)
    return sum(count for region, count in counts.items() if inside <= set(region) and not outside & set(region))


def place_of(level: Level, files: Mapping[str, str] | None = None) -> Place:
    """Return a function from a thing to its source file: a line's name contains it, ``files`` has a function's.

    A call has no source file.
    """
    if level is Level.LINES:
        return lambda line: line.rpartition(":")[0] or None
    paths = files or {}
    return paths.get


def directories(path: str | None) -> Iterable[str]:
    """Return the directories that count a file: the first one and two of its path, and the paper's around it."""
    if path is None:
        return (UNKNOWN,)
    parts = path.split("/")[:-1]
    leading = {"/".join(parts[:depth]) for depth in (1, 2) if len(parts) >= depth}
    return leading | {directory for directory in PAPER_DIRECTORIES if path.startswith(f"{directory}/")}


def by_directory(sets: Sets, place: Place) -> dict[str, dict[str, set[str]]]:
    """Split the sets by directory: each directory has all of the names, some perhaps with an empty set."""
    of_file: dict[str | None, tuple[str, ...]] = {}
    cut: dict[str, dict[str, set[str]]] = {}
    for name, members in sets.items():
        for member in members:
            path = place(member)
            if path not in of_file:
                of_file[path] = tuple(directories(path))
            for directory in of_file[path]:
                cut.setdefault(directory, {set_name: set() for set_name in sets})[name].add(member)
    return dict(sorted(cut.items()))


def by_file(sets: Sets, place: Place) -> dict[str, dict[str, set[str]]]:
    """Split the sets by source file; things whose file is unknown are left out."""
    cut: dict[str, dict[str, set[str]]] = {}
    for name, members in sets.items():
        for member in members:
            path = place(member)
            if path is not None:
                cut.setdefault(path, {set_name: set() for set_name in sets})[name].add(member)
    return dict(sorted(cut.items()))
