"""What a client on another machine is let in by, as rules; on a real host: tests/campaign/test_far_client.py."""

import json
from types import SimpleNamespace

import pytest

from tare.errors import HostError
from tare.host import processes
from tare.host.network import engines, outside
from tare.host.network.outside import Outside

CLIENT = Outside("198.18.0.2", "198.18.0.1", "eth0")


def test_the_ports_of_instances_are_closed_to_everybody_else():
    for rule, kind in zip(outside.gate_rules(CLIENT), ("tcp", "udp"), strict=True):
        words = " ".join(rule)
        assert words == (
            f"PREROUTING -t raw ! -i lo ! -s 198.18.0.2 -d 198.18.0.1 -p {kind} --dport 20100:22099"
            " -m comment --comment tare-client -j DROP"
        )


def test_a_call_is_led_to_the_instance_and_only_its_answers_come_back():
    leading = outside.leading_rules(CLIENT, 20_123, "10.77.0.10", 5201)
    assert [rule[-1] for rule in leading] == ["10.77.0.10:5201"] * 2
    assert all(rule[3:5] == ("-s", "198.18.0.2") for rule in leading)
    passing = outside.passing_rules(CLIENT, guarded=False)
    assert {rule[0] for rule in passing} == {"FORWARD"}
    assert ["ESTABLISHED" in rule for rule in passing] == [True, False], "an instance begins nothing"
    assert {rule[0] for rule in outside.passing_rules(CLIENT, guarded=True)} == {"INPUT", "FORWARD"}


def test_a_container_answers_the_client_and_begins_nothing_with_its_machine():
    forwarded, to_host = engines.leading("docker0", None, answers=True)
    assert forwarded[:5] == ("FORWARD", "-i", "docker0", "!", "-o")
    assert forwarded[8:11] == ("!", "--ctstate", "ESTABLISHED,RELATED")
    assert to_host == engines.leading("docker0", "10.77.0.2")[1]


@pytest.mark.parametrize(
    ("address", "route", "what"),
    [
        ("", None, "no IPv4 address"),
        ("fe80::1", None, "no IPv4 address"),
        ("198.18.0.2", [], "no way to the client"),
        ("127.0.0.1", [{"type": "local", "dev": "lo", "prefsrc": "127.0.0.1"}], "this host's own"),
    ],
)
def test_a_machine_that_cannot_call_is_one_line(monkeypatch, address, route, what):
    answer = SimpleNamespace(code=0, text=json.dumps(route))
    monkeypatch.setattr(processes, "run", lambda *_, **__: answer)
    with pytest.raises(HostError, match=what) as caught:
        outside.way_to(address)
    assert caught.value.fix


def test_the_way_is_the_routes(monkeypatch):
    route = [{"dst": "198.18.0.2", "dev": "eth0", "prefsrc": "198.18.0.1"}]
    monkeypatch.setattr(processes, "run", lambda *_, **__: SimpleNamespace(code=0, text=json.dumps(route)))
    assert outside.way_to("198.18.0.2") == CLIENT
