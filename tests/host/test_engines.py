"""What a container reaches by its engine's own bridge: the rules as data, and real packets on a bridge like docker0."""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import time

import pytest

from host.test_fence import PORT, another_network, inside, ip, listening, reached
from tare.errors import HostError
from tare.host import processes, state
from tare.host.network import bridge, fence, passage, subnets
from tare.host.network.engines import CHAINS, Engines, Port, leading, plugged, rules, rules_of_ipv6
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack, Journal
from tare.platforms.watchers.marks import ECHO, first_reply

NAME, CLIENT = "tare-ab12cx3", "10.77.0.2"
SENDER = ("-m", "mac", "--mac-source", "02:42:ac:11:00:03")
OF_CONTAINER = [*rules(SENDER, NAME), *rules_of_ipv6(SENDER, NAME)]
OF_BRIDGE = [*leading("docker0", CLIENT), *leading("docker0", None)]


def test_every_rule_in_a_chain_is_of_one_container_and_has_its_name():
    for rule in OF_CONTAINER:
        assert rule[0] in CHAINS.values()
        assert " ".join(SENDER) in " ".join(rule)
        assert rule[-4:] == ("--comment", NAME, "-j", "DROP")


def test_what_leads_to_the_chains_names_the_bridge_and_settles_nothing():
    for rule in OF_BRIDGE:
        assert rule[1:3] == ("-i", "docker0")
        assert rule[-1] == CHAINS[rule[0]]


def test_an_answer_to_the_client_passes_one_rule_which_its_destination_settles():
    [forwarded] = [rule for rule in leading("docker0", CLIENT) if rule[0] == "FORWARD"]
    assert forwarded == (
        *("FORWARD", "-i", "docker0", "!", "-o", "docker0", "!", "-d", CLIENT),
        *("-j", CHAINS["FORWARD"]),
    )


def test_a_containers_ports_are_those_that_its_links_are_behind():
    within = [{"ifname": "lo", "ifindex": 1}, {"ifname": "eth0", "link_index": 9, "address": "02:42:ac:11:00:03"}]
    host = [
        {"ifname": "lo", "ifindex": 1},
        {"ifname": "veth1", "ifindex": 9, "master": "docker0"},
        {"ifname": "veth2", "ifindex": 7, "master": "docker0"},
    ]
    assert plugged(within, host) == [Port("veth1", "docker0", "02:42:ac:11:00:03")]
    assert plugged(within, host[:1]) == []


def test_a_container_on_the_hosts_network_is_refused(tmp_path):
    with pytest.raises(HostError, match="plugged into no bridge"):
        Engines(CleanupStack(Journal(tmp_path)), CLIENT).enclose(NAME, os.getpid(), "172.17.0.3")


class Container:
    """A network namespace on the engine's bridge, with a process in it."""

    def __init__(self, name, number):
        self.name, self.address = name, f"198.18.98.{number}"
        ip(
            f"netns add {name}",
            f"link add v{name} type veth peer name eth0 netns {name}",
            f"link set v{name} master engine0 up",
            f"-n {name} link set lo up",
            f"-n {name} addr add {self.address}/24 dev eth0",
            f"-n {name} link set eth0 up",
            f"-n {name} route add default via 198.18.98.1",
        )
        self.process = subprocess.Popen(["nsenter", f"--net=/run/netns/{name}", "cat"], stdin=subprocess.PIPE)

    def close(self):
        self.process.communicate()
        ip(f"netns del {self.name}")


#: An engine's own rules: what its containers begin is let out in the host's name, and what comes to them is let in.
OF_ENGINE = (
    ("nat", "POSTROUTING", "-s", "198.18.98.0/24", "!", "-o", "engine0", "-j", "MASQUERADE"),
    ("filter", "FORWARD", "-i", "engine0", "-j", "ACCEPT"),
    ("filter", "FORWARD", "-o", "engine0", "-j", "ACCEPT"),
)


@pytest.fixture
def engine():
    """tare's network, and beside it an engine's bridge with a container of tare's and one of the host's user."""
    network = bridge.Network(subnets.choose()[0])
    with contextlib.ExitStack() as ends, CleanupStack(Journal(state.journal())) as cleanup:
        network.create(cleanup)
        ip("link add engine0 type bridge", "addr add 198.18.98.1/24 dev engine0", "link set engine0 up")
        ends.callback(ip, "link del engine0")
        for table, *rule in OF_ENGINE:
            processes.run(["iptables", "-w", "-t", table, "-A", *rule]).require()
            ends.callback(processes.run, ["iptables", "-w", "-t", table, "-D", *rule])
        network.of_tare, network.of_user = Container("engtare", 3), Container("enguser", 4)
        ends.callback(network.of_tare.close)
        ends.callback(network.of_user.close)
        cleanup.own(removers.packet_rules("tare-enginex1"))
        yield network
    for program in ("iptables", "ip6tables"):
        assert "tare-" not in processes.run([program, "-w", "-S"]).require().text


def pinged(address):
    """Whether an address answers an echo request of the client's within a second."""
    deadline = time.monotonic() + 1
    with passage.socket_in(bridge.CLIENT_NAMESPACE, *ECHO) as echo:
        return first_reply(echo, address, lambda: time.monotonic() > deadline)


def enclosed(network):
    network.enclose("enginex1", network.of_tare.process.pid, network.of_tare.address)


@pytest.mark.host
@pytest.mark.own_host
def test_tares_container_reaches_the_client_alone_and_the_users_keeps_what_it_has(engine):
    with another_network() as lan, contextlib.ExitStack() as servers:
        for where, address in (("", "0.0.0.0"), ("tarelan", lan), (bridge.CLIENT_NAMESPACE, engine.client)):
            servers.enter_context(listening(where, address))
        everything = {"198.18.98.1", engine.host, "198.18.99.1", lan, engine.client}
        assert reached("engtare", *everything) == everything  # as engines leave it
        enclosed(engine)
        assert reached("engtare", *everything) == {engine.client}
        assert reached("enguser", *everything) == everything
        with listening("engtare", engine.of_tare.address):
            assert reached("", engine.of_tare.address) == {engine.of_tare.address}
            assert reached(bridge.CLIENT_NAMESPACE, engine.of_tare.address) == {engine.of_tare.address}
        with listening("enguser", engine.of_user.address):
            assert reached("", engine.of_user.address) == {engine.of_user.address}
            assert reached(bridge.CLIENT_NAMESPACE, engine.of_user.address) == set()
        removers.remove(removers.packet_rules("tare-enginex1"))
        assert reached("engtare", *everything) == everything


@pytest.mark.host
@pytest.mark.own_host
def test_the_client_has_a_way_to_its_bridge_and_to_enclosed_containers_alone(engine):
    everybody = (engine.host, engine.of_tare.address, engine.of_user.address, "198.18.98.1")
    assert [pinged(address) for address in everybody] == [True, False, False, False]
    enclosed(engine)
    assert [pinged(address) for address in everybody] == [True, True, False, False]
    with listening(bridge.CLIENT_NAMESPACE, engine.client):
        assert reached("engtare", engine.client) == {engine.client}


#: A TCP connection's first packet as a frame, in the name of whomever; waits for any answer.
FRAME = """
import socket, struct, sys, time
mac, to, source, address, port = sys.argv[1:6]
raw = lambda text: bytes.fromhex(text.replace(":", ""))
def sum16(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16: total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
a, b = socket.inet_aton(source), socket.inet_aton(address)
own = 1024 + time.time_ns() % 40_000
tcp = struct.pack("!HHLLBBHHH", own, int(port), 1, 0, 0x50, 2, 64240, 0, 0)
tcp = tcp[:16] + struct.pack("!H", sum16(a + b + struct.pack("!BBH", 0, 6, len(tcp)) + tcp)) + tcp[18:]
head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 7, 0, 64, 6, 0, a, b)
head = head[:10] + struct.pack("!H", sum16(head)) + head[12:]
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("eth0", 3))
s.settimeout(0.2)
until = time.time() + 2
while time.time() < until:
    s.send(raw(to) + raw(mac) + b"\\x08\\x00" + head + tcp)
    try:
        data = s.recv(2048)
    except TimeoutError:
        continue
    if data[12:14] == b"\\x08\\x06" and data[38:42] == a and data[20:22] == b"\\x00\\x01":  # asked who has the source
        s.send(data[6:12] + raw(mac) + b"\\x08\\x06" + data[14:20] + b"\\x00\\x02" + raw(mac) + a + data[22:32])
    if data[12:14] == b"\\x08\\x00" and data[26:30] == b and data[36:38] == struct.pack("!H", own) and data[47] == 0x12:
        print("answered")
        break
"""


def answered(container, mac, source, address):
    to = processes.run(["cat", "/sys/class/net/engine0/address"]).require().text.strip()
    argv = [*inside(container.name), sys.executable, "-P", "-c", FRAME, mac, to, source, address, str(PORT)]
    return processes.run(argv).require().text.strip() == "answered"


@pytest.mark.host
@pytest.mark.own_host
def test_frames_in_anothers_name_do_not_pass_either(engine):
    """With raw sockets, which Docker's containers have by default."""
    own = processes.run([*inside("engtare"), "cat", "/sys/class/net/eth0/address"]).require().text.strip()
    with listening("", "0.0.0.0"):
        for mac in (own, "02:00:00:00:00:77"):
            assert answered(engine.of_tare, mac, "198.18.98.77", "198.18.98.1"), mac
        enclosed(engine)
        for mac in (own, "02:00:00:00:00:77"):
            assert not answered(engine.of_tare, mac, "198.18.98.77", "198.18.98.1"), mac
        assert answered(engine.of_user, "02:00:00:00:00:78", "198.18.98.78", "198.18.98.1")


@pytest.mark.host
@pytest.mark.own_host
def test_by_ipv6_tares_container_reaches_nothing(engine):
    shown = json.loads(processes.run(["ip", "-j", "-6", "addr", "show", "dev", "engine0"]).require().text)
    [address] = [entry["local"] for entry in shown[0]["addr_info"]]
    with socket.create_server(("::", 0), family=socket.AF_INET6) as listener:
        port = listener.getsockname()[1]

        def connects(container):
            code = f"import socket; socket.create_connection(('{address}%eth0', {port}), timeout=2)"
            return processes.run([*inside(container.name), sys.executable, "-P", "-c", code]).code == 0

        deadline = time.monotonic() + 10
        while not (connects(engine.of_tare) and connects(engine.of_user)):  # addresses are doubtful ones for a second
            assert time.monotonic() < deadline
        enclosed(engine)
        assert not connects(engine.of_tare)
        assert connects(engine.of_user)


@pytest.mark.host
@pytest.mark.own_host
def test_a_datagram_is_taken_at_tares_ports_and_at_no_others(engine):
    with contextlib.ExitStack() as opened:
        ours, others = (opened.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in range(2))
        fence.bind_allowed(ours, engine.host)
        others.bind((engine.host, 0))
        enclosed(engine)
        code = "import socket, sys; [socket.socket(type=2).sendto(b'x', (sys.argv[1], int(p))) for p in sys.argv[2:]]"
        ports = [str(each.getsockname()[1]) for each in (ours, others)]
        processes.run([*inside("engtare"), sys.executable, "-P", "-c", code, engine.host, *ports]).require()
        assert select.select([ours, others], [], [], 1)[0] == [ours]
        assert select.select([others], [], [], 0.2)[0] == []
