"""SIGKILL of the harness while it starts instances: `tare clean` then removes everything."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

from tare.contract.bench import promise
from tare.contract.leftovers import left_on_host, named_after, notes
from tare.host import cgroup, own_namespaces, processes, state
from tare.host.kernel.links import links
from tare.host.network.fence import BRIDGE
from tare.host.resources.journal import Journal, sweep

#: Seconds from the begin of the first start to the kill: a fast start is hit in all of its parts, a slow one early.
DELAYS_S = (0.02, 0.15, 0.4)
READY_LIMIT_S = 180.0


def killed_after_each_delay(name: str) -> None:
    """Check with an early, a middle and a late kill (`killed_after`). Raises `BrokenPromiseError`."""
    for delay_s in DELAYS_S:
        killed_after(name, delay_s)


def killed_after(name: str, delay_s: float) -> None:
    """Kill a harness that starts instances of a platform, clean up, and check that nothing is left.

    Raises `BrokenPromiseError`.
    """
    argv = [*own_namespaces.apart(), sys.executable, "-P", "-m", "tare.contract.victim", name]
    pipe = subprocess.PIPE
    victim = processes.start(argv, stdout=pipe, stderr=pipe, env=processes.own_environment())
    assert victim.stdout is not None
    assert victim.stderr is not None
    label, before = "", notes()
    try:
        label = victim.stdout.readline().decode().strip()
        time.sleep(delay_s)
    finally:
        pids = _pids(label)
        victim.send_signal(signal.SIGKILL)
        errors = victim.stderr.read().decode(errors="replace").strip().splitlines()
        victim.communicate()
    promise(label, f"the harness did not come to its first start: {errors[-1] if errors else 'it said nothing'}")
    journal = Journal(state.journal())
    steps = list(sweep(journal))
    promise(steps, f"nothing was in the journal; the harness said: {' | '.join(errors[-3:]) or 'nothing'}")
    # Resources of other processes that still run (a lab, for example) rightly stay in the journal.
    reasons = {str(step.resource): step.kept for step in steps}
    remaining = [
        f"{entry.resource}: {reasons.get(str(entry.resource))}"
        for entry in journal.entries()
        if entry.owner.pid == victim.pid or own_namespaces.inside()  # where nobody else has a session
    ]
    promise(not remaining, f"not removed: {remaining}")
    leftovers = left_on_host(label) + named_after(pids, notes() - before)
    promise(not leftovers, f"left on the host: {leftovers}")
    promise(BRIDGE not in links(), f"the bridge {BRIDGE} is still there")


def _pids(label: str) -> list[int]:
    """The processes of all instances with the label; none where the label is empty."""
    pattern = cgroup.path_of(f"tare/{label}x*")
    roots = cgroup.hierarchies().mounted if label else ()
    paths = {str(folder.relative_to(root)) for root in roots for folder in root.glob(pattern)}
    return [pid for path in paths for pid in cgroup.Group(path).pids()]
