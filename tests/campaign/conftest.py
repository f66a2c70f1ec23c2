"""For all tests of campaigns."""

import pytest

from tare.campaign.execution import outages


@pytest.fixture(autouse=True)
def _nothing_recovers(request, monkeypatch):
    """A platform that is a fake and does not start will not do so in some seconds either."""
    if not request.node.get_closest_marker("host"):
        monkeypatch.setattr(outages, "RECOVERY_S", 0.0)
