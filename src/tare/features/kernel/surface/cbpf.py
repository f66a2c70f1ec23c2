"""Evaluator of classic BPF, as far as seccomp admits it, over data of which only some words are known.

At a branch that depends on an unknown word, both paths are followed, each with what the branch reveals about the word:
that it equals a constant or does not, is above or below it, or the same about some of its bits. So the result is a set.
It contains every value that the program can return. It may contain too many values if a program calculates with unknown
words, compares them with each other, mixes tests of a whole word and of its bits, or has more paths than `STATES`,
after which the knowledge is dropped.

Sources: the kernel's include/uapi/linux/bpf_common.h and filter.h; `seccomp_check_filter` in kernel/seccomp.c for what
is admitted; `bpf_convert_filter` in net/core/filter.c for the semantics.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tare.errors import ParseError

WORD = 0xFFFFFFFF
#: Bytes of ``struct seccomp_data``, which "length" loads.
DATA_BYTES = 64
#: Limit of states followed from one branch with all knowledge, then again of states without. After that, nothing is
#: known.
STATES = 64
_SCRATCH = 16


class Instruction(NamedTuple):
    """One instruction of a filter in classic BPF: the kernel's ``struct sock_filter``."""

    code: int
    jt: int
    jf: int
    k: int


class Bits(NamedTuple):
    """Some bits of an unknown word."""

    offset: int
    mask: int


#: A number, bits of a word, or None for any value.
Value = int | Bits | None


class Range(NamedTuple):
    """Known limits of some bits, both included, and excluded values between them."""

    low: int
    high: int
    but: frozenset[int] = frozenset()


Facts = frozenset[tuple[Bits, Range]]
_NO_FACTS: Facts = frozenset()
_NO_SCRATCH: tuple[Value, ...] = (None,) * _SCRATCH


class ProgramState(NamedTuple):
    """State of a running program: next instruction, registers, scratch words, and knowledge about the data."""

    at: int
    a: Value
    x: Value
    scratch: tuple[Value, ...]
    facts: Facts


# Opcodes: class, then size and mode, or operation and source.
_LD, _LDX, _ST, _STX, _ALU, _JMP, _RET, _MISC = range(8)
_ABS, _IMM, _MEM, _LEN = 0x20, 0x00, 0x60, 0x80
_JA, _JEQ, _JGT, _JGE, _JSET = 0x00, 0x10, 0x20, 0x30, 0x40
_ADD, _SUB, _MUL, _DIV, _OR, _AND, _LSH, _RSH, _NEG, _XOR = 0, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x80, 0xA0
_BY_X, _TXA, _RET_A = 0x08, 0x80, 0x10
_OPERATIONS = (_ADD, _SUB, _MUL, _DIV, _OR, _AND, _LSH, _RSH, _XOR)
_TESTS = (_JEQ, _JGT, _JGE, _JSET)
_ADMITTED = frozenset(
    [_LD | mode for mode in (_ABS, _IMM, _MEM, _LEN)]
    + [_LDX | mode for mode in (_IMM, _MEM, _LEN)]
    + [_ST, _STX, _RET, _RET | _RET_A, _MISC, _MISC | _TXA, _JMP | _JA, _ALU | _NEG]
    + [_ALU | operation | by for operation in _OPERATIONS for by in (0, _BY_X)]
    + [_JMP | test | by for test in _TESTS for by in (0, _BY_X)]
)


def parse(raw: bytes) -> list[Instruction]:
    """Parse a program from its bytes (8 an instruction, in this machine's byte order). Raises `ParseError`."""
    if not raw or len(raw) % 8:
        raise ParseError(f"{len(raw)} bytes are no filter: an instruction has 8")
    program = [Instruction(*fields) for fields in struct.iter_unpack("=HBBI", raw)]
    for at, instruction in enumerate(program):
        if instruction.code not in _ADMITTED:
            code = f"{instruction.code:#x}"
            raise ParseError(f"instruction {at} of the filter has code {code}, which seccomp does not admit")
        if any(target >= len(program) for target in _targets(at, instruction)):
            raise ParseError(f"instruction {at} of the filter leads beyond its end")
    return program


def returned(program: Sequence[Instruction], known: Mapping[int, int]) -> frozenset[int | None]:
    """Return all values that a program may return; None stands for a calculated value.

    ``known``: words of the data by offset. All others may have any value.
    """
    return _Walk(program, known).all()


def _targets(at: int, instruction: Instruction) -> tuple[int, ...]:
    """Return the positions that may follow an instruction; empty after a return."""
    if instruction.code & 7 == _RET:
        return ()
    if instruction.code & 7 != _JMP:
        return (at + 1,)
    if instruction.code == _JMP | _JA:
        return (at + 1 + instruction.k,)
    return (at + 1 + instruction.jt, at + 1 + instruction.jf)


class _Walk:
    """One evaluation: values returned so far, paths still to follow, and each branch's earlier states."""

    def __init__(self, program: Sequence[Instruction], known: Mapping[int, int]) -> None:
        self._program = program
        self._known = known
        self._returned: set[int | None] = set()
        self._todo = [ProgramState(0, 0, 0, (0,) * _SCRATCH, _NO_FACTS)]
        self._seen: dict[int, set[ProgramState]] = defaultdict(set)

    def all(self) -> frozenset[int | None]:
        """Return all values that the program may return."""
        while self._todo:
            self._follow(self._todo.pop())
        return frozenset(self._returned)

    def _follow(self, state: ProgramState) -> None:
        """Follow one path until it returns, or branches."""
        while True:
            instruction = self._program[state.at]
            group = instruction.code & 7
            if group == _RET:
                value = _resolved(state.a, state.facts) if instruction.code & _RET_A else instruction.k
                self._returned.add(value if isinstance(value, int) else None)
                return
            if group == _JMP:
                ways = self._ways(state, instruction)
                if len(ways) != 1:
                    self._part(state, instruction)
                    return
                state = ways[0]
                continue
            after = self._step(state._replace(at=state.at + 1), instruction, group)
            if after is None:
                return
            state = after

    def _part(self, state: ProgramState, instruction: Instruction) -> None:
        seen = self._seen[state.at]
        # A state that knows less covers every path of a state that knows more, so no value is missed.
        if len(seen) >= STATES:
            state = state._replace(facts=_NO_FACTS)
        if len(seen) >= 2 * STATES:
            state = ProgramState(state.at, None, None, _NO_SCRATCH, _NO_FACTS)
        if state not in seen:
            seen.add(state)
            self._todo += self._ways(state, instruction)

    def _ways(self, state: ProgramState, instruction: Instruction) -> list[ProgramState]:
        targets = _targets(state.at, instruction)
        if len(targets) == 1:
            return [state._replace(at=targets[0])]
        number = _resolved(state.a, state.facts)
        operand = _resolved(state.x, state.facts) if instruction.code & _BY_X else instruction.k
        outcomes = zip(targets, _tested(instruction.code & 0xF0, number, operand, state.facts), strict=True)
        return [state._replace(at=target, facts=facts) for target, facts in outcomes if facts is not None]

    def _step(self, state: ProgramState, instruction: Instruction, group: int) -> ProgramState | None:
        """Return the state after an instruction that neither jumps nor returns; None if it ends the program."""
        if group == _LD:
            return state._replace(a=self._load(state, instruction))
        if group == _LDX:
            return state._replace(x=self._load(state, instruction))
        if group == _ALU:
            return self._calculate(state, instruction)
        if group == _MISC:
            return state._replace(a=state.x) if instruction.code & _TXA else state._replace(x=state.a)
        stored = state.a if group == _ST else state.x
        return state._replace(scratch=(*state.scratch[: instruction.k], stored, *state.scratch[instruction.k + 1 :]))

    def _load(self, state: ProgramState, instruction: Instruction) -> Value:
        mode = instruction.code & 0xE0
        if mode == _IMM:
            return instruction.k
        if mode == _MEM:
            return state.scratch[instruction.k]
        if mode == _LEN:
            return DATA_BYTES
        return self._known.get(instruction.k, Bits(instruction.k, WORD))

    def _calculate(self, state: ProgramState, instruction: Instruction) -> ProgramState | None:
        operation = instruction.code & 0xF0
        number = _resolved(state.a, state.facts)
        operand = _resolved(state.x, state.facts) if instruction.code & _BY_X else instruction.k
        if operation == _DIV and not (isinstance(operand, int) and operand):
            self._returned.add(0)  # A division by zero ends the program with 0.
            if operand == 0:
                return None
        if operation == _NEG:
            operand = 0
        if isinstance(number, int) and isinstance(operand, int):
            return state._replace(a=_calculated(operation, number, operand))
        return state._replace(a=_masked(number, operand, state.facts) if operation == _AND else None)


def _calculated(operation: int, a: int, b: int) -> int:
    """Apply an operation to two 32-bit numbers. Shifts use the low five bits of the distance, as in eBPF."""
    results = {
        _ADD: a + b, _SUB: a - b, _MUL: a * b, _DIV: a // b if b else 0, _OR: a | b, _AND: a & b, _LSH: a << (b & 31),
        _RSH: a >> (b & 31), _NEG: -a, _XOR: a ^ b,
    }  # fmt: skip
    return results[operation] & WORD


def _masked(value: Value, operand: Value, facts: Facts) -> Value:
    if isinstance(value, int):
        value, operand = operand, value
    if operand == 0:
        return 0
    if isinstance(value, Bits) and isinstance(operand, int):
        mask = value.mask & operand
        return _resolved(Bits(value.offset, mask), facts) if mask else 0
    return None


def _resolved(value: Value, facts: Facts) -> Value:
    """Return the number if the facts determine it, otherwise the value itself."""
    if isinstance(value, Bits):
        bounds = _range(value, facts)
        if bounds.low == bounds.high:
            return bounds.low
    return value


def _range(bits: Bits, facts: Facts) -> Range:
    values = Range(0, bits.mask)
    for fact_bits, allowed in facts:
        if fact_bits == bits:
            values = allowed
        elif fact_bits.offset == bits.offset and allowed.low == allowed.high and not bits.mask & ~fact_bits.mask:
            return Range(allowed.low & bits.mask, allowed.low & bits.mask)
    return values


def _learned(facts: Facts, bits: Bits, low: int, high: int, but: frozenset[int]) -> Facts | None:
    """Return the facts with the bits in this range and without ``but``, or None if that contradicts the facts."""
    while low in but:
        low += 1
    while high in but:
        high -= 1
    if low > high or (low == high and not _fits(bits, low, facts)):
        return None
    within = frozenset(value for value in but if low < value < high)
    return frozenset(fact for fact in facts if fact[0] != bits) | {(bits, Range(low, high, within))}


def _fits(bits: Bits, value: int, facts: Facts) -> bool:
    """Return True if the bits can have this value, given what is known of parts of them."""
    if value & ~bits.mask:
        return False
    parts = [(part, allowed) for part, allowed in facts if part.offset == bits.offset and not part.mask & ~bits.mask]
    return all(
        allowed.low <= value & part.mask <= allowed.high and value & part.mask not in allowed.but
        for part, allowed in parts
    )


def _tested(comparison: int, value: Value, operand: Value, facts: Facts) -> tuple[Facts | None, Facts | None]:
    """Return what is known if a test holds, and if it fails; None for an impossible case."""
    if isinstance(value, int) and isinstance(operand, int):
        results = {_JEQ: value == operand, _JGT: value > operand, _JGE: value >= operand, _JSET: value & operand != 0}
        return (facts, None) if results[comparison] else (None, facts)
    if not isinstance(value, Bits) or not isinstance(operand, int):
        return facts, facts
    if comparison == _JSET:
        value = Bits(value.offset, value.mask & operand)
        if not value.mask:
            return None, facts
        zero, nonzero = _tested(_JEQ, _resolved(value, facts), 0, facts)
        return nonzero, zero
    low, high, but = _range(value, facts)
    if comparison == _JEQ:
        possible = low <= operand <= high and operand not in but
        true = _learned(facts, value, operand, operand, frozenset()) if possible else None
        return true, _learned(facts, value, low, high, but | {operand})
    first = operand + 1 if comparison == _JGT else operand  # First of the numbers for which the test holds.
    return _learned(facts, value, max(low, first), high, but), _learned(facts, value, low, min(high, first - 1), but)
