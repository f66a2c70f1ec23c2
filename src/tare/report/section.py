"""Sections of the report, by tare's own features and by plug-ins alike.

A feature's module ``section``, or a plug-in's module under the entry point `GROUP`, has ``SECTIONS``. The report builds
each section's model, prints it in the terminal, puts it on the page, and exports its tables.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, Final, Generic, TypeVar

import polars as pl
from pydantic import BaseModel
from rich.console import RenderableType

from tare.errors import Failed, attempt
from tare.extensions import features
from tare.plugins import declared, package_of, say_once, with_plugins
from tare.report.model import Report, ResultReport
from tare.store import Store

#: Entry point group of plug-ins' sections: a module with ``SECTIONS``.
GROUP: Final = "tare.sections"

Model = TypeVar("Model")


class Place(StrEnum):
    """A section's place on the page. In the terminal, `ANSWER` comes first, then all others."""

    TOP = "top"  # Above the answer.
    ANSWER = "answer"  # Below the answer.
    FIGURES = "figures"  # Below the tables of figures.


@dataclass(frozen=True, slots=True)
class Source:
    """Input of sections: an open campaign, its samples, and the results of the analysis."""

    store: Store
    samples: pl.DataFrame
    results: Sequence[ResultReport]


@dataclass(frozen=True, slots=True)
class Screen:
    """Width of the terminal in characters; ``picture``: draw, for eyes and not for programs."""

    width: int
    picture: bool = True


def _no_tables(_: object) -> Mapping[str, pl.DataFrame]:
    return {}


@dataclass(frozen=True, slots=True)
class Section(Generic[Model]):
    """A section of the report.

    ``title``: its link on the page. ``build`` returns the model, or None if the campaign has nothing for it. ``page``
    returns HTML, as markupsafe's `Markup`, in an element whose id is the second argument; plain text is escaped.
    ``tables`` returns frames by name, for `tare export --section NAME`; a plug-in's names begin with the section's.
    ``printed``: the pydantic model, if `tare report --json` prints the section under its name. ``workloads``: those
    without figures anywhere else.
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


@functools.cache
def sections() -> Mapping[str, Section[Any]]:
    """Return all sections by name: those of features, then those of plug-ins, of which broken ones are left out."""
    own = [section for feature in features() for section in _of_feature(feature.__name__)]
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


def _of_feature(name: str) -> Sequence[Section[Any]]:
    module = f"{name}.section"
    return sections_of(importlib.import_module(module)) if importlib.util.find_spec(module) else ()


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
