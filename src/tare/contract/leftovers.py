"""Resources on the host that carry a label of tare's: none once all were removed."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from tare.host import cgroup, processes, state
from tare.host.kernel import mounts, process_table
from tare.host.kernel.links import links
from tare.host.resources import kinds

#: Folders where programs keep state, in files named after the sandbox or the id of its process.
NOTED_IN = Path("/run")
#: Levels to which programs nest these files at most.
_DEEPEST = 5
_NUMBER = re.compile(r"(?<![0-9A-Za-z])\d+(?![0-9A-Za-z])")
#: Ids that other programs make of random numbers and hashes: one in 17,000 has a label in it by chance.
_OTHERS_ID = re.compile(r"[0-9a-f]{32,}")
#: Commands that list a program's containers whose name contains a label; run where the program is installed.
LISTS = (["docker", "ps", "-aq", "--filter"], ["podman", "ps", "-aq", "--filter"])


def left_on_host(label: str) -> list[str]:
    """Lines that name each resource of the host that carries the label: mounts, links, files, groups, processes ..."""
    return [*_resources(label), *_processes(label)]


def packet_rules() -> frozenset[str]:
    """The rules of the host's packet filter; empty chains are not among them."""
    programs = [program for program in ("iptables", "ip6tables") if processes.find(program) is not None]
    listed = [processes.run([program, "-w", "-t", table, "-S"]) for program in programs for table in ("filter", "nat")]
    return frozenset(rule for listing in listed for rule in listing.text.splitlines() if rule.startswith("-A "))


def notes() -> frozenset[str]:
    """The paths of all files and folders below /run that are in filesystems in memory, and not in a guest's."""
    return frozenset(_notes(NOTED_IN, _in_memory(), _DEEPEST))


def named_after(pids: Collection[int], paths: Collection[str]) -> list[str]:
    """The paths whose own name has the id of one of these processes as a number, and not as digits of a hash."""
    numbers = {str(pid) for pid in pids}
    return sorted(path for path in paths if numbers & set(_NUMBER.findall(path.rpartition("/")[2])))


def carries(label: str, text: str) -> bool:
    """Return True if a label stands in a text, and not by chance among the digits of a hash."""
    return label in _OTHERS_ID.sub(" ", text)


def _resources(label: str) -> Iterator[str]:
    for mount in mounts.table():
        shown = f"{mount.source} {mount.point} {mount.kind} {','.join(mount.super_options)}"
        yield from [shown] if carries(label, shown) else []
    yield from (link for link in links() if carries(label, link))
    yield from map(str, state.work().glob(f"*{label}*"))
    for root in cgroup.hierarchies().mounted:
        yield from map(str, root.glob(cgroup.path_of(f"tare/*{label}*")))
    yield from (path for path in notes() if carries(label, path.rpartition("/")[2]))
    if cgroup.kept_by_systemd():
        units = ["systemctl", "list-units", "--all", "--plain", "--no-legend", f"tare*{label}*"]
        yield from processes.run(units).require("systemctl status").text.splitlines()
    for command in LISTS:
        if processes.find(command[0]) is not None:
            yield from processes.run([*command, f"name={label}"]).text.split()
    for kind in kinds.registered().values():
        yield from (f"{kind.name} {line}" for line in kind.left(label))


def _in_memory() -> frozenset[int]:
    """The devices of the filesystems in memory that are mounted."""
    devices = (mount.device.split(":") for mount in mounts.table() if mount.kind == "tmpfs")
    return frozenset(os.makedev(int(major), int(minor)) for major, minor in devices)


def _notes(folder: Path, in_memory: Collection[int], deep: int) -> Iterator[str]:
    try:
        entries = list(os.scandir(folder))
        own_device = folder.stat().st_dev
    except OSError:  # it is gone, or a user's filesystem that root cannot read
        return
    for entry in entries:
        yield entry.path
        if deep > 1 and entry.is_dir(follow_symlinks=False):
            device = entry.stat(follow_symlinks=False).st_dev
            if device == own_device or device in in_memory:
                yield from _notes(Path(entry.path), in_memory, deep - 1)


def _processes(label: str) -> Iterator[str]:
    for pid, argv in process_table.command_lines().items():
        if any(carries(label, word) for word in argv):
            yield f"/proc/{pid}/cmdline"
