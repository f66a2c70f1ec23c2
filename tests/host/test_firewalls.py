"""Hosts with a packet filter of their own: what tare's bridge carries passes it, or it is said which chain refuses.

Each host is a network namespace with mounts of its own, and a filter as ufw, firewalld or nftables.conf set it.
"""

import sys
from pathlib import Path

import pytest

from tare.host import processes
from tare.host.network import fence, passage
from tare.host.network.fence import BRIDGE, FenceClient
from tare.host.resources import claims, removers
from tare.host.resources.claims import Bounds

DATA = Path(__file__).parent / "data"
CLIENT = FenceClient("10.77.0.2", "02:7a:0a:4d:00:02")


def listed(name):
    return (DATA / f"nft-{name}.json").read_text()


@pytest.mark.parametrize(
    ("name", "hook", "chains"),
    [
        ("nftables", "input", ["inet filter input"]),
        ("nftables", "forward", ["inet filter forward"]),
        ("nftables", "output", []),
        ("firewalld", "input", ["inet firewalld filter_INPUT"]),
        ("firewalld", "forward", ["inet firewalld filter_FORWARD"]),
        ("firewalld", "output", []),
        ("bridged", "input", []),
        ("bridged", "forward", []),  # that of IPv6 is no matter of the bridge's
    ],
)
def test_chains_that_refuse_are_found_and_iptables_own_is_not_one(name, hook, chains):
    assert '"table": "filter", "name": "INPUT"' in " ".join(listed(name).split())  # of `iptables -I INPUT ... -j DROP`
    assert passage.refusing(listed(name), hook, ("ip", "inet")) == chains


def test_a_chain_of_the_bridge_family_is_found_and_opened_for_the_bridges_ports():
    [chain] = passage.refusing(listed("bridged"), "forward", ("bridge",))
    opened = ['nft insert rule bridge filter forward iifname "tare*" accept']
    assert passage.opening(chain, "forward", firewalld=False) == opened


def test_what_is_forwarded_is_let_through_both_ways_and_what_comes_in_one_way():
    rule = "nft insert rule inet filter"
    assert passage.opening("inet filter forward", "forward", firewalld=True) == [
        f"{rule} forward iifname tare0 accept",
        f"{rule} forward oifname tare0 accept",
    ]
    assert passage.opening("inet filter input", "input", firewalld=True) == [f"{rule} input iifname tare0 accept"]


def test_a_host_without_rules_refuses_nothing():
    assert passage.refusing('{"nftables": [{"metainfo": {"version": "1.0.6"}}]}', "input", ("inet",)) == []
    assert passage.refusing("", "input", ("inet",)) == []


@pytest.mark.parametrize("by_mac", [True, False])
def test_where_input_is_guarded_the_bridge_gets_in_what_the_fence_leaves_open_and_no_more(by_mac):
    guarded = fence.rules(CLIENT, drops=True, guarded=True, by_mac=by_mac)
    plain = fence.rules(CLIENT, drops=True, by_mac=by_mac)
    assert guarded[: len(plain)] == plain  # what is refused to instances is so before anything is let in
    let_in = guarded[len(plain) :]
    assert {(rule[0], rule[-1]) for rule in let_in} == {("INPUT", "ACCEPT")}
    assert all(len(rule) > 5 for rule in let_in)  # none for all that comes in by the bridge
    assert ("mac" in let_in[-1]) == by_mac  # by the last it is found whether the filter knows MACs
    for rule in guarded:
        assert claims.fault(removers.iptables_rule(*rule), Bounds(Path("/var/lib/tare"))) is None


def test_firewalld_is_told_in_its_own_words(monkeypatch, tmp_path):
    for name, prints in (("nft", "cat $0.json"), ("firewall-cmd", "echo running")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{prints}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "nft.json").write_text(listed("firewalld"))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    refused = passage._refusal("input", "what is tried", ("inet",))
    assert refused.what == "the host's packet filter refuses what is tried (nftables: inet firewalld filter_INPUT)"
    assert refused.fix == f"firewall-cmd --zone=trusted --add-interface={BRIDGE}"
    monkeypatch.setattr(processes, "find", lambda program: program if program == "firewall-cmd" else None)
    without_nft = passage._refusal("input", "what is tried", ("inet",))
    assert str(without_nft) == f"the host's packet filter refuses what is tried (fix: {refused.fix})"


#: Makes and removes tare's network on a host of its own, and prints what `Network.create` returns, or the error.
_ON_A_HOST = """\
import sys
from pathlib import Path
from tare.errors import HostError
from tare.host import state
from tare.host.network import bridge, subnets
from tare.host.resources.journal import CleanupStack, Journal
if sys.argv[1:] == ["forwards"]:
    bridge.FORWARDING.write_text("0")
try:
    with CleanupStack(Journal(state.journal())) as cleanup:
        print("unfenced:", bridge.Network(subnets.choose()[0]).create(cleanup))
        if sys.argv[1:] == ["forwards"]:
            bridge.FORWARDING.write_text("1")  # as netavark does
except HostError as error:
    print(error)
print("forwarding:", bridge.FORWARDING.read_text().strip())
"""
_HOST = """\
setup=$1
shift
mount -t tmpfs none /run; mkdir /run/netns
mount -t sysfs none /sys
ip link set lo up
eval "$setup"
"$@"
ip -brief link
iptables -S
"""


def on_a_host(tmp_path, setup, *words):
    inner = ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-ec", _HOST, "sh"]
    argv = ["env", f"TARE_HOME={tmp_path / 'home'}", *inner, setup]
    done = processes.run([*argv, sys.executable, "-P", "-c", _ON_A_HOST, *words], cwd=DATA, time_limit_s=120)
    assert done.code == 0, done.stderr
    first, _, after = done.text.partition("forwarding: ")
    assert "tare" not in after  # neither a link nor a rule of tare's stays
    return first.strip(), after.split()[0]


@pytest.mark.host
def test_the_bridge_passes_a_filter_of_iptables_that_lets_nothing_in(tmp_path):
    assert on_a_host(tmp_path, "iptables-restore ufw.rules")[0] == "unfenced: None"


@pytest.mark.host
@pytest.mark.parametrize("name", ["nftables", "firewalld"])
def test_a_filter_of_nftables_own_is_said_with_the_rule_that_opens_it(tmp_path, name):
    setup = f"nft -f {name}.nft"
    refused, _ = on_a_host(tmp_path, setup)
    [chain] = passage.refusing(listed(name), "input", ("inet",))
    assert refused.startswith("the host's packet filter refuses what comes from tare's bridge to this host")
    opening = f"nft insert rule {chain} iifname {BRIDGE} accept"
    assert opening in refused
    [forward] = passage.refusing(listed(name), "forward", ("inet",))
    opened = [setup, opening, f"nft insert rule {forward} iifname {BRIDGE} accept"]
    assert on_a_host(tmp_path, "\n".join(opened))[0] == "unfenced: None"


@pytest.mark.host
@pytest.mark.parametrize(
    ("hook", "refuses"),
    [
        ("input", "what comes from tare's bridge to this host"),
        ("forward", "what goes from one port of tare's bridge to another"),
    ],
)
def test_a_filter_of_what_passes_bridges_is_said_with_the_rule_that_opens_it(tmp_path, hook, refuses):
    setup = f"""
    [ ! -e /proc/sys/net/bridge ] || echo 0 > /proc/sys/net/bridge/bridge-nf-call-iptables
    nft -f bridged.nft
    nft 'chain bridge filter forward {{ policy accept; }}'
    nft 'chain bridge filter {hook} {{ policy drop; }}'
    """
    refused, _ = on_a_host(tmp_path, setup)
    assert refused == (
        f"the host's packet filter refuses {refuses} (nftables: bridge filter {hook}) "
        f'(fix: nft insert rule bridge filter {hook} iifname "tare*" accept)'
    )
    opening = refused.partition("(fix: ")[2].removesuffix(")")
    assert on_a_host(tmp_path, f"{setup}\n{opening}")[0] == "unfenced: None"


@pytest.mark.host
def test_whether_the_host_forwards_packets_is_given_back(tmp_path):
    assert on_a_host(tmp_path, "true", "forwards")[1] == "0"


def test_a_filter_without_bpf_is_said(monkeypatch):
    """As iptables of a kernel without xt_bpf: it takes every rule but that one."""

    class Owner:
        def own(self, *_):
            pass

    def run(argv, **_):
        code = 2 if "bpf" in argv else 0
        return processes.Finished(tuple(argv), code, b"-P INPUT ACCEPT\n", b"", 1, False)

    monkeypatch.setattr(processes, "run", run)
    monkeypatch.setattr(processes, "find", lambda program: f"/usr/sbin/{program}")
    assert "modprobe xt_bpf" in fence.filter_packets(Owner(), CLIENT)
