"""The host kernel's memory policy: settings that make the same instances take more or less memory."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tare.host.kernel import host_text as kernel_text
from tare.host.kernel import settings

#: Drivers by which a hypervisor takes memory back from this host (virtio, Hyper-V, VMware, Xen).
_BALLOONS = ("virtio/drivers/virtio_balloon/virtio*", "vmbus/drivers/hv_balloon/*-*")
_OTHER_BALLOONS = ("vmw_balloon", "xen_memory")
#: Values of vm.overcommit_memory (proc_sys_vm(5)).
_OVERCOMMIT = {"0": "heuristic", "1": "always", "2": "never"}
#: Values of /sys/kernel/mm/ksm/run.
_MERGING = {"0": "off", "1": "on", "2": "unmerged"}


class MemoryPolicy(BaseModel):
    """Settings of the kernel on memory; None: this kernel does not have it, or does not show it."""

    model_config = ConfigDict(frozen=True)

    merging: str | None  # KSM, which merges equal pages: off, on or unmerged
    swappiness: int | None
    overcommit: str | None  # heuristic, always or never
    high: int | None  # the lowest memory.high of tare's own control group and those above, in bytes; None: no limit
    balloon: bool  # a hypervisor can take memory from this host while it runs

    @classmethod
    def read(cls, root: Path) -> MemoryPolicy:
        """Read the settings below a root folder: ``/``, or a test's."""
        swappiness = settings.read(root / "proc/sys/vm/swappiness")
        return cls(
            merging=_MERGING.get(settings.read(root / "sys/kernel/mm/ksm/run") or ""),
            swappiness=int(swappiness) if swappiness and swappiness.isdecimal() and len(swappiness) < 4 else None,
            overcommit=_OVERCOMMIT.get(settings.read(root / "proc/sys/vm/overcommit_memory") or ""),
            high=_high(root),
            balloon=_balloon(root),
        )


def _high(root: Path) -> int | None:
    """Return the lowest memory.high that holds for this process, from its group in the unified hierarchy."""
    lines = kernel_text.said(str(root / "proc/self/cgroup")).splitlines()
    own = next((line[3:] for line in lines if line.startswith("0::/")), "")
    group, top = Path(own.lstrip("/")), root / "sys/fs/cgroup"
    values = [settings.read(top / folder / "memory.high") for folder in (group, *group.parents) if own]
    limits = [int(value) for value in values if value and value.isdecimal() and len(value) < 20]
    return min(limits, default=None)


def _balloon(root: Path) -> bool:
    bus = root / "sys/bus"
    if any(next(iter(bus.glob(pattern)), None) for pattern in _BALLOONS):
        return True
    return any((root / "sys/devices/system" / name / f"{name}0").exists() for name in _OTHER_BALLOONS)
