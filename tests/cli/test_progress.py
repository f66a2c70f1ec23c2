"""The table that narrows while a campaign runs: the report's figures, without the report's work."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

import fake_campaign
from tare.analysis.estimates import Estimates
from tare.cli.progress import CampaignDisplay
from tare.report import build
from tare.store import Store


@pytest.fixture
def campaign(tmp_path):
    shape = replace(fake_campaign.Shape(), blocks=12, stolen=False)
    return fake_campaign.write(tmp_path / "x.tare", shape)


def _shown(progress):
    out = io.StringIO()
    Console(file=out, width=100).print(progress._render())
    return out.getvalue()


def _progress(file):
    return CampaignDisplay(Console(file=io.StringIO(), width=100, force_terminal=True), file, Estimates())


def test_it_shows_the_headlines_as_the_report_has_them(campaign):
    progress = _progress(campaign)
    for block in range(13):
        progress.block(block, 1.0 * block, None)
    text = _shown(progress)
    for cell in ("= +0.03 %", "▲ 3.30 ×", "A/A ±0.23 %", "– unsupported"):  # noqa: RUF001
        assert cell in text
    assert "cpu-cost" not in text


def test_between_two_blocks_only_the_new_one_is_read_and_nothing_is_analysed_again(campaign, monkeypatch):
    read = []
    samples = Store.samples

    def keep(self, first=0, end=None):
        read.append((first, end))
        return samples(self, first, end)

    monkeypatch.setattr(Store, "samples", keep)
    monkeypatch.setattr(build, "analyse", lambda *_: pytest.fail("the whole file was analysed"))
    progress = _progress(campaign)
    for block in range(4):
        progress.block(block, 1.0 * block, None)
    assert read == [(0, 1), (1, 2), (2, 3)]
