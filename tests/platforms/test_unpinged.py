"""An engine that drops what the client sends to a container's own address: its pings are unsupported, the rest runs."""

import contextlib

import pytest

from tare.campaign.execution.runs import surroundings
from tare.campaign.host_session import HostSession, default_cpus
from tare.errors import HostError
from tare.host import processes
from tare.image import image_build
from tare.model import Arm, Resources
from tare.platforms import platform_registry
from tare.workloads.network.ping_rtt import WORKLOAD

pytestmark = [pytest.mark.host, pytest.mark.own_host]


@contextlib.contextmanager
def as_docker_28_has_it():
    """Its rule, as 28.5 sets it, but for all containers at once."""
    rule = ["PREROUTING", "-d", "172.16.0.0/12", "!", "-i", "docker0", "-j", "DROP"]
    processes.run(["iptables", "-w", "-t", "raw", "-A", *rule]).require()
    try:
        yield
    finally:
        processes.run(["iptables", "-w", "-t", "raw", "-D", *rule]).require()


@pytest.mark.parametrize("drops", [True, False], ids=["drops", "lets-in"])
def test_whether_the_client_reaches_a_containers_own_address_is_tried(drops):
    (docker,) = platform_registry.choose(["docker"])
    answer = docker.detect()
    assert answer.available, answer.reason
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    with as_docker_28_has_it() if drops else contextlib.nullcontext(), HostSession() as host:
        launcher, _ = host.prepare(image, Resources(default_cpus(), 512 << 20))
        docker.prepare(image)
        running = launcher.start(docker, Arm("docker"), measured=True)
        try:
            around = surroundings(running)
            assert running.marks.ping_ns, "the host itself reaches it"
        finally:
            running.stop()
    docker.close()
    if not drops:
        assert around.ping == running.instance.address.ping
        return
    assert around.ping is None
    assert around.among, "other containers reach it"
    with pytest.raises(HostError, match=r"it cannot be pinged: .*a packet filter drops") as refused:
        WORKLOAD.plan(WORKLOAD.profiles["quick"], around)
    assert refused.value.fix
