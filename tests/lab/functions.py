"""In a lab: counts kernel functions where the truth is known, and says as JSON what came out."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tare.errors import HostError
from tare.features.kernel.counters.functions import TRACING, FunctionCounter, known
from tare.features.kernel.reading import kmodule
from tare.footprint_model import Scope
from tare.host import cgroup, state
from tare.host.resources.journal import Journal, sweep

OURS, OTHERS = 1234, 777
GROUP, FOREIGN = "tare/truth", "tare/foreign"
#: Asks for its session so often; nothing else on the host does.
CALLS = "import os\nfor _ in range({}): os.getsid(0)"
HOLDER = f"""
import time
from tare.features.kernel.counters.functions import FunctionCounter
FunctionCounter().start({GROUP!r})
print("counting", flush=True)
time.sleep(1000)
"""


def ask(group, times):
    """Have a process in a control group ask."""
    folder = cgroup.hierarchies().v2 / group
    folder.mkdir(parents=True, exist_ok=True)
    enter = f'echo $$ >{folder}/cgroup.procs; exec "$@"'
    subprocess.run(["sh", "-ec", enter, "sh", sys.executable, "-c", CALLS.format(times)], check=True)


def traced():
    """How many functions the kernel traces, for whomever."""
    return len(TRACING[0].joinpath("enabled_functions").read_text().splitlines())


def loaded():
    return Path("/sys/module", kmodule.NAME).exists()


def refusal(counter):
    """Why a counter does not start."""
    try:
        counter.start(GROUP)
    except HostError as error:
        return str(error)
    counter.stop()
    return ""


def truth():
    """The calls of a group and of a foreign one; twice, with a reset between."""
    counter, began = FunctionCounter(), time.monotonic()
    counter.start(GROUP)
    started, enabled = time.monotonic() - began, traced()
    twice = refusal(FunctionCounter())
    counter.reset()
    ask(GROUP, OURS)
    ask(FOREIGN, OTHERS)
    first = counter.read()
    counter.reset()
    ask(FOREIGN, 5)
    second = counter.read()
    began = time.monotonic()
    counter.stop()
    counter.stop()
    name = "__x64_sys_getsid"
    return {
        "calls": [[reading.hits[scope].get(name, 0) for scope in Scope] for reading in (first, second)],
        "lost": first.lost + second.lost,
        "functions": {scope: len(first.hits[scope]) for scope in Scope},
        "unknown": sorted(set(first.hits[Scope.HOST]) - known())[:5],
        "known": first.known,
        "enabled": enabled,
        "twice": twice,
        "left": [traced(), loaded(), (cgroup.hierarchies().v2 / GROUP).exists()],
        "seconds": {"start": started, "stop": time.monotonic() - began},
    }


def killed():
    """What a killed counter leaves, at once and after a sweep."""
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE)
    holder.stdout.readline()
    counting = traced()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    deadline = time.monotonic() + 60
    while traced() and time.monotonic() < deadline:
        time.sleep(0.1)
    after = [traced(), loaded()]
    again = refusal(FunctionCounter())
    kept = [str(step.kept) for step in sweep(Journal(state.journal())) if step.kept]
    return {"counting": counting, "after": after, "again": again, "kept": kept, "swept": [traced(), loaded()]}


def respected():
    """What is said where somebody else traces."""
    tracer = TRACING[0] / "current_tracer"
    tracer.write_text("function")
    refusals = [refusal(FunctionCounter())]
    tracer.write_text("nop")
    probe = TRACING[0] / "kprobe_events"
    probe.write_text("p:tare_test __x64_sys_getsid")
    enable = TRACING[0] / "events/kprobes/tare_test/enable"
    enable.write_text("1")
    refusals.append(refusal(FunctionCounter()))
    enable.write_text("0")
    probe.write_text("")
    return [*refusals, refusal(FunctionCounter())]


if __name__ == "__main__":
    assert os.geteuid() == 0
    print(json.dumps({"truth": truth(), "killed": killed(), "respected": respected()}))
