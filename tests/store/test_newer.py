"""Files that a newer tare wrote: what it added stays in them and is named, and nothing of it is called damaged."""

import json
import sqlite3

import pytest

import fake_campaign
from tare import __version__
from tare.errors import StoreError
from tare.model import CampaignStatus
from tare.report.campaign.report_builder import build
from tare.report.campaign.report_terminal import render
from tare.report.formats.table_export import CampaignTable, Format, export
from tare.store import open_store, read_store
from tare.store.migrations import FORMAT_VERSION

SHAPE = fake_campaign.Shape(blocks=2, rounds=2)


@pytest.fixture
def path(tmp_path):
    return fake_campaign.write(tmp_path / "newer.tare", SHAPE)


def edit(path, change):
    """Change the record as another version of tare might have written it."""
    with sqlite3.connect(path) as db:
        [(text,)] = db.execute("SELECT value FROM fact WHERE name = 'record'")
        raw = json.loads(text)
        change(raw)
        db.execute("UPDATE fact SET value = ? WHERE name = 'record'", (json.dumps(raw),))
    db.close()


def raw_record(path):
    with sqlite3.connect(path) as db:
        [(text,)] = db.execute("SELECT value FROM fact WHERE name = 'record'")
    db.close()
    return text


def _add_fields(raw):
    raw["tare_version"] = "7.2.0"
    raw["weather"] = {"sun": True}
    raw["platforms"][1]["colour"] = "blue"
    raw["left_out"][0]["since"] = 3


UNKNOWN = ("left_out.0.since", "platforms.1.colour", "weather")


def test_fields_that_this_tare_does_not_know_are_read_past_and_named(path, tmp_path):
    with read_store(path) as store:
        before, samples = store.record, store.samples()
    edit(path, _add_fields)
    with read_store(path) as store:
        assert store.unknown_fields == UNKNOWN
        assert store.record == before.model_copy(update={"tare_version": "7.2.0"})
        assert store.samples().equals(samples)
        with (tmp_path / "rows.csv").open("w") as rows:
            export(store, CampaignTable.SAMPLES, Format.CSV, rows)
    report = build(path)
    assert report.unknown_fields == list(UNKNOWN)
    with_text = [line for part in render(report).renderables if (line := str(part)).startswith("tare 7.2.0 wrote more")]
    assert with_text == [f"tare 7.2.0 wrote more than this tare knows, and shows: {', '.join(UNKNOWN)}"]


def test_they_stay_in_the_file_when_it_is_written_to(path):
    edit(path, _add_fields)
    before = raw_record(path)
    with open_store(path) as store:
        store.set_status("interrupted")
        store.add_attachment("note", b"added by an older tare")
    assert raw_record(path) == before
    with read_store(path) as store:
        assert (store.unknown_fields, store.status) == (UNKNOWN, "interrupted")


def test_a_status_that_this_tare_does_not_know_is_unknown(path):
    with open_store(path) as store:
        store.set_status("paused")
    with read_store(path) as store:
        assert store.status is CampaignStatus.UNKNOWN


@pytest.mark.parametrize(("field", "value"), [("design", "spiral"), ("tuning", [{"outcome": "painted"}])])
def test_a_value_that_this_tare_does_not_know_is_not_called_damage(path, field, value):
    def change(raw):
        raw["tare_version"] = "7.2.0"
        raw[field] = value

    edit(path, change)
    for opener in (read_store, open_store):
        with pytest.raises(StoreError) as refused:
            opener(path)
        assert "damaged" not in str(refused.value)
        assert f"tare 7.2.0 wrote its record, and tare {__version__} does not know it: {field}" in refused.value.what
        assert refused.value.fix == "use tare 7.2.0, or a later one"


def test_a_new_kind_from_a_tare_of_the_same_number_is_not_called_damage_either(path):
    edit(path, lambda raw: raw.update(tare_version=__version__, design="spiral"))
    with pytest.raises(StoreError, match="does not know it: design"):
        read_store(path)


def test_what_this_tare_itself_cannot_have_written_is_damaged(path):
    edit(path, lambda raw: raw.update(tare_version=__version__, seed="eleven"))
    with pytest.raises(StoreError, match="is damaged: its record is not valid: seed"):
        read_store(path)


@pytest.mark.parametrize("text", ["{", "[]", '"x"', ""])
def test_a_record_that_is_no_object_is_damaged(path, text):
    with sqlite3.connect(path) as db:
        db.execute("UPDATE fact SET value = ? WHERE name = 'record'", (text,))
    db.close()
    with pytest.raises(StoreError, match="is damaged: its record is not valid"):
        read_store(path)


def test_a_newer_form_of_file_names_the_tare_that_reads_it(path):
    edit(path, _add_fields)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError) as refused:
        read_store(path)
    assert (
        f"has format version 99, and the newest that tare {__version__} reads is {FORMAT_VERSION}" in refused.value.what
    )
    assert refused.value.fix == "use tare 7.2.0, or a later one"
