"""Live progress of a campaign: what runs, how long is left, the intervals narrowing."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.segment import Segments
from rich.text import Text

from tare.analysis.estimates import headlines
from tare.campaign.plan.interim import Interim
from tare.cli.console import Console
from tare.errors import Failed, attempt
from tare.model import Status, Trial
from tare.report.campaign.build import platform_names, results_of
from tare.report.campaign.terminal import headline
from tare.report.sentences.numbers import span

#: Redraws a second: progress must not cost what is measured (at most 1 % of a core).
REDRAWS = 0.5


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
        drawn = attempt(lambda: Segments(list(self._console.render(self._render()))))
        if isinstance(drawn, Failed):
            self._give_up(drawn)
            return Text("")
        return drawn

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

    def block(self, number: int, spent_s: float, left_s: float | None, interim: Interim) -> None:
        """A block begins."""
        self._block = number
        self._estimate = None if left_s is None else (left_s, time.monotonic())
        if number > 0:
            self._safely(lambda: self._narrow(interim))
        if not self._console.is_terminal:
            left = "" if left_s is None else f", about {span(left_s)} left"
            self._print(f"block {number + 1} begins after {span(spent_s)}{left}{self._bad()}")

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

    def fault(self, line: str) -> None:
        """A part failed by a fault in its code, and the campaign goes on."""
        self._print(line)

    def _narrow(self, interim: Interim) -> None:
        if not self._console.is_terminal:
            return
        results = results_of(interim.record, headlines(interim.record, interim.estimates, interim.trials()))
        self._table = headline(platform_names(interim.record), results, width=self._console.width)

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
        return Group(line, Text(f"  {self._doing}", style="dim"), self._table)

    def _remaining(self) -> str:
        if self._estimate is None:
            return ""
        left_s, at = self._estimate
        return f", about {span(max(0.0, left_s - (time.monotonic() - at)))} left"
