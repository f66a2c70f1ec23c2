"""A written campaign that the tests of this folder share, and the path to `fake_campaign`, one folder up."""

import sys
from pathlib import Path

import pytest

from tare.report.campaign.report_builder import build
from tare.report.model import Report

sys.path.insert(0, str(Path(__file__).parent.parent))


@pytest.fixture(scope="session")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an invented campaign; read only."""
    import fake_campaign  # noqa: PLC0415 (the path above comes first)

    return fake_campaign.write(tmp_path_factory.mktemp("campaign") / "night.tare")


@pytest.fixture(scope="session")
def report(campaign: Path) -> Report:
    """The report of that campaign; read only."""
    return build(campaign)
