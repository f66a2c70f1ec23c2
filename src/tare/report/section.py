"""Sections of the report, by tare's own features and by plug-ins alike.

A feature's module ``section``, or a plug-in's module under the entry point `GROUP`, has ``SECTIONS``. The report builds
each section's model, prints it in the terminal, puts it on the page, and exports its tables.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import polars as pl
from pydantic import BaseModel
from rich.console import RenderableType

from tare.analysis.results import MetricResult
from tare.errors import Failed, UsageError, attempt
from tare.extensions import feature_modules
from tare.plugins import declared, package_of, say_once, with_plugins
from tare.report.model import Report, ResultReport
from tare.store import Store

#: Entry point group of plug-ins' sections: a module with ``SECTIONS``.
GROUP: Final = "tare.sections"

Model = TypeVar("Model")


class Place(StrEnum):
    """A section's place on the page. In the terminal, `ANSWER` comes first, then `TOP` and `FIGURES`, then the rest."""

    TOP = "top"  # Above the answer.
    ANSWER = "answer"  # Below the answer.
    HEADLINES = "headlines"  # Below the table of headlines.
    FIGURES = "figures"  # Below the tables of figures.
    LAST = "last"  # Below the workloads; also in a file without trials.


@dataclass(frozen=True, slots=True)
class Source:
    """Input of sections: an open campaign, its samples and trials, and the results of the analysis.

    ``results``: as the report prints them; ``analysed``: before they have words.
    ``options``: values of `tare.extensions.ReportOption`, by name, without those that were not given.
    """

    store: Store
    samples: pl.DataFrame
    trials: pl.DataFrame
    results: Sequence[ResultReport]
    analysed: Sequence[MetricResult]
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Screen:
    """Width of the terminal in characters; ``picture``: draw, for eyes and not for programs."""

    width: int
    picture: bool = True


def _no_tables(_: object) -> Mapping[str, pl.DataFrame]:
    return {}


def _no_downloads(_model: object, _campaign: str) -> Iterable[tuple[str, str, str]]:
    return ()


@dataclass(frozen=True, slots=True)
class Section(Generic[Model]):
    """A section of the report.

    ``title``: its link on the page. ``build`` returns the model, or None if the campaign has nothing for it. ``page``
    returns HTML, as markupsafe's `Markup`, in an element whose id is the second argument; plain text is escaped.
    ``tables`` returns frames by name, for `tare export --section NAME`; a plug-in's names begin with the section's.
    ``printed``: the pydantic model, if `tare report --json` prints the section under its name. ``workloads``: those
    without figures anywhere else.

    Further: ``links`` returns elements' ids and titles for the top of the page, of the model and the section's id;
    without it, there is one link. ``scripts``: files of JavaScript for pages with the section. ``downloads`` returns
    files of the page by name, title and text, of the model and the campaign's name. ``lines``: texts of a store for
    `tare export --table NAME`, by NAME. ``untimed``: True if the section makes a report of a file without trials.
    """

    name: str
    title: str
    build: Callable[[Source], Model | None]
    terminal: Callable[[Model, Screen], Iterable[RenderableType]]
    page: Callable[[Model, str], str]
    tables: Callable[[Model], Mapping[str, pl.DataFrame]] = _no_tables
    place: Place = Place.FIGURES
    printed: type[BaseModel] | None = None
    description: str = ""
    workloads: frozenset[str] = frozenset()
    links: Callable[[Model, str], Iterable[tuple[str, str]]] | None = None
    scripts: Sequence[Path] = ()
    downloads: Callable[[Model, str], Iterable[tuple[str, str, str]]] = _no_downloads
    lines: Mapping[str, Callable[[Store], Iterable[str]]] = field(default_factory=dict)
    untimed: bool = False

    def links_of(self, model: Model, anchor: str) -> list[tuple[str, str]]:
        """Return ids and titles of the section's links."""
        return [(anchor, self.title)] if self.links is None else list(self.links(model, anchor))


@functools.cache
def sections() -> Mapping[str, Section[Any]]:
    """Return all sections by name: those of features, then those of plug-ins, of which broken ones are left out."""
    own = [section for module in feature_modules("section") for section in sections_of(module)]
    every = with_plugins(own, GROUP, sections_of, prefixed=True)
    return {name: section if section in own else _guarded(section) for name, section in every.items()}


def sections_of(module: object) -> Sequence[Section[Any]]:
    """Return the sections that a module declares. Raises `UsageError` for anything else in ``SECTIONS``."""
    return declared(module, "SECTIONS", Section)


def built(source: Source) -> dict[str, Any]:
    """Return the models of a campaign's sections by name; None for those that are printed as JSON and are empty."""
    models = {name: section.build(source) for name, section in sections().items()}
    return {name: model for name, model in models.items() if model is not None or sections()[name].printed}


def of_report(report: Report, *places: Place) -> list[tuple[Section[Any], Any]]:
    """Return a report's sections with their models, in order; only those of the places, if any are given."""
    models = report.sections()
    there = ((section, models.get(name)) for name, section in sections().items())
    return [(section, model) for section, model in there if model is not None and section.place in (places or Place)]


def tables_of(report: Report) -> dict[str, pl.DataFrame]:
    """Return the tables of a report's sections, by name."""
    return {name: frame for section, model in of_report(report) for name, frame in section.tables(model).items()}


def alone(report: Report) -> str | None:
    """Return the names of the sections that a file without trials has, or None if it has, or shall have, trials."""
    names = [section.name for section, _ in of_report(report) if section.untimed]
    return None if report.results or not names else " and ".join(names)


def lines_of(store: Store, table: str) -> Iterable[str]:
    """Yield a text of an open campaign, line by line. Raises `UsageError` if no section has one of this name."""
    for section in sections().values():
        if table in section.lines:
            return section.lines[table](store)
    raise UsageError(f"this tare has no section with {table}", fix="install tare with all of its features")


def _guarded(section: Section[Any]) -> Section[Any]:
    """Return a plug-in's section whose faults end nothing: each is reported once, and what it was for is left out."""

    def safe(work: Callable[..., Any], instead: Any, *arguments: Any) -> Any:
        # Rendered inside: a generator would fail later.
        done = attempt(lambda: list(work(*arguments)) if instead == [] else work(*arguments))
        if isinstance(done, Failed):
            say_once(f"the section {section.name!r} of {package_of(GROUP, section.name)} is left out: {done.reason}")
            return instead
        return done

    def tables(model: Any) -> Mapping[str, pl.DataFrame]:
        given: Mapping[str, pl.DataFrame] = safe(section.tables, {}, model)
        return {name: frame for name, frame in given.items() if name.startswith(section.name)}

    return replace(
        section,
        build=partial(safe, section.build, None),
        terminal=partial(safe, section.terminal, []),
        page=partial(safe, section.page, ""),
        tables=tables,
    )
