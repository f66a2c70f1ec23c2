from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

import fake_campaign
from tare.report.export import COLUMNS, Format, Table, export, export_telemetry
from tare.store import Store


def exported(path: Path, form: Format) -> tuple[int, str]:
    out = io.StringIO()
    with Store.read(path) as store:
        return export(store, form, out), out.getvalue()


def test_csv_has_every_sample_with_the_facts_of_its_trial(campaign: Path) -> None:
    count, text = exported(campaign, Format.CSV)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == count
    assert tuple(rows[0]) == COLUMNS
    with Store.read(campaign) as store:
        samples, trials = store.samples(), store.trials()
    assert [float(row["value"]) for row in rows if row["value"]] == pytest.approx(
        [row["value"] for row in exported_rows(campaign) if row["value"] is not None]
    )
    without = [row for row in rows if not row["metric"]]
    assert len(rows) == samples.height + len(without)
    assert len(without) == trials.filter(trials["status"] != "ok").height
    assert {row["status"] for row in without} == {"failed", "unsupported"}
    first = rows[0]
    assert (first["workload"], first["platform"], first["metric"], first["unit"]) == (
        "prime-slices",
        "native",
        "rate",
        "events/s",
    )


def exported_rows(path: Path) -> list[dict[str, object]]:
    _, text = exported(path, Format.JSONL)
    return [json.loads(line) for line in text.splitlines()]


def test_both_forms_hold_the_same(campaign: Path) -> None:
    _, text = exported(campaign, Format.CSV)
    plain = [
        {key: "" if value is None else str(value) for key, value in row.items()} for row in exported_rows(campaign)
    ]
    assert plain == list(csv.DictReader(io.StringIO(text)))


def test_what_json_cannot_say_is_a_word_and_text_stays_whole(tmp_path: Path) -> None:
    shape = fake_campaign.Shape(blocks=1, rounds=2, workloads=("prime-slices",))
    _, (first, second, *_) = next(fake_campaign._blocks(shape))
    values = iter((math.nan, math.inf, -math.inf, 1.0))
    odd = tuple(replace(sample, value=next(values)) for sample in first.samples)
    failed = replace(second, status="failed", reason='said "no",\nand left', samples=())
    with Store.create(tmp_path / "a.tare", fake_campaign.record(shape)) as store:
        store.commit_trials([replace(first, samples=odd), replace(failed, status=fake_campaign.Status.FAILED)])
    rows = exported_rows(tmp_path / "a.tare")
    assert [row["value"] for row in rows] == ["nan", "inf", "-inf", 1.0, None]
    assert rows[-1]["reason"] == 'said "no",\nand left'
    _, text = exported(tmp_path / "a.tare", Format.CSV)
    assert list(csv.DictReader(io.StringIO(text)))[-1]["reason"] == 'said "no",\nand left'


@pytest.mark.parametrize(
    ("table", "rows", "last"),
    [(Table.HOST, 1, "net_sent_bytes"), (Table.CPUS, 2, "tare_ns"), (Table.INSTANCES, 6, "throttled_ns")],
)
def test_telemetry_goes_out_as_its_frames(tmp_path: Path, table: Table, rows: int, last: str) -> None:
    shape = fake_campaign.Shape(blocks=1, rounds=2, workloads=("prime-slices",), telemetry=True)
    path = fake_campaign.write(tmp_path / "a.tare", shape)
    text, lines = io.StringIO(), io.StringIO()
    with Store.read(path) as store:
        ticks = store.telemetry().host.height
        assert export_telemetry(store, table, Format.CSV, text) == rows * ticks
        assert export_telemetry(store, table, Format.JSONL, lines) == rows * ticks
        campaign = store.record.id
    found = list(csv.DictReader(io.StringIO(text.getvalue())))
    assert len(found) == rows * ticks > 10
    assert list(found[0])[:2] == ["campaign", "tick"]
    assert list(found[0])[-1] == last
    assert {row["campaign"] for row in found} == {campaign}
    assert [json.loads(line)["tick"] for line in lines.getvalue().splitlines()] == [int(row["tick"]) for row in found]
