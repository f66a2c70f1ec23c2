"""A process whose system calls are known, for tests on this host and in a lab."""

import subprocess
import sys

from tare.host import processes

#: Waits for a word, makes so many calls of getpid (39), says so, and waits again; between the words it does nothing.
_CALLER = """
import ctypes, sys
call = ctypes.CDLL(None).syscall
print("there", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        call(39)
    print("done", flush=True)
"""


class Caller:
    """Makes calls when it is told to."""

    def __init__(self, *cgroup_procs):
        pipe = subprocess.PIPE
        argv = [sys.executable, "-P", "-c", _CALLER]
        self.process = processes.start(argv, stdin=pipe, stdout=pipe, cgroup_procs=cgroup_procs)
        assert self.process.stdout.readline() == b"there\n"

    def make(self, count):
        self.process.stdin.write(b"%d\n" % count)
        assert self.process.stdout.readline() == b"done\n"

    def end(self):
        processes.kill_group(self.process)
        self.process.communicate()
