"""What is on the host and carries a label of tare's: empty once all was removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tare.host import cgroup, processes, state

#: Folders in which some runtime notes a sandbox's name, and the pattern below them.
NOTES = (("/run/netns", "*{}*"), ("/run/lxc/lock", ".*{}*"), ("/run/systemd/nspawn", "*/*{}*"))
#: What lists the containers of a program whose name holds a label; asked where the program is there.
LISTS = (["docker", "ps", "-aq", "--filter"], ["podman", "ps", "-aq", "--filter"])


def left_on_host(label: str) -> list[str]:
    """All on the host that carries the label."""
    return [*_things(label), *_processes(label)]


def packet_rules() -> frozenset[str]:
    """The rules of the host's packet filter; chains without a rule are not among them."""
    if processes.find("iptables") is None:
        return frozenset()
    tables = [processes.run(["iptables", "-w", "-t", table, "-S"]).text for table in ("filter", "nat")]
    return frozenset(rule for table in tables for rule in table.splitlines() if rule.startswith("-A "))


def _things(label: str) -> Iterator[str]:
    yield from (line for line in Path("/proc/mounts").read_text().splitlines() if label in line)
    yield from (one.name for one in Path("/sys/class/net").iterdir() if label in one.name)
    yield from map(str, state.work().glob(f"*{label}*"))
    for root in cgroup.hierarchies().every:
        yield from map(str, root.glob(f"tare/*{label}*"))
    for folder, pattern in NOTES:
        yield from map(str, Path(folder).glob(pattern.format(label)))
    for command in LISTS:
        if processes.find(command[0]) is not None:
            yield from processes.run([*command, f"name={label}"]).text.split()


def _processes(label: str) -> Iterator[str]:
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if label.encode() in cmdline.read_bytes():
                yield str(cmdline)
        except OSError:  # it ended meanwhile
            continue
