"""The host side of the agent's protocol (docs/protocol.md): one session over one byte stream.

What comes out of a sandbox is hostile until proven dull: everything is bounded, and whatever is not the protocol
ends the session with one clear error.
"""

from tare.session.messages import MAX_SLICES
from tare.session.mute import Mute
from tare.session.requests import Execution, Probe
from tare.session.results import ClockOffset, ExecResult, PartResult, ProbeResult, ProbeSlice, Refused
from tare.session.session import Session
from tare.session.streams import ByteStream, PipeStream, SocketStream

__all__ = [
    "MAX_SLICES",
    "ByteStream",
    "ClockOffset",
    "ExecResult",
    "Execution",
    "Mute",
    "PartResult",
    "PipeStream",
    "Probe",
    "ProbeResult",
    "ProbeSlice",
    "Refused",
    "Session",
    "SocketStream",
]
