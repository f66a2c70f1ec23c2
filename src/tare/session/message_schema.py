"""JSON Schema of the messages, for other languages: `python -m tare.session.message_schema [FILE]` writes it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from tare.session import messages

_REQUESTS = (
    messages.Ping,
    messages.Exec,
    messages.Kill,
    messages.Put,
    messages.Get,
    messages.ProbeRequest,
    messages.Slices,
    messages.Shutdown,
)
_REPLIES = (
    messages.Hello,
    messages.Pong,
    messages.Credit,
    messages.Exited,
    messages.Done,
    messages.Ready,
    messages.Probed,
    messages.Refusal,
)


def schema() -> dict[str, Any]:
    """Return the schema: ``$defs/request`` and ``$defs/reply`` list the messages that either side may send."""
    models = [(model, "validation") for model in (*_REQUESTS, *_REPLIES)]
    places, whole = models_json_schema(models, ref_template="#/$defs/{model}")  # type: ignore[arg-type]
    definitions = whole["$defs"]
    for model in (*_REQUESTS, *_REPLIES):
        # The default serves only our constructors; on the wire, the type is always present.
        definitions[model.__name__]["required"].insert(0, "type")
    # Pydantic refuses a name that does not match its pattern; JSON Schema needs this for the same rule.
    definitions["Exec"]["properties"]["env"]["additionalProperties"] = False
    definitions["request"] = {"oneOf": [places[model, "validation"] for model in _REQUESTS]}
    definitions["reply"] = {"oneOf": [places[model, "validation"] for model in _REPLIES]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Messages of tare's agent, protocol version {messages.PROTOCOL}",
        "anyOf": [{"$ref": "#/$defs/request"}, {"$ref": "#/$defs/reply"}],
        "$defs": definitions,
    }


def text() -> str:
    """Return the text of ``protocol/schema.json``."""
    return json.dumps(schema(), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "protocol/schema.json").write_text(text())
