"""The golden frames, which the agent's tests read too, and the schema."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import ValidationError

from tare.session import frames, message_schema, messages

PROTOCOL = Path(__file__).parents[2] / "protocol"
GOLDEN = [json.loads(file.read_text()) for file in sorted((PROTOCOL / "golden").glob("*.json"))]
VALID = [golden for golden in GOLDEN if "error" not in golden["decoded"]]
INVALID = [golden for golden in GOLDEN if "error" in golden["decoded"]]


def name(golden: dict[str, Any]) -> str:
    return golden["name"]


def read(payload: bytes, direction: str) -> messages.Message:
    adapter = messages.REQUESTS if direction == "to-agent" else messages.REPLIES
    return adapter.validate_json(payload)


def test_every_message_has_a_golden_frame() -> None:
    types = {golden["decoded"]["message"]["type"] for golden in VALID if golden["decoded"]["kind"] == "message"}
    definitions = message_schema.schema()["$defs"]
    assert types == {
        definitions[ref["$ref"].rsplit("/", 1)[1]]["properties"]["type"]["const"]
        for way in ("request", "reply")
        for ref in definitions[way]["oneOf"]
    }
    assert {golden["decoded"]["error"] for golden in INVALID} == {
        "bad-magic",
        "bad-version",
        "bad-kind",
        "too-long",
        "short-data",
        "bad-channel",
        "bad-message",
        "truncated",
    }


@pytest.mark.parametrize("golden", VALID, ids=name)
def test_a_valid_frame_is_decoded_and_encoded_to_the_same_bytes(golden: dict[str, Any]) -> None:
    raw, decoded = bytes.fromhex(golden["frame_hex"]), golden["decoded"]
    (frame,) = frames.Decoder().feed(raw)
    if isinstance(frame, frames.DataFrame):
        assert (frame.id, frame.channel, frame.data.hex()) == (decoded["id"], decoded["channel"], decoded["data_hex"])
        assert frames.encode_data(frame.id, frame.channel, frame.data) == raw
    else:
        message = read(frame.payload, golden["direction"])
        assert message.model_dump(mode="json") == decoded["message"]
        assert frames.encode_message(messages.encode(message)) == raw


@pytest.mark.parametrize("golden", INVALID, ids=name)
def test_an_invalid_frame_is_refused_for_its_reason(golden: dict[str, Any]) -> None:
    raw, expected = bytes.fromhex(golden["frame_hex"]), golden["decoded"]["error"]
    decoder = frames.Decoder()
    if expected == "truncated":
        assert list(decoder.feed(raw)) == []
        assert decoder.pending == len(raw)
    elif expected == "bad-message":
        (frame,) = decoder.feed(raw)
        assert isinstance(frame, frames.MessageFrame)
        with pytest.raises(ValidationError) as error:
            read(frame.payload, golden["direction"])
        assert "\n" not in messages.why_invalid(error.value)
    else:
        with pytest.raises(frames.FrameError) as refused:
            list(decoder.feed(raw))
        assert refused.value.code == expected


def test_the_schema_is_up_to_date() -> None:
    assert (PROTOCOL / "schema.json").read_text() == message_schema.text(), (
        "run `python -m tare.session.message_schema`"
    )


def test_the_schema_takes_the_valid_messages_and_no_invalid_ones(jsonschema: ModuleType) -> None:
    whole = message_schema.schema()
    jsonschema.Draft202012Validator.check_schema(whole)
    for golden in GOLDEN:
        way = "request" if golden["direction"] == "to-agent" else "reply"
        validator = jsonschema.Draft202012Validator({**whole, "anyOf": [{"$ref": f"#/$defs/{way}"}]})
        decoded = golden["decoded"]
        if decoded.get("kind") == "message":
            validator.validate(decoded["message"])
        elif decoded.get("error") == "bad-message" and golden["name"] not in BEYOND_SCHEMA:
            assert not validator.is_valid(json.loads(bytes.fromhex(golden["frame_hex"])[8:])), golden["name"]


#: not JSON at all, too deep for Python's own reader, or a rule between fields that JSON Schema cannot say
BEYOND_SCHEMA = {"not-json", "not-utf8", "empty-message", "slices-overlap", "nested-deep"}
