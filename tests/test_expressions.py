"""Regular expressions of users: none hangs, and what RE2 does not take is refused in one line."""

import time

import pytest

from tare import expressions


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*,){20}x"])
def test_an_expression_that_hangs_backtracking_ends_at_once(pattern):
    began = time.monotonic()
    assert expressions.compiled(pattern).search("a" * 100_000 + "!") is None
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "pattern", ["(", "[a", "a{2000}", r"(\w+)\1", "(?=a)b", r"\Z", "*", "a)(?m", "\ud800", "a" * 2_000, ".{0,900}x"]
)
def test_what_re2_does_not_take_is_refused_in_one_line(pattern):
    with pytest.raises(ValueError, match="regular expression") as caught:
        expressions.compiled(pattern)
    assert "\n" not in str(caught.value)


def test_lines_begin_and_end_as_with_multiline():
    assert expressions.compiled("^up$").search("booting\nup\nready") is not None
    assert expressions.compiled("^(?i)UP$").search("booting\nup") is not None
    assert expressions.compiled("rate: ([0-9.]+)").search("the rate: 12.5 é")[1] == "12.5"


@pytest.mark.parametrize("pattern", ["(a\n::error::x", "[z\nb", "a**\r\nb(", "(?P<a\u2028b>x"])
def test_a_refusal_is_one_line_whatever_the_expression_has(pattern):
    """A box or an application's file may be anybody's, and a CI's log obeys lines."""
    with pytest.raises(ValueError, match="not a regular expression") as caught:
        expressions.compiled(pattern)
    assert len(str(caught.value).splitlines()) == 1
