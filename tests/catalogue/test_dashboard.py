"""The dashboard of docs/examples/grafana: its SQL, with variables and macros as Grafana fills them in, is answered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import fake_campaign
from tare.catalogue.address import parse
from tare.cli.push import push_files
from tare.store import create_store

DASHBOARD = json.loads(
    (Path(__file__).parents[2] / "docs" / "examples" / "grafana" / "tare-fleet.json").read_text(encoding="utf-8")
)
VARIABLES = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
Values = dict[str, str | list[str]]


@pytest.fixture(scope="module")
def filled(server, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two hosts, one of them with a quote in its name, and two nights of one of them."""
    folder = tmp_path_factory.mktemp("hosts")
    for at, (name, times, day) in enumerate((("web'1", 1.2, 0), ("web2", 1.3, 0), ("web2-later", 1.4, 1))):
        shape = fake_campaign.Shape(
            blocks=3, rounds=2, seed=at, slowdown={"native": 1.0, "gvisor": times}, workloads=("prime-slices",),
            failing=None, unsupported=None, stolen=False,
        )  # fmt: skip
        record = fake_campaign.record(shape)
        with create_store(
            folder / f"{name}.tare", record.model_copy(update={"created": record.created + day * 86_400})
        ) as store:
            fake_campaign.fill(store, shape)
    address = server.address(server.new())
    push_files([folder / "web'1.tare", folder / "web2.tare"], parse(address), None, as_json=False)
    push_files([folder / "web2-later.tare"], parse(address), "web2", as_json=False)
    return address


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def expanded(sql: str, values: Values) -> str:
    """As Grafana's source for PostgreSQL does: of several values a list of literals, of one its text without quotes."""
    sql = re.sub(r"\$__timeFilter\(([^)]*)\)", r"\1 BETWEEN '2025-01-01T00:00:00Z' AND '2026-12-31T00:00:00Z'", sql)
    for name, value in values.items():
        several = VARIABLES[name].get("multi") or VARIABLES[name].get("includeAll")
        listed = value if isinstance(value, list) else [value]
        text = ",".join(map(_literal, listed)) if several else listed[0].replace("'", "''")
        sql = sql.replace(f"${name}", text)
    assert "$" not in sql
    return sql


def ask(address: str, sql: str) -> tuple[list[str], list[tuple]]:
    with psycopg.connect(address) as connection:
        answer = connection.execute(sql.encode())
        return [column.name for column in answer.description or ()], answer.fetchall()


@pytest.fixture(scope="module")
def values(filled: str) -> Values:
    """Each variable asked for in its turn, as Grafana does; of one value the first."""
    chosen: Values = {}
    for name, variable in VARIABLES.items():
        if variable["type"] != "query":
            continue
        _, rows = ask(filled, expanded(variable["query"], chosen))
        found = [str(row[0]) for row in rows]
        assert found, name
        chosen[name] = found if variable["multi"] else found[0]
    return chosen


def _targets() -> Iterator[tuple[str, dict]]:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target


def test_variables_are_asked_of_the_catalogue(values: Values) -> None:
    assert values == {
        "host": ["web'1", "web2"], "platform": "gvisor", "workload": "prime-slices", "metric": "cpu-cost",
        "fact": "architecture",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("title", "target"), list(_targets()), ids=lambda given: given if isinstance(given, str) else ""
)
def test_every_panel_has_rows(filled: str, values: Values, title: str, target: dict) -> None:
    columns, rows = ask(filled, expanded(target["rawSql"], values))
    assert rows
    assert all(any(value is not None for value in column) for column in zip(*rows, strict=True)), columns
    if target["format"] == "time_series":
        assert columns == ["time", "metric", "value"]
        assert len(rows) == 3


def test_the_panels_show_the_newest_campaign_of_each_host(filled: str, values: Values) -> None:
    by_title = dict(_targets())
    _, [(hosts,)] = ask(filled, expanded(by_title["Hosts"]["rawSql"], values))
    _, [(campaigns,)] = ask(filled, expanded(by_title["Campaigns"]["rawSql"], values))
    assert (hosts, campaigns) == (2, 3)
    columns, rows = ask(filled, expanded(by_title["Cost of the newest campaign of each host"]["rawSql"], values))
    [rate] = [dict(zip(columns, row, strict=True)) for row in rows]
    assert (rate["platform"], rate["metric"], rate["hosts"]) == ("gvisor", "rate", 2)
    assert float(rate["least %"]) == pytest.approx(100 * (1 - 1 / 1.2), abs=1)
    assert float(rate["most %"]) == pytest.approx(100 * (1 - 1 / 1.4), abs=1)
    columns, rows = ask(filled, expanded(_panel("by host, with its"), values))
    assert [row[0] for row in rows] == ["web2", "web'1"]


def _panel(part: str) -> str:
    return next(target["rawSql"] for title, target in _targets() if part in title)


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells
