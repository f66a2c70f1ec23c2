"""Fills, price files, quantities, hosts of a fleet and merged campaigns, a function each, as in `fuzz.targets`."""

from __future__ import annotations

import io
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml
from rich.console import Console

import fake_campaign
from fuzz.elsewhere import one_line
from report import test_capacity_report
from tare.analysis.comparisons import merged_hosts
from tare.analysis.comparisons.summaries import summary
from tare.analysis.comparisons.thresholds import Thresholds
from tare.analysis.refusals import NoAnswer
from tare.capacity_model import FILL, PRICES, Resource
from tare.cli import fleet_run, quantities
from tare.errors import StoreError, TareError, UsageError
from tare.estimates.use_lines import UseLine
from tare.features.capacity import prices
from tare.features.capacity import words as capacity_words
from tare.features.capacity.views import capacity_of, drawings, render_capacity
from tare.fleet import host_states, run_fleet
from tare.report.campaign import fleet_views as fleet_tables
from tare.report.formats import fleet_page
from tare.store import read_store

#: A name of Kubernetes': DNS label (RFC 1123).
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def _shown(parts: object) -> str:
    printed = io.StringIO()
    Console(file=printed, width=100).print(parts)
    return printed.getvalue()


# --- tare capacity -------------------------------------------------------------------------------------------------


@cache
def _fills() -> tuple[Path, list[bytes]]:
    """A campaign with fills, which stays until the end, and what is in it of each."""
    folder = tempfile.mkdtemp(prefix="tare-fuzz-")
    file = Path(folder, "x.tare")
    test_capacity_report.write(file, priced=test_capacity_report.PRICE_FILE)
    return file, [
        test_capacity_report.a_fill(name, _Random()).model_dump_json().encode() for name in ("native", "runc")
    ]


class _Random:
    def standard_normal(self) -> float:
        return 0.5


@cache
def _filled() -> Any:
    """Everything of the campaign that the section is made of."""
    file, _ = _fills()
    with read_store(file) as store:
        trials, record = store.trials(), store.record
        prices_given = [(name, data) for name, data in store.attachments() if name == PRICES]
    file.unlink()
    file.parent.rmdir()
    return SimpleNamespace(record=record, trials=lambda: trials, attachments=lambda: prices_given)


def check_fill(data: bytes) -> None:
    """A fill of a stranger's file, as the second platform's: tables and YAML, or a sentence on the fill."""
    other, good = data, _fills()[1][0]

    def outputs(key: Any) -> dict[str, Any]:
        return {FILL: SimpleNamespace(data=good if key.arm.platform == "native" else other)}

    found = capacity_of(SimpleNamespace(**{**vars(_filled()), "outputs": outputs}))  # type: ignore[arg-type]
    assert found is not None
    for part in render_capacity(found, 100):
        _shown(part)
    list(drawings(found))
    found.model_dump_json()
    for platform in found.platforms:
        if platform.reserve is not None:
            _require_class(platform.reserve.yaml)


def _require_class(text: str) -> None:
    read = yaml.safe_load(text)
    assert (read["kind"], list(read)) == ("RuntimeClass", ["apiVersion", "kind", "metadata", "handler", "overhead"])
    assert list(read["metadata"]) == ["name"]
    assert all(_LABEL.fullmatch(name) for name in (read["metadata"]["name"], read["handler"])), text
    assert re.fullmatch(r"\d+Ki", read["overhead"]["podFixed"]["memory"])
    assert re.fullmatch(r"\d+m", read["overhead"]["podFixed"]["cpu"])


def check_class(data: bytes) -> None:
    """A RuntimeClass of a platform with any name: an object of Kubernetes' with that alone."""
    reserve = SimpleNamespace(memory=1 << 20, cpu=0.01, tasks=3)
    _require_class(capacity_words.yaml(data.decode(errors="replace"), reserve))  # type: ignore[arg-type]


def check_prices(data: bytes) -> None:
    """A price file: what an instance costs, or a refusal in one line."""
    try:
        read = prices.parse(data.decode(errors="replace"), "prices")
    except UsageError as error:
        one_line(error)
        return
    lines = [
        (Resource.MEMORY, lambda _most: [UseLine(1e6, 1e6), UseLine(1e6, 1.1e6)], 1e9),
        (Resource.CPU, lambda _most: [UseLine(0.0, 1e-3)] * 2, 2.0),
    ]
    cost = prices.cost(read, lines, 0.1, 0.5)
    if cost is not None:
        for amount in (cost.month, cost.thousand_runs):
            assert amount is not None
            assert capacity_words.money(amount)


def check_quantity(data: bytes) -> None:
    """An option's words, by their first character: a quantity that is in its range, or a refusal in one line."""
    text = data[1:].decode(errors="replace")
    reads: list[Callable[[], object]] = [
        lambda: quantities.parse_mix(text),
        lambda: quantities.parse_limits(text.split("\n")),
        lambda: quantities.parse_memory(text),
        lambda: quantities.parse_share(text, "a reserve", "10%"),
        lambda: quantities.parse_time(text),
    ]
    try:
        value = reads[data[0] % len(reads) if data else 0]()
    except UsageError as error:
        one_line(error)
        return
    for number in value.values() if isinstance(value, dict) else [value]:
        assert isinstance(number, int | float)
        # A negative memory is refused with its range, by who knows that.
        assert abs(number) < float("inf")
        assert number >= 0 or isinstance(number, int), number


# --- tare fleet ----------------------------------------------------------------------------------------------------


def check_event(data: bytes) -> None:
    """What a host answers, as Ansible tells it: a row that is shown and kept, with nothing in it without a bound."""
    row = host_states.HostRow("a")
    for line in data.split(b"\n"):
        with suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, dict) and isinstance(event.get("event_data") or {}, dict):
                row = host_states.told(row, event, 1.8e9)
    _require_row(row)
    for value in host_states.facts(data.decode(errors="replace")).values():
        assert len(value) <= host_states.MAX_REASON


def _require_row(row: host_states.HostRow) -> None:
    for text in (row.reason, row.note, row.doing):
        assert "\n" not in text
        assert len(text) <= host_states.MAX_REASON
    assert 0 <= row.size < 1 << 63
    json.dumps(asdict(row), allow_nan=False)
    _shown(fleet_run.table([row]))


def check_folder(data: bytes) -> None:
    """A fleet's folder whose two files anything has written: rows and an order, or a refusal in one line."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in (run_fleet.ORDER, run_fleet.ROWS):
            (folder / name).write_bytes(data)
        try:
            run_fleet.read_order(folder)
        except UsageError as error:
            one_line(error)
        _shown(fleet_run.table(run_fleet.read_rows(folder)))
    name = run_fleet.file_name(data.decode(errors="replace"))
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,120}", name), name


@cache
def _campaigns() -> list[bytes]:
    shapes = [fake_campaign.Shape(blocks=3, rounds=1, workloads=("startup",), seed=seed) for seed in range(2)]
    with tempfile.TemporaryDirectory() as folder:
        return [
            fake_campaign.write(Path(folder, f"{place}.tare"), shape).read_bytes() for place, shape in enumerate(shapes)
        ]


def check_merged(data: bytes) -> None:
    """A campaign of a host's with some bytes changed, beside a whole one: a table and a page, or a refusal."""
    contents = bytearray(_campaigns()[1])
    for start in range(0, len(data) - 3, 4):
        place = int.from_bytes(data[start : start + 3], "big")
        contents[place % len(contents)] = data[start + 3]
    gathering = merged_hosts.Gathering()
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("whole", _campaigns()[0]), ("changed", bytes(contents))):
            file = Path(folder, f"{name}.tare")
            file.write_bytes(content)
            try:
                with read_store(file) as store, store.snapshot():
                    boots = [segment.boot for segment in store.segments() if segment.boot is not None]
                    gathering.add(name, summary(store, Thresholds(), absolute=False), boots)
            except StoreError as error:
                one_line(error)
    try:
        merged = merged_hosts.merge(gathering)
    except (NoAnswer, TareError) as error:
        if isinstance(error, TareError):
            one_line(error)
        return
    _shown(fleet_tables.render(merged, every=True))
    json.loads(fleet_tables.to_json(merged))
    fleet_page.page(merged)


def _events() -> Iterator[bytes]:
    answers: list[dict[str, Any]] = [
        {"state": "running", "blocks": 3, "left_s": 12.5, "doing": "startup"},
        {"state": "complete", "sha256": "0" * 64, "size": 4096, "file": "/var/lib/x.tare"},
        {"state": "failed", "reason": "error: no", "code": 2},
        {"msg": "Task failed: non-zero return code", "stderr": "no", "stdout": "tare-fleet lack=no Python"},
    ]
    for kind in ("runner_on_ok", "runner_retry", "runner_on_failed", "runner_on_unreachable", "runner_on_start"):
        for task, answer in zip(("start", "wait", "fetch", "look"), answers, strict=True):
            yield json.dumps({"event": kind, "event_data": {"host": "a", "task": task, "res": answer}}).encode()


def _folders() -> Iterator[bytes]:
    order = run_fleet.Order(id="0" * 16, words=["-p", "runc"], inventory=["a,"], made=1.0)
    yield order.model_dump_json().encode()
    yield json.dumps(
        {"schema": run_fleet.SCHEMA, "hosts": [asdict(host_states.HostRow("a", blocks=3, left_s=4.0))]}
    ).encode()


TARGETS = {
    "fills": check_fill,
    "classes": check_class,
    "prices": check_prices,
    "quantities": check_quantity,
    "events": check_event,
    "folders": check_folder,
    "merged": check_merged,
}
SEEDS: dict[str, Callable[[], Iterator[bytes]]] = {
    "fills": lambda: iter(_fills()[1]),
    "classes": lambda: iter([b"gvisor", b"runc-userns", b"blackbox:/a b/x.toml", b"a: {b: c} # d"]),
    "prices": lambda: iter([test_capacity_report.PRICE_FILE.encode()]),
    "quantities": lambda: iter(
        [
            b"\x00idle=80%,active=20%",
            b"\x01start-p99=2s\nfailures=1%\npsi-cpu=50%",
            b"\x02512M",
            b"\x0310%",
            b"\x041h30m",
        ]
    ),
    "events": _events,
    "folders": _folders,
    "merged": lambda: iter([b"", b"\x00\x10\x00\xff\x00\x20\x08\x00"]),
}
