import pytest

from tare.host.kernel import cpulist


@pytest.mark.parametrize(
    ("text", "numbers"), [("0-1", (0, 1)), ("0", (0,)), ("0-2,5,8-9", (0, 1, 2, 5, 8, 9)), ("", ()), ("3\n", (3,))]
)
def test_lists_are_read(text, numbers):
    assert cpulist.parse(text) == numbers


@pytest.mark.parametrize("text", ["0-4000000000", "65536", "2-1", "1,1", "0-3,2", "-1", "1-", "a", "0-1-2", "9" * 5000])
def test_what_no_kernel_writes_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 (int's own too)
        cpulist.parse(text)


@pytest.mark.parametrize(
    ("cpus", "text"), [((0,), "0"), ((0, 1), "0-1"), ((0, 1, 2, 5), "0-2,5"), ((7, 3, 4), "3-4,7"), ((), "")]
)
def test_lists_are_written_as_the_kernel_reads_them_back(cpus, text):
    assert cpulist.written(cpus) == text
    assert cpulist.parse(text) == tuple(sorted(cpus))
