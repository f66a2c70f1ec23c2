"""Runs of a user's command in a block: several of a short one, in turn on all arms, and one of a long one.

Whoever brings a command does not know how long it takes. So it is run once before the first block, on the baseline.
That run is no trial: it says how many rounds there are, the same for all arms, and a command that fails is told before
minutes are spent on it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from tare.campaign.execution.preflight import PreparedPlatforms
from tare.campaign.execution.runs import run_trial
from tare.campaign.instances.launcher import RunningInstance
from tare.campaign.plan.campaign_plan import WorkloadJob
from tare.errors import ParseError
from tare.model import Arm, Progress
from tare.session import Refused
from tare.workloads.base import RunWorkload

#: The fix for a command that fails, and for one that does not start.
FAILED = "try the command by itself; --ignore-failure measures one that fails, too"
NOT_THERE = "--package NAME brings a program of Debian's, --image an image of yours, --folder a folder with it"
#: Seconds that all runs of an arm in a block take, about, where one is shorter.
BLOCK_S = 2.0
#: Few numbers, so that two campaigns with the same command seldom differ in theirs.
ROUNDS = (1, 2, 5, 10, 20)


def sized(
    jobs: Sequence[WorkloadJob], given: Collection[str], prepared: PreparedPlatforms, progress: Progress
) -> tuple[WorkloadJob, ...]:
    """Return the jobs with the rounds that their commands' durations want; those of the workloads ``given`` stay.

    Raises what the first run of a command raises.
    """
    unsized = [job for job in jobs if job.workload.program is not None and job.workload.name not in given]
    if not unsized:
        return tuple(jobs)
    baseline = next(entry.platform for entry in prepared.ready if entry.platform.baseline)
    progress(f"starting an instance of {baseline.name}, for a first run of each command")
    running = prepared.launcher.start(baseline, Arm(baseline.name), measured=False)
    try:
        return tuple(_sized(job, running, prepared, progress) if job in unsized else job for job in jobs)
    finally:
        running.stop()


def _sized(job: WorkloadJob, running: RunningInstance, prepared: PreparedPlatforms, progress: Progress) -> WorkloadJob:
    assert isinstance(job.workload, RunWorkload)
    progress(f"{job.workload.name}: a first run")
    try:
        measured = run_trial(job.workload, job.params, running, prepared.client)
    except (ParseError, Refused) as error:
        error.fix = error.fix or (NOT_THERE if isinstance(error, Refused) else FAILED)
        error.what = f"nothing was measured: in a first run on {running.arm} {error.what}"
        raise
    seconds = sum(done.wall_ns for done in measured.results) / 1e9
    return dataclasses.replace(job, params={**job.params, "rounds": rounds_for(seconds)})


def rounds_for(seconds: float) -> int:
    """Return the runs in a block of a command that takes so long."""
    return max((rounds for rounds in ROUNDS if rounds * seconds <= BLOCK_S), default=1)
