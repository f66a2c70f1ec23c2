"""br_netfilter is off for tare's bridge while tare measures, and as it was for every other one."""

import subprocess
import sys
from pathlib import Path

import pytest

from tare.host.kernel import bridged, settings
from tare.host.network import bridge_filter
from tare.host.resources import removers
from tare.host.resources.claims import Bounds, fault
from tare.host.resources.journal import CleanupStack, Journal

#: As `ip -j link show type bridge` (iproute2 6.1) prints it, some fields left out.
BRIDGES = [
    {"ifindex": 6, "ifname": "tare0", "flags": ["BROADCAST", "UP"], "operstate": "UP"},
    {"ifindex": 3, "ifname": "docker0", "flags": ["BROADCAST", "UP"], "operstate": "DOWN"},
    {"ifindex": 4, "ifname": "cni0", "flags": ["BROADCAST", "UP"], "operstate": "UP"},
]


@pytest.fixture
def host(monkeypatch, tmp_path):
    """Files as a host has them, and what was changed of them, in order."""
    files = tuple(tmp_path / f"bridge-nf-call-{kind}" for kind in ("iptables", "ip6tables"))
    for file in files:
        file.write_text("1\n")
    for name in ("docker0", "cni0"):
        (tmp_path / name / "bridge").mkdir(parents=True)
        for kind in ("iptables", "ip6tables"):
            (tmp_path / name / "bridge" / f"nf_call_{kind}").write_text("0\n")
    changed = []
    monkeypatch.setattr(bridged, "FILES", files)
    monkeypatch.setattr(bridge_filter, "_LINKS", tmp_path)
    monkeypatch.setattr(bridge_filter, "_bridges", lambda: BRIDGES)
    monkeypatch.setattr(CleanupStack, "own", lambda _, *resources: changed.extend(resources))
    return tmp_path, changed


def test_bridges_besides_tares_are_named():
    assert bridge_filter.others_bridges(BRIDGES) == ["cni0", "docker0"]
    assert bridge_filter.others_bridges([BRIDGES[0], {}]) == []


def test_the_hosts_setting_goes_and_every_other_bridge_gets_it_as_its_own(host):
    folder, changed = host
    assert bridge_filter.switch_off(CleanupStack(Journal(folder / "journal"))) == ""
    assert bridged.switched_on() == []
    own = [
        folder / name / "bridge" / f"nf_call_{kind}"
        for name in ("cni0", "docker0")
        for kind in ("iptables", "ip6tables")
    ]
    assert [settings.read(file) for file in own] == ["1"] * 4
    assert [Path(resource.facts["path"]).name for resource in changed[-2:]] == [file.name for file in bridged.FILES]


def test_where_a_bridge_cannot_have_it_as_its_own_nothing_is_changed_and_that_is_said(host):
    folder, changed = host
    missing = folder / "docker0" / "bridge" / "nf_call_iptables"
    missing.unlink()
    assert bridge_filter.switch_off(CleanupStack(Journal(folder / "journal"))).endswith(f"{missing} is not there")
    assert changed == []
    assert len(bridged.switched_on()) == 2


def test_where_it_is_not_loaded_nothing_is_changed(host, monkeypatch):
    folder, changed = host
    monkeypatch.setattr(bridged, "FILES", (folder / "none",))
    assert bridge_filter.switch_off(CleanupStack(Journal(folder / "journal"))) == ""
    assert changed == []


@pytest.mark.parametrize(
    "path", ["/proc/sys/net/bridge/bridge-nf-call-arptables", "/sys/class/net/docker0/bridge/nf_call_iptables"]
)
def test_what_is_changed_may_be_given_back(path):
    assert fault(removers.setting(Path(path), "1", "0"), Bounds(Path("/home/tare"))) is None


#: In a network namespace with a /sys of its own: before, meanwhile and after, of the host and of another's bridge.
SCRIPT = """\
from pathlib import Path
from tare.host.kernel import bridged, settings
from tare.host.network import bridge_filter
from tare.host.resources.journal import CleanupStack, Journal
own = Path("/sys/class/net/other0/bridge/nf_call_iptables")
def show():
    print(settings.read(bridged.FILES[0]), settings.read(own))
show()
with CleanupStack(Journal()) as cleanup:
    assert bridge_filter.switch_off(cleanup) == ""
    show()
show()
"""


@pytest.mark.host
@pytest.mark.own_host
def test_on_a_real_host_all_is_as_it_was_afterwards(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    script = SCRIPT.replace("Journal()", f"Journal(Path({str(tmp_path / 'journal')!r}))")
    begin = (
        "mount -t sysfs none /sys; modprobe br_netfilter 2>/dev/null || :; ip link add other0 type bridge;"
        ' ip link add tare0 type bridge; echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables; exec "$@"'
    )
    argv = ["unshare", "--net", "--mount", "sh", "-ec", begin, "sh", sys.executable, "-P", "-c", script]
    done = subprocess.run(
        argv, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TARE_HOME": str(home)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["1 0", "0 1", "1 0"], done.stderr
