"""Live progress of a campaign: what runs, how long is left, the intervals narrowing."""

from __future__ import annotations

import statistics
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.segment import Segment, Segments
from rich.text import Text

from tare.analysis.estimates import headlines
from tare.analysis.quality.noise import Noise, noise
from tare.analysis.verdicts import VerdictKind
from tare.campaign.plan.interim import Interim
from tare.cli.console import Console
from tare.errors import Failed, attempt
from tare.model import Status, Tick, Trial, TrialKey
from tare.report.campaign.report_builder import platform_names, results_of
from tare.report.campaign.report_terminal import headline
from tare.report.model import PlatformReport, ResultReport
from tare.report.sentences.noise_words import cause
from tare.report.sentences.numbers import percent, span

#: Redraws a second: progress must not cost what is measured (at most 1 % of a core).
REDRAWS = 0.5
#: Readings of the telemetry that make the current noise, and readings for its line.
_WINDOW, _LINE = 4, 40
_BARS = "▁▂▃▄▅▆▇█"
#: The last line of a display that is taller than the window.
_CROPPED = "  ... the rest is below this window, and in the report at the end"
#: Verdicts that settle nothing.
_OPEN = {VerdictKind.INCONCLUSIVE, VerdictKind.NO_DATA, VerdictKind.INVALID, VerdictKind.BASELINE}


class _Picture(Live):
    """rich's live display, which a thread of its own redraws: a failure to draw is passed to ``give_up``."""

    def __init__(self, console: Console, draw: Callable[[], RenderableType], give_up: Callable[[Failed], None]) -> None:
        self._give_up = give_up
        super().__init__(get_renderable=draw, console=console, refresh_per_second=REDRAWS, transient=True, screen=False)

    def refresh(self) -> None:
        """Draw again."""
        drawn = attempt(super().refresh)
        if isinstance(drawn, Failed):
            self._give_up(drawn)


class Drawn(ABC):
    """A context that redraws a display in place while a command works; does nothing where there is no terminal.

    It never ends the work: when drawing or printing fails, it is switched off.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._off = False

    @abstractmethod
    def _render(self) -> RenderableType:
        """The current display."""

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = _Picture(self._console, self._draw, self._give_up)
            self._safely(self._live.start)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._safely(self._live.stop)

    def _draw(self) -> RenderableType:
        """The display rendered to segments, so that nothing can fail later."""
        if self._off:
            return Text("")
        drawn = attempt(lambda: Segments(self._cropped()))
        if isinstance(drawn, Failed):
            self._give_up(drawn)
            return Text("")
        return drawn

    def _cropped(self) -> list[Segment]:
        """No more lines than the window has: those above it could not be drawn over again."""
        lines = list(Segment.split_lines(self._console.render(self._render())))
        room = max(self._console.height - 1, 2)
        if len(lines) > room:
            lines = [*lines[: room - 1], [Segment(_CROPPED)]]
        return [segment for line in lines for segment in (*line, Segment.line())]

    def _safely(self, show: Callable[[], object]) -> None:
        shown = None if self._off else attempt(show)
        if isinstance(shown, Failed):
            self._give_up(shown)

    def _give_up(self, failed: Failed) -> None:
        if not self._off:
            self._off = True
            line = f"the display is off, and the work goes on: {failed.reason}"
            attempt(lambda: self._console.print(line, markup=False, highlight=False, soft_wrap=True))

    def _print(self, line: str) -> None:
        self._safely(lambda: self._console.print(line, markup=False, highlight=False, soft_wrap=True))


def sparkline(values: Sequence[float], top: float) -> str:
    """Values as bars of one line, from nothing to ``top``; higher ones are as high."""
    steps = len(_BARS) - 1
    return "".join(_BARS[min(steps, max(0, round(steps * value / top)))] for value in values) if top > 0 else ""


class CampaignDisplay(Drawn):
    """The progress of a campaign, drawn on a terminal; elsewhere a line per block is printed."""

    def __init__(self, console: Console, foreword: Callable[[], str] | None = None) -> None:
        """``foreword``: returns a text that is printed once, when the request is accepted and work begins."""
        super().__init__(console)
        self._foreword = foreword
        self._began = time.monotonic()
        self._counts: Counter[Status] = Counter()
        self._block = -1
        self._estimate: tuple[float, float] | None = None  # seconds left, and when that was estimated
        self._doing = "setting up"
        self._table: RenderableType = Text("")
        self._to_come: dict[TrialKey, None] = {}  # of this block, in order
        self._planned = 0  # trials of this block
        self._cpus: Sequence[int] = ()
        self._ticks: deque[Tick] = deque(maxlen=_WINDOW + 1)
        self._noise: deque[float] = deque(maxlen=_LINE)
        self._now: Noise | None = None
        self._widths: list[float] = []  # the median half-width by its margin, a block each
        self._known = (0, 0)  # figures that are settled, and all

    def block(self, number: int, spent_s: float, left_s: float | None, interim: Interim) -> None:
        """A block begins."""
        self._block = number
        self._cpus = interim.record.resources.cpus
        self._estimate = None if left_s is None else (left_s, time.monotonic())
        if number > 0:
            self._safely(lambda: self._narrow(interim))
        if not self._console.is_terminal:
            left = "" if left_s is None else f", about {span(left_s)} left"
            self._print(f"block {number + 1} begins after {span(spent_s)}{left}{self._bad()}")

    def planned(self, trials: Sequence[TrialKey]) -> None:
        """The trials of a block that are to come, in order."""
        self._to_come, self._planned = dict.fromkeys(trials), len(trials)

    def doing(self, what: str) -> None:
        """An activity begins."""
        if self._foreword is not None:
            foreword, self._foreword = self._foreword, None
            self._safely(lambda: self._print(foreword()))
        if not self._console.is_terminal and self._block < 0 and what != self._doing:
            self._print(what)
        self._doing = what

    def warn(self, text: str) -> None:
        """Print a warning that concerns the figures: a line that stays."""
        self._print(text)

    def trial(self, trial: Trial) -> None:
        """A trial is in the store."""
        self._counts[trial.status] += 1
        self._to_come.pop(trial.key, None)

    def tick(self, tick: Tick) -> None:
        """A reading of the telemetry came; called by another thread."""
        self._ticks.append(tick)
        now = noise(self._ticks[0], tick, self._cpus)
        if now is not None:
            self._now = now
            self._noise.append(now.steal + (now.foreign or 0.0))

    def fault(self, line: str) -> None:
        """A part failed by a fault in its code, and the campaign goes on."""
        self._print(line)

    def _narrow(self, interim: Interim) -> None:
        if not self._console.is_terminal:
            return
        results = results_of(interim.record, headlines(interim.record, interim.estimates, interim.trials()))
        self._table = headline(platform_names(interim.record), results, width=self._console.width)
        figures = [
            (result, platform)
            for result in results
            for platform in result.platforms
            if platform.platform != interim.record.baseline
        ]
        self._known = sum(platform.verdict not in _OPEN for _, platform in figures), len(figures)
        widths = [width for result, platform in figures if (width := _width(result, platform)) is not None]
        if widths:
            self._widths.append(statistics.median(widths))

    def _bad(self) -> str:
        return "".join(
            f", {self._counts[status]} {status.value}"
            for status in Status
            if status is not Status.OK and self._counts[status]
        )

    def _render(self) -> Group:
        line = Text.assemble(
            ("tare ", "bold"),
            f"{span(time.monotonic() - self._began)} so far",
            f", block {self._block + 1}" if self._block >= 0 else "",
            f", {self._counts[Status.OK]} trials{self._bad()}" if self._block >= 0 else "",
            self._remaining(),
        )
        rows = [("now", self._current_work()), ("next", self._next_work()), ("noise", self._disturbed())]
        rows.append(("known", self._settled()))
        lines = [Text.assemble((f"  {name:<6}", "dim"), text) for name, text in rows if text]
        return Group(line, *lines, self._table)

    def _current_work(self) -> str:
        if not self._planned:
            return self._doing
        return f"{self._doing}  ({self._planned - len(self._to_come)} of {self._planned} trials of this block)"

    def _next_work(self) -> str:
        current = next(iter(self._to_come), None)
        names = dict.fromkeys(key.workload for key in self._to_come if current and key.workload != current.workload)
        return ", ".join([*names][:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")

    def _disturbed(self) -> str:
        if self._now is None:
            return ""
        share = self._now.steal + (self._now.foreign or 0.0)
        why = cause(self._now)
        return f"{sparkline(tuple(self._noise), 0.5)} {percent(share)}{f': {why}' if why else ''}"

    def _settled(self) -> str:
        settled, figures = self._known
        if not figures:
            return ""
        narrowing = ""
        if self._widths:
            bars = sparkline(self._widths[-_LINE:], max(self._widths))
            width = self._widths[-1]
            narrowing = f"; half of the intervals within ±{width:,.{1 if width < 10 else 0}f} margins {bars}"
        return f"{settled} of {figures} figures{narrowing}"

    def _remaining(self) -> str:
        if self._estimate is None:
            return ""
        left_s, at = self._estimate
        left_s = max(0.0, left_s - (time.monotonic() - at))
        return f", about {span(left_s)} left, until {time.strftime('%H:%M', time.localtime(time.time() + left_s))}"


def _width(result: ResultReport, platform: PlatformReport) -> float | None:
    """Half of a figure's interval, by its margin."""
    if platform.op_low_percent is None or platform.op_high_percent is None:
        return None
    return (platform.op_high_percent - platform.op_low_percent) / 2 / result.margin_percent
