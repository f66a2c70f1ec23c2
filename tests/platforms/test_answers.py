"""Asking a guest without an agent: an answer that trickles in is none."""

import contextlib
import socket
import threading
import time

import pytest

from tare.platforms.watchers import guest_service, marks
from tare.platforms.watchers.guest_service import HTTP, TCP_ECHO, UDP_ECHO, FirstAnswer, GuestService
from tare.platforms.watchers.marks import Pace


def _trickle(listener, over):
    while not over.is_set():
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        with connection:
            while not over.wait(0.2):
                try:
                    connection.sendall(b"H")
                except OSError:
                    break


@pytest.mark.thorough
def test_a_trickle_is_given_up_by_an_absolute_limit(monkeypatch, awake):
    monkeypatch.setattr(guest_service, "ANSWER_LIMIT_S", 1.0)
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        guest = threading.Thread(target=_trickle, args=(listener, over))
        guest.start()
        with socket.create_connection(listener.getsockname()) as asker:
            asker.settimeout(1)
            began = awake.seconds
            assert len(guest_service._received(asker, 1000)) < 1000
            assert awake.seconds - began < 20
        port = listener.getsockname()[1]
        answer = FirstAnswer([GuestService(kind, "127.0.0.1", port) for kind in (TCP_ECHO, HTTP)])
        assert answer.wait(0.5) is None
        over.set()
        guest.join(10)
        assert not guest.is_alive()


def test_a_guest_is_asked_less_often_the_longer_it_is_silent(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(marks.time, "monotonic", lambda: now[0])
    pace = Pace()
    assert pace.pause_s(0.005) == 0.005
    assert guest_service._round_s(pace) == guest_service.ROUND_S
    now[0] += 100
    assert pace.pause_s(0.005) == 100 * marks.RESOLUTION
    assert guest_service._round_s(pace) == 100 * guest_service.ROUND_SHARE


@pytest.mark.thorough
def test_a_guest_that_is_slower_than_it_is_asked_has_answered_at_last(monkeypatch):
    """As one emulated in an emulated host: requests have piled up before it serves, and it takes long for each."""
    for module, name, value in (
        (marks, "RESOLUTION", 0.1),
        (guest_service, "ROUND_S", 0.1),
        (guest_service, "ROUND_SHARE", 0.5),
    ):
        monkeypatch.setattr(module, name, value)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(0.1)
        answer = FirstAnswer([GuestService(UDP_ECHO, *listener.getsockname())])
        time.sleep(0.3)  # it boots
        for _ in range(1000):
            with contextlib.suppress(TimeoutError):  # who has its answer, and has not noted it yet, asks no more
                request, asker = listener.recvfrom(64)
                time.sleep(0.02)
                listener.sendto(request, asker)
            if answer.at_ns is not None:
                break
        assert answer.wait(10) is not None
