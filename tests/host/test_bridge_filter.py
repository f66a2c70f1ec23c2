"""br_netfilter is off while tare measures, unless bridges of others may need it."""

import pytest

from tare.host.kernel import bridged
from tare.host.network import bridge_filter
from tare.host.resources.journal import CleanupStack, Journal

#: As `ip -j link show type bridge_slave` (iproute2 6.1) prints it, some fields left out.
PORTS = [
    {"ifindex": 7, "link_index": 6, "ifname": "tare1a2b3", "flags": ["UP"], "master": "tare0", "operstate": "UP"},
    {"ifindex": 9, "ifname": "veth7d3a", "flags": ["UP"], "master": "docker0", "operstate": "UP"},
    {"ifindex": 11, "ifname": "cni3f", "flags": ["UP"], "master": "cni0", "operstate": "UP"},
]


@pytest.fixture
def files(monkeypatch, tmp_path):
    files = tuple(tmp_path / kind for kind in ("iptables", "ip6tables"))
    for file in files:
        file.write_text("1\n")
    monkeypatch.setattr(bridged, "FILES", files)
    monkeypatch.setattr(bridge_filter, "_ports", lambda: PORTS[:1])
    monkeypatch.setattr(bridge_filter.removers, "setting", lambda file, *_: bridge_filter.removers.file(file))
    monkeypatch.setattr(CleanupStack, "own", lambda *_: None)
    return files


def test_bridges_besides_tares_that_have_ports_are_named():
    assert bridge_filter.others_bridges(PORTS) == ["cni0", "docker0"]
    assert bridge_filter.others_bridges([*PORTS[:1], {}]) == []


def test_it_is_switched_off_where_only_tares_bridge_has_ports(files, tmp_path):
    assert bridge_filter.switch_off(CleanupStack(Journal(tmp_path / "journal"))) == ""
    assert [file.read_text() for file in files] == ["0", "0"]
    assert bridged.switched_on() == []


def test_it_stays_where_others_may_need_it_and_that_is_said(files, monkeypatch, tmp_path):
    monkeypatch.setattr(bridge_filter, "_ports", lambda: PORTS)
    kept = bridge_filter.switch_off(CleanupStack(Journal(tmp_path / "journal")))
    assert kept.endswith("(br_netfilter): cni0, docker0 may need that")
    assert bridged.switched_on() == list(files)


def test_where_it_is_not_loaded_nothing_is_asked(monkeypatch, tmp_path):
    monkeypatch.setattr(bridged, "FILES", (tmp_path / "none",))
    monkeypatch.setattr(bridge_filter, "_ports", lambda: pytest.fail("asked"))
    assert bridge_filter.switch_off(CleanupStack(Journal(tmp_path / "journal"))) == ""
