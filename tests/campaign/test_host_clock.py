"""An emulated guest whose kernel is told a wrong frequency of its counter: a real clock that is too slow."""

import pytest

from campaign.fakes import Quiet
from tare.campaign.execution import run_campaign
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.host.facts import tsc
from tare.model import Status
from tare.store import read_store


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.slow
def test_figures_of_a_guest_with_a_slow_clock_are_none(tmp_path, monkeypatch):
    khz = tsc.khz()
    monkeypatch.setattr(tsc, "khz", lambda: round(1.25 * khz))
    file = tmp_path / "slow.tare"
    run_campaign.begin(
        CampaignRequest(platforms=("qemu-tcg",), workloads=("primes", "sysbench-cpu"), blocks=1), file, Quiet()
    )
    with read_store(file) as store:
        trials = store.trials()
        guest = trials.filter(trials["platform"] == "qemu-tcg").rows(named=True)
        assert {trial["status"] for trial in guest} == {Status.FAILED}
        for trial in guest:
            assert "% too slow against the host's" in trial["reason"]
            assert trial["clock_rate_low"] <= -0.2 <= trial["clock_rate_high"]
        native = trials.filter(trials["platform"] == "native").rows(named=True)
        assert {trial["status"] for trial in native} == {Status.OK}
        assert all(trial["clock_rate_low"] <= 0 <= trial["clock_rate_high"] for trial in native)
