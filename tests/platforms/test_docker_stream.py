import socket
import struct

import pytest

from tare.errors import SessionError
from tare.platforms.docker import AttachedStream


def _frame(kind, data):
    return struct.pack(">BxxxL", kind, len(data)) + data


def test_stdout_is_taken_out_of_the_daemons_frames_and_stderr_dropped():
    ours, theirs = socket.socketpair()
    stream = AttachedStream(ours)
    theirs.sendall(_frame(1, b"abc") + _frame(2, b"noise") + _frame(1, b"") + _frame(1, b"defgh"))
    theirs.close()
    assert stream.receive(2) == b"ab"
    assert stream.receive(100) == b"c"
    assert stream.receive(100) == b"defgh"
    assert stream.receive(100) == b""
    stream.close()


def test_a_connection_that_is_cut_within_a_frame_is_the_end():
    ours, theirs = socket.socketpair()
    stream = AttachedStream(ours)
    theirs.sendall(_frame(1, b"abcdef")[:5])
    theirs.close()
    assert stream.receive(10) == b""
    stream.close()


def test_sending_to_a_container_that_is_gone_is_said():
    ours, theirs = socket.socketpair()
    stream = AttachedStream(ours)
    theirs.close()
    with pytest.raises(SessionError, match="stdin is closed"):
        stream.send(b"x" * 10_000_000)
    stream.close()
