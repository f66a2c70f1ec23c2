"""Tare's own threads leave the measured CPUs for a while; what it starts does not notice."""

import contextlib
import os
import sys
import threading
from pathlib import Path

import pytest

from tare.host import processes
from tare.host.kernel import pinning

ALL = frozenset(os.sched_getaffinity(0))
ASK = [sys.executable, "-I", "-c", "import os; print(sorted(os.sched_getaffinity(0)))"]


def threads():
    """The CPUs of each thread of this process."""
    names = [task.name for task in Path("/proc/self/task").iterdir()]
    affinities = []
    for name in names:
        with contextlib.suppress(ProcessLookupError):  # a thread of another test's has ended meanwhile
            affinities.append(frozenset(os.sched_getaffinity(int(name))))
    return affinities


@pytest.fixture
def another_thread():
    """A thread that is there before, during and after."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    yield
    end.set()
    thread.join()


@pytest.mark.skipif(len(ALL) < 2, reason="needs two CPUs")
def test_all_threads_keep_off_and_come_back_and_children_do_neither(another_thread):
    measured = max(ALL)
    inside = []
    with pinning.kept_off([measured]):
        later = threading.Thread(target=lambda: inside.append(frozenset(os.sched_getaffinity(0))))
        later.start()
        later.join()
        assert set(threads()) == {ALL - {measured}}
        assert pinning.usable() == ALL
        assert processes.run(ASK).text.strip() == str(sorted(ALL))
        assert set(threads()) == {ALL - {measured}}
    assert inside == [ALL - {measured}]
    assert len(threads()) >= 2
    assert set(threads()) == {ALL}
    assert pinning.usable() == ALL


def test_where_no_other_cpu_is_left_nothing_is_done():
    with pinning.kept_off(ALL):
        assert set(threads()) == {ALL}


@pytest.mark.skipif(len(ALL) < 2, reason="needs two CPUs")
def test_they_come_back_after_an_error_too():
    with pytest.raises(KeyboardInterrupt), pinning.kept_off([max(ALL)]):
        raise KeyboardInterrupt
    assert set(threads()) == {ALL}
