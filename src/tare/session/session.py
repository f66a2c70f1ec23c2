"""One session with one agent: synchronous, without threads; waiting for one request processes input for all."""

from __future__ import annotations

import math
import select
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import NoReturn, Self, TypeVar

from pydantic import ValidationError

from tare.errors import SessionError, SessionTimeout, UsageError
from tare.session import frames, messages
from tare.session.byte_streams import ByteStream
from tare.session.request_results import ClockOffset, ExecResult
from tare.session.requests import Clocked, Execution, Pending, Probe, Transfer
from tare.session.shown_output import shown
from tare.timeouts import stretched, until

_RECEIVE = 65_536
#: Number of the last received bytes that an error shows.
_SEEN = 96
_PUT_PIECE = 32_768
#: Seconds that the other end may take to accept one send.
SEND_LIMIT_S = 10.0
_ANSWER_LIMIT_S = 10.0
_LAST_WORDS_S = 0.2

P = TypeVar("P", bound=Pending)


class Session:
    """The host's side of the protocol. Not thread-safe.

    A violation of the protocol, silence beyond a limit, and the end of the stream raise `SessionError` (silence:
    `SessionTimeout`). The session is then dead: later calls raise the same error at once, and `dead` holds it. A
    `Refused` is an answer and leaves the session alive, as do the limits of `Execution.wait` and
    `Execution.wait_output`.

    Buffered bytes are limited to one frame, and the caps of the current requests.
    """

    first_byte_ns: int  # The host's `time.monotonic_ns` at the arrival of the first byte.

    def __init__(self, stream: ByteStream) -> None:
        """Do not call this; use `Session.open`."""
        self._stream = stream
        self._decoder = frames.Decoder(noise=True)
        self._live: dict[int, Pending] = {}
        self._last_id = 0
        self._former = (
            0  # requests up to this one are those of before a restore: what of them is over is answered again
        )
        self._hello: messages.Hello | None = None
        self._first_byte_ns: int | None = None
        self._seen = b""
        self._leaving = False
        self._deadline = math.inf  # Deadline of the current wait; it also limits sends during the wait.
        self._poll = select.poll()
        self._poll.register(stream.fileno(), select.POLLIN)
        self.dead: SessionError | None = None

    @classmethod
    def open(cls, stream: ByteStream, time_limit_s: float) -> Session:
        """Wait for the agent's hello, over at most 64 KiB of boot noise. The caller closes the stream if it fails."""
        session = cls(stream)
        deadline = until(time_limit_s)
        session.pump_until(lambda: session._hello is not None, deadline, "to say hello", fatal=True)
        if session._hello is None or session._first_byte_ns is None:
            session._fail("the agent did not say hello")
        session.first_byte_ns = session._first_byte_ns
        return session

    @classmethod
    def restored(cls, stream: ByteStream, former: Session) -> Session:
        """Take up the session of an agent that was restored from a snapshot, over a new stream.

        ``former``: its session when the snapshot was made, with no request under way but commands that go on.
        """
        session = cls(stream)
        session._decoder = frames.Decoder()  # nothing boots: what comes first may be a command's output
        session._hello, session._live, session._last_id = former._hello, dict(former._live), former._last_id
        session._first_byte_ns = session.first_byte_ns = former.first_byte_ns
        return session

    @property
    def hello(self) -> messages.Hello:
        """The agent's report of itself at its start. Raises `SessionError` before it arrives."""
        if self._hello is None:
            raise SessionError("the agent has not said hello")
        return self._hello

    @property
    def noise(self) -> bytes:
        """The bytes before the first frame: the sandbox's other output."""
        return self._decoder.noise

    # -- requests ---------------------------------------------------------------------------------------------

    def ping(self, time_limit_s: float = _ANSWER_LIMIT_S) -> int:
        """Query the agent's clock, and return the round trip in ns."""
        sent_ns, pong = self._exchange(time_limit_s=time_limit_s)
        return pong.received_ns - sent_ns

    def sync_clock(self, exchanges: int = 8) -> ClockOffset:
        """Return the agent's clock offset in ns, as NTP does: from the exchange with the shortest round trip.

        The true offset lies within the uncertainty (half that round trip), even if the two directions took different
        times. Raises `UsageError` for less than one exchange.
        """
        best: ClockOffset | None = None
        for _ in range(exchanges):
            sent_ns, pong = self._exchange(time_limit_s=_ANSWER_LIMIT_S)
            middle_ns = (sent_ns + pong.received_ns) // 2
            offset = ClockOffset(pong.agent_ns - middle_ns, (pong.received_ns - sent_ns + 1) // 2, middle_ns)
            if best is None or offset.uncertainty_ns < best.uncertainty_ns:
                best = offset
        if best is None:
            raise UsageError("a clock is compared in at least one exchange")
        return best

    def _exchange(self, time_limit_s: float) -> tuple[int, Clocked]:
        pong = Clocked(self._next_id())
        ping = messages.Ping(id=pong.id)
        deadline = until(time_limit_s)
        sent_ns = time.monotonic_ns()
        self._ask(pong, ping, deadline)
        self._wait(pong, deadline)
        return sent_ns, pong

    def execute(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
        stdin: bytes = b"",
        time_limit_s: float = 60.0,
        output_cap: int = 1 << 20,
    ) -> ExecResult:
        """Run a command to its end; see `start`. Raises `Refused` if it cannot be started."""
        execution = self.start(argv, env=env, cwd=cwd, stdin=stdin, time_limit_s=time_limit_s, output_cap=output_cap)
        return execution.wait()

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
        stdin: bytes = b"",
        time_limit_s: float = 60.0,
        output_cap: int = 1 << 20,
    ) -> Execution:
        """Start a command in a process group of its own, and do not wait for it.

        ``env`` is added to PATH, HOME and LANG. The agent kills the group after ``time_limit_s`` (by its own clock),
        and sends at most ``output_cap`` bytes of each output; further bytes are counted, but not kept.
        """
        request = messages.checked(
            lambda: messages.Exec(
                id=self._next_id(),
                argv=list(argv),
                env=dict(sorted((env or {}).items())),
                cwd=cwd,
                stdin=bool(stdin),
                time_limit_ms=max(1, round(stretched(time_limit_s) * 1000)),
                output_cap=output_cap,
            )
        )
        execution = self._ask(Execution(self, request, stdin), request)
        execution.push()
        return execution

    def put(self, path: str, data: bytes, mode: int = 0o644, time_limit_s: float = 60.0) -> None:
        """Write a file atomically. Raises `Refused`."""
        deadline = until(time_limit_s)
        put = Transfer(self._next_id(), f"write {shown(path)}")
        request = messages.checked(lambda: messages.Put(id=put.id, path=path, mode=mode, size=len(data)))
        self._ask(put, request, deadline)
        view = memoryview(data)
        for start in range(0, len(view), _PUT_PIECE):
            if self._poll.poll(0):
                self._receive(f"to {put.what}")
            # The request was refused or is too slow, so the rest need not be sent.
            if put.over or time.monotonic() > deadline:
                break
            piece = bytes(view[start : start + _PUT_PIECE])
            self._send(frames.encode_data(put.id, frames.STDIN, piece), deadline)
        else:
            self._send(frames.encode_data(put.id, frames.STDIN, b""), deadline)
        self._wait(put, deadline)

    def get(self, path: str, cap: int, time_limit_s: float = 60.0) -> bytes:
        """Read a regular file. Raises `Refused`, with code too-big if it has more than ``cap`` bytes."""
        get = Transfer(self._next_id(), f"read {shown(path)}", cap)
        request = messages.checked(lambda: messages.Get(id=get.id, path=path, cap=cap))
        deadline = until(time_limit_s)
        self._ask(get, request, deadline)
        self._wait(get, deadline)
        return bytes(get.received)

    def probe(
        self,
        name: str,
        params: Mapping[str, int | float | str | bool],
        warmup_ns: int,
        slices: Sequence[tuple[int, int]] | None = None,
        *,
        pinned: bool = False,
    ) -> Probe:
        """Start a built-in probe, and do not wait for it.

        ``slices`` are (start, duration) in ns on the agent's clock (see `sync_clock`), ascending and not overlapping.
        Without them, send them later by `Probe.begin`, for example after `Probe.wait_ready`. A slice ends at its
        planned end, even if it started late. ``pinned``: on the last of the CPUs that the agent may use.
        """
        request = messages.checked(
            lambda: messages.ProbeRequest(
                id=self._next_id(),
                name=name,
                params=dict(sorted(params.items())),
                warmup_ns=warmup_ns,
                pinned=pinned,
            )
        )
        probe = self._ask(Probe(self, request), request)
        if slices is not None:
            probe.begin(slices)
        return probe

    def shutdown(self, time_limit_s: float = _ANSWER_LIMIT_S) -> None:
        """Stop the agent (as PID 1 of a machine: power it off). This ends the session."""
        end = Transfer(self._next_id(), "shut down")
        deadline = until(time_limit_s)
        self._ask(end, messages.Shutdown(id=end.id), deadline)
        self._wait(end, deadline)
        self.dead = SessionError("the session was shut down")

    def condemn(self, error: SessionError) -> None:
        """Mark the session dead because its sandbox is about to be stopped. The only call for other threads."""
        self.dead = self.dead or error

    def close(self) -> None:
        """Close the stream, which also stops the agent. May be called twice."""
        self.dead = self.dead or SessionError("the session was closed")
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # -- what requests use ------------------------------------------------------------------------------------

    def send_message(self, message: messages.Message) -> None:
        """Send a message. Raises `UsageError` if it does not fit into a frame."""
        self._send(_encoded(message))

    def send_data(self, request_id: int, data: bytes) -> None:
        """Send contents of channel 0 of a request."""
        self._send(frames.encode_data(request_id, frames.STDIN, data))

    def pump_until(self, over: Callable[[], bool], deadline: float, awaited: str, *, fatal: bool) -> None:
        """Process input until ``over()``. Raises `SessionTimeout` at the deadline, which ends the session if ``fatal``.

        The session waits only here. The deadline is absolute: no input extends it.
        """
        began = time.monotonic()
        # A limit that leaves the session alive must not cut a frame in transit.
        self._deadline = deadline if fatal else deadline + stretched(SEND_LIMIT_S)
        try:
            while not over():
                self._check_alive()
                left_s = max(0.0, deadline - time.monotonic())
                if self._poll.poll(left_s * 1000):
                    self._receive(awaited)
                # Check the deadline even after input, because an endless flood must not extend it.
                if time.monotonic() >= deadline and not over():
                    self._time_out(awaited, time.monotonic() - began, fatal=fatal)
        finally:
            self._deadline = math.inf

    # -- the stream -------------------------------------------------------------------------------------------

    def _ask(self, pending: P, message: messages.Message, deadline: float = math.inf) -> P:
        self._check_alive()
        frame = _encoded(message)
        self._live[pending.id] = pending
        self._send(frame, deadline)
        return pending

    def _wait(self, pending: Pending, deadline: float) -> None:
        self.pump_until(lambda: pending.over, deadline, f"to {pending.what}", fatal=True)
        pending.check()

    def _next_id(self) -> int:
        # Ids wrap long after the first requests are over.
        self._last_id = (self._last_id + 1) % 2**32
        return self._last_id

    def _send(self, frame: bytes, deadline: float = math.inf) -> None:
        self._check_alive()
        try:
            self._stream.send(frame, min(until(SEND_LIMIT_S), deadline, self._deadline))
        except SessionError as error:
            if not self._leaving:
                self._leaving = True
                self._hear_last_words()
            self._fail(error.what)

    def _hear_last_words(self) -> None:
        """Read the agent's last messages, which explain more than a broken pipe does."""
        deadline = until(_LAST_WORDS_S)
        while time.monotonic() < deadline and self._poll.poll(stretched(_LAST_WORDS_S) * 1000):
            self._receive("to take what was sent to it")

    def _receive(self, awaited: str) -> None:
        """Process available input, if any."""
        arrived_ns = time.monotonic_ns()
        try:
            data = self._stream.receive(_RECEIVE)
        except SessionError as error:
            self._fail(error.what, error.fix)
        if data is None:
            return
        if not data:
            self._fail(f"the sandbox was {awaited}, but its connection ended", with_seen=True)
        if self._first_byte_ns is None:
            self._first_byte_ns = arrived_ns
        self._seen = (self._seen + data)[-_SEEN:]
        try:
            for frame in self._decoder.feed(data):
                self._dispatch(frame)
            if not self._decoder.pending:
                self._seen = b""
        except frames.FrameError as error:
            self._fail(f"what came out of the sandbox is not the protocol: {error}", with_seen=True)
        except SessionError as error:
            self._fail(error.what, error.fix)

    def _dispatch(self, frame: frames.Frame) -> None:
        if isinstance(frame, frames.DataFrame):
            self._pending(frame.id, "data").take(frame.channel, frame.data)
            return
        reply = self._read(frame.payload)
        if isinstance(reply, messages.Hello):
            self._greet(reply)
        elif self._hello is None:
            raise SessionError(f"the agent says {reply.type} before hello")
        elif reply.id is None:
            raise SessionError(f"the agent ended the session: {shown(reply.text)}")
        else:
            pending = self._pending(reply.id, reply.type)
            pending.accept(reply)
            if pending.over:
                del self._live[reply.id]

    def _read(self, payload: bytes) -> messages.AnyReply:
        try:
            return messages.REPLIES.validate_json(payload)
        except ValidationError as error:
            version = messages.greeted_protocol(payload)
            if self._hello is None and version not in {None, messages.PROTOCOL}:
                raise _other_version(version) from error
            why = messages.why_invalid(error)
            raise SessionError(f"a message that is not the protocol ({why}): {shown(payload)}") from error

    def _greet(self, hello: messages.Hello) -> None:
        if self._hello is not None:
            raise SessionError("the agent said hello twice")
        if hello.protocol != messages.PROTOCOL:
            raise _other_version(hello.protocol)
        self._hello = hello

    def _pending(self, request_id: int, kind: str) -> Pending:
        pending = self._live.get(request_id)
        if pending is None:
            raise SessionError(f"the agent sends {kind} for request {request_id}, which is not under way")
        return pending

    # -- the end ----------------------------------------------------------------------------------------------

    def _check_alive(self) -> None:
        if self.dead is not None:
            raise type(self.dead)(self.dead.what, fix=self.dead.fix)

    def _fail(self, message: str, fix: str | None = None, *, with_seen: bool = False) -> NoReturn:
        if self.dead is None:
            self.dead = SessionError(message + self._last_bytes() if with_seen else message, fix=fix)
        raise self.dead

    def _time_out(self, awaited: str, waited_s: float, *, fatal: bool) -> NoReturn:
        error = SessionTimeout(f"the sandbox was {awaited}, but has not within {waited_s:.3g} s{self._last_bytes()}")
        if fatal:
            self.dead = self.dead or error
        raise error

    def _last_bytes(self) -> str:
        """Describe the end of the input if it was no complete message, or that there was none."""
        if self._seen:
            return f"; the last it sent: {shown(self._seen, _SEEN)}"
        return "" if self._hello else "; it sent nothing"


def _encoded(message: messages.Message) -> bytes:
    try:
        return frames.encode_message(messages.encode(message))
    except frames.FrameError as error:
        raise UsageError(f"a request is too large: {error}") from error


def _other_version(version: int | None) -> SessionError:
    message = f"the agent speaks version {version} of the protocol, not {messages.PROTOCOL}"
    return SessionError(message, fix="build the image again, so that its agent is that of this tare")
