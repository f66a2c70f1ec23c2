"""Drops the files of an instance's data volume from page caches: the host's, a guest's own, or both."""

from __future__ import annotations

import mmap

from tare.campaign.instances.launcher import RunningInstance
from tare.errors import UnsupportedError
from tare.host.filesystems import roots
from tare.host.kernel.owner import boot_id
from tare.workloads.base import Drop, RunPlan

#: A slow disk may take so long to write back a guest's cache.
DROP_LIMIT_S = 300.0
#: Limits of what other accesses than the measured ones leave of a file in the host's page cache: share of pages, and
#: of a page for each unit of work, as few requests through the cache leave few pages there.
STRAY = 0.01
#: Least share in the host's page cache of a file that was read from the disk, even where memory is short.
FETCHED = 0.9

#: Drops in a guest: all that its kernel caches, where the kernel is its own. From a shared kernel's cache only the
#: files below /data, by `dd` (GNU coreutils, "dd": nocache with count=0). $1 is the host's boot id: an instance that
#: reads the same boot id runs on the host's kernel. LXC and nspawn make one up, and theirs cannot write to the file.
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
    """Drop the caches that the plan names, the guest's first: what it writes back goes through the host's.

    Where a guest's cache cannot be dropped, the error is raised; or returned, for `require_fetched`, where the host can
    see afterwards whether it mattered. Raises `SessionError` when the instance is lost.
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
    """Raise the error that `drop` returned, unless the host's cache has the files again: then no other cache did."""
    if undropped is None:
        return
    for name in plan.fetched:
        share = roots.cached_share(running.instance.spec.space.data, name)
        if share is None or share < FETCHED:
            raise undropped


def require_direct(plan: RunPlan, running: RunningInstance) -> None:
    """Raise `UnsupportedError` where the plan goes past all caches and the platform's disk is known not to."""
    if plan.uncached and running.no_direct_io:
        raise UnsupportedError(f"no direct I/O: {running.no_direct_io}")


def require_uncached(plan: RunPlan, running: RunningInstance, work: float) -> None:
    """Raise `UnsupportedError` for a file of the plan's ``uncached`` that went through the host's page cache.

    ``work``: how many units of work the measured commands did, each with one request or more to these files.
    Only files on the host's own filesystems can be checked: a virtual machine with a disk of its own declares that its
    disk goes that way (`Platform.no_direct_io`, see `require_direct`).
    """
    for name in plan.uncached:
        counted = roots.cached_bytes(running.instance.spec.space.data, name)
        if counted is None:
            continue
        cached, size = counted
        if cached > STRAY * min(size, work * mmap.PAGESIZE):
            share = "less than 1%" if cached * 100 < size else f"{cached / size:.0%}"
            raise UnsupportedError(
                f"direct I/O goes through the host's page cache all the same, where now {share} of the file is"
            )
