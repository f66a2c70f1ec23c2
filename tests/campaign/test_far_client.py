"""The load of a campaign comes from another machine: an sshd in namespaces of its own, behind a veth pair."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from campaign.fakes import Quiet
from platforms import remote_host
from tare.campaign.execution import run_campaign
from tare.campaign.execution.runs import run_trial
from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.instances import far_client
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.errors import HostError, UsageError
from tare.host import processes, state
from tare.host.network import passage
from tare.host.resources.journal import Journal, sweep
from tare.image import image_build
from tare.model import Arm, Resources, Status
from tare.platforms import platform_contract, platform_registry
from tare.report.campaign import report_builder as reports
from tare.store import read_store
from tare.workloads import workload_registry as workloads

pytestmark = pytest.mark.own_host
SCRIPT = Path(__file__).with_name("far_victim.py")


@pytest.mark.parametrize("wrong", ["far", "ssh:", "docker:far", "ssh:-oProxyCommand=true", "ssh:a b"])
def test_what_names_no_client_is_refused(wrong):
    with pytest.raises(UsageError):
        far_client.check(wrong)


@pytest.fixture(scope="module")
def remote():
    with remote_host.remote_host(name="client") as remote:
        yield remote


@contextlib.contextmanager
def started(launcher, name):
    [platform] = platform_registry.choose([name])
    assert platform.detect().available
    platform_contract.prepared(platform, launcher.image)
    running = launcher.start(platform, Arm(name), measured=False)
    try:
        yield running
    finally:
        running.stop()
        platform.close()


def rules():
    """All rules of the host's packet filter, without counters."""
    return sorted(line for line in processes.run(["iptables-save"]).text.splitlines() if line.startswith("-A"))


def exchanged(running, client):
    workload = workloads.get("tcp-rr")
    return run_trial(workload, {**workload.profiles["quick"], "time_s": 0.2}, running, client)


@pytest.mark.host
def test_it_loads_instances_alone_and_leaves_nothing(remote):
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    before = rules()
    with HostSession() as host:
        launcher, client = host.prepare(image, Resources(default_cpus(), 512 << 20), client=remote.platform)
        front = launcher.network.front
        assert launcher.client.address == remote.address
        assert launcher.client.cpus == client.cpu_count >= 1
        assert launcher.client.model
        assert abs(launcher.client.clock_ahead_s) < 30
        done = client.run(["sh", "-c", "id -u; pwd; touch /data/x && head -c 3"], stdin=b"abc", time_limit_s=30)
        assert done.text.split() == [str(far_client.roots.client_user()), "/data", "abc"], done
        rights = client.run(["grep", "-E", "^(Cap|NoNewPrivs)", "/proc/self/status"], time_limit_s=30).text
        status = dict(line.split(":\t") for line in rights.splitlines())
        assert status == {**{f"Cap{kind}": 16 * "0" for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")}, "NoNewPrivs": "1"}
        for name in ("native", "runc", "docker"):
            with started(launcher, name) as running:
                address = running.instance.address
                assert address.host == front
                assert exchanged(running, client).outcome.work > 0
                own = address.echo
                assert bool(address.unpinged) == (name != "native"), own
        assert client.cpu_ns() > 0
        with started(launcher, "native") as running:
            _refused_to_strangers(running)
        _goes_on_after_a_lost_link(launcher, client)
    assert rules() == before
    left = [str(path) for path in (remote.disk / "remote" / "work").iterdir()]
    assert left == []


def _refused_to_strangers(running):
    """A third machine gets no answer at the port that the client is let in at."""
    address = running.instance.address
    server = running.session.start(
        ["tare-agent", "answer", "tcp", str(address.port), "64", address.listen], time_limit_s=60
    )
    with remote_host.remote_host(name="stranger") as stranger:
        processes.run(["ip", "-n", stranger.name, "route", "add", address.host, "dev", "eth0"]).require()
        with passage.socket_in(stranger.name) as caller:
            caller.settimeout(1)
            with pytest.raises(TimeoutError):
                caller.connect((address.host, address.port))
        with socket.create_connection((address.host, address.port), timeout=5):
            pass  # the server is there: this host itself reaches it
    server.kill()


def _goes_on_after_a_lost_link(launcher, client):
    """The trial in which the connection ends fails with a reason; the next one has another connection."""
    with started(launcher, "native") as running:
        for pid in launcher_group_pids():
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(HostError, match="the client ssh:") as lost:
            exchanged(running, client)
        assert lost.value.fix
        assert running.usable, "the instance is not to blame"
        assert exchanged(running, client).outcome.work > 0


def launcher_group_pids():
    found = processes.run(["pgrep", "-x", "ssh"]).text.split()
    return [int(pid) for pid in found if Path(f"/proc/{pid}/cmdline").read_bytes().find(b"launch") > 0]


@pytest.mark.host
def test_what_a_killed_harness_opened_is_closed_again(remote):
    before = rules()
    victim = subprocess.Popen([sys.executable, str(SCRIPT), remote.platform], stdout=subprocess.PIPE)
    assert victim.stdout.readline().strip(), "it has an instance now"
    opened = set(rules()) - set(before)
    assert any("DNAT" in rule and remote.address in rule for rule in opened), opened
    victim.kill()
    victim.communicate()
    assert set(rules()) - set(before) == opened, "nothing ran that could have closed them"
    assert list(sweep(Journal(state.journal())))
    assert rules() == before


@pytest.mark.host
def test_a_second_campaign_does_not_load_from_the_same_machine(remote):
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    busy = (
        "mkdir -p -m 700 /var/lib/tare/remote; exec 8>>/var/lib/tare/remote/client; flock 8; echo held; exec sleep 600"
    )
    sshd = int(Path(f"/proc/{remote.sshd.pid}/task/{remote.sshd.pid}/children").read_text().split()[0])
    holder = subprocess.Popen(["nsenter", "-t", str(sshd), "--mount", "sh", "-c", busy], stdout=subprocess.PIPE)
    assert holder.stdout.readline()
    try:
        with HostSession() as host, pytest.raises(HostError, match="another campaign loads from it"):
            host.prepare(image, Resources(default_cpus(), 512 << 20), client=remote.platform)
    finally:
        holder.kill()
        holder.communicate()


@pytest.mark.host
def test_a_campaign_says_which_machine_loaded_which(remote, tmp_path):
    file = tmp_path / "far.tare"
    request = CampaignRequest(
        platforms=["runc"],
        workloads=["tcp-rr", "ping-rtt"],
        blocks=1,
        memory_bytes=512 << 20,
        client=remote.platform,
    )
    run_campaign.begin(request, file, Quiet())
    report = reports.build(file)
    with read_store(file) as store:
        record = store.record
        rows = list(store.trials().iter_rows(named=True))
    assert {row["status"] for row in rows if row["workload"] == "tcp-rr"} == {Status.OK}
    pinged = {row["platform"]: row for row in rows if row["workload"] == "ping-rtt"}
    assert pinged["native"]["status"] == Status.OK
    assert "another machine" in pinged["runc"]["reason"]
    assert record.client.client == report.client.client == remote.platform
    assert record.client.called != record.client.address == remote.address
    for facts in record.fairness.values():
        assert remote.platform in facts["client on another machine"]


@pytest.mark.host
@pytest.mark.parametrize(
    ("where", "what"), [("{}-strange", "host key"), ("no-such-host.invalid", "its name is not known")]
)
def test_a_client_that_lets_nobody_in_is_one_line(remote, where, what):
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    with HostSession() as host, pytest.raises(HostError, match=what) as caught:
        host.prepare(image, Resources(default_cpus(), 512 << 20), client="ssh:" + where.format(remote.name))
    assert caught.value.fix
    assert "\n" not in str(caught.value)


@pytest.mark.host
def test_this_host_is_no_client_of_its_own(remote, monkeypatch):
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    monkeypatch.setattr(far_client.FarClient, "address", "127.0.0.1")
    with HostSession() as host, pytest.raises(HostError, match="this host's own") as caught:
        host.prepare(image, Resources(default_cpus(), 512 << 20), client=remote.platform)
    assert caught.value.fix == "leave --client out"
