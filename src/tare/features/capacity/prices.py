"""What one instance costs, from a price file: a host of so many CPUs and so much memory at so much a month."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from tare.capacity_model import PRICES_FIX, Resource
from tare.estimates.use_lines import Fits, UseLine, fits
from tare.inputs import parse_toml, read_text
from tare.records import Line as OneLine
from tare.records import Strict, of_a_file

#: A price file is short.
MAX_BYTES = 64 << 10
#: Seconds of a month: a twelfth of a year of 365.25 days.
MONTH_S = 365.25 * 86_400 / 12

Positive = Annotated[float, Field(ge=1e-6, le=1e12, allow_inf_nan=False)]
Short = Annotated[OneLine, Field(min_length=1, max_length=200)]


class PricedHost(Strict):
    """A host and what it costs."""

    name: Short
    cpus: Positive  # that instances may use
    memory_gib: Positive  # all of it; the campaign's reserve is taken off
    price: Positive  # a month
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")]  # ISO 4217
    source: Short  # where the price stands
    date: datetime.date  # when it stood there


class Prices(Strict):
    """A price file."""

    host: PricedHost


@dataclass(frozen=True, slots=True)
class Cost:
    """What an instance costs on the priced host, in its currency."""

    count: float  # instances that it holds
    first: Resource  # what runs out there
    month: float  # of one idle instance
    low: float | None  # of the 90 % interval; None below two fills
    high: float | None  # None where it is not bounded
    thousand_runs: float | None  # of one-shot commands, from nothing to nothing, by their CPU time; None: not measured


def read(file: Path) -> Prices:
    """The prices of a file. Raises `UsageError` with the first mistake."""
    return parse(read_text(file, PRICES_FIX, largest=MAX_BYTES), str(file))


def parse(text: str, name: str) -> Prices:
    """The prices of a TOML text. Raises `UsageError` with the first mistake."""
    return of_a_file(Prices, parse_toml(text, name, PRICES_FIX), name, PRICES_FIX)


def cost(
    prices: Prices,
    resources: Sequence[tuple[Resource, Callable[[float], Sequence[UseLine]], float]],
    reserve_share: float,
    run_cpu_s: float | None,
) -> Cost | None:
    """What one instance costs; None where nothing that is counted bounds how many the host holds.

    ``resources``: lines by fill for an amount, and what may be used of it here; of memory and CPUs the priced host's is
    taken instead. ``reserve_share``: of memory, that stays free. ``run_cpu_s``: CPU seconds of a one-shot command.
    """
    host, found = prices.host, []
    there = {Resource.MEMORY: host.memory_gib * 2**30 * (1 - reserve_share), Resource.CPU: host.cpus}
    for resource, lines_at, here in resources:
        most = there.get(resource, here)
        fit = fits(lines_at(most), most)
        if math.isfinite(fit.count) and (fit.high is None or math.isfinite(fit.high)) and fit.count > 0:
            found.append((fit, resource))
    if not found:
        return None
    fit, first = min(found, key=lambda entry: entry[0].count)
    runs = None if run_cpu_s is None else 1000 * run_cpu_s * host.price / (MONTH_S * host.cpus)
    return Cost(fit.count, first, host.price / fit.count, *_ends(host.price, fit), runs)


def _ends(price: float, fit: Fits) -> tuple[float | None, float | None]:
    if fit.low is None or fit.high is None:
        return None, None
    return price / fit.high if fit.high else None, price / fit.low if fit.low else None
