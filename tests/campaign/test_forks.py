"""Copies of an instance of which some fail: each is a figure with its reason, and never the trial's end."""

from types import SimpleNamespace

from tare.campaign.execution import forks
from tare.errors import PlatformError
from tare.workloads import workload_registry
from tare.workloads.apart import Burst, BurstStart


def _copy(pids):
    return SimpleNamespace(spec=SimpleNamespace(group=SimpleNamespace(pids=lambda: pids)))


def test_a_copy_with_another_memory_fails_with_its_reason(monkeypatch):
    same, other, never = _copy([1]), _copy([2]), _copy([3])
    burst = Burst((BurstStart(5_000_000), BurstStart(6_000_000), BurstStart(None, "no room")), 7, 8)

    def read_memory(copy, expected):
        assert copy is not never
        if copy is other:
            raise PlatformError("its memory is not what it was")
        return expected

    monkeypatch.setattr(forks, "start_all", lambda made: burst)
    monkeypatch.setattr(forks, "read_memory", read_memory)
    monkeypatch.setattr(forks.memory, "resident", lambda pids: SimpleNamespace(pss=100 * pids[0] << 20))
    copies = forks._copies([same, other, never], 17)
    assert [start.reason for start in copies.started.starts] == ["", "its memory is not what it was", "no room"]
    figures = workload_registry.get("fork").read([copies]).samples
    assert (figures["each-3"], figures["memory-3"], figures["ok-3"]) == (5, 100, 100 / 3)
