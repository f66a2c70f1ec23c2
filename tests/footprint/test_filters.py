"""Filters that libseccomp makes of known rules, the kernel's precedence, and what becomes of a call."""

import itertools
import tempfile

import pyseccomp
import pytest
from pyseccomp import ALLOW, EQ, GE, KILL_PROCESS, LOG, LT, MASKED_EQ, NE, TRAP, Arch, Arg, Attr, SyscallFilter

from tare.features.kernel.reading import call_tables
from tare.features.kernel.surface import cbpf, filters
from tare.footprint_model import Call

X86_64 = 0xC000003E
TABLE = call_tables.native("x86_64")
OTHERS = {table.abi: table for table in call_tables.others("x86_64")}
E = pyseccomp.ERRNO


def made(default, *rules, arches=(), tree=False):
    """The program that libseccomp makes of these rules."""
    syscall_filter = SyscallFilter(default)
    for arch in arches:
        syscall_filter.add_arch(arch)
    for action, name, *arguments in rules:
        syscall_filter.add_rule(action, name, *arguments)
    if tree:
        syscall_filter.set_attr(Attr.CTL_OPTIMIZE, 2)
    with tempfile.TemporaryFile() as file:
        syscall_filter.export_bpf(file)
        file.seek(0)
        return cbpf.parse(file.read())


def answers_of(*programs, table=TABLE):
    return filters.by_name(programs, table.numbers, table.architecture)


def test_a_list_of_allowed_calls():
    names = ["read", "write", "openat", "futex", "exit_group", "mmap", "statx"]
    calls, words = answers_of(made(E(38), *((ALLOW, name) for name in names)))
    assert {name for name, call in calls.items() if call is Call.ALLOWED} == set(names)
    assert {name for name, call in calls.items() if call is Call.ERRNO} == set(calls) - set(names)
    assert words["mount"] == ("errno 38",)
    assert "read" not in words


@pytest.mark.parametrize(
    ("action", "call", "word"),
    [
        (E(1), Call.ERRNO, "errno 1"),
        (TRAP, Call.TRAP, "trap"),
        (KILL_PROCESS, Call.KILL, "kill process"),
        (pyseccomp.KILL, Call.KILL, "kill thread"),
        (pyseccomp.TRACE(7), Call.TRACE, "trace"),
        (pyseccomp.NOTIFY, Call.NOTIFY, "notify"),
        (LOG, Call.ALLOWED, "log"),
    ],
)
def test_each_action(action, call, word):
    calls, words = answers_of(made(ALLOW, (action, "mount"), (action, "keyctl")))
    assert {name for name, answer in calls.items() if name in words} == {"mount", "keyctl"}
    assert calls["mount"] is call
    assert words["mount"] == (word,)


@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize(
    "argument",
    [
        Arg(0, EQ, 8),
        Arg(1, NE, 40),
        Arg(2, GE, 0x1_0000_0002),
        Arg(5, LT, 1 << 33),
        Arg(0, MASKED_EQ, 0x7E020000, 0),
    ],
)
def test_calls_that_are_allowed_as_their_arguments_are(argument, tree):
    every = [(ALLOW, "read"), (ALLOW, "write"), (ALLOW, "clone", argument), (E(1), "mount")]
    calls, words = answers_of(made(E(38), *every, tree=tree))
    assert calls["clone"] is Call.CONDITIONAL
    assert words["clone"] == ("allow", "errno 38")
    assert [name for name, call in calls.items() if call is Call.CONDITIONAL] == ["clone"]
    assert words["mount"] == ("errno 1",)


def test_rules_that_leave_nothing_out_are_no_condition():
    # Whatever the argument is, one of the two holds.
    rules = [(ALLOW, "personality", Arg(0, EQ, 8)), (ALLOW, "personality", Arg(0, NE, 8))]
    calls, _ = answers_of(made(E(38), *rules))
    assert calls["personality"] is Call.ALLOWED


def test_a_filter_may_forbid_what_another_allows_for_the_same_argument():
    # Each condition alone can hold. That both cannot is not seen: stacked filters are paired answer by answer.
    first, other = (made(E(38), (ALLOW, "socket", Arg(0, EQ, family))) for family in (1, 2))
    calls, _ = answers_of(first, other)
    assert calls["socket"] is Call.CONDITIONAL


def test_other_ways_into_the_kernel():
    alone = made(E(38), (ALLOW, "read"), (ALLOW, "openat"))
    for table in OTHERS.values():
        calls, _ = answers_of(alone, table=table)
        assert set(calls.values()) == {Call.KILL}
    with_others = made(E(38), (ALLOW, "read"), (ALLOW, "openat"), arches=(Arch.X86, Arch.X32))
    for table in OTHERS.values():
        calls, _ = answers_of(with_others, table=table)
        assert {name for name, call in calls.items() if call is Call.ALLOWED} == {"read", "openat"}


ACTIONS = [filters.KILL_PROCESS, filters.KILL_THREAD, filters.TRAP, filters.ERRNO, filters.USER_NOTIF, filters.TRACE,
           filters.LOG, filters.ALLOW]  # fmt: skip


def test_of_two_filters_the_stricter_holds_whichever_is_newer():
    # In the order of the kernel's documentation (seccomp_filter.rst): from the strictest on.
    for strict, mild in itertools.combinations(ACTIONS, 2):
        assert filters.combined([frozenset({strict}), frozenset({mild})]) == {strict}
        assert filters.combined([frozenset({mild}), frozenset({strict})]) == {strict}


def test_of_two_errors_the_newer_filters_is_returned():
    newer, older = filters.ERRNO | 1, filters.ERRNO | 38
    assert filters.combined([frozenset({newer}), frozenset({older})]) == {newer}


def test_sets_are_combined_pair_by_pair():
    condition = frozenset({filters.ALLOW, filters.ERRNO | 1})
    assert filters.combined([condition, frozenset({filters.TRAP})]) == {filters.TRAP}
    assert filters.combined([condition, frozenset({filters.ALLOW, filters.TRACE})]) == {
        filters.ALLOW, filters.TRACE, filters.ERRNO | 1,
    }  # fmt: skip
    assert filters.combined([]) == {filters.ALLOW}


def test_stacked_programs():
    outer = made(ALLOW, (E(1), "mount"), (E(1), "bpf"))
    inner = made(TRAP, (ALLOW, "read"), (ALLOW, "mount"))
    calls, words = answers_of(inner, outer)
    assert calls["read"] is Call.ALLOWED
    assert (calls["mount"], words["mount"]) == (Call.ERRNO, ("errno 1",))
    assert (calls["bpf"], words["bpf"]) == (Call.TRAP, ("trap",))


@pytest.mark.parametrize(
    ("values", "call"),
    [
        ({filters.ALLOW}, Call.ALLOWED),
        ({filters.ALLOW, filters.LOG}, Call.ALLOWED),
        ({filters.ALLOW, filters.KILL_PROCESS}, Call.CONDITIONAL),
        ({filters.ALLOW, filters.USER_NOTIF}, Call.CONDITIONAL),
        ({filters.ERRNO | 1, filters.TRAP}, Call.ERRNO),  # the milder of the two
        ({filters.KILL_THREAD, filters.TRAP}, Call.TRAP),
        ({0x12340000}, Call.KILL),  # what the kernel does not know it kills for
    ],
)
def test_what_becomes_of_a_call(values, call):
    assert filters.outcome(frozenset(values)) is call


def test_a_program_that_returns_what_it_calculated_may_answer_anything():
    program = cbpf.parse(bytes.fromhex("2000000010000000") + bytes.fromhex("1600000000000000"))
    assert filters.answers([program], 0, X86_64) == set(ACTIONS)
