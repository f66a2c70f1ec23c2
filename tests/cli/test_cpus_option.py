"""The list of CPUs of `--cpus`."""

import pytest

from tare.cli.commands.instances import parse_cpus
from tare.errors import UsageError


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        (None, ()),
        ("1", (1,)),
        ("2,3", (2, 3)),
        ("2-5,8", (2, 3, 4, 5, 8)),
        ("8,3,2-4", (2, 3, 4, 8)),  # a person's order, which the kernel never writes
    ],
)
def test_it_is_as_the_kernel_writes_it_and_in_any_order(text, cpus):
    assert parse_cpus(text) == cpus


@pytest.mark.parametrize("text", ["", ",", "one", "3-1", "-1", "1-", "0-4000000000"])
def test_anything_else_is_refused_and_never_taken_for_the_default(text):
    with pytest.raises(UsageError, match="is not a list of CPUs") as raised:
        parse_cpus(text)
    assert "2-5,8" in raised.value.fix
