"""Runs the checks of one platform, in a host session of their own."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from tare.campaign.host_session import HostSession, default_cpus
from tare.contract import bait, killed_harness
from tare.contract.bench import Bench, PromiseCheck
from tare.contract.promises import CHECKS
from tare.errors import Failed, HostError, PlatformError, UsageError, attempt
from tare.model import Progress, Resources
from tare.platforms import platform_contract
from tare.platforms.base import Platform
from tare.suggest import nearest

#: Memory limit of an instance under check, in bytes: small, so that it is reached soon.
MEMORY = 512 << 20
KILL = "kill-leaves-nothing"
KILL_TITLE = "When the harness is killed in the middle of a start, `tare clean` leaves nothing."


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a check. ``broken``: None if the promise is kept, else how it is not; ``remark``: on a kept one.

    ``inapplicable``: why the promise says nothing about this platform, and is neither kept nor broken; "": it does.
    """

    name: str
    title: str
    broken: str | None
    seconds: float
    remark: str = ""
    inapplicable: str = ""


def names() -> dict[str, str]:
    """The promise of each check, by the check's name."""
    return {check.name: check.title for check in CHECKS} | {KILL: KILL_TITLE}


@contextlib.contextmanager
def benches(progress: Progress) -> Iterator[Callable[[Platform], Bench]]:
    """A host session for checks; yields the function that makes the bench of a platform in it. Raises `HostError`."""
    with bait.in_environment(), HostSession(progress) as host:
        launcher, client = host.prepare(host.image(), Resources(default_cpus(), MEMORY))
        yield lambda platform: Bench(platform, launcher, client)


def run(platform: Platform, only: Sequence[str], progress: Progress) -> Iterator[Result]:
    """Check a platform that runs here, and yield each result as it comes.

    Raises `HostError` when it does not run here, `PlatformError` when its code fails, `UsageError` as `choose`.
    """
    chosen = choose(only)
    progress(f"looking for {platform.name}")
    answer = attempt(partial(platform_contract.detected, platform))
    if isinstance(answer, Failed):
        raise PlatformError(f"the detect of {platform.name} failed: {answer.reason}")
    if not answer.available:
        raise HostError(f"{platform.name} does not run here: {answer.reason}", fix=answer.fix or None)
    try:
        if checks := [check for check in CHECKS if check.name in chosen]:
            yield from _run_checks(platform, checks, progress)
        if KILL in chosen:
            progress(KILL)
            yield _result_of(KILL, KILL_TITLE, lambda: killed_harness.killed_after_each_delay(platform.name))
    finally:
        attempt(platform.close)  # a failure of it breaks no promise about instances


def choose(only: Sequence[str]) -> list[str]:
    """The names of the checks to run; all when none is given. Raises `UsageError` that suggests the nearest names."""
    check_names = names()
    for name in only:
        if name not in check_names:
            raise UsageError(f"there is no check {name!r}", fix=nearest(name, check_names))
    return list(only or check_names)


def _run_checks(platform: Platform, checks: Sequence[PromiseCheck], progress: Progress) -> Iterator[Result]:
    with benches(progress) as bench_of:
        bench = bench_of(platform)
        progress("making the image's form")
        form = attempt(partial(platform_contract.prepared, platform, bench.launcher.image))
        if isinstance(form, Failed):
            raise PlatformError(f"the prepare of {platform.name} failed: {form.reason}")
        try:
            for check in checks:
                if why := check.inapplicable(platform):
                    yield Result(check.name, check.title, None, 0.0, inapplicable=why)
                    continue
                progress(check.name)
                yield _result_of(check.name, check.title, lambda run=check.run: run(bench))  # type: ignore[misc]
        finally:
            bench.close()


def _result_of(name: str, title: str, tried: Callable[[], str | None]) -> Result:
    began = time.monotonic()
    remark = attempt(tried)
    seconds = time.monotonic() - began
    if isinstance(remark, Failed):
        return Result(name, title, remark.reason, seconds)
    return Result(name, title, None, seconds, remark or "")
