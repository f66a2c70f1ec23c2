"""Watchers of a campaign beside the display: several at once, Ctrl-C among them, and progress as lines of JSON."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

from tare.analysis.quality.noise import Noise, noise
from tare.campaign.execution.block import CampaignWatcher
from tare.campaign.plan.interim import Interim
from tare.cli import interrupts
from tare.cli.console import Console
from tare.model import CampaignStatus, Tick, Trial, TrialKey
from tare.report.sentences.noise_words import cause

#: A reading of the telemetry is printed so often, in seconds: more would be noise of its own.
NOISE_EVERY_S = 5.0
#: The message at the first Ctrl-C.
FIRST_INTERRUPT = "Ctrl-C: the trial under way is finished first, and all is closed; press it again to end now"


class Telling(CampaignWatcher, Protocol):
    """A watcher that warns too."""

    def warn(self, text: str) -> None:
        """Called with a line that concerns the figures."""


class Stopping:
    """A context in which the first SIGINT of a campaign that has begun its blocks is kept until a trial is stored.

    Before the first block there is no trial to wait for: an interrupt passes at once. Other signals end at once too, as
    they always do. ``has_blocks``: whether a block has begun.
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self.has_blocks = False
        self._wanted = False
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = signal.getsignal(signal.SIGINT)
        if not interrupts.ignored(signal.SIGINT):  # of a shell's background job it is
            signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    def measuring(self) -> None:
        """A block begins: from now on there are trials to wait for."""
        self.has_blocks = True

    def stored(self) -> None:
        """A trial is in the store. Raises `KeyboardInterrupt` when the user wants the campaign to end."""
        if self._wanted:
            interrupts.interrupt()

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self._wanted or not self.has_blocks:
            self._before(number, frame)
            return
        self._wanted = True
        self._say(FIRST_INTERRUPT)


@dataclass(slots=True)
class CombinedWatcher:
    """Passes all that happens on to several watchers, and ends the campaign where the user wants it to end."""

    watchers: Sequence[Telling]
    stopping: Stopping

    def block(self, number: int, spent_s: float, left_s: float | None, interim: Interim) -> None:
        """A block begins."""
        self.stopping.measuring()
        for watcher in self.watchers:
            watcher.block(number, spent_s, left_s, interim)

    def planned(self, trials: Sequence[TrialKey]) -> None:
        """The trials of a block that are to come, in order."""
        for watcher in self.watchers:
            watcher.planned(trials)

    def doing(self, what: str) -> None:
        """An activity begins."""
        for watcher in self.watchers:
            watcher.doing(what)

    def trial(self, trial: Trial) -> None:
        """A trial is in the store. Raises `KeyboardInterrupt` when the user wants the campaign to end."""
        for watcher in self.watchers:
            watcher.trial(trial)
        self.stopping.stored()

    def tick(self, tick: Tick) -> None:
        """A reading of the telemetry came; called by another thread."""
        for watcher in self.watchers:
            watcher.tick(tick)

    def fault(self, line: str) -> None:
        """A part failed, and the campaign goes on."""
        for watcher in self.watchers:
            watcher.fault(line)

    def warn(self, text: str) -> None:
        """A line that concerns the figures."""
        for watcher in self.watchers:
            watcher.warn(text)


@dataclass(slots=True)
class JsonLines:
    """Progress as JSON, an object a line on standard error: ``event`` says which, ``at`` when (UNIX seconds)."""

    console: Console
    _cpus: Sequence[int] = ()  # those that are measured
    _before: Tick | None = None
    _printed_at: float = field(default=float("-inf"))

    def block(self, number: int, spent_s: float, left_s: float | None, interim: Interim) -> None:
        """A block begins."""
        self._cpus = interim.record.resources.cpus
        self._print("block", number=number + 1, spent_s=round(spent_s, 3), left_s=left_s)

    def planned(self, trials: Sequence[TrialKey]) -> None:
        """The trials of a block that are to come, in order."""
        self._print("planned", trials=len(trials), workloads=list(dict.fromkeys(key.workload for key in trials)))

    def doing(self, what: str) -> None:
        """An activity begins."""
        self._print("doing", what=what)

    def trial(self, trial: Trial) -> None:
        """A trial is in the store."""
        key = trial.key
        self._print(
            "trial",
            block=key.block + 1,
            workload=key.workload,
            platform=key.arm.platform,
            replica=key.arm.replica,
            status=trial.status.value,
            reason=trial.reason or None,
            wall_s=trial.wall_ns / 1e9,
        )

    def tick(self, tick: Tick) -> None:
        """A reading of the telemetry came; called by another thread."""
        before, self._before = self._before, tick
        if before is None or time.monotonic() - self._printed_at < NOISE_EVERY_S:
            return
        now = noise(before, tick, self._cpus)
        if now is not None:
            self._printed_at = time.monotonic()
            self._print("noise", **_rounded(now), cause=cause(now) or None)

    def fault(self, line: str) -> None:
        """A part failed, and the campaign goes on."""
        self._print("fault", text=line)

    def warn(self, text: str) -> None:
        """A line that concerns the figures."""
        self._print("warning", text=text)

    def ended(self, status: CampaignStatus, file: str | None) -> None:
        """The campaign is over. ``file``: None where it was interrupted before there was one."""
        self._print("ended", status=status, file=file)

    def _print(self, event: str, **facts: Any) -> None:
        line = json.dumps({"event": event, "at": round(time.time(), 3), **facts}, ensure_ascii=True)
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)


def _rounded(now: Noise) -> dict[str, float | None]:
    shares = {"steal": now.steal, "foreign_cpu": now.foreign, "memory_pressure": now.memory}
    return {
        **{name: None if share is None else round(share, 4) for name, share in shares.items()},
        "swap_pages_per_second": round(now.swapped, 1),
    }
