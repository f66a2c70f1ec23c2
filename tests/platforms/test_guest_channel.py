"""The guest channel of a machine whose monitor is late: as when sixteen copies begin at one instant."""

import socket

import pytest

from tare.errors import PlatformError
from tare.platforms.parts.machines import vm
from tare.platforms.parts.machines.channel import GuestChannel


@pytest.fixture
def listener(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "control"))
        listener.listen(1)
        yield listener


def test_a_start_has_its_own_limit_and_not_that_of_one_machine_alone(listener, monkeypatch):
    monkeypatch.setattr(vm, "CONNECT_LIMIT_S", 0.0)
    waited = []
    monkeypatch.setattr(vm, "until", lambda limit_s: waited.append(limit_s) or 0.0)
    with pytest.raises(PlatformError, match="has not connected the agent's port within 60 s"):
        GuestChannel(listener, ["perl"], 60.0).open()
    assert waited == [60.0]


def test_a_monitor_that_ended_is_not_said_to_be_late(listener):
    with pytest.raises(PlatformError, match="ended before it connected the agent's port"):
        vm.accept(listener, lambda: True)
