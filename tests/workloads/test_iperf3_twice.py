"""iperf3's server does not listen while it puts away a test: the next one is begun when it listens again."""

from dataclasses import replace

import pytest

from tare.campaign.execution.runs import run_trial
from tare.model import Arm
from tare.platforms import platform_registry
from tare.workloads.network.iperf3_tcp import Iperf3Tcp

pytestmark = [pytest.mark.host, pytest.mark.own_host]
#: A server that takes long between two tests, as one does in a slow sandbox with many streams.
SLOW = 'while :; do iperf3 -s -1 --forceflush "$@"; sleep 0.5; done'


class SlowBetween(Iperf3Tcp):
    def plan(self, params, around):
        plan = super().plan(params, around)
        [server] = plan.servers
        argv = ("sh", "-c", SLOW, "sh", *server.argv[3:])
        return replace(plan, servers=(replace(server, argv=argv),))


def test_the_second_test_waits_for_the_server(prepared):
    launcher, client = prepared
    [platform] = platform_registry.choose(["native"])
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm("native"), measured=False)
    try:
        measured = run_trial(SlowBetween(), {"time_s": 1, "omit_s": 0}, running, client)
    finally:
        running.stop()
        platform.close()
    assert measured.outcome.samples["from-instance"] > 0
