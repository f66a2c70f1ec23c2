"""Sandboxes that could not be removed: they may still run in tare's control group, and are not the campaign's."""

from __future__ import annotations

from dataclasses import dataclass, field

from tare.campaign.instances.launcher import PARENT_GROUP
from tare.host.cgroup import Group, path_of
from tare.host.resources import unremoved


@dataclass(slots=True)
class _Stray:
    group: Group
    since_ns: int  # CPU time that it had used when it was first read: that is its time as an instance
    since_by_cpu: list[int] | None  # the same by host CPU
    ran_ns: int = 0  # CPU time since then
    ran_by_cpu: list[int] | None = None


@dataclass(slots=True)
class Strays:
    """CPU time of such sandboxes since they were first read, to be subtracted from that of tare's control group."""

    _known: dict[str, _Stray] = field(default_factory=dict)

    def read(self) -> tuple[int, list[int] | None]:
        """CPU time of all in ns, and the same by host CPU from number 0 on; None where that is not counted."""
        for resource in unremoved.still_there():
            if resource.group.startswith(f"{path_of(PARENT_GROUP)}/") and resource.group not in self._known:
                self._watch(resource.group)
        for stray in self._known.values():
            _read(stray)
        by_cpu = [stray.ran_by_cpu for stray in self._known.values() if stray.ran_by_cpu is not None]
        total_ns = sum(stray.ran_ns for stray in self._known.values())
        return total_ns, [sum(times) for times in zip(*by_cpu, strict=True)] if by_cpu else None

    def close(self) -> None:
        """Close all files."""
        for stray in self._known.values():
            stray.group.close()

    def _watch(self, path: str) -> None:
        group = Group(path)
        try:
            self._known[path] = _Stray(group, group.cpu_ns(), group.cpu_ns_by_cpu())
        except OSError:  # the group has no accounting any more, so nothing runs in it
            group.close()


def _read(stray: _Stray) -> None:
    try:
        stray.ran_ns = stray.group.cpu_ns() - stray.since_ns
        by_cpu = stray.group.cpu_ns_by_cpu()
    except OSError:  # somebody removed the group: its last figures count
        return
    if by_cpu is not None and stray.since_by_cpu is not None:
        stray.ran_by_cpu = [now - then for now, then in zip(by_cpu, stray.since_by_cpu, strict=True)]
