"""The table that narrows while a campaign runs: the report's figures, without the report's work."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

import fake_campaign
from tare.campaign.plan.interim import Interim
from tare.cli.progress import CampaignDisplay
from tare.report.campaign import report_builder
from tare.store import read_store
from tare.store.sqlite import SqliteStore


@pytest.fixture
def campaign(tmp_path):
    shape = replace(fake_campaign.Shape(), blocks=12, stolen=False)
    with read_store(fake_campaign.write(tmp_path / "x.tare", shape)) as store:
        yield store


def _shown(progress):
    out = io.StringIO()
    Console(file=out, width=100).print(progress._render())
    return out.getvalue()


def _progress():
    return CampaignDisplay(Console(file=io.StringIO(), width=100, force_terminal=True))


def _blocks(progress, interim, count):
    for block in range(count + 1):
        progress.block(block, 1.0 * block, None, interim)
        interim.estimates.close(block)


@pytest.mark.thorough
def test_it_shows_the_headlines_as_the_report_has_them(campaign):
    progress = _progress()
    _blocks(progress, Interim(campaign), 12)
    text = _shown(progress)
    for cell in ("= +0.03 %", "▲ 3.30 ×", "A/A ±0.19 %", "– unsupported"):
        assert cell in text
    assert "cpu-cost" not in text


def test_between_two_blocks_nothing_is_read_or_analysed_again(campaign, monkeypatch):
    interim = Interim(campaign)
    for name in ("samples", "trials", "schedule", "slices", "telemetry", "read"):
        monkeypatch.setattr(SqliteStore, name, lambda *_: pytest.fail("the file was read"))
    monkeypatch.setattr(report_builder, "analyse", lambda *_: pytest.fail("the whole file was analysed"))
    progress = _progress()
    _blocks(progress, interim, 4)
    assert "A/A" in _shown(progress)
