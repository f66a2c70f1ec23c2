"""What a program at the client is started with, and what it is left with: it reads what hostile servers answer."""

import dataclasses
import signal
import time
from pathlib import Path

import pytest

from tare.campaign.instances import client
from tare.host.filesystems import roots

#: Prints what the process is in and has, a line each.
LOOK = """\
id -u; id -g; id -un
grep -E '^(Groups|NoNewPrivs|Cap...):' /proc/self/status
echo processes $(ls /proc | grep -c '^[0-9]') $$
echo dev $(ls /dev)
for kind in pid ipc mnt net; do readlink /proc/self/ns/$kind; done
env
"""


def test_a_load_has_nothing_of_tares_environment(monkeypatch):
    started = {}
    monkeypatch.setattr(client.processes, "start", lambda argv, **how: started.update(how, argv=argv))
    for name in ("http_proxy", "HTTPS_PROXY", "no_proxy", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    client.HostClient(Path("/nowhere"), ()).start(["curl", "http://10.77.0.10/"], env={"A": "b"})
    assert started["env"] == client.ENVIRONMENT
    assert started["argv"][-5:] == ["--env", "A=b", "--", "curl", "http://10.77.0.10/"]


@pytest.mark.host
@pytest.mark.own_host
def test_a_program_at_the_client_has_no_rights_no_devices_and_no_others_processes(prepared):
    _, peer = prepared
    done = peer.run(["sh", "-c", LOOK], time_limit_s=30)
    lines = done.text.splitlines()
    nobody = str(roots.client_user())
    assert lines[:4] == [nobody, nobody, "tare-client", "Groups:\t "]
    status = dict(line.split(":\t") for line in lines[4:10])
    assert status == {**{f"Cap{kind}": 16 * "0" for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")}, "NoNewPrivs": "1"}
    processes_seen, own_number = map(int, lines[10].removeprefix("processes ").split())
    assert own_number == 1
    assert processes_seen <= 4  # the shell, its subshell, ls and grep
    assert set(lines[11].split()[1:]) == {*roots.HARMLESS_DEVICES, "fd", "stdin", "stdout", "stderr", "shm"}
    for kind, namespace in zip(("pid", "ipc", "mnt", "net"), lines[12:16], strict=True):
        assert namespace != str(Path(f"/proc/self/ns/{kind}").readlink())
    variables = {line.split("=")[0] for line in lines[16:]}
    assert variables <= {"PATH", "HOME", "LANG", "PWD", "OLDPWD", "SHLVL", "_"}


@pytest.mark.host
@pytest.mark.own_host
def test_ping_needs_no_right_in_the_clients_network_and_keeps_one_in_the_hosts(prepared):
    launcher, peer = prepared
    echo = ["ping", "-c", "1", "-W", "5", str(launcher.network.host)]
    assert "--keep" not in peer._command(echo, "/", {})
    for where in (peer, dataclasses.replace(peer, namespace=None)):
        done = where.run(echo, time_limit_s=30)
        assert done.code == 0, done.message
    raw = ["perl", "-MSocket", "-e", "socket(my $s, PF_INET, SOCK_RAW, 1) or exit 7"]
    assert peer.run(raw, time_limit_s=30).code == 7


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.parametrize(
    "attempt",
    [
        "unshare -Ur true",
        "mknod /tmp/sda b 8 0",
        "chroot / true",
        "mount -t tmpfs none /data",
        "kill -9 -1; kill -0 2",
        "cat /etc/shadow",
        "su -c true root </dev/null",
    ],
)
def test_what_takes_the_client_over_gets_no_further(prepared, attempt):
    _, peer = prepared
    assert peer.run(["sh", "-c", attempt], time_limit_s=30).code != 0


@pytest.mark.host
@pytest.mark.own_host
def test_a_program_at_the_client_ends_as_it_does_elsewhere(prepared):
    _, peer = prepared
    assert peer.run(["sh", "-c", "exit 7"], time_limit_s=30).code == 7
    assert peer.run(["perl", "-e", "$x = unpack 'p', pack 'J', 1"], time_limit_s=30).code == -signal.SIGSEGV
    flees = "setsid sleep 1000 & while ! grep -q sleep /proc/[0-9]*/comm; do :; done; echo there; wait"
    with peer.serving(["sh", "-c", flees]) as server:
        assert server.stdout.read(5) == b"there"
    deadline = time.monotonic() + 10
    while peer.group.pids() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert peer.group.pids() == []
