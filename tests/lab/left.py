"""What tare leaves on a stock host, by an independent look before and after; runs in that host, as root.

    python3 tests/lab/left.py doctor|campaign|interrupt|kill PLATFORM... [-w WORKLOAD]...
    python3 tests/lab/left.py doctor,campaign PLATFORM...    # the look after the first is the one before the second

``interrupt`` ends a campaign by SIGINT once it has made something, ``kill`` by SIGKILL with `tare clean` after it.
Prints what is there that was not (or no longer is), and apart from it what an engine leaves by itself; exit code 1 if
anything of the first kind is there.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import host_state

#: Where programs that run as root leave files.
FOLDERS = ("/run", "/tmp", "/var", "/etc", "/root", "/home", "/dev", "/usr/local")
OUT = Path("/lab/out")
#: What a campaign is given, and where no workloads are named; the daemon that it needs runs already.
BLOCKS = ("--blocks", "2")
WORKLOADS = ("-w", "primes")
JOURNAL = Path("/var/lib/tare/journal")
#: In an entry of an instance's, its label.
INSTANCE = re.compile(r'["/-][0-9a-z]{4,8}x[0-9]+\b')
MADE_LIMIT_S, END_LIMIT_S, SETTLED_S = 900.0, 5400.0, 20.0
#: What the host itself, its engines and TARE_HOME have: the reason, and what it looks like. Seen on Debian 12 and 13.
EXCUSED = {
    "what systemd runs now and then": (
        r"process: [0-9]+ [0-9]+ (/usr)?/lib/systemd/",
        r"process: [0-9]+ [0-9]+ \((sd-|udev-worker\))",
    ),
    "docker keeps the image tare:HASH, and its daemon has files of its own": (
        r"(file|mount): /(var/lib|run)/(docker|containerd)\b",
    ),
    "podman keeps the image tare:HASH, and has its own state": (
        r"(file|mount): /(var/(lib|cache)|run)/(containers|libpod)\b",
    ),
    "podman makes these chains at its first network, and keeps them": (
        r"packet rule: .*(NETAVARK|nv_|netavark)",
        r"file: /run/lock/netavark\.lock ",
    ),
    "podman asks its runtimes about themselves (`podman info`), and they make their folders": (
        r"file: /run/(crun|runc) ",
    ),
    "runc switches all controllers on, from the hierarchy's root down": (r"group: /sys/fs/cgroup passes on ",),
    "nspawn's and liblxc's own folders": (r"file: /run/(systemd/nspawn|lxc/lock)\b",),
    "`ip netns`, as tare and engines use it, makes its folder a mount at its first use": (
        r"(file|mount): /run/netns ",
    ),
    "the kernel loads a module for the first link or packet rule of its kind, and keeps it; udev names its device": (
        r"module: (veth|tun|nft_\w+|xt_\w+)$",
        r"file: /dev/char/",
    ),
    "the kernel loads these when QEMU first opens /dev/vhost-net for a TAP": (
        r"module: (tap|vhost|vhost_iotlb|vhost_net)$",
    ),
    "iptables makes a table's own chain with the first rule in it, and keeps it empty": (
        r"packet rule: nft table ip filter chain INPUT( type filter hook input priority filter; policy accept;)?$",
    ),
    "Debian's libvirtd ends after two minutes in which nobody called": (
        r"process: [0-9]+ [0-9]+ /usr/sbin/libvirtd --timeout 120$",
        r"(unit: |group: /sys/fs/cgroup/system\.slice/)libvirtd(-admin|-ro)?\.(socket|service)\b",
        r"file: /run/(libvirtd\.pid|libvirt/\w+/driver\.pid) ",
    ),
    "Podman's proxy for DHCP ends after 30 s in which nobody called": (
        r"process: [0-9]+ [0-9]+ /usr/lib/podman/netavark dhcp-proxy -a 30$",
        r"(unit: |group: /sys/fs/cgroup/system\.slice/)netavark-dhcp-proxy\.(socket|service)\b",
    ),
    "Docker's bridge has an address of its link from its first container on": (r"(address: |route: dev )docker0 ",),
    "settings of links go and come with the bridge of an engine": (
        r"setting: /proc/sys/net/(ipv[46]|bridge)/(?!ip_forward)",
    ),
    "journal, sessions and devices of a host that goes on": (
        r"file: /(var/log|run/log|run/udev|run/user|dev/(vcs|pts|shm))\b",
        r"file: /run/systemd/(journal|units|transient|sessions|users|inhibit)\b",
        r"group: /sys/fs/cgroup/user\.slice",
        r"unit: (session-|user@|user-|init\.scope)",
    ),
    "services of the host by the clock": (
        r"file: /var/(lib/(systemd|logrotate|apt|dpkg|dhcp|misc)|cache|backups)\b",
        r"file: (/var)?/tmp/systemd-private",
        r"(unit: |group: /sys/fs/cgroup/system\.slice/)(systemd-|apt-|dpkg-|e2scrub|fstrim|logrotate|man-db)",
    ),
    "TARE_HOME has these on purpose (docs/architecture.md)": (
        r"file: /var/lib/tare/(images|bin|guest|bpf|tries|key|rootless|libvirt)\b",
        r"file: /var/lib/tare/(journal|work) ",
    ),
    "the lock of this host, which is a file's": (r"file: /run/tare( |/cgroup[0-9]+-net[0-9]+ )",),
    "the lab's own": (r"file: /(lab|usr/local/bin/tare)\b", ".*__pycache__"),
}
_VSOCK = r"(module: (vhost_vsock|vsock|vmw_vsock_virtio_transport_common)$|file: /dev/vsock )"
#: The same of a platform's engine, where that was used.
EXCUSED_WITH = {
    "incus": ("its daemon loads this when it starts", _VSOCK),
    "lxd": ("its daemon loads this when it starts", _VSOCK),
}
#: Names of tare's, which nothing above excuses.
OURS = re.compile(r"process: .*(tare-agent|tare\.cli|/var/lib/tare/)|[/ :]tare-[0-9a-z]+x[0-9]+|tare/client")
#: What `tare doctor` has in no engine's store afterwards: the root of its trial.
TRIALS = "/etc/tare-image "


def excused(what: str, platforms: Sequence[str]) -> re.Pattern[str]:
    """What the lines of a difference look like that are the host's and its engines' to answer for.

    ``what``, ``platforms``: as `look` has them; `tare doctor` without platforms tries them all.
    """
    used = platforms or EXCUSED_WITH
    patterns = [pattern for patterns in EXCUSED.values() for pattern in patterns]
    patterns += [pattern for platform, (_, pattern) in EXCUSED_WITH.items() if platform in used]
    never = OURS.pattern + (f"|{re.escape(TRIALS)}" if what == "doctor" else "")
    return re.compile(f"^(?!(?s:.*)(?:{never}))(?:{'|'.join(f'. {pattern}' for pattern in patterns)})")


def sorted_out(lines: Iterable[str], what: str, platforms: Sequence[str]) -> tuple[list[str], list[str]]:
    """Lines of a difference that are tare's to answer for, and those of the host and its engines."""
    pattern = excused(what, platforms)
    mine, theirs = [], []
    for line in lines:
        (theirs if pattern.search(line) else mine).append(line)
    return mine, theirs


def _campaign(platforms: Sequence[str], workloads: Sequence[str], file: Path) -> subprocess.Popen[bytes]:
    named = [word for platform in platforms for word in ("-p", platform)]
    return subprocess.Popen(["tare", "run", *named, *workloads, *BLOCKS, "-o", str(file)])


def _interrupted(campaign: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal once the campaign has something of an instance on the host, as its journal says."""
    deadline = time.monotonic() + MADE_LIMIT_S
    while campaign.poll() is None and not of_instances(JOURNAL):
        if time.monotonic() > deadline:
            raise SystemExit("the campaign made nothing")
        time.sleep(0.2)
    time.sleep(2)
    campaign.send_signal(number)
    campaign.wait(END_LIMIT_S)


def of_instances(journal: Path) -> list[str]:
    """The entries of a journal that are of instances, not of the campaign itself."""
    names = []
    for file in journal.glob("*.json"):
        with contextlib.suppress(OSError):  # removed meanwhile
            names += [file.name] if INSTANCE.search(file.read_text()) else []
    return names


def good_trials(file: Path) -> dict[str, int]:
    """How many trials of each platform ended well, of a campaign's file; a platform that was left out has none."""
    query = "SELECT platform, sum(status = 'ok') FROM trial JOIN arm ON arm = arm.id GROUP BY platform"
    with contextlib.closing(sqlite3.connect(file)) as store:
        return dict(store.execute(query).fetchall())


def look(
    what: str, platforms: Sequence[str], workloads: Sequence[str], before: host_state.State
) -> tuple[bool, host_state.State]:
    """Act, look again, print what is there; whether nothing of tare's is and all went well, and the last look.

    What is excused is not waited for: it would stay for all of the time, and each look takes seconds by emulation.
    """
    if what == "doctor":
        code = subprocess.run(["tare", "doctor", *platforms], check=False).returncode
    else:
        campaign = _campaign(platforms, workloads, OUT / f"{what}.tare")
        if what == "campaign":
            code = campaign.wait(END_LIMIT_S)
            good = good_trials(OUT / "campaign.tare")
            print(f"trials that ended well: {good}", flush=True)
            code = code or int(not all(good.get(platform) for platform in platforms))
        else:
            _interrupted(campaign, signal.SIGKILL if what == "kill" else signal.SIGINT)
            code = 0 if campaign.returncode in {-signal.SIGKILL, 130, -signal.SIGINT} else campaign.returncode or 1
        if what == "kill":
            code |= subprocess.run(["tare", "clean"], check=False).returncode
    mine, after = host_state.staying(before, SETTLED_S, excused(what, platforms).pattern, FOLDERS)
    theirs = sorted_out(host_state.difference(before, after), what, platforms)[1]
    print(
        json.dumps({"what": what, "code": code, "left": mine, "of the host and its engines": theirs}, indent=1),
        flush=True,
    )
    return not (code or mine), after


def main(whats: str, arguments: Sequence[str]) -> int:
    """Look, and then act and look again for each of them; 1 once something stays or goes wrong."""
    platforms = list(itertools.takewhile(lambda word: word != "-w", arguments))
    workloads = arguments[len(platforms) :] or WORKLOADS
    OUT.mkdir(parents=True, exist_ok=True)
    before = host_state.snapshot(FOLDERS)
    for action in whats.split(","):
        good, before = look(action, platforms, workloads, before)
        if not good:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
