"""In a lab, which has control groups of version 2 alone: calls of known processes, counted; says as JSON what was seen.

The argument is the compiled BPF program: a lab has no clang.
"""

import json
import sys
from pathlib import Path

from caller import Caller

from tare.features.kernel.counters.syscalls import SyscallCounter
from tare.features.kernel.reading import bpf
from tare.footprint_model import Scope
from tare.host import cgroup
from tare.model import Resources

bpf.compiled = lambda source: Path(sys.argv[1]).read_bytes()


counter, early = SyscallCounter(), cgroup.Group("tare-test/early")
early.create(Resources((0,), 256 << 20))
late = cgroup.Group("tare-test/late")
answer = {"unified": cgroup.hierarchies().unified}
counter.start(early.path)
inside, below = Caller(*early.leaf("tool")), early.leaf("more")[0].parent / "below"
below.mkdir()
another, outside = Caller(below / "cgroup.procs"), Caller()
counter.reset()
for process, count in ((inside, 1000), (another, 234), (outside, 77)):
    process.make(count)
counts = counter.read()
answer |= {"early": counts.hits[Scope.INSTANCE], "lost": counts.lost, "known": counts.known}
counter.start(late.path)
late.create(Resources((0,), 256 << 20))
inside.make(55)
third = Caller(*late.leaf("tool"))
counter.reset()
third.make(66)
answer["late"] = counter.read().hits[Scope.INSTANCE]
counter.stop()
for process in (inside, another, outside, third):
    process.end()
cgroup.destroy("tare-test")
print(json.dumps(answer))
