"""Stock hosts: whole systems with systemd, AppArmor and Debian's own services, with tare in them as a user has it."""

import subprocess
import sys
from pathlib import Path

import left
import pytest

TARE = Path(sys.executable).with_name("tare")
#: What a stock host is; asked in one go, as each lab boots for minutes.
FACTS = (
    "cat /proc/1/comm; stat -f -c %T /sys/fs/cgroup; cat /sys/module/apparmor/parameters/enabled; cat /proc/self/cgroup"
)
#: An application of a user's own, whose image is the agent alone: it serves, and primes are found in it too. Docker
#: hashes and unpacks tare's image for two minutes by emulation, as `make host-test` has it do.
APPLICATION = """\
name = "tiny"
[source]
folder = "root"
[start]
command = ["/srv/tiny", "answer", "http", "{port}", "64", "{address}"]
[ready]
http = "/"
[load]
built_in = "http-get"
"""
#: Docker by systemd's driver, doctor before it; the host is compared with what it was after each. For `sh -e`, which
#: passes over what fails before a `&&`.
SHORT = """\
mkdir -p /lab/own/root/srv
cp "$TARE_AGENT" /lab/own/root/srv/tiny
echo "$1" >/lab/own/tiny.toml
python3 tests/lab/left.py doctor,campaign native docker -w app:/lab/own/tiny.toml -w primes
"""


def lab(*words):
    """`tare lab run` with these words, to its end."""
    return subprocess.run([TARE, "lab", "run", *words], capture_output=True, text=True, check=False)


@pytest.mark.lab
@pytest.mark.host
@pytest.mark.timeout(1800)
def test_docker_by_systemds_driver_is_weighed_on_a_minimal_stock_debian_and_leaves_nothing():
    script = f"{FACTS}\n{SHORT}\ntare clean"
    done = lab("--host", "debian12-minimal", "--memory", "2G", "--", "sh", "-ec", script, "sh", APPLICATION)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[:3] == ["systemd", "cgroup2fs", "Y"]


@pytest.mark.lab
@pytest.mark.host
@pytest.mark.timeout(10800)
@pytest.mark.parametrize("host", ["debian12", "debian13"])
@pytest.mark.parametrize("what", ["doctor", "campaign", "interrupt", "kill"])
def test_nothing_of_tares_stays_on_a_stock_host(host, what):
    platforms = () if what == "doctor" else ("native", "runc", "docker", "podman", "lxc")
    done = lab("--host", host, "--time-limit", "2h", "--", "python3", "tests/lab/left.py", what, *platforms)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.lab
@pytest.mark.host
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("host", ["debian12", "debian13"])
def test_a_stock_host_is_what_it_says(host):
    done = lab("--host", host, "--", "sh", "-c", f"{FACTS}; docker info --format '{{{{.CgroupDriver}}}}'; id -un 1000")
    lines = done.stdout.splitlines()
    assert lines[:3] == ["systemd", "cgroup2fs", "Y"], done
    assert "/user.slice/user-0.slice/session-" in lines[3], "a login session, as a user's command has"
    assert lines[4:] == ["systemd", "user"]


def test_trials_are_counted_by_platform_from_the_campaigns_file():
    released = max((Path(__file__).parents[1] / "store" / "released").glob("*.tare"))
    good = left.good_trials(released)
    assert good["native"] >= 4
    assert all(good.values())


def test_what_an_engine_leaves_is_told_from_what_tare_leaves():
    lines = [
        "+ packet rule: iptables-save nat -A POSTROUTING -j NETAVARK-HOSTPORT-MASQ",
        "+ unit: tare-0123456789abx1.slice loaded active active",
        "+ mount: /run/runsc/null-netns net:[4026532300] nsfs nsfs rw rw",
        "+ module: vhost_vsock",
        "+ file: /var/lib/docker/overlay2/abc drwx--x--- 0:0",
    ]
    mine, theirs = left.sorted_out(lines, "campaign", ["docker", "podman"])
    assert theirs == [lines[0], lines[4]]
    assert mine == [lines[1], lines[2], lines[3]]


def test_what_doctor_left_on_debian_13_is_told_from_what_engines_left():
    """As it was found there: an image of the trial in Docker's store, and the cache of Incus's client."""
    trials = [
        "+ file: /root/.cache/incus drwx------ 0:0",
        "+ file: /var/lib/docker/overlay2/bb9d39d2c766/diff/etc/tare-image -rw-r--r-- 0:0",
    ]
    engines = [
        "+ file: /dev/char/10:241 lrwxrwxrwx 0:0",
        "+ file: /run/crun drwx------ 0:0",
        "+ file: /run/lxc/lock drwxr-xr-x 0:0",
        "+ file: /run/netns drwxr-xr-x 0:0",
        "+ file: /run/systemd/nspawn/unix-export drwxr-xr-x 0:0",
        "+ file: /run/tare/cgroup4026531835-net4026531840 -rw------- 0:0",
        "+ file: /var/lib/docker/overlay2/l/5M7EMUOLOMDR2U4ASCLPHABI34 lrwxrwxrwx 0:0",
        "+ group: /sys/fs/cgroup passes on cpuset cpu io memory hugetlb pids rdma misc",
        "+ module: vhost_vsock",
        "+ module: xt_mac",
        "+ packet rule: nft table inet netavark chain FORWARD ct state invalid drop",
        "- process: 568 11376 /usr/sbin/libvirtd --timeout 120",
        "- process: 902 6995 (udev-worker)",
        "+ file: /dev/vsock crw-rw-rw- 0:0",
        "+ module: tap",
        "+ module: vhost_net",
        "+ module: vmw_vsock_virtio_transport_common",
        "+ packet rule: nft table ip filter chain INPUT",
        "+ packet rule: nft table ip filter chain INPUT type filter hook input priority filter; policy accept;",
        "- unit: libvirtd-ro.socket loaded active running",
    ]
    assert left.sorted_out([*trials, *engines], "doctor", []) == (trials, engines)
    assert left.sorted_out(["+ process: 9 9 /usr/sbin/libvirtd"], "doctor", []) == (
        ["+ process: 9 9 /usr/sbin/libvirtd"],
        [],
    )
    assert left.sorted_out(["+ file: /run/netns/tare-client -r--r--r-- 0:0"], "doctor", [])[1] == []


def test_a_campaign_is_ended_once_its_journal_has_something_of_an_instance(tmp_path):
    entry = '{"kind": "%s", "facts": {"path": "%s"}, "owner": {"boot": "588e39f8-0107-40ae-be85-9c349238c17d"}}'
    (tmp_path / "1-cgroup-a.json").write_text(entry % ("cgroup", "tare.slice/tare-client.slice"))
    (tmp_path / "2-folder-b.json").write_text(entry % ("folder", "/var/lib/tare/work/trial3fa9c1"))
    assert left.of_instances(tmp_path) == []
    (tmp_path / "3-cgroup-c.json").write_text(entry % ("cgroup", "tare.slice/tare-5882dx12.slice"))
    assert left.of_instances(tmp_path) == ["3-cgroup-c.json"]
