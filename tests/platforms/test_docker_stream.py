"""The daemon's frames, and what a container may do with them: the stream never waits, and the session's limits hold."""

import contextlib
import socket
import struct
import threading
import time

import docker
import pytest

from tare.errors import SessionError, SessionTimeout
from tare.platforms.docker import AttachedStream
from tare.session import Session


@pytest.fixture
def attached():
    ours, theirs = socket.socketpair()
    stream = AttachedStream(ours)
    with theirs:
        yield stream, theirs
    stream.close()


def _frame(kind, data):
    return struct.pack(">BxxxL", kind, len(data)) + data


def _read(stream, limit=100):
    """What comes of stdout next; what is of no use to the session is passed over."""
    while (part := stream.receive(limit)) is None:
        pass
    return part


def test_stdout_is_taken_out_of_the_daemons_frames_and_stderr_dropped(attached):
    stream, theirs = attached
    theirs.sendall(_frame(1, b"abc") + _frame(2, b"noise") + _frame(1, b"") + _frame(1, b"defgh"))
    theirs.close()
    assert [_read(stream, 2), _read(stream), _read(stream), _read(stream)] == [b"ab", b"c", b"defgh", b""]


def test_a_connection_that_is_cut_within_a_frame_is_the_end(attached):
    stream, theirs = attached
    theirs.sendall(_frame(1, b"abcdef")[:5])
    theirs.close()
    assert _read(stream) == b""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "begun",
    [
        b"\2",
        _frame(2, b"x")[:7],
        _frame(2, b"x"),
        _frame(2, b"")[:8],
        _frame(3, b"x"),
        struct.pack(">BxxxL", 2, 0xFFFFFFFF) + b"x",
        struct.pack(">BxxxL", 1, 0xFFFFFFFF),
    ],
    ids=["a kind", "most of a head", "stderr", "empty stderr", "an error", "4 GiB of stderr", "4 GiB of stdout"],
)
def test_what_is_begun_and_then_silent_never_waits(attached, begun, awake):
    stream, theirs = attached
    theirs.sendall(begun)
    assert [stream.receive(100) for _ in range(5)] == [None] * 5
    began = awake.seconds
    with pytest.raises(SessionTimeout, match="to say hello"):
        Session.open(stream, 0.3)
    assert awake.seconds - began < 5


@pytest.mark.thorough
@pytest.mark.parametrize("noise", [_frame(2, b"x"), _frame(2, bytes(60_000))], ids=["trickle", "flood"])
def test_stderr_without_end_does_not_put_off_the_limit(attached, noise, awake):
    stream, theirs = attached
    over = threading.Event()

    def talk():
        try:
            while not over.wait(0.05 if len(noise) < 100 else 0):
                theirs.sendall(noise)
        except OSError:
            pass  # closed

    talker = threading.Thread(target=talk)
    talker.start()
    began = awake.seconds
    with pytest.raises(SessionTimeout, match=r"to say hello.*sent nothing"):
        Session.open(stream, 0.5)
    assert awake.seconds - began < 5
    over.set()
    stream.close()
    talker.join(10)
    assert not talker.is_alive()


def test_a_frame_of_unknown_kind_ends_the_session(attached):
    stream, theirs = attached
    theirs.sendall(b"HTTP/1.1 500 Internal Server Error")
    with pytest.raises(SessionError, match="frame of unknown kind 72"):
        Session.open(stream, 10)


def test_sending_to_a_container_that_is_gone_is_said(attached):
    stream, theirs = attached
    theirs.close()
    with pytest.raises(SessionError, match="takes nothing any more"):
        stream.send(b"x" * 10_000_000, time.monotonic() + 10)


def test_closing_closes_the_answer_that_the_connection_came_with(tmp_path):
    """Python 3.13 prints an error where that is left to the collector, which finds its socket closed."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "docker.sock"))
        listener.listen(1)

        def answer():
            connection, _ = listener.accept()
            with connection:
                while not connection.recv(65536).endswith(b"\r\n\r\n"):
                    pass
                connection.sendall(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
                connection.recv(1)

        daemon = threading.Thread(target=answer)
        daemon.start()
        with contextlib.closing(docker.APIClient(f"unix://{tmp_path}/docker.sock", version="1.41")) as api:
            attached = api.attach_socket("x", {"stdin": 1, "stdout": 1, "stream": 1})
            response = attached._response
            AttachedStream(attached).close()
            assert response.raw.closed
            assert attached.closed
        daemon.join()
