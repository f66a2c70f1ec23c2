"""What an instance reaches over tare's bridge: tried from inside, as root, in a namespace and on platforms."""

import contextlib
import json
import select
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tare.campaign.host_session import HostSession, default_cpus
from tare.errors import HostError
from tare.host import processes, state
from tare.host.network import bridge, fence, subnets
from tare.host.network.fence import BRIDGE, FenceClient, rules
from tare.host.resources.journal import CleanupStack, Journal
from tare.image import image_build
from tare.model import Arm, Resources
from tare.platforms import platform_registry

CLIENT = FenceClient("10.77.0.2", "02:7a:0a:4d:00:02")


def test_where_the_filter_refuses_what_nobody_accepts_the_client_alone_reaches_containers():
    every = rules(CLIENT, drops=True)
    others = every.index(("FORWARD", "-i", BRIDGE, "-m", "mac", "!", "--mac-source", CLIENT.mac, "-j", "DROP"))
    assert all(every.index(rule) > others for rule in every if rule[-1] == "ACCEPT" and "-o" not in rule)


def test_no_rule_lets_the_bridge_and_another_link_talk_past_the_hosts_own_filter():
    for drops in (True, False):
        accepting = [rule for rule in rules(CLIENT, drops=drops) if rule[-1] == "ACCEPT"]
        assert accepting[0] == ("FORWARD", "-i", BRIDGE, "-o", BRIDGE, "-j", "ACCEPT")
        assert [rule for rule in accepting[1:] if "icmp" not in rule] == []
        assert len(accepting) == 1 + drops


def test_no_rule_before_an_engines_own_spares_its_packets_the_engines_chains():
    for rule in rules(CLIENT, drops=True, guarded=True):
        assert rule[0] != "FORWARD" or "conntrack" not in rule
    assert fence.PUBLISHED[0] == "FORWARD"
    assert fence.PUBLISHED[-1] == "ACCEPT"


@pytest.mark.host
@pytest.mark.own_host
def test_the_rule_for_published_ports_is_the_last(tmp_path):
    script = (
        "mount -t tmpfs none /run; mkdir /run/netns; mount -t sysfs none /sys; iptables -N DOCKER; "
        "iptables -A FORWARD -j DOCKER; iptables -P FORWARD DROP; "
        '"$@"; iptables -S FORWARD'
    )
    inner = ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-ec", script, "sh"]
    code = (
        "from tare.host import processes, state\n"
        "from tare.host.network import bridge, subnets\n"
        "from tare.host.resources.journal import CleanupStack, Journal\n"
        "with CleanupStack(Journal(state.journal())) as cleanup:\n"
        "    bridge.Network(subnets.choose()[0]).create(cleanup)\n"
        "    print(processes.run(['iptables', '-S', 'FORWARD']).text)\n"
    )
    argv = ["env", f"TARE_HOME={tmp_path / 'home'}", *inner, sys.executable, "-P", "-c", code]
    done = processes.run(argv, time_limit_s=60)
    assert done.code == 0, done.stderr
    during, _, after = done.text.partition("\n\n")
    lines = during.splitlines()
    assert lines[-2:] == ["-A FORWARD -j DOCKER", f"-A FORWARD -i {BRIDGE} -m conntrack --ctstate DNAT -j ACCEPT"]
    assert after.split("\n") == ["-P FORWARD DROP", "-A FORWARD -j DOCKER", ""]


def test_without_macs_the_client_is_known_by_its_address():
    for rule in rules(CLIENT, drops=False, by_mac=False):
        assert "mac" not in rule
    assert ("FORWARD", "-i", BRIDGE, "!", "-s", CLIENT.address, "-j", "DROP") in rules(
        CLIENT, drops=False, by_mac=False
    )


#: Tries to connect to each ADDRESS:PORT, and prints those that answered. Perl: it is in the image.
REACH = """
use Socket; use IO::Socket::INET;
for my $to (@ARGV) {
    my $s = IO::Socket::INET->new(PeerAddr => $to, Proto => "tcp", Timeout => 2);
    print "$to\\n" if $s;
}
"""
LISTEN = """
import socket, sys
s = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("up", flush=True)
while True:
    s.accept()[0].close()
"""
#: One of an instance's, since the client begins connections with no other port of the host's.
PORT = fence.INSTANCE_PORTS[1665]
#: Of a service of the host's, which is no instance.
SERVICE = 8765


def inside(name):
    return ["ip", "netns", "exec", name] if name else []


@contextlib.contextmanager
def listening(namespace, address, port=PORT):
    argv = [*inside(namespace), sys.executable, "-P", "-c", LISTEN, address, str(port)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"up\n"
            yield
        finally:
            process.kill()


def ip(*lines):
    bridge.ip_batch(*lines)


@contextlib.contextmanager
def another_network():
    """A machine beside the host, on a network of the host's own that is not tare's; yields its address."""
    forward = Path("/proc/sys/net/ipv4/ip_forward")
    former = forward.read_text()
    ip(
        "netns add tarelan",
        "link add tarelan0 type veth peer name eth0 netns tarelan",
        "addr add 198.18.99.1/30 dev tarelan0",
        "link set tarelan0 up",
        "-n tarelan link set lo up",
        "-n tarelan addr add 198.18.99.2/30 dev eth0",
        "-n tarelan link set eth0 up",
        "-n tarelan route add default via 198.18.99.1",
    )
    try:
        forward.write_text("1")
        yield "198.18.99.2"
    finally:
        forward.write_text(former)
        ip("netns del tarelan")


@contextlib.contextmanager
def unfenced(net, links):
    """As it was without a fence: the tests below must see a difference."""
    saved = processes.run(["iptables-save", "-t", "filter"]).require().stdout
    for chain in ("INPUT", "FORWARD"):
        processes.run(["iptables", "-w", "-F", chain]).require()
        processes.run(["iptables", "-w", "-P", chain, "ACCEPT"]).require()  # Docker has FORWARD drop
    for link in links:
        ip(f"link set {link} type bridge_slave isolated off learning on flood on locked off")
    try:
        yield
    finally:
        processes.run(["iptables-restore", "-w"], stdin=saved).require()
        for link in links:
            ip(fence.port_words(link, isolated=True), f"link set {link} type bridge_slave locked on")


@pytest.fixture
def net(tmp_path):
    """The campaign's network with two instances, a and b, in namespaces of their own."""
    network = bridge.Network(subnets.choose()[0])
    with CleanupStack(Journal(state.journal())) as cleanup:
        network.create(cleanup)
        network.a, network.b = (network.new_namespace(cleanup, name) for name in ("fencex1", "fencex2"))
        network.links = ("tarefencex1", "tarefencex2")
        yield network


def reached(namespace, *addresses, port=PORT):
    targets = [f"{address}:{port}" for address in addresses]
    done = processes.run([*inside(namespace), "perl", "-e", REACH, *targets]).require()
    return {line.rpartition(":")[0] for line in done.text.splitlines()}


@pytest.mark.host
@pytest.mark.own_host
def test_the_host_its_networks_and_other_arms_are_out_of_reach_and_the_client_is_not(net):
    with another_network() as lan, contextlib.ExitStack() as servers:
        for where, address in (
            ("", "0.0.0.0"),
            ("tarelan", lan),
            ("tare-fencex2", net.b.address),
            (bridge.CLIENT_NAMESPACE, net.client),
        ):
            servers.enter_context(listening(where, address))
        places = (net.host, "198.18.99.1", lan, net.b.address, net.client)
        assert reached("tare-fencex1", *places) == {net.client}
        assert reached(bridge.CLIENT_NAMESPACE, net.host, net.b.address) == {net.host, net.b.address}
        assert reached("", net.b.address) == {net.b.address}
        assert reached("tarelan", net.b.address) == set(), "from the host's other networks"
        with unfenced(net, net.links):
            assert reached("tare-fencex1", *places) == set(places)
            assert reached("tarelan", net.b.address) == {net.b.address}
        assert reached("tare-fencex1", *places) == {net.client}


#: Sends a datagram to each ADDRESS:PORT, broadcast or not, past the routes too.
DATAGRAM = """
for to in sys.argv[2:]:
    address, _, port = to.rpartition(":")
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    s.bind((sys.argv[1], 0))
    try:
        s.sendto(to.encode(), (address, int(port)))
    except OSError:
        pass
"""


@pytest.mark.host
@pytest.mark.own_host
def test_the_client_begins_nothing_with_the_host_but_at_instances_ports(net):
    """Its programs read what hostile servers answer: one that a server has taken over is not to reach the host."""
    everywhere = (net.host, str(net.subnet.broadcast_address), "255.255.255.255")
    with another_network() as lan, contextlib.ExitStack() as ends:
        for where, address, port in (
            *(("", "0.0.0.0", port) for port in (PORT, SERVICE)),
            ("tarelan", lan, PORT),
            *(("tare-fencex1", net.a.address, port) for port in (PORT, SERVICE)),
        ):
            ends.enter_context(listening(where, address, port))
        datagrams = ends.enter_context(receiving("", SERVICE))
        to_instance = ends.enter_context(receiving("", PORT))

        def tried():
            places = (net.host, "198.18.99.1", lan, net.a.address)
            by_tcp = [reached(bridge.CLIENT_NAMESPACE, *places, port=port) for port in (PORT, SERVICE)]
            sent = [f"{address}:{SERVICE}" for address in everywhere]
            frames(bridge.CLIENT_NAMESPACE, DATAGRAM, net.client, *sent, f"{net.host}:{PORT}")
            return *by_tcp, datagrams().split(), to_instance().split()

        instances = f"{net.host}:{PORT}"
        assert tried() == ({net.host, net.a.address}, {net.a.address}, [], [instances])
        processes.run([*inside(bridge.CLIENT_NAMESPACE), "iptables", "-w", "-F", "OUTPUT"]).require()
        ip(f"-n {bridge.CLIENT_NAMESPACE} route add default via {net.host}")
        at_all_ports, at_service, by_udp, _ = tried()
        assert at_all_ports >= {net.host, "198.18.99.1", net.a.address}  # Docker may have FORWARD drop
        assert at_service == {net.host, "198.18.99.1", net.a.address}
        assert {f"{address}:{SERVICE}" for address in everywhere} == set(by_udp)


@pytest.mark.host
def test_instances_that_are_joined_reach_each_other_and_nobody_else(net):
    with another_network() as lan, contextlib.ExitStack() as servers, CleanupStack(Journal(state.journal())) as later:
        for where, address in (
            ("", "0.0.0.0"),
            ("tarelan", lan),
            ("tare-fencex1", net.a.address),
            ("tare-fencex2", net.b.address),
            (bridge.CLIENT_NAMESPACE, net.client),
        ):
            servers.enter_context(listening(where, address))
        places = (net.host, "198.18.99.1", lan, net.client)
        with net.joined(["fencex1", "fencex2", "hasnone"]):
            assert reached("tare-fencex1", *places, net.b.address) == {net.client, net.b.address}
            assert reached("tare-fencex2", *places, net.a.address) == {net.client, net.a.address}
            for starts in (net.new_namespace, net.new_endpoint):
                with pytest.raises(HostError, match="while some reach each other"):
                    starts(later, "fencex3")
        assert reached("tare-fencex1", *places, net.b.address) == {net.client}
        with pytest.raises(HostError, match="another one is on the bridge"), net.joined(["fencex1"]):
            pytest.fail("it would reach the other")
        assert reached("tare-fencex1", net.b.address) == set()


def frames(namespace, program, *arguments):
    """Run a Python program with raw sockets in a namespace; what it printed as JSON."""
    argv = [
        *inside(namespace),
        sys.executable,
        "-I",
        "-c",
        "import json, socket, struct, sys, time\n" + textwrap.dedent(program),
    ]
    return json.loads(processes.run([*argv, *arguments]).require().text or "null")


#: Says by ARP that an address is at this MAC, as an answer to one that was asked.
SPOOF = """
mine, address, target, to = (bytes.fromhex(word.replace(":", "")) for word in sys.argv[1:5])
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0x0806))
for _ in range(5):
    s.send(target + mine + b"\\x08\\x06" + struct.pack("!HHBBH", 1, 0x0800, 6, 4, 2) + mine + address + target + to)
    time.sleep(0.02)
"""


def packed(address):
    return socket.inet_aton(address).hex()


def neighbour(namespace, address):
    words = ["ip", *(["-n", namespace] if namespace else []), "-j", "neigh", "show", address]
    return {(entry["lladdr"], *entry["state"]) for entry in json.loads(processes.run(words).require().text)}


@pytest.mark.host
@pytest.mark.own_host
def test_lies_by_arp_change_nobodys_neighbours(net):
    """Arm a says to host and client that it is arm b, and to the host that it is the client."""
    host_mac = Path("/sys/class/net", BRIDGE, "address").read_text().strip()
    client_mac = fence.mac(net.client)
    for victim, to, target in (
        (net.b.address, net.host, host_mac),
        (net.client, net.host, host_mac),
        (net.b.address, net.client, client_mac),
        (net.host, net.client, client_mac),
    ):
        frames("tare-fencex1", SPOOF, net.a.mac, packed(victim), target, packed(to))
    assert neighbour("", net.b.address) == {(net.b.mac, "PERMANENT")}
    assert neighbour("", net.client) == {(client_mac, "PERMANENT")}
    assert neighbour(bridge.CLIENT_NAMESPACE, net.b.address) == {(net.b.mac, "PERMANENT")}
    assert neighbour(bridge.CLIENT_NAMESPACE, net.host) == {(host_mac, "PERMANENT")}


@contextlib.contextmanager
def sniffing(namespace):
    """A socket that sees all frames which come to a namespace's eth0, promiscuously."""
    program = """
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind(("eth0", 3))
    s.setsockopt(263, 1, struct.pack("IHH8s", socket.if_nametoindex("eth0"), 1, 0, b""))
    print("up", flush=True)
    while True:
        data, (_, _, kind, *_) = s.recvfrom(2048)
        if kind != 4:
            print(data.hex(), flush=True)
    """
    head = "import json, socket, struct, sys, time\n"
    argv = [*inside(namespace), sys.executable, "-P", "-c", head + textwrap.dedent(program)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"up\n"
            yield lambda: seen(process.stdout)
        finally:
            process.kill()


def seen(stream, wait_s=1.0):
    text = b""
    while select.select([stream], [], [], wait_s)[0]:
        text += stream.read1(1 << 16)
    return text.decode()


SEND = """
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(20):
    try:
        s.sendto(sys.argv[2].encode(), (sys.argv[1], 9))
    except OSError:
        pass
    time.sleep(0.01)
"""
WORD = "fence-marker"


@pytest.mark.host
@pytest.mark.own_host
def test_nobody_listens_in(net):
    """What the client sends to arm b, and what arm a sends to arm b though it knows its MAC, is not seen by others."""
    ip(f"-n tare-fencex1 neigh replace {net.b.address} lladdr {net.b.mac} dev eth0 nud permanent")
    with sniffing("tare-fencex1") as at_a, sniffing("tare-fencex2") as at_b:
        frames(bridge.CLIENT_NAMESPACE, SEND, net.b.address, WORD)
        assert WORD.encode().hex() in at_b()
        assert WORD.encode().hex() not in at_a()
        frames("tare-fencex1", SEND, net.b.address, WORD + "-a")
        assert f"{WORD}-a".encode().hex() not in at_b()
        with unfenced(net, net.links):
            frames("tare-fencex1", SEND, net.b.address, WORD + "-open")
            assert f"{WORD}-open".encode().hex() in at_b()


@pytest.mark.host
@pytest.mark.own_host
def test_a_frame_under_anothers_mac_is_not_carried(net):
    with sniffing(bridge.CLIENT_NAMESPACE) as at_client:
        frames("tare-fencex1", SEND, net.client, WORD + "-true")
        assert f"{WORD}-true".encode().hex() in at_client()
        ip(f"-n tare-fencex1 link set eth0 address {net.b.mac}")
        client = f"{net.client} lladdr {fence.mac(net.client)} dev eth0 nud permanent"
        ip(f"-n tare-fencex1 neigh replace {client}")
        frames("tare-fencex1", SEND, net.client, WORD + "-lie")
        assert f"{WORD}-lie".encode().hex() not in at_client()
        assert neighbour("", net.b.address) == {(net.b.mac, "PERMANENT")}
        with unfenced(net, net.links):
            frames("tare-fencex1", SEND, net.client, WORD + "-open")
            assert f"{WORD}-open".encode().hex() in at_client()


#: A datagram to a port that says it comes from another's address.
LIE = """
source, to, text = socket.inet_aton(sys.argv[1]), socket.inet_aton(sys.argv[2]), sys.argv[3].encode()
datagram = struct.pack("!HHHH", 9, int(sys.argv[4]), 8 + len(text), 0) + text
header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(datagram), 0, 0, 64, 17, 0, source, to)
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
s.sendto(header + datagram, (sys.argv[2], 0))
"""


@contextlib.contextmanager
def receiving(namespace, port):
    """What comes to a UDP port of a namespace, as its programs get it; "" is the host."""
    program = f"s = socket.socket(type=2); s.bind(('', {port})); print('up', flush=True)\n"
    program += "while True: print(s.recv(2048).decode(), flush=True)"
    argv = [*inside(namespace), sys.executable, "-P", "-c", "import socket\n" + program]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"up\n"
            yield lambda: seen(process.stdout)
        finally:
            process.kill()


@pytest.mark.host
@pytest.mark.own_host
def test_a_packet_in_anothers_name_is_not_taken(net):
    """Arm a sends datagrams that say they are arm b's, to the client and to a door of the host's."""
    strangers = "198.18.99.2"
    door = str(fence.OPEN_PORTS[-1])
    for namespace, address, port, others in (
        (bridge.CLIENT_NAMESPACE, net.client, "9", (net.b.address, net.host, strangers)),
        ("", net.host, door, (net.b.address, net.client, strangers)),
    ):
        with receiving(namespace, port) as taken:
            frames("tare-fencex1", LIE, net.a.address, address, "true", port)
            assert "true" in taken()
            for source in others:
                frames("tare-fencex1", LIE, source, address, f"as {source}", port)
            assert taken() == ""
    with receiving(bridge.CLIENT_NAMESPACE, "9") as at_client:
        frames("", LIE, strangers, net.client, "handed on", "9")  # as the host hands on what Docker's instances send
        assert "handed on" in at_client()
        processes.run([*inside(bridge.CLIENT_NAMESPACE), "iptables", "-w", "-F", "INPUT"]).require()
        frames("tare-fencex1", LIE, net.b.address, net.client, "unguarded", "9")
        assert "unguarded" in at_client()


#: A packet of SCTP's, which a kernel may take for any service of it.
OTHER = """
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 132)
s.sendto(sys.argv[2].encode(), (sys.argv[1], 0))
"""


@pytest.mark.host
@pytest.mark.own_host
def test_a_packet_of_another_protocol_is_not_taken(net):
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, 132) as taken:
        frames("tare-fencex1", OTHER, net.host, WORD)
        assert not select.select([taken], [], [], 0.5)[0]
        with unfenced(net, net.links):
            frames("tare-fencex1", OTHER, net.host, WORD)
            assert select.select([taken], [], [], 2)[0]


@pytest.mark.host
@pytest.mark.own_host
def test_the_client_forwards_nothing_of_an_instances(net):
    """Not with the host's forwarding, which a new namespace may have too: it would be the client's own packet."""
    setting = [*inside(bridge.CLIENT_NAMESPACE), "cat", "/proc/sys/net/ipv4/ip_forward"]
    assert processes.run(setting).require().text == "0\n"
    let_through = ["FORWARD", "-i", BRIDGE, "-o", "tarelan0", "-j", "ACCEPT"]  # Docker has FORWARD drop
    with another_network() as lan, receiving("tarelan", 9) as at_lan, contextlib.ExitStack() as ends:
        processes.run(["iptables", "-w", "-A", *let_through]).require()
        ends.callback(processes.run, ["iptables", "-w", "-D", *let_through])
        to_client = f"{net.client} lladdr {fence.mac(net.client)} dev eth0 nud permanent"
        ip(
            f"-n tare-fencex1 neigh replace {to_client}",
            f"-n tare-fencex1 route replace {lan}/32 via {net.client}",
        )
        frames("tare-fencex1", SEND, lan, WORD)
        assert at_lan() == ""
        processes.run([*inside(bridge.CLIENT_NAMESPACE), "sysctl", "-w", "net.ipv4.ip_forward=1"]).require()
        ip(f"-n {bridge.CLIENT_NAMESPACE} route add default via {net.host}")
        frames("tare-fencex1", SEND, lan, WORD)
        assert WORD in at_lan()


_AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
_BIND = (
    "for (@ARGV) { IO::Socket::INET->new(Proto => 'udp', LocalPort => $_) and print qq($_ is bound) or print qq($!) }"
)


@pytest.mark.host
def test_another_user_can_hold_no_port_that_tare_listens_on():
    argv = [*_AS_NOBODY, "perl", "-MIO::Socket::INET", "-le", _BIND, *map(str, fence.OPEN_PORTS)]
    assert set(processes.run(argv, env={"LC_ALL": "C"}).text.splitlines()) == {"Permission denied"}


def test_the_program_compares_the_link_headers_sender_with_the_packets_source():
    # As `nfbpf_compile RAW` and linux/filter.h have the codes: ld [link+8]; tax; ld [12]; jeq x; ret.
    assert fence.lie_about_address()[-1] == "6,32 0 0 4292870152,7 0 0 0,32 0 0 12,29 1 0 0,6 0 0 65535,6 0 0 0"
    of_host = fence.lie_about_address(other_protocols=True)[-1]  # ldb [9]; jeq #6, #17, #1
    end = "48 0 0 9,21 3 0 6,21 2 0 17,21 1 0 1,6 0 0 65535,6 0 0 0"
    assert of_host == f"11,32 0 0 4292870152,7 0 0 0,32 0 0 12,29 1 0 0,6 0 0 65535,{end}"
    assert fence.lie_about_address("10.0.0.1")[-1].startswith("7,32 0 0 4292870152,21 4 0 167772161,7 0 0 0,")


@pytest.mark.host
@pytest.mark.own_host
def test_over_ipv6_there_is_nobody(net):
    for words in (["-6", "addr", "show", "dev", BRIDGE], ["-n", bridge.CLIENT_NAMESPACE, "-6", "addr"]):
        assert processes.run(["ip", *words]).require().text == ""


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.parametrize(
    "name",
    ["native-veth", "runc", "gvisor", "lxc", *(pytest.param(name, marks=pytest.mark.slow) for name in ["qemu-tcg"])],
)
def test_from_inside_of_a_platform_nobody_but_the_client_is_reached(name):
    [platform] = platform_registry.choose([name])
    if not (answer := platform.detect()).available:
        pytest.skip(answer.reason)
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    resources = Resources(default_cpus(), 512 << 20)
    with HostSession() as host, contextlib.ExitStack() as stack:
        launcher, _ = host.prepare(image, resources)
        stack.callback(platform.close)
        platform.prepare(image)
        net = launcher.network
        other = launcher.start(platform_registry.choose(["native-veth"])[0], Arm("native-veth"), measured=False)
        stack.callback(other.stop)
        running = launcher.start(platform, Arm(platform.name), measured=True)
        stack.callback(running.stop)
        lan = stack.enter_context(another_network())
        arm = other.instance.address.host
        listeners = [("", "0.0.0.0"), ("tarelan", lan), (f"tare-{other.instance.spec.id}", arm)]
        for where, address in [*listeners, (bridge.CLIENT_NAMESPACE, net.client)]:
            stack.enter_context(listening(where, address))
        targets = [f"{address}:{PORT}" for address in (net.host, "198.18.99.1", lan, arm, net.client)]
        done = running.session.execute(["perl", "-e", REACH, *targets], time_limit_s=120)
        assert done.stdout.decode().split() == [f"{net.client}:{PORT}"], done.stderr
