"""The evaluator against this kernel: filters of real sandboxes and of chance are put to it call by call.

Captured are programs of live processes, as `tare.features.kernel.surface.ptrace` read them: docker.bpf of a container
with Docker's default profile, runsc-*.bpf of gVisor's processes. No call runs (`kernel_oracle`).
"""

import json
import platform
import random
import subprocess
import sys
from pathlib import Path

import pytest
from cbpf_programs import JUMPS, programs
from hypothesis import Phase, given, settings
from plain_cbpf import raw

from tare.features.kernel.reading import call_tables
from tare.features.kernel.surface import cbpf, filters

HERE = Path(__file__).parent
CAPTURED = sorted((HERE / "captured").glob("*.bpf"))
MARK = 0x7A5E0001
ARGUMENTS = 16  # their offset in the data
TABLE = call_tables.native("x86_64")
OTHERS = {table.abi: table for table in call_tables.others("x86_64")}

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the captured filters are of x86-64")


class Oracle:
    """The kernel, asked by a process of its own."""

    def __init__(self):
        argv = [sys.executable, str(HERE / "kernel_oracle.py")]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def answers(self, program, syscalls, abi="x86_64"):
        question = {"filter": program.hex(), "abi": abi, "calls": [(number, args) for number, *args in syscalls]}
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture(scope="module")
def kernel():
    oracle = Oracle()
    yield oracle
    oracle.close()


def known(number, architecture, arguments):
    """The data as the kernel has it; but for where the call comes from."""
    words = {filters.NUMBER: number & 0xFFFFFFFF, filters.ARCHITECTURE: architecture}
    for at, argument in enumerate([*arguments, MARK]):
        words[ARGUMENTS + 8 * at] = argument & 0xFFFFFFFF
        words[ARGUMENTS + 8 * at + 4] = argument >> 32 & 0xFFFFFFFF
    return words


def asks_from_where(program):
    """Whether it looks at the address that a call comes from, as gVisor's stubs do: that is not told here."""
    return any(op.code == 0x20 and op.k in (8, 12) for op in program)


def seen(program, rng):
    """An argument that the program may ask for: one of its numbers, or near one; in one half or in both."""
    constants = [op.k + rng.choice([-1, 0, 0, 0, 1]) for op in program if op.code & 7 in (4, 5)]
    low, high = (max(rng.choice([0, *constants]), 0) & 0xFFFFFFFF for _ in range(2))
    return low | rng.choice([0, 0, high, 0xFFFFFFFF]) << 32


@pytest.mark.thorough
@pytest.mark.parametrize("file", CAPTURED, ids=lambda file: file.stem)
def test_a_real_filter_is_answered_alike(kernel, file):
    program = cbpf.parse(file.read_bytes())
    rng = random.Random(file.stem)
    whole = {number: filters.answers([program], number, TABLE.architecture) for number in TABLE.numbers.values()}
    syscalls = [
        (number, *(seen(program, rng) for _ in range(5)))
        for number, values in whole.items()
        for _ in range(1 if len(values) == 1 else 20)
    ]
    answers = kernel.answers(file.read_bytes(), syscalls)
    for (number, *arguments), answer in zip(syscalls, answers, strict=True):
        computed = cbpf.returned(program, known(number, TABLE.architecture, arguments))
        assert computed == {answer} or (answer in computed and asks_from_where(program))
        assert answer in whole[number]
    assert len({filters.outcome(values) for values in whole.values()}) > 1


@pytest.mark.thorough
@pytest.mark.parametrize("file", CAPTURED, ids=lambda file: file.stem)
def test_numbers_of_x32_are_answered_alike(kernel, file):
    program, table = cbpf.parse(file.read_bytes()), OTHERS["x32"]
    syscalls = [(number, 0, 0, 0, 0, 0) for number in table.numbers.values()]
    for (number, *arguments), answer in zip(syscalls, kernel.answers(file.read_bytes(), syscalls), strict=True):
        assert cbpf.returned(program, known(number, table.architecture, arguments)) == {answer}
        assert answer in filters.answers([program], number, table.architecture)


@pytest.mark.thorough
@pytest.mark.skipif(
    not call_tables.has_abi(OTHERS["i386"], call_tables.symbols()), reason="this kernel has no calls of i386"
)
@pytest.mark.parametrize("file", CAPTURED, ids=lambda file: file.stem)
def test_calls_of_i386_are_answered_alike(kernel, file):
    program, table = cbpf.parse(file.read_bytes()), OTHERS["i386"]
    syscalls = [(number, 0, 0, 0, 0, 0) for number in table.numbers.values()]
    for (number, *arguments), answer in zip(syscalls, kernel.answers(file.read_bytes(), syscalls, "i386"), strict=True):
        assert cbpf.returned(program, known(number, table.architecture, arguments)) == {answer}
        assert answer in filters.answers([program], number, table.architecture)


@settings(max_examples=25, database=None, phases=[Phase.generate])
@given(programs(tests=JUMPS, calculates=False))
def test_filters_of_chance_are_answered_alike(kernel, program):
    # What it returns, by where: an error of that number.
    errors = [op._replace(k=filters.ERRNO | op.k + 1) if op.code == 0x06 else op for op in program]
    parsed = cbpf.parse(raw(errors))
    rng = random.Random(str(program))
    syscalls = [(number, *(seen(parsed, rng) for _ in range(5))) for number in [0, 1, 2, 3, 4, 8, 16, 39]]
    for (number, *arguments), answer in zip(syscalls, kernel.answers(raw(errors), syscalls), strict=True):
        computed = cbpf.returned(parsed, known(number, TABLE.architecture, arguments))
        assert answer in computed
        assert len(computed) == 1 or asks_from_where(parsed)


def test_there_are_filters_of_real_sandboxes():
    assert {"docker", "runsc-gofer", "runsc-sentry", "runsc-sentry-host"} <= {file.stem for file in CAPTURED}
