"""The evaluator against a plain interpreter: it never misses a value, and where it can be exact it is."""

import itertools

import pytest
from cbpf_programs import JUMPS, NUMBERS, OFFSETS, programs
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_cbpf import Op, raw, run

from tare.errors import ParseError
from tare.features.kernel.surface import cbpf

WORDS = st.lists(NUMBERS | st.integers(0, 0xFFFFFFFF), min_size=16, max_size=16)


@pytest.mark.thorough
@settings(max_examples=200)
@given(programs(), WORDS, st.sets(OFFSETS))
def test_what_a_program_returns_is_among_the_answers(program, words, known):
    answers = cbpf.returned(cbpf.parse(raw(program)), {offset: words[offset // 4] for offset in known})
    assert run(program, words) in answers or None in answers


@settings(max_examples=200)
@given(programs(), WORDS)
def test_with_all_data_known_the_answer_is_one(program, words):
    data = {4 * at: word for at, word in enumerate(words)}
    assert cbpf.returned(cbpf.parse(raw(program)), data) == {run(program, words)}


SMALL = st.integers(0, 3)
COMPARING = [0x15, 0x25, 0x35]


@settings(max_examples=200)
@given(programs(tests=COMPARING, calculates=False, masks=False, constants=SMALL, offsets=st.sampled_from([16, 24])))
def test_programs_that_only_compare_get_no_answer_too_many(program):
    # With constants below 4 no program can tell two words apart that are both above.
    possible = {
        run(program, [0, 0, 0, 0, word, 0, other, *[0] * 9]) for word, other in itertools.product(range(8), repeat=2)
    }
    assert cbpf.returned(cbpf.parse(raw(program)), {}) == possible


@pytest.mark.parametrize("mask", [0xFFFFFFFF, 3, 2])
@pytest.mark.parametrize(("first", "second"), list(itertools.product(JUMPS, repeat=2)))
def test_what_one_test_told_is_right_for_the_next(first, second, mask):
    for word, other in itertools.product(range(4), repeat=2):
        program = [Op(0x20, k=16), Op(first, 0, 4, word)]
        for at in (0, 2):
            program += [Op(0x54, k=mask), Op(second, 0, 1, other), Op(0x06, k=at), Op(0x06, k=at + 1)]
        possible = {run(program, [0, 0, 0, 0, word, *[0] * 11]) for word in range(8)}
        answers = cbpf.returned(cbpf.parse(raw(program)), {})
        assert answers >= possible, (word, other)
        if mask == 0xFFFFFFFF and 0x45 not in (first, second):  # how large a word is says nothing of its bits here
            assert answers == possible, (word, other)


@pytest.mark.parametrize("bits", [3, 6, 8])
def test_each_of_many_states_of_one_branch_is_followed(bits):
    # Which of some words are 1 is gathered in a scratch word, and each number has an answer of its own. 2 ** 8 states
    # are more than are kept apart.
    program = [Op(0x00), Op(0x02)]
    for at in range(bits):
        program += [Op(0x20, k=16 + 4 * at), Op(0x15, 0, 3, 1), Op(0x60), Op(0x44, k=1 << at), Op(0x02)]
    program += [Op(0x60)]
    for number in range(1 << bits):
        program += [Op(0x15, 0, 1, number), Op(0x06, k=number + 1)]
    program += [Op(0x06, k=0)]
    answers = cbpf.returned(cbpf.parse(raw(program)), {})
    assert answers >= set(range(1, (1 << bits) + 1))
    assert 0 not in answers or bits == 8


def test_many_ways_are_bounded_and_none_is_lost():
    # Each of forty tests is learned from on both ways: 2 ** 40 states, if nothing were forgotten.
    program = []
    for at in range(40):
        program += [Op(0x20, k=16 + 4 * (at % 12)), Op(0x15, 0, 0, at)]
    program += [Op(0x20, k=16), Op(0x15, 0, 1, 7), Op(0x06, k=1), Op(0x06, k=2)]
    assert cbpf.returned(cbpf.parse(raw(program)), {}) == {1, 2}


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (b"", "no filter"),
        (b"1234567", "no filter"),
        (raw([Op(0x28, k=0), Op(0x06)]), "instruction 0 of the filter has code 0x28"),  # half a word
        (raw([Op(0x94, k=2), Op(0x06)]), "does not admit"),  # modulo
        (raw([Op(0x15, 1, 0, 0), Op(0x06)]), "leads beyond its end"),
        (raw([Op(0x00)]), "leads beyond its end"),
    ],
)
def test_what_is_no_filter_is_said_to_be_none(program, says):
    with pytest.raises(ParseError, match=says):
        cbpf.parse(program)
