"""Client of the Kubernetes CRI (container runtime interface, `runtime.v1`), which a kubelet uses with its containerd.

The interface is gRPC over a Unix socket. This module knows only the few message fields that tare sets or reads, by
their numbers in Kubernetes' `api.proto`; HTTP/2 is h2's.
"""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tare import lazily
from tare.errors import HostError
from tare.host.daemons.containerd_access import CRI_NAMESPACE
from tare.timeouts import stretched, until

if TYPE_CHECKING:
    import h2.config as h2_config
    import h2.connection as h2_connection
    import h2.events as h2_events
    import h2.exceptions as h2_exceptions
else:
    h2_config, h2_connection = lazily.LazyModule("h2.config"), lazily.LazyModule("h2.connection")
    h2_events, h2_exceptions = lazily.LazyModule("h2.events"), lazily.LazyModule("h2.exceptions")

LIMIT_S = 60.0
#: A containerd answers on its socket before its CRI service does: its message until then, and the time limit.
_NOT_YET, _NOT_YET_LIMIT_S = "server is not initialized yet", 20.0
#: Limit in bytes for an answer, far above those that are read.
ANSWER_CAP = 1 << 20
#: Label of tare's pods, with the instance's name as its value.
LABEL = "tare"
FIX = "see containerd's log"
#: Of a container's state (`ContainerState`).
_RUNNING = 1
#: A pod's own process runs an image that containerd fetches for the first pod.
_NO_PAUSE = re.compile(r'failed to get sandbox image "([^"]+)"')
_FRAME = struct.Struct(">BI")
_CHUNK = 1 << 16

Field = int | str | bytes | Sequence["Field"]


def message(fields: Mapping[int, Field]) -> bytes:
    """Encode a message of protocol buffers, from values by field number: a number, a text, a message, or a list."""
    return b"".join(_encoded(number, value) for number, value in fields.items())


def _encoded(number: int, value: Field) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        return _varint(number << 3 | 2) + _varint(len(data)) + data
    return b"".join(_encoded(number, element) for element in value)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def fields(data: bytes) -> dict[int, list[bytes]]:
    """Return the texts and messages in a message, by field number, without numbers. Raises `HostError`."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if not data[at - 1] & 0x80:
                return value

    read: dict[int, list[bytes]] = {}
    try:
        while at < len(data):
            key = number()
            kind = key & 7
            if kind == 0:
                number()
                continue
            length = number() if kind == 2 else {1: 8, 5: 4}[kind]
            if at + length > len(data):
                raise IndexError
            if kind == 2:
                read.setdefault(key >> 3, []).append(data[at : at + length])
            at += length
    except (IndexError, KeyError) as error:
        raise HostError("containerd's answer is no message of the CRI", fix=FIX) from error
    return read


def _fix(why: str) -> str:
    no_pause = _NO_PAUSE.match(why)
    if no_pause is None:
        return FIX
    by_hand = f"ctr -n {CRI_NAMESPACE} images import FILE"
    return f"let this host reach the registry of {no_pause[1]}, or import that image: {by_hand}"


def labelled(label: str) -> bytes:
    """Return the entry of a map of labels."""
    return message({1: LABEL, 2: label})


class CriRuntime:
    """One connection to a runtime's CRI. Not thread-safe. Raises `HostError` if it does not answer, or refuses."""

    def __init__(self, address: str) -> None:
        self._connection = h2_connection.H2Connection(h2_config.H2Configuration(header_encoding="utf-8"))
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(stretched(LIMIT_S))
        try:
            self._socket.connect(address)
            self._connection.initiate_connection()
            self._flush()
        except OSError as error:
            self.close()
            raise HostError(f"no containerd answers at {address}: {error.strerror}", fix=FIX) from error

    def version(self) -> str:
        """Return the runtime's name and version, with a space between them."""
        answer = fields(self.call("Version", b""))
        return " ".join(answer[number][0].decode(errors="replace") for number in (2, 3) if number in answer)

    def pods(self, label: str) -> list[str]:
        """Return the ids of the pods with this label."""
        answer = fields(self.call("ListPodSandbox", message({1: message({3: labelled(label)})})))
        return [fields(pod)[1][0].decode() for pod in answer.get(1, ())]

    def containers(self, pod: str) -> list[str]:
        """Return the ids of the running containers of a pod with this id."""
        running = message({1: _RUNNING})
        answer = fields(self.call("ListContainers", message({1: message({2: running, 3: pod})})))
        return [fields(container)[1][0].decode() for container in answer.get(1, ())]

    def remove_pod(self, pod: str) -> None:
        """Stop a pod with its containers, and remove it."""
        for method in ("StopPodSandbox", "RemovePodSandbox"):
            self.call(method, message({1: pod}))

    def call(self, method: str, request: bytes) -> bytes:
        """Return the answer to one request as a message. Wait for a service that has just started.

        Raises `HostError` if it does not answer, or refuses.
        """
        deadline = until(_NOT_YET_LIMIT_S)
        while True:
            try:
                return self._call(method, request)
            except (OSError, h2_exceptions.ProtocolError) as error:
                raise HostError(f"containerd does not answer to {method}: {error}", fix=FIX) from error
            except HostError as error:
                if _NOT_YET not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.1)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _call(self, method: str, request: bytes) -> bytes:
        stream = self._connection.get_next_available_stream_id()
        headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":authority", "localhost"),
            (":path", f"/runtime.v1.RuntimeService/{method}"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ]
        self._connection.send_headers(stream, headers)
        self._connection.send_data(stream, _FRAME.pack(0, len(request)) + request, end_stream=True)
        self._flush()
        body, trailers = b"", {}
        for event in self._events():
            if getattr(event, "stream_id", stream) != stream:
                continue
            if isinstance(event, h2_events.DataReceived):
                body += event.data
                if len(body) > ANSWER_CAP:
                    raise HostError(f"containerd's answer to {method} is longer than {ANSWER_CAP} bytes", fix=FIX)
            elif isinstance(event, h2_events.ResponseReceived | h2_events.TrailersReceived):
                trailers.update({str(name): str(value) for name, value in event.headers or ()})
            elif isinstance(event, h2_events.StreamEnded | h2_events.StreamReset | h2_events.ConnectionTerminated):
                break
        if trailers.get("grpc-status") != "0":
            why = unquote(trailers.get("grpc-message", "")) or "it ended the connection"
            raise HostError(f"containerd refuses {method}: {why}", fix=_fix(why))
        return body[_FRAME.size :]

    def _events(self) -> Iterator[h2_events.Event]:
        while data := self._socket.recv(_CHUNK):
            for event in self._connection.receive_data(data):
                if isinstance(event, h2_events.DataReceived) and event.flow_controlled_length:
                    self._connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                yield event
            self._flush()

    def _flush(self) -> None:
        self._socket.sendall(self._connection.data_to_send())
