"""Drops what page caches hold of an instance's data volume: the host's, a guest's own, or both."""

from __future__ import annotations

from tare.campaign.instances.launcher import RunningInstance
from tare.errors import UnsupportedError
from tare.host import roots
from tare.host.owner import boot_id
from tare.workloads.base import Drop, RunPlan

#: The slowest disk may take so long to write back what a guest holds.
DROP_LIMIT_S = 300.0
#: What is left of a file in the host's page cache by an access beside it that is none of the measured.
STRAY = 0.01
#: What is at least there of a file that came from the disk, where memory is short.
FETCHED = 0.9

#: Drops in a guest: all that its kernel caches where that is its own to drop. Of a kernel that others use too only what
#: it holds of files below /data, which `dd` can ask for (GNU coreutils, "dd": nocache with count=0). $1 is the host's
#: boot id: who reads the same runs on the host's kernel.
_WITHIN = """\
all=/proc/sys/vm/drop_caches
[ -e "$all" ] || { echo "its kernel has no $all" >&2; exit 69; }
if [ "$(cat /proc/sys/kernel/random/boot_id)" != "$1" ] && [ -w "$all" ]; then
    sync && echo 3 >"$all"
else
    find . -xdev -type f -exec dd of={} oflag=nocache conv=notrunc,fdatasync count=0 status=none \\;
fi
"""


def drop(plan: RunPlan, running: RunningInstance) -> UnsupportedError | None:
    """Drop what the plan says, the guest's first: what it writes back goes through the host's.

    Where a guest's cannot be dropped, that error is raised; or returned, for `require_fetched`, where it can be seen
    afterwards whether it mattered. Raises `SessionError` when the instance is lost.
    """
    undropped = None
    if plan.drop in {Drop.GUEST, Drop.BOTH}:
        undropped = _drop_within(running)
        if undropped is not None and not (plan.drop is Drop.BOTH and plan.fetched):
            raise undropped
    if plan.drop in {Drop.HOST, Drop.BOTH}:
        roots.drop_page_cache(running.instance.spec.space.data)
    return undropped


def _drop_within(running: RunningInstance) -> UnsupportedError | None:
    done = running.session.execute(["sh", "-c", _WITHIN, "drop", boot_id()], cwd="/data", time_limit_s=DROP_LIMIT_S)
    if done.code == 0:
        return None
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    why = "it took too long" if done.timed_out else lines[-1] if lines else f"it ended with {done.code}"
    return UnsupportedError(f"what the guest caches cannot be dropped: {why}")


def require_fetched(undropped: UnsupportedError | None, plan: RunPlan, running: RunningInstance) -> None:
    """Raise what `drop` returned, unless the host has the files in its cache again: then no other cache held them."""
    if undropped is None:
        return
    for name in plan.fetched:
        share = roots.cached_share(running.instance.spec.space.data, name)
        if share is None or share < FETCHED:
            raise undropped


def require_uncached(plan: RunPlan, running: RunningInstance) -> None:
    """Hold the plan to ``uncached``. Raises `UnsupportedError` for a file that went through the host's page cache.

    Only files that are the host's own can be looked at: a machine with a disk of its own has declared what is between
    that and the host's (`Platform.disk_cache`).
    """
    for name in plan.uncached:
        share = roots.cached_share(running.instance.spec.space.data, name)
        if share is not None and share > STRAY:
            raise UnsupportedError(
                f"direct I/O goes through the host's page cache all the same, where now {share:.0%} of the file is"
            )
