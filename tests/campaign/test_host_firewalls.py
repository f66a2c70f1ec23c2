"""A host that refuses what it would forward from the client: network trials of its containers say so, and the fix."""

import pytest

from tare.campaign.execution.runs import run_trial
from tare.errors import Failed, HostError, ParseError, attempt
from tare.host import processes
from tare.host.network.fence import BRIDGE
from tare.model import Arm
from tare.platforms import platform_registry
from tare.workloads.base import Command, RunPlan, Side
from tare.workloads.network import ping_rtt, tcp_rr, udp_rtt

pytestmark = [pytest.mark.host, pytest.mark.own_host]

TABLE = "inet test-firewall"
TCP, UDP, PING = tcp_rr.WORKLOADS[0], udp_rtt.WORKLOAD, ping_rtt.WORKLOAD


class Fails(tcp_rr.TcpRr):
    """Its client ends with an error whether or not it reaches the instance."""

    def plan(self, params, around):
        return RunPlan(measures=(Command(("false",), side=Side.CLIENT, time_limit_s=30, cwd="/"),))


@pytest.fixture
def refused(launcher):  # after tare's network is made, which it would refuse to make
    """A filter that drops what is forwarded from the bridge or to it, and nothing else of this host's."""
    rules = f"iifname {BRIDGE} drop; oifname {BRIDGE} drop"
    chain = f"chain forward {{ type filter hook forward priority filter; policy accept; {rules}; }}"
    processes.run(["nft", "-f", "-"], stdin=f"table {TABLE} {{\n{chain}\n}}\n".encode()).require()
    yield
    processes.run(["nft", "delete", "table", *TABLE.split()]).require()


@pytest.fixture
def run(prepared):
    """Runs a workload in an instance of a platform, which is ended at the test's end."""
    launcher, client = prepared
    running = {}

    def once(workload, name):
        if name not in running:
            [platform] = platform_registry.choose([name])
            platform.prepare(launcher.image)
            running[name] = launcher.start(platform, Arm(name), measured=False)
        # Beside other tests a client may have no processor for half a second, which is all that `quick` measures for.
        params = {**workload.profiles["quick"], "time_s": 2.0}
        return attempt(lambda: run_trial(workload, params, running[name], client))

    yield once
    for instance in running.values():
        assert instance.usable
        instance.stop()


@pytest.mark.parametrize(
    ("name", "workloads"), [("docker", (TCP, UDP)), pytest.param("podman", (TCP,), marks=pytest.mark.slow)]
)
def test_a_trial_says_which_chain_refuses_it_and_what_opens_that(name, workloads, run, refused):
    fixes = set()
    for workload in workloads:
        failed = run(workload, name)
        assert isinstance(failed, Failed)
        assert isinstance(failed.error, ParseError), "a failed trial: the platform could do it"
        traffic = "what goes from tare's bridge through this host to the instance"
        assert failed.reason.startswith(f"the host's packet filter refuses {traffic} (nftables: {TABLE} forward): `")
        fixes.add(failed.error.fix)
    [fix] = fixes
    for rule in fix.split("; "):
        processes.run(rule.split()).require()
    for workload in workloads:
        assert not isinstance(run(workload, name), Failed)


def test_pings_of_a_container_are_unsupported_where_its_first_start_finds_that_they_are_refused(run, refused):
    [docker] = platform_registry.choose(["docker"])
    assert docker.detect().available  # forgets what it found before
    failed = run(PING, "docker")
    assert isinstance(failed.error, HostError)
    assert "a packet filter drops what comes to it by other links" in failed.reason
    assert docker.detect().available


@pytest.mark.parametrize("name", ["docker", "native"])
def test_another_failure_is_not_laid_to_a_filter(name, run, request):
    if name == "native":
        request.getfixturevalue("refused")  # which is not on the way to it
    assert run(Fails(), name).reason.startswith("`false` ended with 1")
