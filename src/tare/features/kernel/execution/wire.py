"""JSON messages between this host and a lab: a request in; progress and one answer out.

A lab gets the code of the tare that boots it, so both ends have the same version. The end in the lab refuses a request
from another version.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, NonNegativeInt, TypeAdapter, ValidationError

from tare import __version__
from tare.errors import HostError, ParseError, first_invalid
from tare.features.kernel.exchange.count_request import FootprintRequest
from tare.features.kernel.exchange.result import FootprintResult
from tare.features.kernel.execution.walk import WalkWatcher
from tare.records import Frozen

#: Files in a lab's folder of results: a campaign file with the footprints, and the answer.
CAMPAIGN, ANSWER = "footprint.tare", "answer.json"
#: Read limit for an answer, because a lab may run hostile code. The reasons of the longest walk fit into it.
MAX_ANSWER_BYTES = 64 << 20


class _Version(BaseModel):
    version: str


class _Sent(Frozen):
    version: str
    request: FootprintRequest


class Doing(Frozen):
    """Message that something starts in the lab; see `tare.features.kernel.execution.walk.WalkWatcher.doing`."""

    doing: str


class WindowStep(Frozen):
    """Message with the number of finished windows; see `tare.features.kernel.execution.walk.WalkWatcher.step`."""

    done: NonNegativeInt
    of: NonNegativeInt
    missed: NonNegativeInt


class LabAnswer(Frozen):
    """The result without its footprints, which are in the file beside it, or the reason for no result."""

    result: FootprintResult | None = None
    error: str | None = None
    fix: str | None = None


_EVENT: TypeAdapter[Doing | WindowStep] = TypeAdapter(Doing | WindowStep)


def packed(request: FootprintRequest) -> bytes:
    """Serialize a request to the bytes that are sent to the lab."""
    return _Sent(version=__version__, request=request).model_dump_json().encode()


def unpacked(data: bytes) -> FootprintRequest:
    """Return the request from `packed`. Raises `HostError` if it is invalid or of another version."""
    try:
        version = _Version.model_validate_json(data).version
        if version != __version__:
            raise HostError(
                f"a request of tare {version} cannot be carried out by tare {__version__}",
                fix="tare in the lab is another one than on the host: boot the lab again",
            )
        return _Sent.model_validate_json(data).request
    except ValidationError as error:
        raise HostError(f"the lab received an invalid request: {first_invalid(error)}") from error


def pass_on(line: str, watcher: WalkWatcher, prefix: str) -> bool:
    """Pass progress in a line from the lab to the watcher. Return False if the line is not progress."""
    try:
        event = _EVENT.validate_json(line)
    except ValidationError:
        return False
    if isinstance(event, Doing):
        watcher.doing(f"{prefix}{event.doing}")
    else:
        watcher.step(event.done, event.of, event.missed)
    return True


def write_answer(folder: Path, answer: LabAnswer) -> None:
    """Write the answer into the folder of results."""
    text = answer.model_dump_json(exclude={"result": {"footprints"}})
    (folder / ANSWER).write_text(text, encoding="utf-8")


def read_answer(folder: Path) -> LabAnswer:
    """Read the answer from the results that came back; empty if there is none. Raises `ParseError`."""
    try:
        with (folder / ANSWER).open("rb") as file:
            data = file.read(MAX_ANSWER_BYTES)
    except FileNotFoundError:
        return LabAnswer()
    except OSError as error:
        raise ParseError(f"the lab's answer cannot be read: {error.strerror}") from error
    try:
        return LabAnswer.model_validate_json(data)
    except ValidationError as error:
        raise ParseError(f"the lab's answer is not valid: {first_invalid(error)}") from error
