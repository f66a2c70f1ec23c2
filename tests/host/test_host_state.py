"""The independent look at the host sees what is made, of each kind, and that it is gone again."""

import contextlib
import os
import subprocess
from pathlib import Path

import pytest

import host_state
from host_state import difference, settled, snapshot


def test_files_and_processes_that_come_and_go(tmp_path):
    folders = [str(tmp_path)]
    before = snapshot(folders)
    file = tmp_path / "below" / "left"
    file.parent.mkdir()
    file.touch(mode=0o600)
    # This may be one of the quick tests beside host tests, whose processes are looked away from (scripts/test).
    unmarked = {name: value for name, value in os.environ.items() if name != "TARE_BESIDE"}
    with subprocess.Popen(["sleep", "61.5"], env=unmarked) as process:
        lines = difference(before, snapshot(folders))
        assert f"+ file: {file} -rw------- {os.getuid()}:{os.getgid()}" in lines
        assert [line for line in lines if line.startswith(f"+ process: {process.pid} ") and line.endswith("sleep 61.5")]
        process.kill()
    file.unlink()
    file.parent.rmdir()
    assert not [line for line in settled(before, 5, folders=folders) if "left" in line or "sleep 61.5" in line]


def test_processes_of_what_runs_beside_are_looked_away_from(tmp_path):
    before = snapshot([str(tmp_path)])
    with subprocess.Popen(["sleep", "61.5"], env={**os.environ, "TARE_BESIDE": "1"}) as process:
        lines = difference(before, snapshot([str(tmp_path)]))
        process.kill()
    assert not [line for line in lines if f"process: {process.pid} " in line]


def test_what_stays_is_waited_for_and_what_is_ignored_is_not(tmp_path):
    folders = [str(tmp_path)]
    before = snapshot(folders)
    (tmp_path / "left").touch()
    assert [line for line in settled(before, 0.3, folders=folders) if str(tmp_path) in line]
    assert not [line for line in settled(before, 0.3, str(tmp_path), folders) if str(tmp_path) in line]


def test_two_mounts_at_one_place_are_two():
    assert host_state._numbered(["a", "a", "b"]) == {"a", "a (2)", "b"}


def test_rules_of_nft_are_known_by_the_table_and_chain_that_they_are_in():
    listing = ["table inet netavark {", "\tchain FORWARD {", "\t\tct state invalid drop", "\t}", "}"]
    rules = list(host_state.nft_rules(listing))
    assert rules[-1] == "nft table inet netavark chain FORWARD ct state invalid drop"
    assert len(rules) == 3


def test_a_loop_device_of_another_host_beside_is_not_this_hosts():
    files = ("/var/lib/tare/work/d", "/var/lib/tare-hosts/one/tare/work/d", "/var/lib/tare-hosts/two/tare/d", "/root/d")
    real, beside = "/var/lib/tare", "/var/lib/tare-hosts/one/tare"
    assert [host_state.of_another_host(file, real) for file in files] == [False, True, True, False]
    assert [host_state.of_another_host(file, beside) for file in files] == [True, False, True, False]


@pytest.mark.parametrize("fails", [0, 1, host_state.SYSTEMD_ATTEMPTS])
def test_systemd_is_asked_again_and_a_look_without_its_answer_is_none(tmp_path, monkeypatch, fails):
    tries = tmp_path / "tries"
    program = tmp_path / "systemctl"
    failed = (
        f"[ $(wc -l < {tries}) -gt {fails} ] || {{ echo 'Failed to list units: Connection timed out' >&2; exit 1; }}"
    )
    program.write_text(f"#!/bin/sh\necho $* >> {tries}\n{failed}\necho a.service enabled\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(host_state.time, "sleep", lambda _: None)
    if fails == host_state.SYSTEMD_ATTEMPTS:
        with pytest.raises(RuntimeError, match=r"list-unit-files.*exit code 1.*timed out"):
            host_state._systemctl("list-unit-files")
    else:
        assert host_state._systemctl("list-unit-files") == ["a.service enabled"]
        assert len(tries.read_text().splitlines()) == fails + 1


@contextlib.contextmanager
def made(make, undo):
    subprocess.run(make, check=True)
    try:
        yield
    finally:
        subprocess.run(undo, check=True)


@pytest.mark.host
@pytest.mark.parametrize(
    ("aspect", "make", "undo", "part"),
    [
        ("link", "ip link add hs0 type bridge", "ip link del hs0", "hs0 bridge"),
        ("address", "ip addr add 192.0.2.7/32 dev lo", "ip addr del 192.0.2.7/32 dev lo", "192.0.2.7/32"),
        ("route", "ip route add 203.0.113.0/24 dev lo", "ip route del 203.0.113.0/24 dev lo", "203.0.113.0/24"),
        ("packet rule", "iptables -w -A INPUT -s 192.0.2.7", "iptables -w -D INPUT -s 192.0.2.7", "192.0.2.7"),
        ("mount", "mount -t tmpfs none {tmp}", "umount {tmp}", "{tmp} / tmpfs"),
        ("file", "ip netns add hs", "ip netns del hs", "/run/netns/hs"),
        ("group", "mkdir {group}", "rmdir {group}", "{group}"),
        ("setting", "sysctl -qw net.ipv4.ip_default_ttl=63", "sysctl -qw net.ipv4.ip_default_ttl=64", "ttl = 63"),
    ],
)
def test_each_kind_is_seen(tmp_path, aspect, make, undo, part):
    group = next(
        point
        for _, point, kind, *_ in map(str.split, Path("/proc/self/mounts").read_text().splitlines())
        if kind in {"cgroup", "cgroup2"}
    )
    words = {"tmp": str(tmp_path), "group": f"{group}/hs"}
    with made(["true"], ["true"]):
        subprocess.run(["iptables", "-w", "-S"], stdout=subprocess.DEVNULL, check=True)  # makes its chains
        (Path("/run/netns")).mkdir(exist_ok=True)
    before = snapshot(["/run"])
    with made(make.format(**words).split(), undo.format(**words).split()):
        after = snapshot(["/run"])
    lines = [line for line in difference(before, after) if line.startswith(f"+ {aspect}: ")]
    assert any(part.format(**words) in line for line in lines), lines
    gone = settled(before, 5, folders=["/run"])
    assert not [line for line in gone if part.format(**words) in line]


@pytest.mark.host
@pytest.mark.parametrize("beside", [True, False])
def test_what_the_quick_tests_start_is_not_looked_at(beside):
    env = dict([host_state.BESIDE.decode().split("=")]) if beside else {}
    before = snapshot([])
    with subprocess.Popen(["sleep", "61.6"], env=env) as process:
        lines = difference(before, snapshot([]))
        process.kill()
    assert any("sleep 61.6" in line for line in lines) != beside


@pytest.mark.host
def test_hosts_of_their_own_beside_this_one_are_not_looked_at():
    """What scripts/own-host runs has groups below one of its own, and its processes are in these."""
    root = next(Path(line.split()[1]) for line in Path("/proc/mounts").read_text().splitlines() if " cgroup" in line)
    group = root / f"{host_state.OTHER_HOSTS}hs"
    before = snapshot([])
    with made(["mkdir", "-p", str(group / "below")], ["rmdir", str(group / "below"), str(group)]):
        for file in ("cpuset.cpus", "cpuset.mems"):  # a v1 cpuset begins empty, and takes no process then
            if (root / file).exists():
                (group / file).write_text((root / file).read_text())
        with subprocess.Popen(["sleep", "61.7"]) as process:
            (group / "cgroup.procs").write_text(str(process.pid))
            lines = difference(before, snapshot([]))
            process.kill()
    assert not [line for line in lines if str(group) in line or "sleep 61.7" in line]
