"""Shares and trees of folded stacks, on a few whose answers can be counted by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tare.features.kernel.analysis.stacks import GATE, Entered, KernelEntry, SampleParts, entries, own_time, tree
from tare.footprint_model import GUEST, NO_PATH, USER

_IN = "entry_SYSCALL_64_after_hwframe;do_syscall_64"
#: As the kernel gives them.
HITS = {
    f"dd;{USER}": 20,
    f"qemu;{GUEST}": 5,
    f"dd;{_IN}": 7,
    f"dd;{_IN};syscall_exit_to_user_mode": 3,
    f"dd;{_IN};x64_sys_call;__x64_sys_read;ksys_read;vfs_read": 11,
    f"dd;{_IN};ksys_read;vfs_read;read_zero": 4,
    f"dd;{_IN};__x64_sys_sendto;__sys_sendto;sock_sendmsg;tcp_sendmsg;nf_hook [nf_tables]": 6,
    "dd;asm_exc_page_fault;exc_page_fault": 2,
    "dd;asm_sysvec_apic_timer_interrupt": 1,
    "kworker;ret_from_fork_asm;ret_from_fork;kthread;worker_thread": 8,
    f"dd;{NO_PATH};__x86_indirect_thunk_rax": 9,
}


def test_parts_add_up() -> None:
    parts = SampleParts.of(HITS)
    assert (parts.samples, parts.user, parts.guest, parts.kernel) == (76, 20, 5, 51)
    assert SampleParts.of({}) == SampleParts(0, 0, 0)


def test_own_time_is_of_the_innermost_function() -> None:
    samples = own_time(HITS)
    assert samples["vfs_read"] == 11
    assert samples["read_zero"] == 4
    assert samples["nf_hook [nf_tables]"] == 6
    assert sum(samples.values()) == SampleParts.of(HITS).kernel


def test_what_the_kernel_is_entered_for_has_the_names_that_programs_use() -> None:
    counts = entries(HITS)
    assert {entry.name: count for entry, count in counts.items() if entry.kind is Entered.NAMED} == {
        "read": 15,  # whether the compiler has left its first function or not
        "sendto": 6,
        "syscall_exit_to_user_mode": 3,
        "page_fault": 2,
        "apic_timer_interrupt": 1,
    }
    others = {KernelEntry(Entered.THREAD, "kworker"): 8, KernelEntry(Entered.UNKNOWN): 9, GATE: 7}
    assert {entry: count for entry, count in counts.items() if entry.kind is not Entered.NAMED} == others


def test_a_tree_has_a_frame_once_with_all_that_is_above_it() -> None:
    nodes = tree(HITS)
    assert (nodes[0].name, nodes[0].parent, nodes[0].samples) == ("", -1, 76)
    assert [(node.name, node.samples) for node in nodes if node.parent == 0] == [
        ("dd", 63),
        ("kworker", 8),
        ("qemu", 5),
    ]
    [gate] = [at for at, node in enumerate(nodes) if node.name == "do_syscall_64"]
    assert nodes[gate].samples == 31
    children = [node.name for node in nodes if node.parent == gate]
    assert children == ["__x64_sys_sendto", "ksys_read", "syscall_exit_to_user_mode", "x64_sys_call"]


def test_narrow_frames_are_left_out_and_no_parent_shrinks() -> None:
    whole, cut = tree(HITS), tree(HITS, 0.1)
    assert {node.name for node in cut} == {
        "", "dd", "kworker", USER, "entry_SYSCALL_64_after_hwframe", "do_syscall_64", "x64_sys_call", "__x64_sys_read",
        "ksys_read", "vfs_read", NO_PATH, "__x86_indirect_thunk_rax", "ret_from_fork_asm", "ret_from_fork", "kthread",
        "worker_thread",
    }  # fmt: skip
    assert cut[0] == whole[0]
    assert {(node.name, node.samples) for node in cut} <= {(node.name, node.samples) for node in whole}


_FRAMES = st.lists(st.sampled_from(["a", "b", "c [m]", USER, NO_PATH]), min_size=1, max_size=5).map(";".join)


@given(st.dictionaries(_FRAMES, st.integers(1, 1_000), max_size=12), st.floats(0, 0.5))
def test_any_tree_has_parents_first_and_children_within_them(hits: dict[str, int], least: float) -> None:
    nodes = tree(hits, least)
    inside = [0] * len(nodes)
    for at, node in enumerate(nodes[1:], 1):
        assert node.parent < at
        inside[node.parent] += node.samples
    assert all(sum_ <= node.samples for sum_, node in zip(inside, nodes, strict=True))
    assert (nodes[0].samples if nodes else 0) == sum(hits.values())
