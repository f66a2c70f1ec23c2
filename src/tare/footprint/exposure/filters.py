"""What seccomp filters answer to each system call, whatever its arguments are.

Sources: the kernel's include/uapi/linux/seccomp.h (actions, ``struct seccomp_data``) and audit.h (architectures);
`seccomp_run_filters` and `__seccomp_filter` in kernel/seccomp.c (precedence, actions that are not known).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tare.footprint.exposure.cbpf import Instruction, returned
from tare.footprint_model import Call

Program = Sequence[Instruction]

#: Offsets of the number and the architecture in ``struct seccomp_data``. The rest of it is not known.
NUMBER, ARCHITECTURE = 0, 4
KILL_PROCESS, KILL_THREAD, TRAP, ERRNO = 0x80000000, 0x00000000, 0x00030000, 0x00050000
USER_NOTIF, TRACE, LOG, ALLOW = 0x7FC00000, 0x7FF00000, 0x7FFC0000, 0x7FFF0000
ACTION_BITS, DATA_BITS = 0xFFFF0000, 0x0000FFFF

_NAMES = {
    KILL_PROCESS: "kill process", KILL_THREAD: "kill thread", TRAP: "trap", ERRNO: "errno", USER_NOTIF: "notify",
    TRACE: "trace", LOG: "log", ALLOW: "allow",
}  # fmt: skip
_CALLS = {
    KILL_PROCESS: Call.KILL, KILL_THREAD: Call.KILL, TRAP: Call.TRAP, ERRNO: Call.ERRNO, USER_NOTIF: Call.NOTIFY,
    TRACE: Call.TRACE, LOG: Call.ALLOWED, ALLOW: Call.ALLOWED,
}  # fmt: skip
#: From strict to permissive.
_MILDNESS = (Call.KILL, Call.TRAP, Call.ERRNO, Call.NOTIFY, Call.TRACE, Call.CONDITIONAL, Call.ALLOWED)


def answers(programs: Sequence[Program], number: int, architecture: int) -> frozenset[int]:
    """All that stacked filters, the newest first, may answer to a call: return values, action and data."""
    words = {NUMBER: number, ARCHITECTURE: architecture}
    return combined(_possible(returned(program, words)) for program in programs)


def combined(filter_answers: Iterable[frozenset[int]]) -> frozenset[int]:
    """The answers of stacked filters together, from those that each may give, the newest first: the strictest holds.

    Of answers with the same action the newest filter's stays, with its data. Each answer of one is paired with each of
    the others', though filters may look at the same argument.
    """
    together = frozenset({ALLOW})
    for older in filter_answers:
        together = frozenset(
            older_answer if _rank(older_answer) < _rank(newer_answer) else newer_answer
            for newer_answer in together
            for older_answer in older
        )
    return together


def outcome(values: frozenset[int]) -> Call:
    """What becomes of a system call for which the filters may give these answers; `Call.CONDITIONAL`: that depends."""
    calls = {_call(value) for value in values}
    if Call.ALLOWED in calls and len(calls) > 1:
        return Call.CONDITIONAL
    return _call(max(values, key=_rank))


def most_permissive(calls: Iterable[Call]) -> Call:
    """The most permissive of several outcomes."""
    return max(calls, key=_MILDNESS.index)


def by_name(
    programs: Sequence[Program], numbers: Mapping[str, int], architecture: int
) -> tuple[dict[str, Call], dict[str, tuple[str, ...]]]:
    """What becomes of each call, and the possible answers, as text, for calls that are not simply allowed."""
    calls, words = {}, {}
    for name, number in numbers.items():
        values = answers(programs, number, architecture)
        calls[name] = outcome(values)
        if values != {ALLOW}:
            words[name] = tuple(sorted({named(value) for value in values}))
    return calls, words


def named(value: int) -> str:
    """What a filter answers, in words: ``errno 1``, ``kill process``."""
    action = value & ACTION_BITS
    return f"errno {value & DATA_BITS}" if action == ERRNO else _NAMES.get(action, _NAMES[KILL_PROCESS])


def _possible(values: frozenset[int | None]) -> frozenset[int]:
    """The return values; where one was calculated (None), it may be any action."""
    return frozenset(value for value in values if value is not None) | (frozenset(_NAMES) if None in values else set())


def _call(value: int) -> Call:
    return _CALLS.get(value & ACTION_BITS, Call.KILL)  # the kernel kills for an action that it does not know


def _rank(value: int) -> int:
    """The kernel compares actions as signed numbers: the least is the strictest."""
    action = value & ACTION_BITS
    return action - (1 << 32) if action >> 31 else action
