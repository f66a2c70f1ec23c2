"""Whatever comes out of a sandbox: a frame or a `FrameError`, a message or a refusal, in bounded memory."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fuzz import targets
from tare.errors import SessionError
from tare.session import PipeStream, Session, frames, messages

HEADER = 8

frame = st.one_of(
    st.builds(frames.MessageFrame, st.binary(max_size=200)),
    st.builds(frames.DataFrame, st.integers(0, 2**32 - 1), st.integers(0, 2), st.binary(max_size=200)),
)
cuts = st.lists(st.integers(0, 10_000), max_size=12)


def encode(many: list[frames.Frame]) -> bytes:
    return b"".join(
        frames.encode_message(frame.payload)
        if isinstance(frame, frames.MessageFrame)
        else frames.encode_data(frame.id, frame.channel, frame.data)
        for frame in many
    )


def decode(stream: bytes, places: list[int], *, noise: bool = False) -> list[frames.Frame]:
    decoder, got = frames.Decoder(noise=noise), []
    ends = sorted({place % (len(stream) + 1) for place in places} | {0, len(stream)})
    for start, end in pairwise(ends):
        got += list(decoder.feed(stream[start:end]))
        assert decoder.pending <= max(HEADER + frames.MAX_PAYLOAD, frames.NOISE_LIMIT) + end - start
    return got


@given(st.binary(max_size=2000), cuts, st.booleans())
def test_any_bytes_are_frames_or_refused(stream: bytes, places: list[int], noise: bool) -> None:
    with suppress(frames.FrameError):
        decode(stream, places, noise=noise)


@given(st.integers(1, 2), st.integers(0, 2**32 - 1), st.binary(max_size=300), cuts)
def test_a_length_beyond_the_limit_is_refused_at_once(kind: int, length: int, rest: bytes, places: list[int]) -> None:
    stream = b"TR\x01" + bytes([kind]) + length.to_bytes(4, "little") + rest
    try:
        decode(stream, places)
    except frames.FrameError:
        return
    assert length <= frames.MAX_PAYLOAD


@given(st.lists(frame, max_size=6), cuts)
def test_frames_are_the_same_however_they_are_cut(many: list[frames.Frame], places: list[int]) -> None:
    assert decode(encode(many), places) == many


@given(st.lists(frame, min_size=1, max_size=4), st.integers(0, 10_000))
def test_what_is_missing_is_waited_for(many: list[frames.Frame], lost: int) -> None:
    stream = encode(many)
    got = decode(stream[: lost % len(stream)], [])
    assert got == many[: len(got)]
    assert len(got) < len(many)


@given(st.binary(max_size=500).filter(lambda noise: b"TR\x01\x01" not in noise + b"TR"), cuts)
def test_noise_before_the_first_frame_is_kept(noise: bytes, places: list[int]) -> None:
    first = frames.MessageFrame(b"{}")
    decoder, got = frames.Decoder(noise=True), []
    stream = noise + encode([first])
    ends = sorted({place % (len(stream) + 1) for place in places} | {0, len(stream)})
    for start, end in pairwise(ends):
        got += list(decoder.feed(stream[start:end]))
    assert (got, decoder.noise) == ([first], noise)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
reply_types = ["hello", "pong", "credit", "exited", "done", "ready", "probed", "error"]
likely_keys = st.sampled_from(["id", "bytes", "code", "text", "slices", "parts", "clock_ns", "protocol", "warmup_work"])
likely_reply = st.builds(
    lambda kind, fields: {"type": kind, **fields},
    st.sampled_from(reply_types),
    st.dictionaries(likely_keys, json_values, max_size=6),
)


@given(st.binary(max_size=300) | st.builds(lambda value: json.dumps(value).encode(), json_values | likely_reply))
def test_any_json_is_a_reply_or_refused_in_one_line(payload: bytes) -> None:
    targets.check_reply(payload)


@pytest.mark.thorough
@given(st.lists(likely_reply | st.binary(max_size=40), max_size=6), st.binary(max_size=20))
def test_a_session_survives_anything_with_a_session_error(answers: list[Any], rest: bytes) -> None:
    """The whole stream is in a file, so that its end is sure to come."""
    hello = {
        "type": "hello",
        "protocol": 1,
        "agent": "x",
        "pid": 1,
        "clock_ns": 1,
        "began_ns": 1,
        "uptime_ns": 1,
        "userspace_ns": None,
        "cpus": 1,
        "memory_bytes": 1,
        "kernel": "x",
        "image": None,
        "beacon": None,
        "probes": [],
    }
    parts = [
        frames.encode_message(json.dumps(answer).encode()) for answer in [hello, *answers] if isinstance(answer, dict)
    ]
    parts += [frames.encode_data(1, 1 + len(answer) % 2, answer) for answer in answers if isinstance(answer, bytes)]
    with tempfile.TemporaryFile() as file:
        file.write(b"".join(parts) + rest)
        file.seek(0)
        stream = PipeStream(os.dup(file.fileno()), os.open(os.devnull, os.O_WRONLY))
        ended = ""
        try:
            Session.open(stream, 10).execute(["x"], stdin=b"in", time_limit_s=5)
        except SessionError as error:
            ended = str(error)
        finally:
            stream.close()
        assert "\n" not in ended


def test_a_refusal_does_not_quote_an_unknown_type() -> None:
    with pytest.raises(ValidationError) as refused:
        messages.REPLIES.validate_json('{"type":"do\\nne \\u001b[2J","id":4}')
    assert messages.why_invalid(refused.value) == "the message: there is no such type"
