import itertools
from collections import Counter

from tare.campaign.execution.slices import in_parts, plan_turns, rounds_of
from tare.campaign.plan.schedule import schedule_block
from tare.model import Arm, Design, Mode
from tare.session import MAX_SLICES
from tare.workloads import workload_registry

ARMS = (Arm("native", 0), Arm("native", 1), Arm("runc"), Arm("docker"), Arm("gvisor"))


def _workloads():
    return [
        (workload, 8 if workload.mode is Mode.SLICES else 0) for workload in workload_registry.all_workloads().values()
    ]


def test_a_block_is_the_same_for_the_same_seed_and_another_for_another():
    workloads = _workloads()
    assert schedule_block(7, 3, ARMS, workloads) == schedule_block(7, 3, ARMS, workloads)
    assert schedule_block(7, 3, ARMS, workloads) != schedule_block(8, 3, ARMS, workloads)
    assert schedule_block(7, 3, ARMS, workloads) != schedule_block(7, 4, ARMS, workloads)


def test_every_block_is_complete_and_the_starts_come_first():
    workloads = _workloads()
    for block in range(20):
        schedule = schedule_block(1, block, ARMS, workloads)
        counts = Counter(schedule.trials())
        assert set(counts.values()) == {1}
        assert len(counts) == len(ARMS) * len(workloads)
        assert sorted(schedule.launch_order) == sorted(ARMS)
        starts = [(place, stage.fresh) for place, stage in enumerate(schedule.stages) if stage.mode is Mode.START]
        assert starts[0] == (0, False)
        assert [fresh for _, fresh in starts] == [False, True]  # a cold one has an instance of its own
        alone = [stage.fresh for stage in schedule.stages]
        assert alone == sorted(alone)
        assert all(stage.fresh for stage in schedule.stages if stage.mode is Mode.APART)
        for stage in schedule.stages:
            for order in stage.rounds:
                assert sorted(order) == sorted(ARMS)


def test_every_arm_has_every_place_equally_often():
    """Chi-squared over 2000 blocks: each arm in each place about 400 times."""
    places = {arm: Counter() for arm in ARMS}
    workloads = _workloads()[:1]
    for block in range(2000):
        for place, arm in enumerate(schedule_block(5, block, ARMS, workloads).launch_order):
            places[arm][place] += 1
    statistic = sum((count - 400) ** 2 / 400 for counter in places.values() for count in counter.values())
    assert statistic < 39.3  # 99.9 % quantile of chi-squared with 16 degrees of freedom


def test_turns_do_not_overlap_and_leave_a_gap():
    turns = plan_turns(rounds_of([ARMS, ARMS[::-1]], {"slice_ms": 100}), first_ns=1_000)
    assert [turn.arm for turn in turns] == [*ARMS, *ARMS[::-1]]
    for turn, following in itertools.pairwise(turns):
        assert following.start_ns - (turn.start_ns + 100_000_000) == 10_000_000


def test_short_slices_have_no_cost_and_the_last_rounds_of_the_same_arms_are_long_and_have_one():
    params = {"slice_ms": 20, "long_ms": 100, "long_rounds": 1}
    turns = plan_turns(rounds_of([ARMS, ARMS, ARMS], params), first_ns=0)
    assert [(turn.slice_ns // 1_000_000, turn.costed) for turn in turns[:: len(ARMS)]] == [
        (20, False),
        (20, False),
        (100, True),
    ]
    for turn, following in itertools.pairwise(turns):
        assert following.start_ns - turn.start_ns - turn.slice_ns == 10_000_000
    pairs = [ARMS[:2], ARMS[2:4], ARMS[1::-1], ARMS[3:1:-1]]  # of a duet, whose pairs come in any order
    lengths = [planned.slice_ns // 1_000_000 for planned in rounds_of(pairs, params)]
    assert lengths == [20, 20, 100, 100], "each pair has a long round"


def test_a_duet_pairs_every_arm_with_the_baselines_first_and_draws_who_has_which_cpu():
    schedule = schedule_block(3, 0, ARMS, _workloads(), Design.DUET)
    for stage in schedule.stages:
        assert stage.at_once is (stage.mode is Mode.SLICES)
        if stage.at_once:
            partners = Counter(next(arm for arm in pair if arm != ARMS[0]) for pair in stage.rounds)
            assert partners == dict.fromkeys(ARMS[1:], 8)
            assert {pair.index(ARMS[0]) for pair in stage.rounds} == {0, 1}


def test_turns_at_once_begin_together_each_on_a_cpu_of_its_own():
    pairs = [(ARMS[0], ARMS[2]), (ARMS[3], ARMS[0])]
    turns = plan_turns(rounds_of(pairs, {"slice_ms": 90}), first_ns=0, at_once=True)
    assert [(turn.round, turn.arm, turn.start_ns, turn.slot, turn.cpu) for turn in turns] == [
        (0, ARMS[0], 0, 0, 0),
        (0, ARMS[2], 0, 0, 1),
        (1, ARMS[3], 100_000_000, 1, 0),
        (1, ARMS[0], 100_000_000, 1, 1),
    ]


def test_a_duet_of_many_platforms_fits_into_probes_part_by_part():
    arms = (Arm("native", 0), Arm("native", 1), *(Arm(f"platform-{number}") for number in range(30)))
    llc_probe = workload_registry.get("llc-probe")
    schedule = schedule_block(1, 0, arms, [(llc_probe, 100)], Design.DUET)
    [stage] = schedule.stages
    assert len(stage.rounds) == 3100, "so often the baseline plays"
    parts = in_parts(rounds_of(stage.rounds, llc_probe.profiles["quick"]))
    assert tuple(planned.order for part in parts for planned in part) == stage.rounds
    assert len(parts) == 4
    for part in parts:
        slices = Counter(arm for planned in part for arm in planned.order)
        assert max(slices.values()) < MAX_SLICES
        assert slices.keys() == set(arms)


def test_what_fits_into_one_probe_is_not_parted():
    rounds = rounds_of((ARMS,) * (MAX_SLICES - 1), {"slice_ms": 100})  # and the closing one
    assert in_parts(rounds) == [rounds]
    assert len(in_parts((*rounds, rounds[0]))) == 2
