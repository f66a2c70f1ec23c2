"""A section of the report on what a campaign spent its time on, with a table for `tare export`."""

from collections.abc import Iterator, Mapping

import polars as pl
from markupsafe import Markup
from rich.table import Table
from rich.text import Text

from tare.records import Documented
from tare.report.section import Screen, Section, Source
from tare.store import Store

NAME = "tare-time-spent:workloads"
TITLE = "Time spent"


class Spent(Documented):
    """The trials of a workload."""

    workload: str
    """Its name."""
    trials: int
    """Their number, failed ones included."""
    seconds: float
    """Their duration together."""


class TimeSpent(Documented):
    """The workloads of a campaign, the longest first."""

    workloads: list[Spent]
    """One entry a workload."""


def time_spent(store: Store) -> TimeSpent | None:
    """Sum up the trials of a campaign, or return None if it has none."""
    trials = store.trials()
    if trials.is_empty():
        return None
    by_workload = trials.with_columns(pl.col("workload").cast(pl.String)).group_by("workload")
    sums = by_workload.agg(trials=pl.len(), seconds=pl.col("wall_ns").sum() / 1e9)
    rows = sums.sort("seconds", "workload", descending=[True, False]).iter_rows(named=True)
    return TimeSpent(workloads=[Spent.model_validate(row) for row in rows])


def build(source: Source) -> TimeSpent | None:
    return time_spent(source.store)


def terminal(spent: TimeSpent, screen: Screen) -> Iterator[Text | Table]:
    table = Table(title=TITLE)
    for head in ("workload", "trials", "seconds"):
        table.add_column(head)
    for row in spent.workloads:
        table.add_row(Text(row.workload), str(row.trials), f"{row.seconds:.1f}")
    yield table


def page(spent: TimeSpent, anchor: str) -> str:
    items = Markup().join(
        Markup("<li>{}: {} s in {} trials</li>").format(row.workload, f"{row.seconds:.1f}", row.trials)
        for row in spent.workloads
    )
    return Markup('<section id="{}"><h2>{}</h2><ul>{}</ul></section>').format(anchor, TITLE, items)


def tables(spent: TimeSpent) -> Mapping[str, pl.DataFrame]:
    return {NAME: pl.DataFrame([row.model_dump() for row in spent.workloads])}


SECTIONS = (
    Section(
        NAME,
        TITLE,
        build,
        terminal,
        page,
        tables,
        printed=TimeSpent,
        description="What the campaign spent its time on; null without trials.",
    ),
)
