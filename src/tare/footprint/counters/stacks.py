"""Samples of where CPUs are: in which function of the host's kernel, by which path, and for which process.

A BPF program (``stacks.bpf.c``) runs when a clock ticks on a CPU (`tare.footprint.kernel.clock`), and counts the path
from the kernel's entry down to what was interrupted, in a map whose keys are whole paths. There is no buffer that a
reader has to keep up with, and no process but the harness: perf, which does the same, writes each sample for a process
of its own, wants an instance's control group to be there before it starts, and has to be ended after a kill. Nothing of
this stays (`tare.footprint.kernel.bpf`).

Time in user mode is one frame of its process, and so is that in a guest of KVM: what is of interest is the kernel's.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tare.footprint.kernel import bpf, clock, sides, symbols
from tare.footprint.kernel.instance import look_for
from tare.footprint.kernel.symbols import Symbols
from tare.footprint_model import GUEST, NO_PATH, SAMPLES_A_SECOND, USER, Counts, Scope
from tare.host.kernel import process_table
from tare.model import Level

SOURCE = "stacks.bpf.c"
#: The same in ``stacks.bpf.c``.
FRAMES, COMM, ENTRIES, PERIOD_NS = 127, 16, 16384, 10**9 // SAMPLES_A_SECOND
IN_USER, IN_KERNEL, IN_GUEST = range(3)
#: ``struct path`` and ``struct tally`` there.
PATH = np.dtype(
    [
        ("mode", "<u4"), ("inside", "<u2"), ("idle", "<u2"), ("comm", f"S{COMM}"), ("number", "<u4"), ("unused", "<u4"),
        ("frames", "<u8", FRAMES),
    ]
)  # fmt: skip
TALLY = np.dtype([("last", "<u8"), ("since", "<u8"), ("idle", "<u8"), ("lost", "<u8")])
#: The kernel's threads of one kind, which have their CPU's number or their work's in their names.
_KIND = re.compile(r"([a-z_]+)/u?\d.*")
#: Not what a CPU does for want of anything else, though it comes upon it then.
_INTERRUPT = ("asm_", "common_interrupt", "handle_softirqs", "__do_softirq")
#: While a machine runs, the kernel may have left it to work off its interrupts.
_SOFTIRQ = frozenset({"handle_softirqs", "__do_softirq"})

Paths = npt.NDArray[np.void]
Numbers = npt.NDArray[np.uint64]


class StackCounter:
    """A `tare.footprint_model.Counter` of `Level.STACKS`."""

    level = Level.STACKS
    reads_itself = False  # samples are taken out first: what is done with them is in none

    def __init__(self) -> None:
        self._loaded: bpf.Loaded | None = None
        self._tallies: npt.NDArray[np.void] = np.zeros(0, TALLY)
        self._lost = 0
        self._taken: list[tuple[Paths, Numbers]] = []  # out of the kernel since the last reset

    def start(self, group: str) -> None:
        """Begin to sample from nothing. ``group``: below the root of each hierarchy; it need not be there yet.

        Again: for another group. Raises `HostError` where this host does not let one sample, with the fix.
        """
        if self._loaded is None:
            symbols.require_addresses()  # before anything runs
            self._load()
        assert self._loaded is not None
        look_for(self._loaded, group)
        self.reset()

    def read(self) -> Counts:
        """What was sampled since `start` or the last `reset`."""
        self._taken.append(self._drain())
        lost = int(self._tallies["lost"].sum()) - self._lost
        paths, counts = (np.concatenate(parts) for parts in zip(*self._taken, strict=True))
        return Counts(hits=folded(paths, counts, symbols.read(), programs(paths)), lost=lost)

    def reset(self) -> None:
        """Begin to sample anew, without the samples so far."""
        self._drain()
        self._taken.clear()
        self._lost = int(self._tallies["lost"].sum())

    def stop(self) -> None:
        """Stop sampling. May be called twice."""
        self._tallies = np.zeros(0, TALLY)  # it looks into the memory that goes now
        if self._loaded is not None:
            self._loaded.close()
            self._loaded = None

    def _load(self) -> None:
        code, cpus = bpf.compiled(SOURCE), bpf.possible_cpus()
        loaded = bpf.Loaded(code, {"tallies": cpus}, {"sample_stack": clock.clocks(PERIOD_NS)})
        try:
            self._tallies = np.frombuffer(loaded.memory("tallies", cpus * TALLY.itemsize), TALLY)
        except BaseException:
            loaded.close()
            raise
        self._loaded = loaded

    def _drain(self) -> tuple[Paths, Numbers]:
        assert self._loaded is not None, "it was started"
        keys, values = self._loaded.drain("paths", PATH.itemsize, 8, ENTRIES)
        return np.frombuffer(keys, PATH), np.frombuffer(values, np.uint64)


def check() -> None:
    """Raise `HostError` where stacks cannot be sampled here: by sampling for a moment."""
    counter = StackCounter()
    try:
        counter.start("none")
    finally:
        counter.stop()


def programs(paths: Paths) -> dict[int, str]:
    """Names for processes by their ids, from their command lines; those that have ended are left out."""
    pids = {int(number) for number in np.unique(paths["number"]) if number}
    # A process's role depends on its ancestors, of which there may be no samples.
    judged = sides.sides(sorted(pids.union(*map(_ancestors, pids))))
    return {
        side.pid: f"{side.program} (stub)" if side.role == "stub" else side.program
        for side in judged
        if side.pid in pids
    }


def _ancestors(pid: int) -> set[int]:
    """The ancestors of a process up to the first, by id; none where it has ended."""
    above: set[int] = set()
    while (process := process_table.stat(pid)) is not None and (pid := process.parent) > 1 and pid not in above:
        above.add(pid)
    return above


def folded(
    paths: Paths, counts: Sequence[int] | Numbers, kernel: Symbols, called: Mapping[int, str]
) -> dict[Scope, dict[str, int]]:
    """Samples by scope and folded stack: process and functions, the outermost first, with ";" between them.

    ``called``: names of processes by their numbers, in place of their own. Samples of idle CPUs are left out.
    """
    hits: dict[Scope, Tally[str]] = {Scope.HOST: Tally(), Scope.INSTANCE: Tally()}
    for path, chain, count in zip(paths, _chains(paths, kernel), counts, strict=True):
        if path["idle"] and not any(name.startswith(_INTERRUPT) for name in chain):
            continue
        name = process(called.get(int(path["number"]), "").encode() or bytes(path["comm"]))
        stack = ";".join((name, *_frames(int(path["mode"]), chain)))
        hits[Scope.HOST][stack] += int(count)
        if path["inside"]:
            hits[Scope.INSTANCE][stack] += int(count)
    return {scope: dict(tally) for scope, tally in hits.items()}


def process(comm: bytes) -> str:
    """A process's name as a frame; kernel threads of one kind have one."""
    name = re.sub(r"[^\x20-\x7e]", "?", comm.decode("latin1")).replace(";", ":").strip() or "?"
    kind = _KIND.fullmatch(name)
    return kind[1] if kind else name


def _frames(mode: int, chain: Sequence[str]) -> Sequence[str]:
    if mode == IN_USER:
        return (USER,)
    if mode == IN_GUEST and not _SOFTIRQ.intersection(chain):
        return (GUEST,)
    return chain


def _chains(paths: Paths, kernel: Symbols) -> Iterable[list[str]]:
    """The functions of each path, the outermost first."""
    frames = paths["frames"]
    sites = frames.copy()
    sites[:, 1:] -= sites[:, 1:] > 0  # a caller's is where it goes on: after the call, which may be its last code
    places, where = np.unique(sites, return_inverse=True)
    names = kernel.names(places)
    where = where.reshape(sites.shape)
    for number, depth in enumerate(np.count_nonzero(frames, axis=1)):
        chain = [names[at] for at in where[number, :depth][::-1]]
        if chain and not kernel.begins(int(sites[number, depth - 1]), chain[0]):
            chain.insert(0, NO_PATH)
        yield chain
