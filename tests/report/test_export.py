from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import fake_campaign
from tare.report.formats import table_export as export_module
from tare.report.formats.table_export import CampaignTable, Format, export
from tare.report.formats.table_frames import names
from tare.store import Store, create_store, read_store


def exported(path: Path, form: Format) -> tuple[int, str]:
    out = io.StringIO()
    with read_store(path) as store:
        return export(store, CampaignTable.SAMPLES, form, out), out.getvalue()


def test_csv_has_every_sample_with_the_facts_of_its_trial(campaign: Path) -> None:
    count, text = exported(campaign, Format.CSV)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == count
    assert list(rows[0]) == names(CampaignTable.SAMPLES)
    with read_store(campaign) as store:
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
    with create_store(tmp_path / "a.tare", fake_campaign.record(shape)) as store:
        store.commit_trials([replace(first, samples=odd), replace(failed, status=fake_campaign.Status.FAILED)])
    rows = exported_rows(tmp_path / "a.tare")
    assert [row["value"] for row in rows] == ["nan", "inf", "-inf", 1.0, None]
    assert rows[-1]["reason"] == 'said "no",\nand left'
    _, text = exported(tmp_path / "a.tare", Format.CSV)
    assert list(csv.DictReader(io.StringIO(text)))[-1]["reason"] == 'said "no", and left'


@pytest.mark.parametrize(
    ("table", "rows", "last"),
    [
        (CampaignTable.HOST, 1, "net_sent_bytes"),
        (CampaignTable.CPUS, 2, "tare_ns"),
        (CampaignTable.INSTANCES, 6, "throttled_ns"),
    ],
)
def test_telemetry_goes_out_as_its_frames(tmp_path: Path, table: CampaignTable, rows: int, last: str) -> None:
    shape = fake_campaign.Shape(blocks=1, rounds=2, workloads=("prime-slices",), telemetry=True)
    path = fake_campaign.write(tmp_path / "a.tare", shape)
    text, lines = io.StringIO(), io.StringIO()
    with read_store(path) as store:
        ticks = store.telemetry().host.height
        assert export(store, table, Format.CSV, text) == rows * ticks
        assert export(store, table, Format.JSONL, lines) == rows * ticks
        campaign = store.record.id
    rows_read = list(csv.DictReader(io.StringIO(text.getvalue())))
    assert len(rows_read) == rows * ticks > 10
    assert list(rows_read[0])[:2] == ["campaign", "tick"]
    assert list(rows_read[0])[-1] == last
    assert {row["campaign"] for row in rows_read} == {campaign}
    assert [json.loads(line)["tick"] for line in lines.getvalue().splitlines()] == [
        int(row["tick"]) for row in rows_read
    ]


HOSTILE_TEXTS = [
    "=HYPERLINK(0)", "+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " ::error::x", "a\n::error::x\r\ny",
    "a ##vso[x]", "##[error]x", "a\x85b\u2028c",
]  # fmt: skip
GUARDED_TEXTS = [
    "'=HYPERLINK(0)", "'+1", "'-2+3", "'@SUM(A1)", "'\t=1", "' =1", "' =1", " \ufffd:error::x", "a ::error::x y",
    "a #\ufffdvso[x]", "#\ufffd[error]x", "a b c",
]  # fmt: skip


def test_a_text_that_a_spreadsheet_takes_for_a_formula_is_guarded_unless_it_is_asked_for_raw(campaign, monkeypatch):
    with read_store(campaign) as store:
        row = next(iter(export_module.rows(store)))
        texts = [{**row, "reason": text, "value": -1.5} for text in HOSTILE_TEXTS]
        monkeypatch.setattr(export_module, "rows", lambda _: iter(texts))
        written = {}
        for raw in (False, True):
            out = io.StringIO()
            export_module.export(store, CampaignTable.SAMPLES, Format.CSV, out, raw=raw)
            written[raw] = list(csv.DictReader(io.StringIO(out.getvalue(), newline="")))
    assert [row["reason"] for row in written[False]] == GUARDED_TEXTS
    assert [row["reason"] for row in written[True]] == HOSTILE_TEXTS
    assert {row["value"] for row in written[False]} == {"-1.5"}, "a number stays one"


def test_frames_are_guarded_too():
    frame = pl.DataFrame({"thing": [*HOSTILE_TEXTS, "read", None], "hits": range(-14, 0)})
    frame = frame.with_columns(pl.col("thing").cast(pl.Enum(["read", *HOSTILE_TEXTS])).alias("named"))
    rows = list(csv.DictReader(io.StringIO(export_module._csv(frame, raw=False), newline=""), frame.columns))
    assert [row["thing"] for row in rows] == [*GUARDED_TEXTS, "read", ""]
    assert [row["named"] for row in rows] == [row["thing"] for row in rows]
    assert [row["hits"] for row in rows] == [str(number) for number in range(-14, 0)]


@pytest.mark.thorough
@pytest.mark.parametrize("form", [Format.CSV, Format.JSONL])
def test_the_raw_outputs_are_a_row_each_with_the_facts_of_their_trial(campaign: Path, form: Format) -> None:
    out = io.StringIO()
    with read_store(campaign) as store:
        count = export(store, CampaignTable.OUTPUT, form, out)
        keys = [fake_campaign.TrialKey(*key) for key in _keys(store)]
        kept = [(name, output) for key in keys for name, output in store.outputs(key).items()]
    text = out.getvalue()
    rows = (
        list(csv.DictReader(io.StringIO(text)))
        if form is Format.CSV
        else [json.loads(line) for line in text.splitlines()]
    )
    assert len(rows) == count == len(kept) > 0
    assert list(rows[0]) == names(CampaignTable.OUTPUT)
    assert [row["name"] for row in rows] == [name for name, _ in kept]
    assert [int(row["bytes"]) for row in rows] == [output.full_bytes for _, output in kept]
    if form is Format.JSONL:
        assert [row["text"] for row in rows] == [output.data.decode(errors="replace") for _, output in kept]


def _keys(store: Store) -> list[tuple[int, str, fake_campaign.Arm]]:
    trials = store.trials().iter_rows(named=True)
    return [(row["block"], row["workload"], fake_campaign.Arm(row["platform"], row["replica"])) for row in trials]
