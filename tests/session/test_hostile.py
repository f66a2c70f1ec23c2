"""What an agent must not do: each ends with one clear error, in bounded time, and the session is dead then."""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import pytest

from awake import Awake, check_wait
from tare.errors import SessionError, SessionTimeout
from tare.session import PipeStream, Refused, Session, SocketStream, frames, requests
from tare.session import session as sessions
from tare.session.shown_output import shown

Liar = Callable[[Callable[[int, int], None]], PipeStream]

HELLO = {
    "type": "hello",
    "protocol": 1,
    "agent": "0.1.0",
    "pid": 1,
    "clock_ns": 1,
    "began_ns": 1,
    "uptime_ns": 1,
    "userspace_ns": None,
    "cpus": 1,
    "memory_bytes": 1,
    "kernel": "6.1",
    "image": None,
    "beacon": None,
    "probes": [],
}
EXITED = {
    "type": "exited",
    "id": 1,
    "code": 0,
    "signal": None,
    "timed_out": False,
    "wall_ns": 1,
    "spawn_ns": 1,
    "user_ns": 0,
    "system_ns": 0,
    "max_rss_bytes": 0,
    "stdout_bytes": 0,
    "stderr_bytes": 0,
    "truncated": False,
}


def message(**fields: Any) -> bytes:
    return frames.encode_message(json.dumps(fields).encode())


def data(request_id: int, channel: int, contents: bytes) -> bytes:
    return frames.encode_data(request_id, channel, contents)


def write(fd: int, contents: bytes) -> None:
    left = memoryview(contents)
    while left:
        left = left[os.write(fd, left) :]


def says(*contents: bytes, silent: bool = False) -> Callable[[int, int], None]:
    """Say hello, wait for a request, say these bytes, and end or (silent) wait for the host to end."""

    def lie(from_host: int, to_host: int) -> None:
        write(to_host, message(**HELLO))
        os.read(from_host, 65_536)
        write(to_host, b"".join(contents))
        while silent and os.read(from_host, 65_536):
            pass

    return lie


def only(*contents: bytes, silent: bool = False) -> Callable[[int, int], None]:
    """Say these bytes instead of a hello."""

    def lie(from_host: int, to_host: int) -> None:
        write(to_host, b"".join(contents))
        while silent and os.read(from_host, 65_536):
            pass

    return lie


OPENINGS = [
    ("nothing", only(), "sent nothing"),
    ("an error of the runtime", only(b"runc: no such container\n"), r"connection ended.*runc: no such container"),
    ("endless noise", only(b"\xff\x1b[31m" * 20_000), "no frame within the first 65536 bytes"),
    ("half a hello", only(message(**HELLO)[:-5]), "connection ended"),
    ("a giant frame", only(b"TR\x01\x01\xff\xff\xff\xff"), "4294967295 bytes, more than 262144"),
    ("another version", only(message(**{**HELLO, "protocol": 2})), "speaks version 2.*build the image again"),
    ("a later hello", only(message(type="hello", protocol=9, mood="fine")), "speaks version 9"),
    ("no JSON", only(frames.encode_message(b"hello")), "not the protocol.*hello"),
    ("a hello that lacks fields", only(message(type="hello", protocol=1)), "not the protocol.*agent"),
    ("a pong first", only(message(type="pong", id=1, clock_ns=1)), "pong before hello"),
    ("data first", only(b"TR\x01\x02\x05\0\0\0" + bytes(5), b"x" * 70_000), "no frame within"),
    ("two hellos", only(message(**HELLO) * 2), "hello twice"),
    ("nested JSON", only(frames.encode_message(b"[" * 100_000)), "not the protocol"),
]


@pytest.mark.parametrize(("lie", "match"), [case[1:] for case in OPENINGS], ids=[case[0] for case in OPENINGS])
def test_an_opening_that_is_no_hello(liar: Liar, lie: Callable[[int, int], None], match: str, awake: Awake) -> None:
    began = awake.seconds
    with pytest.raises(SessionError, match=match) as error:
        Session.open(liar(lie), 20)
    assert "\x1b" not in str(error.value)
    assert "\n" not in str(error.value)
    assert awake.seconds - began < 15


ANSWERS = [
    ("nothing", (), "connection ended"),
    ("garbage", (b"\x00\x1b[2Jgarbage",), r"not the protocol.*\\x1b\[2Jgarbage"),
    ("a giant frame", (b"TR\x01\x02\xff\xff\xff\x7f",), "more than 262144"),
    ("an unknown kind", (b"TR\x01\x07",), "unknown kind 7"),
    ("the version of another", (b"TR\x02\x01",), "version 2"),
    ("an id never asked for", (message(type="done", id=77, bytes=0),), "done for request 77, which is not under way"),
    ("data for an unknown id", (data(77, 1, b"x"),), "data for request 77, which is not under way"),
    ("the answer to another request", (message(type="pong", id=1, clock_ns=1),), "answers pong when asked to run"),
    ("data on channel 0", (data(1, 0, b"x"),), "channel 0"),
    ("more than the cap", (data(1, 1, b"x" * 60), data(1, 1, b"x" * 60)), "more output than the 100 bytes"),
    ("data after its end", (data(1, 1, b""), data(1, 1, b"x")), "after its end"),
    ("an exit before the output's end", (message(**EXITED),), "produced other than it sent"),
    (
        "an exit that counts wrong",
        (data(1, 1, b""), data(1, 2, b""), message(**{**EXITED, "stdout_bytes": 5})),
        "produced other than it sent",
    ),
    (
        "an exit in two ways",
        (data(1, 1, b""), data(1, 2, b""), message(**{**EXITED, "signal": 9})),
        "neither or both",
    ),
    ("a credit that was not used", (message(type="credit", id=1, bytes=1),), "grants 1 bytes of stdin"),
    ("a number that is none", (message(**{**EXITED, "wall_ns": -1}),), "wall_ns"),
    (
        "a giant number",
        (frames.encode_message(b'{"type":"pong","id":1,"clock_ns":' + b"9" * 9999 + b"}"),),
        "not the p",
    ),
    ("an error of the session", (message(type="error", id=None, code="io", text="out\x1b[m"),), r"ended.*out\\x1b\[m"),
    ("a second hello", (message(**HELLO),), "hello twice"),
]


@pytest.mark.parametrize(("lies", "match"), [case[1:] for case in ANSWERS], ids=[case[0] for case in ANSWERS])
def test_an_answer_that_cannot_be(liar: Liar, lies: tuple[bytes, ...], match: str) -> None:
    session = Session.open(liar(says(*lies)), 10)
    with pytest.raises(SessionError, match=match) as first:
        session.execute(["x"], output_cap=100, time_limit_s=10)
    assert "\x1b" not in str(first.value)
    with pytest.raises(SessionError) as second:
        session.ping()
    assert str(second.value) == str(first.value)
    assert str(session.dead) == str(first.value)


def test_truncation_anywhere_is_an_end(liar: Liar) -> None:
    whole = data(1, 1, b"") + data(1, 2, b"") + message(**EXITED)
    assert Session.open(liar(says(whole)), 10).execute(["x"]).code == 0
    for length in range(0, len(whole), 7):
        session = Session.open(liar(says(whole[:length])), 10)
        with pytest.raises(SessionError, match="connection ended"):
            session.execute(["x"])


def test_of_a_lost_connection_only_what_is_no_whole_message_is_shown(liar: Liar) -> None:
    for sent, shown_text in ((b"", ""), (data(1, 1, b"out"), ""), (data(1, 1, b"out")[:-1], "; the last it sent: ")):
        session = Session.open(liar(says(sent)), 10)
        with pytest.raises(SessionError) as caught:
            session.execute(["x"])
        assert caught.value.what.partition("but its connection ended")[2].startswith(shown_text)
        assert ("sent" in caught.value.what) == bool(shown_text)


def test_bytes_one_by_one_are_the_same(liar: Liar) -> None:
    whole = message(**HELLO) + data(1, 1, b"out") + data(1, 1, b"") + data(1, 2, b"")
    whole += message(**{**EXITED, "stdout_bytes": 3})

    def drip(from_host: int, to_host: int) -> None:
        for at in range(len(whole)):
            if at == len(message(**HELLO)):
                os.read(from_host, 65_536)
            os.write(to_host, whole[at : at + 1])

    assert Session.open(liar(drip), 10).execute(["x"]).stdout == b"out"


def test_boot_noise_is_skipped_and_kept(liar: Liar) -> None:
    noise = b"[    0.000000] Linux TR\x01 TRUST\xff\r\n" * 1000
    lie = only(noise, message(**HELLO), silent=True)
    assert Session.open(liar(lie), 10).noise == noise


def test_silence_before_hello(liar: Liar) -> None:
    began = time.monotonic()
    with pytest.raises(SessionTimeout, match=r"to say hello, but has not within [0-9.]+ s; it sent nothing$") as error:
        Session.open(liar(only(silent=True)), 0.2)
    check_wait(str(error.value), 0.2, time.monotonic() - began)


def test_silence_instead_of_an_answer_ends_the_session(liar: Liar, awake: Awake) -> None:
    session = Session.open(liar(says(silent=True)), 10)
    with pytest.raises(SessionTimeout, match="to tell its clock"):
        session.ping(0.1)
    began = awake.seconds
    with pytest.raises(SessionTimeout, match="to tell its clock"):
        session.execute(["x"])
    assert awake.seconds - began < 1


def test_an_endless_flood_does_not_outlast_the_limit(liar: Liar) -> None:
    def flood(from_host: int, to_host: int) -> None:
        says()(from_host, to_host)
        while True:
            write(to_host, data(1, 2, b"x" * 1000))

    session = Session.open(liar(flood), 10)
    execution = session.start(["x"], output_cap=64 << 20, time_limit_s=600)
    with pytest.raises(SessionTimeout):
        execution.wait(0.05)
    with pytest.raises(SessionTimeout):
        session.ping(0.05)
    assert len(execution.stderr) <= 64 << 20
    assert session.dead is not None


@pytest.mark.thorough
def test_a_sandbox_that_takes_nothing_cannot_hang_the_host(liar: Liar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "SEND_LIMIT_S", 0.2)

    def deaf(from_host: int, to_host: int) -> None:
        write(to_host, message(**HELLO))
        time.sleep(1)

    session = Session.open(liar(deaf), 10)
    with pytest.raises(SessionError, match="did not take what was sent"):
        session.put("/file", bytes(10 << 20))
    with pytest.raises(SessionError, match="did not take what was sent"):
        session.ping()


def trickle(contents: bytes) -> Callable[[int, int], None]:
    """Say hello and begin to answer; then a byte now and then, each well within any limit, for ever."""

    def lie(from_host: int, to_host: int) -> None:
        says(contents)(from_host, to_host)
        while not select.select([from_host], [], [], 0.05)[0] or os.read(from_host, 65_536):
            write(to_host, b" ")

    return lie


#: The longest frame there may be, begun: all that follows belongs to it.
BEGUN = b"TR\x01\x01" + struct.pack("<I", frames.MAX_PAYLOAD)


@pytest.mark.thorough
@pytest.mark.parametrize("lie", [says(BEGUN[:1], silent=True), says(BEGUN, silent=True), trickle(BEGUN)])
@pytest.mark.parametrize(
    "ask",
    [
        lambda session: session.ping(0.4),
        lambda session: session.get("/file", 10, 0.4),
        lambda session: session.put("/file", b"x", time_limit_s=0.4),
        lambda session: session.shutdown(0.4),
        lambda session: session.probe("a", {}, 0).wait_ready(0.4),
    ],
    ids=["ping", "get", "put", "shutdown", "probe"],
)
def test_an_answer_that_is_begun_does_not_put_off_the_limit(
    liar: Liar, lie: Callable[[int, int], None], ask: Callable[[Session], object], awake: Awake
) -> None:
    session = Session.open(liar(lie), 10)
    began, awake_began = time.monotonic(), awake.seconds
    with pytest.raises(SessionTimeout, match=r"has not within ([0-9.]+) s") as error:
        ask(session)
    took_s = time.monotonic() - began
    assert took_s >= 0.4
    assert awake.seconds - awake_began < 5
    check_wait(str(error.value), 0.3, took_s)
    assert "\n" not in str(error.value)
    assert session.dead is not None


def test_a_hello_that_trickles_is_late(liar: Liar, awake: Awake) -> None:
    def slowly(from_host: int, to_host: int) -> None:
        for byte in message(**HELLO) * 100:
            write(to_host, bytes([byte]))
            if select.select([from_host], [], [], 0.05)[0]:
                return

    began = awake.seconds
    with pytest.raises(SessionTimeout, match="to say hello"):
        Session.open(liar(slowly), 0.5)
    assert awake.seconds - began < 5


def test_an_agent_that_takes_a_little_now_and_then_has_the_limit_of_the_request(liar: Liar, awake: Awake) -> None:
    def sips(from_host: int, to_host: int) -> None:
        write(to_host, message(**HELLO))
        gone = select.poll()
        gone.register(to_host, 0)
        while not gone.poll(50) and os.read(from_host, 1):
            pass

    session = Session.open(liar(sips), 10)
    began = awake.seconds
    with pytest.raises(SessionError, match="did not take what was sent"):
        session.put("/file", bytes(10 << 20), time_limit_s=0.5)
    assert awake.seconds - began < 5
    session.close()


@pytest.mark.thorough
def test_stdin_that_is_sipped_has_the_limit_of_the_command(
    liar: Liar, monkeypatch: pytest.MonkeyPatch, awake: Awake
) -> None:
    monkeypatch.setattr(requests, "GRACE_S", 0.3)

    def sips(from_host: int, to_host: int) -> None:
        write(to_host, message(**HELLO))
        while taken := os.read(from_host, 8192):
            write(to_host, message(type="credit", id=1, bytes=min(len(taken), 4096)))
            time.sleep(0.05)

    session = Session.open(liar(sips), 10)
    began = awake.seconds
    with pytest.raises(SessionError, match=r"did not take what was sent|to run|grants"):
        session.execute(["x"], stdin=bytes(4 << 20), time_limit_s=0.3)
    assert awake.seconds - began < 8


def test_refusals_that_come_early_end_a_put(liar: Liar) -> None:
    refusal = message(type="error", id=1, code="io", text="disk full")

    def full(from_host: int, to_host: int) -> None:
        says(refusal)(from_host, to_host)
        while os.read(from_host, 65_536):
            pass

    session = Session.open(liar(full), 10)
    with pytest.raises(Refused, match="disk full"):
        session.put("/file", bytes(10 << 20))
    assert session.dead is None


@pytest.mark.parametrize(
    ("lies", "match"),
    [
        ((data(1, 1, b"x" * 11),), "more than the 10 bytes"),
        ((data(1, 1, b"x"), message(type="done", id=1, bytes=1)), "says it sent 1 bytes"),
        ((data(1, 1, b""), message(type="done", id=1, bytes=5)), "says it sent 5 bytes, but sent 0"),
        ((data(1, 2, b"x"),), "channel 2"),
    ],
)
def test_a_file_that_cannot_be(liar: Liar, lies: tuple[bytes, ...], match: str) -> None:
    with pytest.raises(SessionError, match=match):
        Session.open(liar(says(*lies)), 10).get("/file", 10)


READY = message(type="ready", id=1, warmup_work=1)


def probed(*slices: dict[str, Any]) -> bytes:
    return message(type="probed", id=1, parts=["a"], slices=list(slices))


TURN = {"start_ns": 5, "end_ns": 9, "work": [1], "wall_ns": [4]}


@pytest.mark.parametrize(
    ("lies", "match"),
    [
        ((probed(TURN),), "not requested"),
        ((READY, READY), "answers ready"),
        ((READY, probed()), "0 slices of 1"),
        ((READY, probed(TURN, TURN)), "not requested"),
        ((READY, probed({**TURN, "work": [1, 2]})), "an impossible slice"),
        ((READY, probed({**TURN, "end_ns": 4})), "an impossible slice"),
    ],
)
def test_a_probe_that_cannot_be(liar: Liar, lies: tuple[bytes, ...], match: str) -> None:
    session = Session.open(liar(says(*lies, silent=True)), 10)
    with pytest.raises(SessionError, match=match):
        session.probe("a", {}, 0, [(1, 1)]).wait(10)


def test_a_socket_is_as_good_as_pipes() -> None:
    host, guest = socket.socketpair()
    with guest, host:
        guest.sendall(message(**HELLO))
        session = Session.open(SocketStream(host), 10)
        guest.sendall(message(type="pong", id=1, clock_ns=5))
        assert session.ping() > 0
        request = guest.recv(100)
        assert request[:4] == b"TR\x01\x01"
        assert struct.unpack("<I", request[4:8])[0] == len(request) - 8
        guest.close()
        with pytest.raises(SessionError):
            session.ping()
        session.close()
        session.close()


def test_what_is_shown_cannot_speak_to_the_terminal() -> None:
    assert shown(b"a\x1b[31m\r\n\xff\x00") == r'"a\x1b[31m\r\n\xff\x00"'
    assert shown("\u202egnp.exe\x9b") == r'"\xe2\x80\xaegnp.exe\xc2\x9b"'
    assert len(shown(b"\xff" * 10_000)) < 210
