"""Asking a guest without an agent: an answer that trickles in is none."""

import socket
import threading

import pytest

from tare.platforms.parts import answers
from tare.platforms.parts.answers import HTTP, TCP_ECHO, FirstAnswer, Service


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
    monkeypatch.setattr(answers, "ANSWER_LIMIT_S", 1.0)
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        guest = threading.Thread(target=_trickle, args=(listener, over))
        guest.start()
        with socket.create_connection(listener.getsockname()) as asker:
            asker.settimeout(1)
            began = awake.seconds
            assert len(answers._received(asker, 1000)) < 1000
            assert awake.seconds - began < 20
        port = listener.getsockname()[1]
        answer = FirstAnswer([Service(kind, "127.0.0.1", port) for kind in (TCP_ECHO, HTTP)])
        assert answer.wait(0.5) is None
        over.set()
        guest.join(10)
        assert not guest.is_alive()
