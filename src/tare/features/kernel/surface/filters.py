"""Answers of seccomp filters to each system call, for all possible arguments.

Sources: the kernel's include/uapi/linux/seccomp.h (actions, ``struct seccomp_data``) and audit.h (architectures);
`seccomp_run_filters` and `__seccomp_filter` in kernel/seccomp.c (precedence, unknown actions).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tare.features.kernel.surface.cbpf import Instruction, returned
from tare.footprint_model import Call

Program = Sequence[Instruction]

#: Offsets of the number and the architecture in ``struct seccomp_data``. The other words are unknown.
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
#: Outcomes from strict to permissive.
_MILDNESS = (Call.KILL, Call.TRAP, Call.ERRNO, Call.NOTIFY, Call.TRACE, Call.CONDITIONAL, Call.ALLOWED)


def answers(programs: Sequence[Program], number: int, architecture: int) -> frozenset[int]:
    """Return all answers (action and data) that stacked filters, newest first, may give to a call."""
    words = {NUMBER: number, ARCHITECTURE: architecture}
    return combined(_possible(returned(program, words)) for program in programs)


def combined(filter_answers: Iterable[frozenset[int]]) -> frozenset[int]:
    """Combine the answers that each stacked filter may give, newest first: the strictest answer wins.

    Of answers with the same action, the newest filter's wins, with its data. Every answer of one filter is paired with
    every answer of the others, although filters may test the same argument.
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
    """Return the outcome of a system call from the possible answers; `Call.CONDITIONAL` if they differ."""
    calls = {_call(value) for value in values}
    if Call.ALLOWED in calls and len(calls) > 1:
        return Call.CONDITIONAL
    return _call(max(values, key=_rank))


def most_permissive(calls: Iterable[Call]) -> Call:
    """Return the most permissive of several outcomes."""
    return max(calls, key=_MILDNESS.index)


def by_name(
    programs: Sequence[Program], numbers: Mapping[str, int], architecture: int
) -> tuple[dict[str, Call], dict[str, tuple[str, ...]]]:
    """Return the outcome of each call, and as text the possible answers for calls that are not simply allowed."""
    calls, words = {}, {}
    for name, number in numbers.items():
        values = answers(programs, number, architecture)
        calls[name] = outcome(values)
        if values != {ALLOW}:
            words[name] = tuple(sorted({named(value) for value in values}))
    return calls, words


def named(value: int) -> str:
    """Describe a filter's answer: ``errno 1``, ``kill process``."""
    action = value & ACTION_BITS
    return f"errno {value & DATA_BITS}" if action == ERRNO else _NAMES.get(action, _NAMES[KILL_PROCESS])


def _possible(values: frozenset[int | None]) -> frozenset[int]:
    """Return the possible return values. A calculated value (None) stands for any action."""
    return frozenset(value for value in values if value is not None) | (frozenset(_NAMES) if None in values else set())


def _call(value: int) -> Call:
    return _CALLS.get(value & ACTION_BITS, Call.KILL)  # The kernel kills on an unknown action.


def _rank(value: int) -> int:
    """Rank an action as the kernel does, which compares signed numbers: the least is the strictest."""
    action = value & ACTION_BITS
    return action - (1 << 32) if action >> 31 else action
