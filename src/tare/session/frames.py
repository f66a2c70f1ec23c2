"""Frames: magic, version, kind and length, then the payload (docs/protocol.md). All integers are little-endian."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

MAGIC = b"TR"
VERSION = 1
KIND_MESSAGE = 1
KIND_DATA = 2
#: Longest payload, in bytes.
MAX_PAYLOAD = 262_144
#: Limit of skipped bytes before the first frame (a console's boot noise).
NOISE_LIMIT = 65_536

STDIN = 0  # To the agent: a command's stdin, or a file's contents.
STDOUT = 1  # To the host: a command's stdout, or a file's contents.
STDERR = 2

_HEADER = struct.Struct("<2sBBI")
_DATA = struct.Struct("<IB")
#: Largest contents of one data frame.
MAX_DATA = MAX_PAYLOAD - _DATA.size
#: Start of the first frame, which is a message.
_FIRST = MAGIC + bytes([VERSION, KIND_MESSAGE])


class FrameError(Exception):
    """Bytes that are not a frame. ``code`` is the name that the golden frames use."""

    def __init__(self, code: str, what: str) -> None:
        super().__init__(what)
        self.code = code


@dataclass(frozen=True, slots=True)
class MessageFrame:
    """A frame of JSON, not yet parsed."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class DataFrame:
    """Contents of a channel of a request; empty at the channel's end."""

    id: int
    channel: int
    data: bytes


Frame = MessageFrame | DataFrame


def encode_message(payload: bytes) -> bytes:
    """Return a message's frame. Raises `FrameError` if the payload is too long."""
    if len(payload) > MAX_PAYLOAD:
        raise FrameError("too-long", f"a message of {len(payload)} bytes is longer than {MAX_PAYLOAD}")
    return _HEADER.pack(MAGIC, VERSION, KIND_MESSAGE, len(payload)) + payload


def encode_data(request_id: int, channel: int, data: bytes) -> bytes:
    """Return a data frame. Raises `FrameError` for more than `MAX_DATA` bytes."""
    if len(data) > MAX_DATA:
        raise FrameError("too-long", f"{len(data)} bytes of data are more than {MAX_DATA}")
    header = _HEADER.pack(MAGIC, VERSION, KIND_DATA, _DATA.size + len(data))
    return b"".join((header, _DATA.pack(request_id, channel), data))


class Decoder:
    """Decoder of a stream of bytes into frames. It buffers at most one frame and the bytes fed with it.

    With ``noise``, up to `NOISE_LIMIT` bytes before the first frame are skipped and kept in `noise`.
    """

    def __init__(self, *, noise: bool = False) -> None:
        self._buffer = bytearray()
        self._synced = not noise
        self.noise = b""

    @property
    def pending(self) -> int:
        """Number of buffered bytes."""
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take the next bytes and yield the frames that are complete.

        Raises `FrameError`. The stream is lost then, because the start of the next frame cannot be found. The iterator
        must be used up before the next call.
        """
        self._buffer += data
        if not self._synced and not self._sync():
            return
        while (frame := self._next()) is not None:
            yield frame

    def _sync(self) -> bool:
        """Skip bytes before the first frame. Return True once that frame has started."""
        place = self._buffer.find(_FIRST)
        if place < 0 and len(self._buffer) <= NOISE_LIMIT:
            return False
        if not 0 <= place <= NOISE_LIMIT:
            raise FrameError("noise", f"no frame within the first {NOISE_LIMIT} bytes")
        self.noise = bytes(self._buffer[:place])
        del self._buffer[:place]
        self._synced = True
        return True

    def _next(self) -> Frame | None:
        _check_start(self._buffer)
        if len(self._buffer) < _HEADER.size:
            return None
        _, _, kind, length = _HEADER.unpack_from(self._buffer)
        if length > MAX_PAYLOAD:
            raise FrameError("too-long", f"a frame that says it has {length} bytes, more than {MAX_PAYLOAD}")
        end = _HEADER.size + length
        if len(self._buffer) < end:
            return None
        payload = bytes(memoryview(self._buffer)[_HEADER.size : end])
        del self._buffer[:end]
        return MessageFrame(payload) if kind == KIND_MESSAGE else _data_frame(payload)


def _check_start(buffer: bytearray) -> None:
    """Refuse a wrong start as soon as it is visible."""
    if not MAGIC.startswith(buffer[:2]):
        raise FrameError("bad-magic", "bytes that do not start a frame")
    if len(buffer) > 2 and buffer[2] != VERSION:
        raise FrameError("bad-version", f"a frame of version {buffer[2]}, not {VERSION}")
    if len(buffer) > 3 and buffer[3] not in {KIND_MESSAGE, KIND_DATA}:
        raise FrameError("bad-kind", f"a frame of unknown kind {buffer[3]}")


def _data_frame(payload: bytes) -> DataFrame:
    if len(payload) < _DATA.size:
        raise FrameError("short-data", f"a data frame of only {len(payload)} bytes")
    request_id, channel = _DATA.unpack_from(payload)
    if channel not in {STDIN, STDOUT, STDERR}:
        raise FrameError("bad-channel", f"a data frame for unknown channel {channel}")
    return DataFrame(request_id, channel, payload[_DATA.size :])
