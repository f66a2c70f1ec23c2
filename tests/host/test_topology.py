"""Which CPUs share a core, and which are measured: on trees of ``/sys`` of several machines, as pure functions."""

import os
import shutil

import pytest

from host import machines
from tare.campaign.host_session import default_cpus, host_cpus
from tare.campaign.plan.campaign_request import usable_cpus
from tare.host import probe_cache, state
from tare.host.facts import machine_facts as facts
from tare.host.facts import siblings as beside
from tare.host.facts import topology
from tare.host.kernel import pinning

R710 = tuple((cpu, cpu + 8) for cpu in range(8))
SPLIT = {0: (0, 1), 1: (0, 1), 2: (2, 3), 3: (2, 3)}  # neighbours in number share a core, as on many AMD guests


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Makes this process see another machine, all CPUs of which it may use."""

    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))

    def become(texts, usable, slowed=None, reachable=None):
        beside.cores.cache_clear()
        shutil.rmtree(tmp_path / "root", ignore_errors=True)
        monkeypatch.setattr(beside, "slowed", slowed)  # None: a try would fail
        monkeypatch.setattr(facts, "ROOT", machines.write(tmp_path / "root", texts))
        monkeypatch.setattr("os.sched_getaffinity", lambda _: set(usable))
        monkeypatch.setattr(pinning, "reachable", lambda: frozenset(usable if reachable is None else reachable))

    yield become
    beside.cores.cache_clear()


def test_two_sockets_with_core_numbers_that_repeat(machine):
    machine(machines.TWO_SOCKETS, range(16))
    assert facts.cores_of_machine() == R710


def test_a_guest_that_is_shown_whole_cores_only_is_not_known(machine):
    machine(machines.HIDDEN, range(2))
    assert facts.cores_of_machine() is None


def test_a_guest_that_is_shown_threads_is_believed():
    assert topology.cores_of(SPLIT, virtual=True) == ((0, 1), (2, 3))


@pytest.mark.parametrize("siblings", [{}, {0: (), 1: ()}, {0: (0, 1), 1: ()}, {0: (1,), 1: (1,)}])
def test_a_machine_that_does_not_say_is_not_known(siblings):
    assert topology.cores_of(siblings, virtual=False) is None


def test_threads_that_are_offline_are_nobodys():
    assert topology.cores_of({0: (0, 8), 1: (1, 9)}, virtual=False) == ((0,), (1,))


def test_on_two_sockets_the_other_thread_of_the_measured_core_is_left_idle(machine):
    machine(machines.TWO_SOCKETS, range(16))
    assert default_cpus(1) == (15,)
    assert 7 not in {*host_cpus((15,)).harness, *host_cpus((15,)).client}
    assert {*host_cpus((15,)).harness, *host_cpus((15,)).client} == set(range(16)) - {7, 15}


def test_the_harness_has_a_core_of_its_own_where_enough_are_left(machine):
    machine(machines.TWO_SOCKETS, range(16))
    assert host_cpus((15,)).harness == (0, 8)
    assert host_cpus((15,)).client == (1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14)


@pytest.mark.parametrize(
    ("left", "harness", "client"),
    [
        ((0,), (0,), (0,)),
        ((0, 1), (0, 1), (0, 1)),  # a client of one CPU would be the limit
        ((0, 1, 8, 9), (0, 1, 8, 9), (0, 1, 8, 9)),  # two cores
        ((0, 1, 2, 8, 9, 10), (0, 8), (1, 2, 9, 10)),
    ],
)
def test_few_cpus_are_shared_by_harness_and_client(left, harness, client):
    cores = tuple((cpu, cpu + 8) for cpu in range(8))
    assert topology.apart(left, cores) == (harness, client)


def test_where_cores_are_unknown_each_cpu_counts_as_one():
    assert topology.apart((0, 1, 2), None) == ((0,), (1, 2))


def test_where_the_topology_is_hidden_it_is_the_last_cpu_and_all_others_are_for_the_harness(machine):
    machine(machines.HIDDEN, range(2), lambda _cpu, _other: 0.65)
    assert default_cpus(1) == (1,)
    assert host_cpus((1,)).harness == (0,)


def test_instances_get_a_thread_of_each_core_but_the_first_quarters_and_of_two_cpus_both(machine):
    machine(machines.TWO_SOCKETS, range(16))
    assert default_cpus() == tuple(range(10, 16))
    assert host_cpus(default_cpus()).harness == (0, 1, 8, 9), "and not the other threads of the instances' cores"
    machine(machines.HIDDEN, range(2), lambda _cpu, _other: 0.65)
    assert default_cpus() == (0, 1)
    assert host_cpus(default_cpus()).harness == (0,)  # the probes' CPU is left to them


@pytest.mark.parametrize(
    ("usable", "cores", "count", "chosen"),
    [
        (range(16), R710, 1, (15,)),
        (range(16), R710, 2, (14, 15)),
        (range(16), R710, 9, (7, *range(8, 16))),
        (range(16), R710, None, tuple(range(10, 16))),
        (range(8), None, None, tuple(range(2, 8))),
        (range(4), ((0, 1), (2, 3)), None, (2, 3)),  # the client has the other core
        (range(3), ((0, 1, 2),), None, (1, 2)),
        (range(3), None, None, (1, 2)),
        (range(2), None, None, (0, 1)),
        ((5,), None, None, (5,)),
        (range(8), R710, 1, (7,)),  # the second threads belong to somebody else
        (range(4), ((0, 1), (2, 3)), 2, (1, 3)),  # and not the two threads of one core
        (range(2), ((0, 1),), 1, (1,)),
        (range(2), None, 2, (0, 1)),
        ((5,), None, 1, (5,)),
        ((5,), R710, 2, (5,)),
    ],
)
def test_each_cpu_is_of_another_core_while_there_are_any(usable, cores, count, chosen):
    assert topology.choose(usable, topology.Layout(cores), count) == chosen


@pytest.mark.parametrize(
    ("usable", "measured", "cores", "left"),
    [
        (range(4), (3,), ((0, 1), (2, 3)), (0, 1)),
        (range(2), (1,), ((0, 1),), (0,)),  # one core: its other thread is better than the measured one
        (range(2), (0, 1), None, (0,)),  # none is left: all but the one that probes are on
        ((5,), (5,), None, (5,)),
        (range(4), (1, 3), ((0, 1), (2, 3)), (0, 2)),
        (range(4), (3,), None, (0, 1, 2)),
    ],
)
def test_the_harness_is_on_other_cores_then_other_threads_then_anywhere(usable, measured, cores, left):
    assert topology.elsewhere(usable, measured, cores) == left


def test_where_the_host_does_not_say_a_trial_does(machine):
    """Four CPUs of a guest; whoever is busy beside its sibling takes a third of it."""
    machine(machines.HIDDEN, range(4), lambda cpu, other: 0.66 if cpu // 2 == other // 2 else 0.97)
    assert beside.cores((3,)) == ((0,), (1,), (2, 3))
    assert host_cpus((3,)).harness == (0, 1)
    assert beside.by_trial((1, 3), {0, 1, 2, 3}, beside.slowed) == ((0, 1), (2, 3))


def test_a_cpu_whose_core_is_known_by_its_sibling_is_not_tried_again(machine):
    tried = []

    def slowed(cpu, other):
        tried.append((cpu, other))
        return 0.6

    machine(machines.HIDDEN, range(2), slowed)
    assert beside.cores((0, 1)) == ((0, 1),)
    assert tried == [(0, 1)]


@pytest.mark.parametrize("kept", ["", "[]", '{"key": [], "answer": [["x"]], "tried": 1}'])
def test_cores_that_were_found_are_remembered_by_other_commands_for_an_hour(machine, monkeypatch, kept):
    now, tried = [1e9], []
    monkeypatch.setattr(probe_cache.time, "time", lambda: now[0])
    (state.tries() / "siblings").write_text(kept)

    def cores(share, measured=(0, 1)):
        machine(machines.HIDDEN, range(2), lambda cpu, other: tried.append((cpu, other)) or share)
        return beside.cores(measured)

    def none_found():
        before = len(tried)
        return cores(0.97) is None and len(tried) > before

    assert none_found()
    now[0] += beside.DOUBTED_S - 1
    assert cores(0.6) is None  # neighbours may have been busy all the time: it is tried anew, but not at once
    now[0] += 2
    assert cores(0.6) == ((0, 1),)
    now[0] += beside.BELIEVED_S - 1
    assert cores(0.97) == ((0, 1),)
    assert cores(0.97, (1,)) is None  # other CPUs
    now[0] += beside.BELIEVED_S + 1
    assert none_found()


def test_a_host_that_says_is_not_tried(machine):
    machine(machines.TWO_SOCKETS, range(16))  # a try would fail
    assert beside.cores((15,)) == R710


def test_too_many_cpus_are_not_tried(machine):
    machine(machines.HIDDEN, range(64))
    assert beside.cores((63,)) is None


def test_the_facts_are_completed_and_say_how(machine):
    always = {"proc/loadavg": "0.1 0.1 0.1 1/100 200", "proc/uptime": "100.0 200.0"}
    machine(always | machines.HIDDEN, range(2), lambda _cpu, _other: 0.65)
    completed = beside.completed(facts.gather(), (1,))
    assert (completed.cpu.siblings, completed.cpu.tried) == (((0, 1),), True)
    machine(always | machines.TWO_SOCKETS, range(16))
    gathered = facts.gather()
    assert beside.completed(gathered, (15,)) is gathered


def test_a_trial_that_shows_nothing_proves_nothing(machine):
    machine(machines.HIDDEN, range(2), lambda _cpu, _other: 0.99)
    assert beside.cores((1,)) is None


def test_who_only_waits_for_its_turn_is_not_slowed_down():
    """A real trial of the one pair whose answer is known on any machine: a CPU and itself."""
    before = os.sched_getaffinity(0)
    cpu = max(before)
    assert beside.slowed(cpu, cpu) > beside.SLOWED
    assert os.sched_getaffinity(0) == before


def test_a_kernel_that_counts_cpu_time_by_ticks_gives_a_speed_too(monkeypatch):
    """Seen in emulation: a turn ends before its first tick is counted."""
    read = iter([0.0] * 3)
    monkeypatch.setattr(beside.time, "thread_time", lambda: next(read, 0.004))
    monkeypatch.setattr(beside, "TURN_S", 0.0)
    assert beside._speed() > 0


def test_of_many_measured_cpus_only_that_of_the_probes_is_tried(machine):
    tried = []

    def slowed(cpu, other):
        tried.append(cpu)
        return 0.66 if cpu // 2 == other // 2 else 0.97

    machine(machines.HIDDEN, range(8), slowed)
    assert beside.cores(tuple(range(1, 8))) == ((0,), (1,), (2,), (3,), (4,), (5,), (6, 7))
    assert set(tried) == {7}


#: What instances get by default, one CPU, and four.
UNLIKE = {
    "I7_12700K": ((5, 7, 9, 11, 13, 15), (15,), (9, 11, 13, 15)),
    "RYZEN_STRIX": ((13, 14, 15), (15,), (12, 13, 14, 15)),
    "RK3588": ((5, 6, 7), (7,), (4, 5, 6, 7)),
    "TWO_EPYC_7763": (tuple(range(208, 256)), (255,), (252, 253, 254, 255)),
    "ISOLATED": ((4, 5, 6, 7), (7,), (4, 5, 6, 7)),
    "THREADS_OFF": ((2, 3, 4, 5, 6, 7), (7,), (4, 5, 6, 7)),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_instances_get_cpus_that_are_alike(machine, name):
    texts = getattr(machines, name)
    number = sum(path.endswith("thread_siblings_list") for path in texts)
    usable = range(4) if name == "ISOLATED" else range(number)
    machine(texts, usable, reachable=range(number))
    assert (default_cpus(), default_cpus(1), default_cpus(4)) == UNLIKE[name]
    assert host_cpus(default_cpus()).harness, "the harness has some"


def test_more_cpus_than_are_alike_come_from_all(machine):
    machine(machines.RK3588, range(8))
    assert default_cpus(6) == (2, 3, 4, 5, 6, 7)


def test_who_restricts_tare_to_some_cpus_gets_these(machine):
    machine(machines.ISOLATED, (0, 1), reachable=range(8))
    assert default_cpus() == (0, 1)
    assert usable_cpus() == list(range(8)), "by name all of them"


def test_facts_have_what_makes_cpus_unlike(machine):
    always = {"proc/loadavg": "0.1 0.1 0.1 1/100 200", "proc/uptime": "100.0 200.0"}
    machine(always | machines.I7_12700K, range(20))
    assert facts.gather().cpu.kinds == (tuple(range(16)), (16, 17, 18, 19))
    machine(always | machines.THREADS_OFF, range(8))
    cpu = facts.gather().cpu
    assert (cpu.offline, cpu.isolated, cpu.kinds) == (tuple(range(8, 16)), (), ())


@pytest.mark.parametrize(
    ("capacity", "kinds"),
    [
        ({}, ()),
        ({0: 1024, 1: 1024}, ()),
        ({0: 5_000_000, 1: 4_700_000}, ()),  # favoured, and still alike
        ({0: 250, 1: 1024, 2: 750, 3: 260}, ((1,), (2,), (0, 3))),
    ],
)
def test_kinds_are_told_by_capacity(capacity, kinds):
    assert topology.kinds_of(capacity) == kinds


def test_a_process_reaches_cpus_that_its_parent_kept_it_from():
    before = os.sched_getaffinity(0)
    one = {max(before)}
    os.sched_setaffinity(0, one)
    try:
        assert pinning.reachable() >= before
        assert os.sched_getaffinity(0) == one
        with pinning.widened(before):
            assert os.sched_getaffinity(0) >= before
        assert os.sched_getaffinity(0) == one
    finally:
        os.sched_setaffinity(0, before)
