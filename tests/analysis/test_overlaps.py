from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tare.features.kernel.analysis.overlaps import (
    UNKNOWN,
    by_directory,
    by_file,
    directories,
    place_of,
    regions,
    shared,
)
from tare.features.studies import literature
from tare.model import Level

NAMES = "ABCDE"
#: Of each thing, the sets that it is in, a bit each: quick to draw.
MASKS = st.lists(st.integers(0, 2 ** len(NAMES) - 1), max_size=40)


def test_regions_by_hand() -> None:
    sets = {"A": {"1", "2", "3"}, "B": {"2", "3", "4"}, "C": {"3", "5", "6"}}
    assert regions(sets) == {("A",): 1, ("B",): 1, ("C",): 2, ("A", "B"): 1, ("A", "B", "C"): 1}
    assert next(iter(regions(sets))) == ("C",)  # the greatest first
    assert regions({"A": set(), "B": set()}) == {}


@given(MASKS)
def test_regions_are_what_set_algebra_says(masks: list[int]) -> None:
    sets = {
        name: frozenset(str(number) for number, mask in enumerate(masks) if mask >> bit & 1)
        for bit, name in enumerate(NAMES)
    }
    counts = regions(sets)
    assert sum(counts.values()) == len(frozenset().union(*sets.values()))
    for size in range(1, len(sets) + 1):
        for inside in itertools.combinations(sets, size):
            others = [sets[name] for name in sets if name not in inside]
            exactly = frozenset.intersection(*(sets[name] for name in inside)).difference(*others)
            assert counts.get(inside, 0) == len(exactly)
            assert shared(counts, inside) == len(frozenset.intersection(*(sets[name] for name in inside)))
            assert shared(counts, inside, sets.keys() - set(inside)) == len(exactly)


def test_they_agree_with_what_the_paper_adds_up() -> None:
    """Section 4.1: of the regions of Figure 4a three are printed, and totals of two platforms to the thousand."""
    study = literature.load("anjali-2020")
    all_three = int(study.metric("Lines that all three share, CPU workload").value["LXC"])
    two = int(study.metric("Lines that LXC and gVisor share and Firecracker does not, CPU workload").value["LXC"])
    alone = int(study.metric("Lines that no other platform executes, CPU workload").value["Firecracker"])
    numbers = iter(map(str, itertools.count()))
    common, of_two, of_one = (set(itertools.islice(numbers, count)) for count in (all_three, two, alone))
    counts = regions({"LXC": common | of_two, "gVisor": common | of_two, "Firecracker": common | of_one})
    assert counts == {("LXC", "gVisor", "Firecracker"): 35692, ("LXC", "gVisor"): 33557, ("Firecracker",): 7403}
    assert shared(counts, ["LXC", "gVisor"]) == 69249
    # The rest of the printed totals is in regions that are not printed; neither can be negative.
    totals = study.metric("Lines executed, CPU workload").value
    assert totals["gVisor"] - shared(counts, ["gVisor"]) > 0
    assert totals["Firecracker"] - shared(counts, ["Firecracker"]) > 0


def test_directories_are_the_first_two_and_the_papers() -> None:
    assert set(directories("mm/mmap.c")) == {"mm"}
    assert set(directories("arch/x86/kvm/vmx/vmx.c")) == {"arch", "arch/x86", "arch/x86/kvm"}
    assert set(directories("net/core/dev.c")) == {"net", "net/core"}
    assert set(directories("fs/ext4x/inode.c")) == {"fs", "fs/ext4x"}
    assert set(directories("main.c")) == set()
    assert directories(None) == (UNKNOWN,)


def test_sets_are_cut_by_directory_and_by_file() -> None:
    sets = {"A": {"mm/mmap.c:1", "mm/slab.c:7", "net/core/dev.c:1823"}, "B": {"net/core/dev.c:1823", "odd"}}
    place = place_of(Level.LINES)
    cut = by_directory(sets, place)
    assert list(cut) == ["mm", "net", "net/core", UNKNOWN]
    assert cut["mm"] == {"A": {"mm/mmap.c:1", "mm/slab.c:7"}, "B": set()}
    assert cut["net"] == cut["net/core"] == {"A": {"net/core/dev.c:1823"}, "B": {"net/core/dev.c:1823"}}
    assert list(by_file(sets, place)) == ["mm/mmap.c", "mm/slab.c", "net/core/dev.c"]


def test_functions_are_where_a_list_says_and_else_unknown() -> None:
    place = place_of(Level.FUNCTIONS, {"do_mmap": "mm/mmap.c"})
    cut = by_directory({"A": {"do_mmap", "kvm_vcpu [kvm]"}}, place)
    assert cut == {"mm": {"A": {"do_mmap"}}, UNKNOWN: {"A": {"kvm_vcpu [kvm]"}}}
    assert place_of(Level.SYSCALLS)("openat") is None
