"""What is on a host, read from the kernel and its files by nothing of tare's: an independent look before and after.

`snapshot` gives a set of lines by aspect; `difference` what one has and the other has not; `settled` waits for what the
kernel does in the background. As a program it keeps a snapshot in a file, or compares the host with one::

    python tests/host_state.py save before.json
    python tests/host_state.py compare before.json    # prints the difference; exit code 1 if there is any
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

#: Lines by aspect of the host.
State = dict[str, set[str]]

#: Folders in which a program that runs as root leaves files. Of those in `SHALLOW` only the first level is read.
FOLDERS = tuple(
    os.environ.get("TARE_HOME", "/var/lib/tare") if folder == "TARE_HOME" else folder
    for folder in (
        "TARE_HOME", "/run", "/tmp", "/var/tmp", "/dev", "/etc", "/var/lib/lxc", "/var/lib/lxcfs", "/var/lib/lxd",
        "/var/lib/incus", "/var/lib/machines", "/var/lib/libvirt", "/var/log/libvirt", "/var/log/lxd", "/var/log/incus",
        "/var/cache/lxc",
    )
)  # fmt: skip
#: Kept on purpose below TARE_HOME (docs/architecture.md), each of them one line.
SHALLOW = frozenset({"images", "bin", "lab", "rootless"})
#: How the control groups of hosts of their own begin (scripts/own-host), which run beside this one.
OTHER_HOSTS = "tare-host-"
#: In the environment of what runs beside the host tests, and of all that it starts (scripts/test).
BESIDE = b"TARE_BESIDE=1"
#: How long systemd is waited for, and how often it is asked.
SYSTEMD_LIMIT_S, SYSTEMD_ATTEMPTS = 300, 3
#: Kernel settings that change by themselves.
RESTLESS = re.compile(
    r"/proc/sys/(kernel/(random/|ns_last_pid|pty/nr|perf_|tainted|sched_domain|cap_last_cap)"
    r"|fs/(dentry-state|file-nr|inode-nr|inode-state|aio-nr|quota/|mqueue/|verity/|binfmt_misc/)"
    r"|net/netfilter/nf_conntrack_count|net/ipv[46]/(conf|neigh)/|net/mptcp/|vm/(stat_refresh|user_reserve|admin_reserve))"
)
#: Other settings than sysctls that a measurement may have changed.
SETTINGS = (
    "sys/kernel/mm/transparent_hugepage/*", "sys/kernel/mm/ksm/run", "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/smt/control", "sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
    "sys/devices/system/cpu/intel_pstate/no_turbo", "sys/devices/virtual/workqueue/cpumask",
    "sys/bus/workqueue/devices/writeback/cpumask", "proc/irq/*/smp_affinity_list", "proc/irq/default_smp_affinity",
    "sys/block/*/queue/scheduler",
)  # fmt: skip


def snapshot(folders: Sequence[str] = FOLDERS) -> State:
    """What is on this host now, as this process's namespaces show it."""
    looks: Mapping[str, Callable[[], Iterable[str]]] = {
        "mount": _mounts,
        "link": _links,
        "address": _addresses,
        "route": _routes,
        "neighbour": _neighbours,
        "packet rule": _packet_rules,
        "group": _control_groups,
        "process": _processes,
        "file": lambda: (line for folder in folders for line in _files(Path(folder))),
        "loop device": _loop_devices,
        "module": _modules,
        "setting": _settings,
        "ipc": _ipc,
        "unit": _units,
        "user": _users,
    }
    return {aspect: _numbered(look()) for aspect, look in looks.items()}


def difference(before: State, after: State) -> list[str]:
    """One readable line for all that was not there before (``+``) or no longer is (``-``)."""
    lines = []
    for aspect in sorted(before.keys() | after.keys()):
        then, now = before.get(aspect, set()), after.get(aspect, set())
        lines += [f"+ {aspect}: {line}" for line in sorted(now - then)]
        lines += [f"- {aspect}: {line}" for line in sorted(then - now)]
    return lines


def settled(before: State, patience_s: float = 10.0, ignored: str = "", folders: Sequence[str] = FOLDERS) -> list[str]:
    """The difference that stays for all of ``patience_s``, which is empty as soon as one look finds none.

    The kernel takes down namespaces, their links and their mounts in the background. ``ignored``: a regular
    expression; lines that it is found in do not count.
    """
    return staying(before, patience_s, ignored, folders)[0]


def staying(before: State, patience_s: float, ignored: str, folders: Sequence[str]) -> tuple[list[str], State]:
    """As `settled` has it, and the last look."""
    deadline = time.monotonic() + patience_s
    stays: set[str] | None = None
    while True:
        last = snapshot(folders)
        changes = {line for line in difference(before, last) if not (ignored and re.search(ignored, line))}
        # A thing of somebody else's that comes and goes is not what stays.
        stays = changes if stays is None else stays & changes
        if not stays or time.monotonic() > deadline:
            return sorted(stays), last
        time.sleep(0.25)


def _numbered(lines: Iterable[str]) -> set[str]:
    """Two of the same (mounts over mounts) are two lines."""
    counts = collections.Counter(lines)
    return {line if nth == 1 else f"{line} ({nth})" for line, count in counts.items() for nth in range(1, count + 1)}


def _mounts() -> Iterator[str]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        _, _, _, root, point, options, *propagation = before.split()
        kind, source, superblock = after.split(maxsplit=2)
        groups = " ".join(word.split(":")[0] for word in propagation)  # the groups' numbers are the kernel's
        yield f"{point} {root} {kind} {source} {options} {superblock} {groups}".rstrip()


def _links() -> Iterator[str]:
    for link in _json("ip", "-j", "-d", "link"):
        kind = link.get("linkinfo", {}).get("info_kind", link.get("link_type"))
        flags = ",".join(sorted({"UP", "PROMISC", "NOARP"} & set(link["flags"])))
        yield f"{link['ifname']} {kind} {link.get('master', '')} {link['mtu']} {flags}"


def _addresses() -> Iterator[str]:
    for link in _json("ip", "-j", "addr"):
        for address in link["addr_info"]:
            yield f"{link['ifname']} {address.get('local')}/{address['prefixlen']}"


def _routes() -> Iterator[str]:
    for family in ("-4", "-6"):
        for words in (("route", "show", "table", "all"), ("rule",)):
            for route in _json("ip", "-j", family, *words):
                # One that a router told of counts its seconds down.
                kept = {name: value for name, value in route.items() if name not in {"flags", "expires"}}
                yield " ".join(f"{name} {value}" for name, value in sorted(kept.items()))


def _neighbours() -> Iterator[str]:
    for neighbour in _json("ip", "-j", "neigh", "show", "nud", "permanent"):
        yield f"{neighbour['dst']} {neighbour.get('lladdr', '')} {neighbour['dev']}"


def _packet_rules() -> Iterator[str]:
    """Rules, chains that were made, and policies other than the kernel's own."""
    for program in (
        "iptables-save",
        "iptables-legacy-save",
        "ip6tables-save",
        "ip6tables-legacy-save",
        "arptables-save",
    ):
        table = ""
        for line in _lines(program):
            if line.startswith("*"):
                table = line[1:]
            elif line.startswith("-A"):
                yield f"{program} {table} {line}"
            elif line.startswith(":") and " ACCEPT" not in line:
                yield f"{program} {table} {' '.join(line.split()[:2])}"
    yield from nft_rules(_lines("nft", "list", "ruleset"))
    for link in _json("tc", "-j", "qdisc"):
        if link.get("kind") not in {"noqueue", "pfifo_fast", "fq_codel", "mq"}:
            yield f"tc {link.get('dev')} {link.get('kind')}"


def nft_rules(listing: Sequence[str]) -> Iterator[str]:
    """Each line of `nft list ruleset` with the tables, chains and sets that it is in before it, so that it is known."""
    within: list[str] = []
    for line in listing:
        words = re.sub(r"counter packets \d+ bytes \d+", "counter", line.strip())
        if words == "}" and within:
            within.pop()
        elif words and not words.startswith("#"):
            yield " ".join(["nft", *within, words.removesuffix("{").strip()])
            if words.endswith("{"):
                within.append(words.removesuffix("{").strip())


def _control_groups() -> Iterator[str]:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, point, kind, *_ = line.split()
        if kind not in {"cgroup", "cgroup2"}:
            continue
        for folder, below, _ in os.walk(point):
            below[:] = sorted(name for name in below if not name.startswith(OTHER_HOSTS))
            yield folder
        with contextlib.suppress(OSError):
            yield f"{point} passes on {Path(point, 'cgroup.subtree_control').read_text().strip()}"


def _processes() -> Iterator[str]:
    """All that run but the kernel's threads and this process; the dead that nobody has waited for hold nothing."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            kernels = int(fields[6]) & 0x00200000  # PF_KTHREAD
            others = f"/{OTHER_HOSTS}" in (folder / "cgroup").read_text()
            with contextlib.suppress(PermissionError):  # then it is looked at
                others |= BESIDE in (folder / "environ").read_bytes()
            if fields[0] not in "ZX" and not kernels and not others and int(folder.name) != os.getpid():
                yield f"{folder.name} {fields[19]} {words[:300]}"


def _files(top: Path) -> Iterator[str]:
    """Names, kinds, modes and owners; of /etc, sizes and times as well. Filesystems of the kernel's are left out."""
    waiting, kernels = [top], {Path(place).stat().st_dev for place in ("/proc", "/sys")}
    settings = top == Path("/etc")
    while waiting:
        folder = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    yield _file_line(entry.path, status, exact=settings)
                    kept = folder == top and entry.name in SHALLOW
                    if stat.S_ISDIR(status.st_mode) and not kept and status.st_dev not in kernels:
                        waiting.append(Path(entry.path))
                    elif kept:
                        yield from sorted(str(below) for below in Path(entry.path).iterdir())


def _file_line(path: str, status: os.stat_result, *, exact: bool) -> str:
    line = f"{path} {stat.filemode(status.st_mode)} {status.st_uid}:{status.st_gid}"
    if exact and not stat.S_ISDIR(status.st_mode):
        line += f" {status.st_size} bytes of {status.st_mtime_ns}"
    return line


def _loop_devices() -> Iterator[str]:
    for device in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            file = device.read_text().strip()
            if not of_another_host(file, os.environ.get("TARE_HOME", "/var/lib/tare")):
                yield f"{device.parent.parent.name} {file}"


def of_another_host(file: str, home: str) -> bool:
    """Whether a file is of a host of its own beside this one, or there of any other host (scripts/own-host).

    Loop devices are the kernel's, and seen on all of them. ``home``: this host's TARE_HOME.
    """
    match = re.fullmatch(r"((.+)-hosts/[^/]+)/tare", home)
    folder, real = match.groups() if match else (home, home)
    return file.startswith((f"{real}/", f"{real}-hosts/")) and not file.startswith(f"{folder}/")


def _modules() -> Iterator[str]:
    with contextlib.suppress(OSError):
        yield from (line.split()[0] for line in Path("/proc/modules").read_text().splitlines())


def _settings() -> Iterator[str]:
    for folder, _, names in os.walk("/proc/sys"):
        for name in names:
            yield from _value(Path(folder, name))
    for pattern in SETTINGS:
        for file in Path("/").glob(pattern):
            yield from _value(file)


def _value(file: Path) -> Iterator[str]:
    if not RESTLESS.match(str(file)):
        with contextlib.suppress(OSError):
            yield f"{file} = {file.read_text(errors='replace').strip()}"


def _ipc() -> Iterator[str]:
    for kind in ("shm", "sem", "msg"):
        with contextlib.suppress(OSError):
            for line in Path("/proc/sysvipc", kind).read_text().splitlines()[1:]:
                yield f"{kind} {' '.join(line.split()[:2])}"


def _units() -> Iterator[str]:
    """What systemd has, where it runs: units and their states, and which files of units are enabled."""
    if not Path("/run/systemd/system").exists():  # systemd's own sign that it runs (man sd_booted)
        return
    for line in _systemctl("list-units", "--all", "--plain"):
        unit, loaded, active, state = line.split()[:4]
        if not unit.endswith((".device", ".mount")):  # seen as links and mounts
            yield f"{unit} {loaded} {active} {state}"
    for line in _systemctl("list-unit-files"):
        yield f"file {' '.join(line.split()[:2])}"


def _systemctl(*words: str) -> list[str]:
    """Lines of systemd's answer; RuntimeError where it gives none, as a look without them shows what is not so."""
    # By emulation, and just after the boot, it reads unit files for longer than a client's usual 25 s.
    patient = os.environ | {"SYSTEMD_BUS_TIMEOUT": f"{SYSTEMD_LIMIT_S}s"}
    argv = ["systemctl", *words, "--no-legend", "--no-pager", "--full"]
    for _ in range(SYSTEMD_ATTEMPTS):
        answer = subprocess.run(argv, capture_output=True, text=True, check=False, env=patient)
        if answer.returncode == 0 and answer.stdout:
            return answer.stdout.splitlines()
        time.sleep(1)
    raise RuntimeError(f"{' '.join(argv)}: exit code {answer.returncode}: {answer.stderr.strip() or 'no line'}")


def _users() -> Iterator[str]:
    for file in ("/etc/passwd", "/etc/group", "/etc/subuid", "/etc/subgid"):
        with contextlib.suppress(OSError):
            yield from (f"{file} {line}" for line in Path(file).read_text().splitlines())


def _lines(*argv: str) -> list[str]:
    path = os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin:/sbin"
    program = shutil.which(argv[0], path=path)
    if program is None:
        return []
    return subprocess.run([program, *argv[1:]], capture_output=True, text=True, check=False).stdout.splitlines()


def _json(*argv: str) -> list[dict[str, object]]:
    text = "\n".join(_lines(*argv))
    return [row for row in json.loads(text or "[]") if row]


def main(arguments: Sequence[str]) -> int:
    """Save, or compare."""
    action, file = arguments[0], Path(arguments[1])
    if action == "save":
        file.write_text(json.dumps({aspect: sorted(lines) for aspect, lines in snapshot().items()}))
        return 0
    before = {aspect: set(lines) for aspect, lines in json.loads(file.read_text()).items()}
    lines = settled(before, ignored="|".join(arguments[2:]))
    print("\n".join(lines) or "the host is as it was")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
