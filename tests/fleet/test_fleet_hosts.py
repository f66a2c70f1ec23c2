"""A fleet of real sshd hosts on this machine: a campaign on each, hosts that cannot, and what stays."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fleet_bed
from tare.host import processes, state
from tare.host.kernel import process_table
from tare.image import build
from tare.model import CampaignStatus
from tare.store import read_store

pytestmark = [
    pytest.mark.own_host,
    pytest.mark.host,
    pytest.mark.skipif(processes.find("sshd") is None, reason="needs sshd: apt-get install openssh-server"),
]
WORDS = ["-p", "native", "-w", "startup", "--blocks", "2"]


def images():
    """The images that there are here, for hosts that have had tare before."""
    build.ensure(build.agent_path(), progress=lambda what: None)
    return [path for path in state.images().iterdir() if path.is_dir() and not path.name.startswith("new-")]


@pytest.fixture(scope="module")
def hosts():
    """Two hosts with the image, and one without a Python."""
    with fleet_bed.bed() as bed:
        there = images()
        bed.add("alpha", images=there)
        bed.add("beta", images=there)
        bed.add("bare", images=there, hide=["/usr/bin/python3.11"], path="/usr/bin:/bin:/usr/sbin:/sbin")
        # beta twice, one that is not there, and one whose key is another
        more = [f"twin ansible_host={bed.hosts['beta'].address}", "gone ansible_host=198.19.255.254"]
        bed.write_inventory({"beta": "tare_options='--seed 7'"}, more)
        yield bed


def tare(*words, **options):
    argv = [sys.executable, "-P", "-m", "tare", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=240, **options)


def rows(done):
    assert done.stdout.startswith("{"), done.stderr
    return {row["host"]: row for row in json.loads(done.stdout)["hosts"]}


def looked(host):
    """What is left of a fleet on a host, as this machine sees its disk."""
    return sorted(str(path.relative_to(host.disk)) for path in host.disk.glob("tare-fleet/runs/*"))


def test_a_fleet_runs_on_every_host_and_says_why_others_cannot(hosts, tmp_path):
    folder = tmp_path / "night"
    done = tare("fleet", "run", "-i", hosts.inventory, "-o", folder, "--look", 5, "--json", "--", *WORDS)
    told = rows(done)
    assert done.returncode == 2, done.stderr
    assert told["alpha"]["state"] == "done", (told["alpha"], done.stderr)
    twins = sorted(told[name]["state"] for name in ("beta", "twin"))
    assert twins == ["done", "failed"]
    first, second = ("beta", "twin") if told["beta"]["state"] == "done" else ("twin", "beta")
    assert told[second]["reason"] == f"it is the same host as {first}, which is in the inventory too"
    assert told["bare"]["reason"].startswith("no Python is installed")
    assert told["gone"]["state"] == "lost"
    for name in ("alpha", first):
        with read_store(folder / f"{name}.tare") as store:
            assert store.status is CampaignStatus.COMPLETE
            assert set(store.schedule()) <= store.done()
            assert len({key.block for key in store.done()}) == 2
    assert not (folder / f"{second}.tare").exists()
    assert looked(hosts.hosts["alpha"]) == []  # its file is here, and its run is forgotten there
