"""Messages: the JSON in a message frame, parsed strictly and with limits (docs/protocol.md).

The fields have the same order as in the agent, so that both sides encode a message to the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator

from tare.errors import UsageError
from tare.records import Strict

PROTOCOL = 1
#: Limit of stdin bytes that may be sent to a command before the agent grants more by `Credit`.
STDIN_WINDOW = 262_144
MAX_SLICES = 1000
MAX_OUTPUT_CAP = 67_108_864
MAX_FILE = 2**40

Id = Annotated[int, Field(ge=0, le=2**32 - 1)]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Instant = Annotated[int, Field(ge=0, le=2**62)]
Span = Annotated[int, Field(ge=0, le=86_400_000_000_000)]
Name = Annotated[str, Field(max_length=64)]
Path = Annotated[str, Field(min_length=1, max_length=4096, pattern="^/[^\\x00]*$")]
Argument = Annotated[str, Field(max_length=131_072, pattern="^[^\\x00]*$")]
Variable = Annotated[str, Field(min_length=1, max_length=4096, pattern="^[^=\\x00]+$")]
Scalar = bool | int | float | Annotated[str, Field(max_length=4096)]


class Message(Strict):
    """Base of all messages: no unknown fields, no conversions."""


class Ping(Message):
    """Query of the agent's clock."""

    type: Literal["ping"] = "ping"
    id: Id


class Exec(Message):
    """Run a command."""

    type: Literal["exec"] = "exec"
    id: Id
    argv: Annotated[list[Argument], Field(min_length=1, max_length=256)]
    env: Annotated[dict[Variable, Argument], Field(max_length=256)]
    cwd: Path
    stdin: bool
    time_limit_ms: Annotated[int, Field(ge=1, le=86_400_000)]
    output_cap: Annotated[int, Field(ge=0, le=MAX_OUTPUT_CAP)]


class Kill(Message):
    """Kill a command's process group, or a probe."""

    type: Literal["kill"] = "kill"
    id: Id


class Put(Message):
    """Write a file; data of ``size`` bytes and its end follow."""

    type: Literal["put"] = "put"
    id: Id
    path: Path
    mode: Annotated[int, Field(ge=0, le=0o7777)]
    size: Annotated[int, Field(ge=0, le=MAX_FILE)]


class Get(Message):
    """Read a regular file of at most ``cap`` bytes."""

    type: Literal["get"] = "get"
    id: Id
    path: Path
    cap: Annotated[int, Field(ge=0, le=MAX_FILE)]


class ProbeRequest(Message):
    """Allocate and warm a built-in probe."""

    type: Literal["probe"] = "probe"
    id: Id
    name: Name
    params: Annotated[dict[Name, Scalar], Field(max_length=32)]
    warmup_ns: Span
    pinned: bool


class Slice(Message):
    """One turn, on the agent's clock."""

    start_ns: Instant
    duration_ns: Span


class Slices(Message):
    """The turns of a probe: ascending, not overlapping."""

    type: Literal["slices"] = "slices"
    id: Id
    slices: Annotated[list[Slice], Field(max_length=MAX_SLICES)]

    @model_validator(mode="after")
    def _ascend(self) -> Self:
        for earlier, later in pairwise(self.slices):
            if earlier.start_ns + earlier.duration_ns > later.start_ns:
                raise ValueError("slices ascend and do not overlap")
        return self


class Shutdown(Message):
    """Stop the agent."""

    type: Literal["shutdown"] = "shutdown"
    id: Id


Request = Annotated[
    Ping | Exec | Kill | Put | Get | ProbeRequest | Slices | Shutdown,
    Field(discriminator="type"),
]


class Hello(Message):
    """The agent's greeting."""

    type: Literal["hello"] = "hello"
    protocol: Annotated[int, Field(ge=0, le=2**31 - 1)]
    agent: Name
    pid: Id
    clock_ns: Count  # Time at which the message was written.
    began_ns: Count  # The agent's first moment, on the same clock.
    uptime_ns: Count  # Of the kernel below it, at that moment.
    # The kernel's uptime at the start of the guest's userspace, if a boot script reports it.
    userspace_ns: Count | None
    cpus: Annotated[int, Field(ge=0, le=65_536)]
    memory_bytes: Count
    kernel: Annotated[str, Field(max_length=256)]
    image: Annotated[str, Field(max_length=4096)] | None
    beacon: Annotated[str, Field(pattern="^[0-9a-f]{32}$")] | None  # The text of its datagram.
    probes: Annotated[list[Name], Field(max_length=64)]


class Pong(Message):
    """The answer to a ping."""

    type: Literal["pong"] = "pong"
    id: Id
    clock_ns: Count


class Credit(Message):
    """Grant of ``bytes`` more bytes of stdin to send to a command."""

    type: Literal["credit"] = "credit"
    id: Id
    bytes: Count


class Exited(Message):
    """The end of a command."""

    type: Literal["exited"] = "exited"
    id: Id
    code: Annotated[int, Field(ge=0, le=255)] | None
    signal: Annotated[int, Field(ge=1, le=128)] | None
    timed_out: bool
    wall_ns: Count
    spawn_ns: Count
    user_ns: Count
    system_ns: Count
    max_rss_bytes: Count
    stdout_bytes: Count
    stderr_bytes: Count
    truncated: bool


class Done(Message):
    """The end of a put, get or shutdown."""

    type: Literal["done"] = "done"
    id: Id
    bytes: Count


class Ready(Message):
    """Notice that a probe is allocated and warm."""

    type: Literal["ready"] = "ready"
    id: Id
    warmup_work: Count


class Turn(Message):
    """Work done in one slice, on the agent's clock; ``work`` and ``wall_ns`` follow the order of ``parts``."""

    start_ns: Count
    end_ns: Count
    work: Annotated[list[Count], Field(max_length=16)]
    wall_ns: Annotated[list[Count], Field(max_length=16)]


class Probed(Message):
    """The end of a probe."""

    type: Literal["probed"] = "probed"
    id: Id
    parts: Annotated[list[Name], Field(max_length=16)]
    slices: Annotated[list[Turn], Field(max_length=MAX_SLICES)]


class Refusal(Message):
    """Refusal of a request, which ends it, or (without an id) the end of the session by the agent."""

    type: Literal["error"] = "error"
    id: Id | None
    code: Literal[
        "bad-request",
        "not-found",
        "denied",
        "io",
        "too-big",
        "busy",
        "unknown-probe",
        "spawn-failed",
        "probe-failed",
        "unsupported",
    ]
    text: Annotated[str, Field(max_length=1024)]


Reply = Annotated[
    Hello | Pong | Credit | Exited | Done | Ready | Probed | Refusal,
    Field(discriminator="type"),
]

AnyRequest = Ping | Exec | Kill | Put | Get | ProbeRequest | Slices | Shutdown
AnyReply = Hello | Pong | Credit | Exited | Done | Ready | Probed | Refusal

REQUESTS: TypeAdapter[AnyRequest] = TypeAdapter(Request)
REPLIES: TypeAdapter[AnyReply] = TypeAdapter(Reply)


def encode(message: Message) -> bytes:
    """Return the message as JSON without whitespace."""
    return message.model_dump_json().encode()


def why_invalid(error: ValidationError) -> str:
    """Return the first mistake, in one line, without text from the other side."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"] if isinstance(part, int) or part.isidentifier())
    # pydantic's own message for an unknown type quotes it, including line breaks.
    why = "there is no such type" if first["type"] == "union_tag_invalid" else first["msg"]
    return f"{place[:80] or 'the message'}: {why[:200]}"


def greeted_protocol(payload: bytes) -> int | None:
    """Return the protocol's version in a greeting of any version, or None."""

    class Greeting(BaseModel):
        protocol: int

    try:
        return Greeting.model_validate_json(payload).protocol
    except ValidationError:
        return None


M = TypeVar("M", bound=Message)


def checked(make: Callable[[], M]) -> M:
    """Make a request. Raises `UsageError` for an invalid request, which is the caller's mistake."""
    try:
        return make()
    except ValidationError as error:
        raise UsageError(f"no such request can be made: {why_invalid(error)}") from error
