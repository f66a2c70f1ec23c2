"""In a lab, which has control groups of version 2 alone: calls of known processes, counted; says as JSON what was seen.

The argument is the compiled BPF program: a lab has no clang.
"""

import json
import subprocess
import sys
from pathlib import Path

from tare.footprint import bpf
from tare.footprint.model import Scope
from tare.footprint.syscalls import SyscallCounter
from tare.host import cgroup, processes
from tare.model import Resources

CALLER = """
import ctypes, sys
call = ctypes.CDLL(None).syscall
print("there", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        call(39)
    print("done", flush=True)
"""

bpf.compiled = lambda source: Path(sys.argv[1]).read_bytes()


def caller(*cgroup_procs):
    pipe = subprocess.PIPE
    process = processes.start([sys.executable, "-c", CALLER], stdin=pipe, stdout=pipe, cgroup_procs=cgroup_procs)
    assert process.stdout.readline() == b"there\n"
    return process


def make(process, count):
    process.stdin.write(b"%d\n" % count)
    assert process.stdout.readline() == b"done\n"


counter, early = SyscallCounter(), cgroup.Group("tare-test/early")
early.create(Resources((0,), 256 << 20))
late = cgroup.Group("tare-test/late")
seen = {"unified": cgroup.hierarchies().unified}
counter.start(early.path)
one, below = caller(*early.leaf("tool")), early.leaf("more")[0].parent / "below"
below.mkdir()
another, outside = caller(below / "cgroup.procs"), caller()
counter.reset()
for process, count in ((one, 1000), (another, 234), (outside, 77)):
    make(process, count)
counts = counter.read()
seen |= {"early": counts.hits[Scope.INSTANCE], "lost": counts.lost, "known": counts.known}
counter.start(late.path)
late.create(Resources((0,), 256 << 20))
make(one, 55)
third = caller(*late.leaf("tool"))
counter.reset()
make(third, 66)
seen["late"] = counter.read().hits[Scope.INSTANCE]
counter.stop()
for process in (one, another, outside, third):
    processes.kill_group(process)
    process.communicate()
cgroup.destroy("tare-test")
print(json.dumps(seen))
