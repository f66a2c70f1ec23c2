"""The section of the report on what instances' lives cost."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from tare.features.life import views, words
from tare.features.life.views import Lives
from tare.report.campaign import curve_plot
from tare.report.campaign.report_builder import platform_names
from tare.report.formats.html import part
from tare.report.section import Place, Screen, Section, Source


def build(source: Source) -> Lives | None:
    """Return the section of a campaign, or None if no part of a life was measured."""
    failures = views.failures_of(source.store, source.trials)
    return views.lives(source.results, platform_names(source.store.record), failures)


def terminal(shown: Lives, screen: Screen) -> Iterator[RenderableType]:
    """Render the section for the terminal."""
    yield Text()
    yield from views.render(shown, screen.width)


def page(shown: Lives, anchor: str) -> str:
    """Render the section for the page."""
    return part("life.html", life=shown, anchor=anchor, words=words, draw_lives=views.draw, draw_bands=curve_plot.draw)


SECTIONS = (Section("life", words.TITLE, build, terminal, page, place=Place.ANSWER),)
