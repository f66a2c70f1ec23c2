"""A process that keeps a CPU busy, and telemetry read until it has used so much of it, whatever else runs there."""

import contextlib
import subprocess
import sys
import time
from pathlib import Path

from tare.host import processes

LIMIT_S = 100.0


@contextlib.contextmanager
def neighbour(cpu, cgroup_procs=()):
    """The process, on this CPU from its first instruction on; in a control group where its files are given.

    It has entered the group when its number is returned: all CPU time that it uses from then on is the group's.
    """
    argv = ["taskset", "--cpu-list", str(cpu), sys.executable, "-I", "-c", "while True: pass"]
    null = subprocess.DEVNULL
    held = processes.start_held(argv, stdin=null, stdout=null, stderr=null, cgroup_procs=cgroup_procs)
    try:
        held.go()
        yield held.process.pid
    finally:
        processes.end(held.process)


def spent_ns(pid):
    """The CPU time of a process's one thread, in ns."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


class Readings:
    """The ticks of a sampler so far, and waiting for some more of them."""

    def __init__(self, sampler):
        self.ticks = []
        self._sampler = sampler

    def next(self):
        """Wait for a tick that began after this call; its number."""
        called_ns = time.monotonic_ns()
        self._until(lambda: bool(self.ticks) and self.ticks[-1].at_ns > called_ns)
        return next(number for number, tick in enumerate(self.ticks) if tick.at_ns > called_ns)

    def while_spent(self, pid, least_ns):
        """Two ticks between which the process has used this much CPU time, by number; and how much, in ns."""
        first, before = self.next(), spent_ns(pid)
        self._until(lambda: spent_ns(pid) - before >= least_ns)
        spent = spent_ns(pid) - before
        return first, self.next(), spent

    def _until(self, arrived):
        deadline = time.monotonic() + LIMIT_S
        while not arrived():
            assert self._sampler.failed is None
            assert time.monotonic() < deadline, f"{len(self.ticks)} readings"
            time.sleep(0.02)
            self.ticks += self._sampler.drain()
