"""What containers of Docker and Podman reach while tare runs some: its own the client alone, others what they did."""

import socket

import pytest

from tare.host import processes
from tare.model import Arm
from tare.platforms import platform_registry
from tare.platforms.podman import image_tag

#: Ends with 0 where the next hop of the container's default route takes a connection to a port.
CONNECT = """
use Socket; use IO::Socket::INET;
open my $routes, "<", "/proc/net/route" or die;
my ($hop) = map { (split)[2] } grep { (split)[1] eq "00000000" } <$routes>;
my $host = join ".", reverse unpack "C4", pack "N", hex $hop;
exit !IO::Socket::INET->new(PeerAddr => "$host:$ARGV[0]", Proto => "tcp", Timeout => 2);
"""


def filters():
    return [processes.run([program, "-w", "-S"]).require().text for program in ("iptables", "ip6tables")]


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.parametrize("name", ["docker", "podman"])
def test_a_container_of_the_users_beside_tares_keeps_the_hosts_services(launcher, name):
    [platform] = platform_registry.choose([name])
    answer = platform.detect()
    assert answer.available, answer.reason
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm(name), measured=True)
    try:
        with socket.create_server(("", 0)) as service:
            connect = ["perl", "-e", CONNECT, str(service.getsockname()[1])]
            assert running.session.execute(connect, time_limit_s=30).code != 0
            users = [name, "run", "--rm", image_tag(launcher.image), *connect]
            assert processes.run(users).code == 0
        label = f"tare-{running.instance.spec.id}"
        assert [rules.count(f"--comment {label} -j DROP") for rules in filters()] == [3, 2]
    finally:
        running.stop()
        platform.close()
    assert not any(label in rules for rules in filters())
