"""Requests in progress: each takes the agent's messages and data for its id, and knows when it is over.

Every `accept` and `take` here reads data that a hostile agent may have made up. A `SessionError` that they raise ends
the session.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from tare.errors import SessionError, UsageError
from tare.session import frames, messages
from tare.session.request_results import ExecResult, PartResult, ProbeResult, ProbeSlice, Refused
from tare.session.shown_output import shown
from tare.timeouts import until

#: Seconds beyond a command's own limit that the host waits for the agent's message that it is over.
GRACE_S = 10.0
#: Size of a data frame to the agent: small enough for a slow line to take it within a send's limit.
_PIECE = 32_768


class SessionParts(Protocol):
    """The parts of a session that a request uses."""

    def send_message(self, message: messages.Message) -> None:
        """Send a message. Raises `SessionError` if the sandbox does not take it."""
        ...

    def send_data(self, request_id: int, data: bytes) -> None:
        """Send contents of channel 0."""
        ...

    def pump_until(self, over: Callable[[], bool], deadline: float, awaited: str, *, fatal: bool) -> None:
        """Process input until ``over()``. Raises `SessionTimeout` at the deadline.

        The timeout ends the session if ``fatal``.
        """
        ...


class Pending:
    """A request that waits for its answer."""

    def __init__(self, request_id: int, what: str) -> None:
        self.id = request_id
        self.what = what
        self.over = False
        self.refused: Refused | None = None

    def accept(self, reply: messages.AnyReply) -> None:
        """Process a message with this id. Raises `SessionError` for an answer of another kind."""
        if isinstance(reply, messages.Refusal):
            self.refused = Refused(f"the agent refuses to {self.what}: {shown(reply.text)}", reply.code)
            self.over = True
        elif not self.answer(reply):
            raise SessionError(f"the agent answers {reply.type} when asked to {self.what}")

    def answer(self, reply: messages.AnyReply) -> bool:
        """Process an answer that is no refusal. Return False if it does not belong to this kind of request."""
        raise NotImplementedError

    def take(self, channel: int, data: bytes) -> None:
        """Process data with this id. Raises `SessionError`, unless the kind of request expects data."""
        raise SessionError(f"the agent sends {len(data)} bytes on channel {channel} when asked to {self.what}")

    def check(self) -> None:
        """Raise the refusal, if any."""
        if self.refused is not None:
            raise self.refused


class Clocked(Pending):
    """A ping: keeps the agent's clock and the time of the answer on the host's clock."""

    def __init__(self, request_id: int) -> None:
        super().__init__(request_id, "tell its clock")
        self.agent_ns = 0
        self.received_ns = 0

    def answer(self, reply: messages.AnyReply) -> bool:
        """Process the answer to a ping, and record both clocks."""
        if not isinstance(reply, messages.Pong):
            return False
        self.received_ns = time.monotonic_ns()
        self.agent_ns = reply.clock_ns
        self.over = True
        return True


class Transfer(Pending):
    """A put, a get, or a shutdown. It ends with ``done``, and only a get receives data, at most ``cap`` bytes."""

    def __init__(self, request_id: int, what: str, cap: int | None = None) -> None:
        super().__init__(request_id, what)
        self._cap = cap
        self._ended = cap is None
        self.received = bytearray()
        self.bytes = 0

    def answer(self, reply: messages.AnyReply) -> bool:
        """Process the final `messages.Done`. Raises `SessionError` if the agent sent another number of bytes."""
        if not isinstance(reply, messages.Done):
            return False
        if not self._ended or (self._cap is not None and reply.bytes != len(self.received)):
            raise SessionError(f"the agent says it sent {reply.bytes} bytes, but sent {len(self.received)}")
        self.bytes = reply.bytes
        self.over = True
        return True

    def take(self, channel: int, data: bytes) -> None:
        """Store contents of the file. Raises `SessionError` for more bytes than requested."""
        if self._cap is None or channel != frames.STDOUT or self._ended:
            super().take(channel, data)
        self._ended = not data
        self.received += data
        if len(self.received) > (self._cap or 0):
            raise SessionError(f"the agent sends more than the {self._cap} bytes it was asked for")


class Execution(Pending):
    """A running command. Its output is stored whenever any request of its session is waited for."""

    def __init__(self, line: SessionParts, request: messages.Exec, stdin: bytes) -> None:
        super().__init__(request.id, f"run `{shlex.join(request.argv)[:200]}`")
        self._line = line
        self._cap = request.output_cap
        self._outputs = {frames.STDOUT: bytearray(), frames.STDERR: bytearray()}
        self._ended: set[int] = set()
        self._stdin = memoryview(stdin)
        self._sent = 0
        self._window = messages.STDIN_WINDOW
        self._closed = not stdin
        self._exited: messages.Exited | None = None
        self._promise = until(GRACE_S) + request.time_limit_ms / 1000

    @property
    def stdout(self) -> bytes:
        """Its standard output so far."""
        return bytes(self._outputs[frames.STDOUT])

    @property
    def stderr(self) -> bytes:
        """Its standard error so far."""
        return bytes(self._outputs[frames.STDERR])

    def since(self, channel: int, place: int) -> bytes:
        """Return one output (`frames.STDOUT`, `frames.STDERR`) from a position on."""
        return bytes(self._outputs[channel][place:])

    def push(self) -> None:
        """Send as much of its stdin as the agent has granted."""
        while self._window and self._sent < len(self._stdin):
            piece = self._stdin[self._sent : self._sent + min(self._window, _PIECE)]
            self._line.send_data(self.id, bytes(piece))
            self._sent += len(piece)
            self._window -= len(piece)
        if self._sent == len(self._stdin) and not self._closed:
            self._closed = True
            self._line.send_data(self.id, b"")

    def answer(self, reply: messages.AnyReply) -> bool:
        """Process a credit or the end. Raises `SessionError` for a credit of bytes that were never sent."""
        if isinstance(reply, messages.Credit):
            if self._window + reply.bytes > messages.STDIN_WINDOW:
                raise SessionError(f"the agent grants {reply.bytes} bytes of stdin that it never got")
            self._window += reply.bytes
            self.push()
            return True
        if not isinstance(reply, messages.Exited):
            return False
        self._check_exit(reply)
        self._exited = reply
        self.over = True
        return True

    def _check_exit(self, reply: messages.Exited) -> None:
        if (reply.code is None) == (reply.signal is None):
            raise SessionError("the agent says that a command ended neither or both by exit and by signal")
        produced = {frames.STDOUT: reply.stdout_bytes, frames.STDERR: reply.stderr_bytes}
        expected = {channel: min(count, self._cap) for channel, count in produced.items()}
        sent = {channel: len(output) for channel, output in self._outputs.items()}
        if sent != expected or self._ended != set(sent):
            raise SessionError("the agent says that a command produced other than it sent")

    def take(self, channel: int, data: bytes) -> None:
        """Store output. Raises `SessionError` for more bytes than requested, and for any after its end."""
        output = self._outputs.get(channel)
        if output is None or channel in self._ended:
            raise SessionError(f"the agent sends on channel {channel} of a command after its end")
        if not data:
            self._ended.add(channel)
        if len(output) + len(data) > self._cap:
            raise SessionError(f"the agent sends more output than the {self._cap} bytes it was asked for")
        output += data

    def wait(self, time_limit_s: float | None = None) -> ExecResult:
        """Wait for its end.

        Raises `Refused` if it could not be started. Raises `SessionTimeout` if it is not over within ``time_limit_s``,
        which leaves it running. Without this limit, the command's own limit, enforced by the agent, applies; if the
        agent then stays silent for `GRACE_S` more, the session is lost.
        """
        wait_until = self._promise if time_limit_s is None else until(time_limit_s)
        deadline = min(wait_until, self._promise)
        self._line.pump_until(lambda: self.over, deadline, f"to {self.what}", fatal=wait_until >= self._promise)
        return self.result()

    def result(self) -> ExecResult:
        """Return its exit status and output. Raises `SessionError` while it is not over, and `Refused`."""
        self.check()
        if self._exited is None:
            raise SessionError(f"the command is not over: {self.what}")
        fields = self._exited.model_dump(exclude={"type", "id"})
        return ExecResult(**fields, stdout=self.stdout, stderr=self.stderr)

    def wait_output(self, pattern: bytes, time_limit_s: float, times: int = 1) -> None:
        """Wait until its stdout contains ``pattern``, which a server prints when it is ready, so many times.

        Raises `SessionTimeout` after the limit, and `SessionError` if the command ends first; the session continues.
        Raises `Refused` if it could not be started.
        """
        output = self._outputs[frames.STDOUT]
        looked = count = 0

        def has_pattern() -> bool:
            nonlocal looked, count
            while (place := output.find(pattern, looked)) >= 0:
                count += 1
                looked = place + len(pattern)
            looked = max(looked, len(output) - len(pattern) + 1)
            return count >= times

        deadline = min(until(time_limit_s), self._promise)
        awaited = f"to {self.what} until it says {shown(pattern)}"
        self._line.pump_until(lambda: has_pattern() or self.over, deadline, awaited, fatal=False)
        self.check()
        if not has_pattern():
            output_end = shown((self.stderr or self.stdout)[-200:])
            raise SessionError(
                f"the sandbox was to {self.what}, which ended before it said {shown(pattern)}: {output_end}"
            )

    def kill(self) -> None:
        """Send SIGKILL to its process group. `wait` then returns its exit status."""
        if not self.over:
            self._line.send_message(messages.Kill(id=self.id))


class Probe(Pending):
    """A running built-in probe: it warms up, is ready, works in its slices, and reports its work."""

    def __init__(self, line: SessionParts, request: messages.ProbeRequest) -> None:
        super().__init__(request.id, f"probe {request.name}")
        self._line = line
        self._warmup_work: int | None = None
        self._planned: int | None = None
        self._killed = False
        self._probed: messages.Probed | None = None

    def answer(self, reply: messages.AnyReply) -> bool:
        """Process the message that it is ready, or its end."""
        if isinstance(reply, messages.Ready) and self._warmup_work is None:
            self._warmup_work = reply.warmup_work
            return True
        if not isinstance(reply, messages.Probed):
            return False
        self._check_turns(reply)
        self._probed = reply
        self.over = True
        return True

    def _check_turns(self, reply: messages.Probed) -> None:
        planned = self._planned or 0
        if self._warmup_work is None or len(reply.slices) > planned:
            raise SessionError("the agent reports slices that were not requested")
        if len(reply.slices) < planned and not self._killed:
            raise SessionError(f"the agent tells of {len(reply.slices)} slices of {planned}")
        widths = {len(turn.work) for turn in reply.slices} | {len(turn.wall_ns) for turn in reply.slices}
        if widths - {len(reply.parts)} or any(turn.end_ns < turn.start_ns for turn in reply.slices):
            raise SessionError("the agent reports an impossible slice")

    def wait_ready(self, time_limit_s: float) -> int:
        """Wait until it is allocated and warm. Return the work of the warm-up, summed over all parts."""
        deadline = until(time_limit_s)
        ready = lambda: self.over or self._warmup_work is not None  # noqa: E731 (a condition, not a function)
        self._line.pump_until(ready, deadline, f"to warm up to {self.what}", fatal=True)
        self.check()
        return self._warmup_work or 0

    def begin(self, slices: Sequence[tuple[int, int]]) -> None:
        """Send its turns, once: (start, duration) in ns on the agent's clock, ascending, not overlapping.

        Raises `UsageError` on the second call, and for turns out of order.
        """
        if self._planned is not None:
            raise UsageError("a probe is given its slices once")
        request = messages.checked(
            lambda: messages.Slices(
                id=self.id,
                slices=[messages.Slice(start_ns=start, duration_ns=duration) for start, duration in slices],
            )
        )
        self._line.send_message(request)
        self._planned = len(request.slices)

    def kill(self) -> None:
        """Stop it soon. `wait` then returns the slices that were completed."""
        if not self.over:
            self._killed = True
            self._line.send_message(messages.Kill(id=self.id))

    def wait(self, time_limit_s: float) -> ProbeResult:
        """Wait for its end. Raises `Refused` (wrong parameters, a wrong answer) and `SessionTimeout`."""
        deadline = until(time_limit_s)
        self._line.pump_until(lambda: self.over, deadline, f"to {self.what}", fatal=True)
        self.check()
        if self._probed is None:
            raise SessionError(f"the probe is not over: {self.what}")
        parts = self._probed.parts
        slices = tuple(
            ProbeSlice(
                turn.start_ns,
                turn.end_ns,
                {part: PartResult(*done) for part, *done in zip(parts, turn.work, turn.wall_ns, strict=True)},
            )
            for turn in self._probed.slices
        )
        return ProbeResult(slices, self._warmup_work or 0)
