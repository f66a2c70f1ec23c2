"""Sampler of CPUs: the function in the host's kernel, the path to it, and the process.

A BPF program (``stacks.bpf.c``) runs on each tick of a CPU's clock (`tare.features.kernel.reading.sample_clock`). It
counts the path from the kernel's entry down to the interrupted function, in a map whose keys are whole paths. No
reader has to keep up with a buffer, and no process beside the harness is needed. perf does the same, but it writes
each sample for a process of its own, needs an instance's control group before it starts, and must be stopped after a
kill. This counter leaves nothing behind (`tare.features.kernel.reading.bpf`).
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tare.features.kernel.reading import bpf, process_roles, sample_clock, symbols
from tare.features.kernel.reading.instance import look_for
from tare.features.kernel.reading.symbols import Symbols
from tare.footprint_model import GUEST, NO_PATH, SAMPLES_A_SECOND, USER, HitCounts, Scope
from tare.host.kernel import process_table
from tare.model import Level

SOURCE = "stacks.bpf.c"
#: Must match ``stacks.bpf.c``.
FRAMES, COMM, ENTRIES, PERIOD_NS = 127, 16, 16384, 10**9 // SAMPLES_A_SECOND
IN_USER, IN_KERNEL, IN_GUEST = range(3)
#: ``struct path`` and ``struct tally`` in ``stacks.bpf.c``.
PATH = np.dtype(
    [
        ("mode", "<u4"), ("inside", "<u2"), ("idle", "<u2"), ("comm", f"S{COMM}"), ("number", "<u4"), ("unused", "<u4"),
        ("frames", "<u8", FRAMES),
    ]
)  # fmt: skip
TALLY = np.dtype([("last", "<u8"), ("since", "<u8"), ("idle", "<u8"), ("lost", "<u8")])
#: Kernel threads of one kind, whose names contain the number of their CPU or of their work item.
_KIND = re.compile(r"([a-z_]+)/u?\d.*")
#: Functions that are work, although they also interrupt an idle CPU.
_INTERRUPT = ("asm_", "common_interrupt", "handle_softirqs", "__do_softirq")
#: A running guest may delay this work of the kernel's on its interrupts.
_SOFTIRQ = frozenset({"handle_softirqs", "__do_softirq"})

Paths = npt.NDArray[np.void]
Numbers = npt.NDArray[np.uint64]


class StackCounter:
    """A `tare.footprint_model.Counter` of `Level.STACKS`."""

    level = Level.STACKS
    reads_itself = False  # Samples are taken out first, so processing them is not sampled.

    def __init__(self) -> None:
        self._loaded: bpf.Loaded | None = None
        self._tallies: npt.NDArray[np.void] = np.zeros(0, TALLY)
        self._lost = 0
        self._taken: list[tuple[Paths, Numbers]] = []  # Taken out of the kernel since the last reset.

    def start(self, group: str) -> None:
        """Start to sample from zero. ``group``: path below the root of each hierarchy; the group may not exist yet.

        A second call switches to another group. Raises `HostError`, with the fix, if this host does not allow sampling.
        """
        if self._loaded is None:
            symbols.require_addresses()  # Fail before anything runs.
            self._load()
        assert self._loaded is not None
        look_for(self._loaded, group)
        self.reset()

    def read(self) -> HitCounts:
        """Return the samples since `start` or the last `reset`."""
        self._taken.append(self._drain())
        lost = int(self._tallies["lost"].sum()) - self._lost
        paths, counts = (np.concatenate(parts) for parts in zip(*self._taken, strict=True))
        return HitCounts(hits=folded(paths, counts, symbols.read(), programs(paths)), lost=lost)

    def reset(self) -> None:
        """Drop the samples so far and restart."""
        self._drain()
        self._taken.clear()
        self._lost = int(self._tallies["lost"].sum())

    def stop(self) -> None:
        """Stop sampling. May be called twice."""
        self._tallies = np.zeros(0, TALLY)  # Drop the view of memory that is unmapped next.
        if self._loaded is not None:
            self._loaded.close()
            self._loaded = None

    def _load(self) -> None:
        code, cpus = bpf.compiled(SOURCE), bpf.possible_cpus()
        loaded = bpf.Loaded(code, {"tallies": cpus}, {"sample_stack": sample_clock.clocks(PERIOD_NS)})
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
    """Raise `HostError` if stacks cannot be sampled here. Samples for a moment to find out."""
    counter = StackCounter()
    try:
        counter.start("none")
    finally:
        counter.stop()


def programs(paths: Paths) -> dict[int, str]:
    """Return names for processes by id, from their command lines. Omit processes that have ended."""
    pids = {int(number) for number in np.unique(paths["number"]) if number}
    # A process's role depends on its ancestors, which may not have been sampled.
    judged = process_roles.sides(sorted(pids.union(*map(_ancestors, pids))))
    return {
        side.pid: f"{side.program} (stub)" if side.role == "stub" else side.program
        for side in judged
        if side.pid in pids
    }


def _ancestors(pid: int) -> set[int]:
    """Return the ids of a process's ancestors up to the first; empty if the process has ended."""
    above: set[int] = set()
    while (process := process_table.stat(pid)) is not None and (pid := process.parent) > 1 and pid not in above:
        above.add(pid)
    return above


def folded(
    paths: Paths, counts: Sequence[int] | Numbers, kernel: Symbols, called: Mapping[int, str]
) -> dict[Scope, dict[str, int]]:
    """Return samples by scope and folded stack: process and functions, outermost first, separated by ";".

    ``called``: names of processes by number, which replace the recorded ones. Samples of idle CPUs are left out.
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
    """Return a process's name as a frame. Kernel threads of one kind share a frame."""
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
    """Yield the functions of each path, outermost first."""
    frames = paths["frames"]
    sites = frames.copy()
    # A caller's address is the one after its call, which may lie beyond its last instruction.
    sites[:, 1:] -= sites[:, 1:] > 0
    places, where = np.unique(sites, return_inverse=True)
    names = kernel.names(places)
    where = where.reshape(sites.shape)
    for number, depth in enumerate(np.count_nonzero(frames, axis=1)):
        chain = [names[at] for at in where[number, :depth][::-1]]
        if chain and not kernel.begins(int(sites[number, depth - 1]), chain[0]):
            chain.insert(0, NO_PATH)
        yield chain
