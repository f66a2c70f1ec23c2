"""No stream waits for what comes, whatever the other end does: how long is the session's to say."""

import os
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from tare.errors import SessionError
from tare.session import PipeStream, SocketStream, byte_streams


def pipes():
    ours, to_us = os.pipe()
    from_us, theirs = os.pipe()
    return PipeStream(ours, theirs), os.fdopen(to_us, "wb", 0), os.fdopen(from_us, "rb", 0)


def sockets():
    ours, theirs = socket.socketpair()
    file = theirs.makefile("rwb", 0)
    theirs.close()
    return SocketStream(ours), file, file


BOTH = pytest.mark.parametrize("made", [pipes, sockets])


@BOTH
def test_nothing_is_told_at_once_and_the_end_is_another_thing(made):
    stream, to_us, from_us = made()
    assert stream.receive(10) is None
    to_us.write(b"ab")
    assert stream.receive(1) == b"a"
    assert stream.receive(10) == b"b"
    assert stream.receive(10) is None
    to_us.close()
    from_us.close()
    assert stream.receive(10) == b""
    stream.close()


@pytest.mark.thorough
@BOTH
def test_one_who_takes_a_little_now_and_then_does_not_put_off_the_deadline(made, awake, monkeypatch):
    stream, to_us, from_us = made()
    over = threading.Event()

    def sip():
        while not over.wait(0.05) and from_us.read(4096):
            pass

    looks = []

    def monotonic():
        looks.append(time.monotonic())
        return looks[-1]

    monkeypatch.setattr(byte_streams, "time", SimpleNamespace(monotonic=monotonic))
    sipper = threading.Thread(target=sip)
    sipper.start()
    data, began, deadline = bytes(64 << 20), awake.seconds, time.monotonic() + 0.5
    with pytest.raises(SessionError, match="did not take what was sent to it within") as refused:
        stream.send(data, deadline)
    # From when it first had to wait: on a busy machine the first pipeful alone takes some of the time.
    assert f"within {max(0.0, deadline - looks[0]):.3g} s" in str(refused.value)
    assert awake.seconds - began < 5
    over.set()
    stream.close()
    sipper.join(10)
    assert not sipper.is_alive()
    for end in {to_us, from_us}:
        end.close()
