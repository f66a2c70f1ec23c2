"""Promises about hostile guests: root inside writes to the agent's own descriptors."""

from __future__ import annotations

import time

from tare.campaign.instances.launcher import RunningInstance
from tare.contract.bench import Bench, promise
from tare.contract.leftovers import left_on_host
from tare.errors import SessionError, SessionTimeout
from tare.host import instance_console
from tare.session import Execution
from tare.timeouts import stretched, until

#: Writes to a descriptor of the agent, its parent process: opened anew, or (sockets, devices that open only once)
#: duplicated by pidfd_getfd(2). Arguments: the descriptor; what to write first; what to write again and again, and the
#: seconds in between; the seconds after which to end.
_SPEAK = """\
($fd, $first, $then, $pause, $limit) = @ARGV;
$first = pack("H*", $first); $then = pack("H*", $then);
unless (readlink("/proc/self") eq $$) { print "cannot: /proc is of another namespace\\n"; exit 3 }
unless (open($out, ">>", "/proc/" . getppid() . "/fd/$fd")) {
    $taken = syscall(438, syscall(434, getppid(), 0), $fd + 0, 0);
    $taken >= 0 && open($out, ">>&=", $taken) or do { print "cannot: $!\\n"; exit 3 };
}
$| = 1; print "speaks\\n"; alarm $limit; $SIG{ALRM} = sub { exit 0 };
syswrite $out, $first;
$then = $then x 65536 unless $pause;
while (1) { select(undef, undef, undef, $pause) if $pause; syswrite $out, $then if length $then }
"""
_STDOUT, _STDERR = 1, 2
#: Its output if the kernel inside lacks pidfd_getfd(2), or gives a child nothing of its parent's without
#: CAP_SYS_PTRACE (gVisor, and Yama's ptrace_scope 1).
_REFUSALS = (b"cannot: Function not implemented", b"cannot: Operation not permitted")
OUT_OF_REACH = "the agent's stream is a socket, and the kernel inside gives it to no other process"
#: The header of the protocol's longest message: whatever follows, the agent's answers too, counts as its body.
_BEGUN = bytes([0x54, 0x52, 1, 1, 0, 0, 4, 0])
_SPEECH_S = 60
FLOOD_S = 2
ANSWER_LIMIT_S = 1.0
#: The session must have ended by then, even on a busy or emulated machine.
END_LIMIT_S = 40.0


def streams_have_limits(bench: Bench) -> str | None:
    """An answer that a guest begins and leaves, or goes on with a byte a second, ends the session at the limit."""
    for manner, then in (("silent", b""), ("trickling", b" ")):
        with bench.fresh() as running:
            lost = _lost(running, _speak(running, _STDOUT, _BEGUN, then, pause_s=1))
            if lost is None:
                return OUT_OF_REACH
            took, error = lost
            promise(isinstance(error, SessionTimeout), f"{manner}: {error}")
            promise(
                took < stretched(END_LIMIT_S), f"{manner}: a limit of {stretched(ANSWER_LIMIT_S):g} s took {took:.1f} s"
            )
        _nothing_left(running, manner)
    return None


def floods_are_stopped(bench: Bench) -> str | None:
    """A guest that floods its stream loses its session in one line; one that floods its console fills no disk."""
    with bench.fresh() as running:
        spoken = _speak(running, _STDERR, b"x", b"tare ", pause_s=0, until_s=FLOOD_S).wait()
        promise(spoken.code == 0, f"its console is not to be reached, so nothing is shown: {spoken.stdout!r}")
        running.session.ping(time_limit_s=30)
        log = running.instance.spec.space.log
        used_bytes = log.stat().st_blocks * 512 if log.exists() else 0
        promise(used_bytes <= 3 * instance_console.CAP, f"its console takes {used_bytes:,} bytes of the host's disk")
        promise(
            len(running.console()) <= instance_console.CAP + len(instance_console.CUT),
            "more than 1 MiB of its console is kept",
        )
        lost = _lost(running, _speak(running, _STDOUT, b"", bytes(1), pause_s=0))
        if lost is not None:
            promise(lost[0] < stretched(END_LIMIT_S), f"a flooded stream took {lost[0]:.1f} s to end")
    _nothing_left(running, "after a flood")
    return OUT_OF_REACH if lost is None else None


def _speak(
    running: RunningInstance, descriptor: int, first: bytes, then: bytes, *, pause_s: int, until_s: int = _SPEECH_S
) -> Execution:
    """Let the guest write to its agent's stream or console."""
    words = [str(descriptor), first.hex(), then.hex(), str(pause_s), str(until_s)]
    return running.session.start(["perl", "-e", _SPEAK, *words], time_limit_s=2 * _SPEECH_S)


def _lost(running: RunningInstance, speech: Execution) -> tuple[float, SessionError] | None:
    """Send requests until the session ends: how long the last one took, in s, and its error.

    None: the kernel inside gives the agent's socket to no other process, so only the agent writes to its stream.
    """
    deadline = until(END_LIMIT_S)
    while True:
        began = time.monotonic()
        try:
            running.session.ping(time_limit_s=ANSWER_LIMIT_S)
        except SessionError as error:
            promise("\n" not in str(error), f"more than a line: {error}")
            return time.monotonic() - began, error
        if speech.over and speech.stdout.strip() in _REFUSALS:
            return None
        promise(time.monotonic() < deadline, "the guest does not reach its agent's stream: it answers on")


def _nothing_left(running: RunningInstance, manner: str) -> None:
    leftovers = left_on_host(running.instance.spec.id)
    promise(not leftovers, f"{manner}: left on the host: {leftovers}")
