"""A host whose only name server has an IPv6 address: engines that hand its resolv.conf on start, and are reached."""

from pathlib import Path

import pytest

from campaign.fakes import Quiet
from tare.campaign.execution import run_campaign
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.host import processes
from tare.model import Status
from tare.store import read_store

RESOLV_CONF = Path("/etc/resolv.conf")
IPV6_ONLY = "nameserver fd00::53\n"
#: Of the real host's processes (include/uapi/linux/nsfs.h).
FIRST_PID_NAMESPACE = "pid:[4026531836]"


@pytest.fixture
def ipv6_only(tmp_path):
    """The file for all of a host of its own, its daemons too."""
    if str(Path("/proc/self/ns/pid").readlink()) == FIRST_PID_NAMESPACE:
        pytest.skip("the real host's names would not be found meanwhile: scripts/own-host")
    file = tmp_path / "resolv.conf"
    file.write_text(IPV6_ONLY)
    file.chmod(0o644)  # a user without rights reads it too
    place = str(RESOLV_CONF.resolve())
    processes.run(["mount", "--bind", str(file), place]).require()
    yield
    processes.run(["umount", place]).require()


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.usefixtures("ipv6_only")
@pytest.mark.parametrize("name", ["docker", "podman", pytest.param("podman-rootless", marks=pytest.mark.slow)])
def test_an_engine_starts_and_is_reached(name, tmp_path):
    assert RESOLV_CONF.read_text() == IPV6_ONLY
    longer = {"http-get": {"time_s": 2.0}}  # a machine that stands still for a moment is not what is tried
    order = CampaignRequest(platforms=(name,), workloads=("startup", "http-get"), blocks=1, params=longer)
    file = tmp_path / "x.tare"
    run_campaign.begin(order, file, Quiet())
    with read_store(file) as store:
        rows = [row for row in store.trials().iter_rows(named=True) if row["platform"] == name]
    assert [(row["status"], row["reason"]) for row in rows] == [(Status.OK, None)] * 2
