"""Confinement of a process, as the kernel shows it in /proc: filter, rights, users and label; read, never changed.

Pure parsers of text (proc(5), capabilities(7), user_namespaces(7)), for a process of this host's and, in a sandbox, for
the agent. A fact that a kernel does not show, such as some of gVisor's, is "unknown".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath

from tare.host.kernel import process_table
from tare.host.kernel.process_table import parse_status

#: Files of a process, below its folder in /proc.
STATUS, UIDS, LABEL = "status", "uid_map", "attr/current"
FILES = (STATUS, UIDS, LABEL)
MITIGATIONS = "/sys/devices/system/cpu/vulnerabilities"
UNKNOWN = "unknown"
#: By number (linux/capability.h).
CAPABILITIES = (
    "chown", "dac_override", "dac_read_search", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap",
    "linux_immutable", "net_bind_service", "net_broadcast", "net_admin", "net_raw", "ipc_lock", "ipc_owner",
    "sys_module", "sys_rawio", "sys_chroot", "sys_ptrace", "sys_pacct", "sys_admin", "sys_boot", "sys_nice",
    "sys_resource", "sys_time", "sys_tty_config", "mknod", "lease", "audit_write", "audit_control", "setfcap",
    "mac_override", "mac_admin", "syslog", "wake_alarm", "block_suspend", "audit_read", "perfmon", "bpf",
    "checkpoint_restore",
)  # fmt: skip
#: Programs that serve as an instance's device, or as its network: they take a guest's bytes.
DEVICES = frozenset({"passt", "pasta", "pasta.avx2", "passt.avx2", "slirp4netns", "swtpm", "vhost-device", "virtiofsd"})
_FILTERS = {"0": "none", "1": "strict", "2": "filter"}
#: Every id maps to itself.
_ALL_IDS = ("0", "0", "4294967295")
#: SELinux's categories are another pair in every container.
_CATEGORIES = re.compile(r":c\d+(,c\d+)*$")
#: Prints the files that are named after it, and those of folders, each below a line with its name. An unreadable file
#: is empty.
_SHOW = """\
show() {
    echo "== $1"
    while read -r line || [ -n "$line" ]; do echo "$line"; line=; done 2>/dev/null <"$1"
}
for place; do
    if [ -d "$place" ]; then for file in "$place"/*; do show "$file"; done; else show "$place"; fi
done 2>/dev/null
:"""


def show_argv(*, mitigations: bool) -> list[str]:
    """Return the command that shows a sandbox's own posture, for `parse_shown`; it needs only sh."""
    folders = [MITIGATIONS] if mitigations else []
    return ["sh", "-c", _SHOW, "sh", *(f"/proc/self/{name}" for name in FILES), *folders]


def parse_shown(text: str) -> dict[str, str]:
    """Return the files' contents by path, from the output of `show_argv`."""
    pieces = re.split(r"^== (/\S+)\n", text, flags=re.MULTILINE)[1:]
    return {path: contents.strip("\0\n ") for path, contents in zip(pieces[::2], pieces[1::2], strict=True)}


def of_files(files: Mapping[str, str], instance: str = "") -> dict[str, str]:
    """Describe the confinement of a process, from its `FILES` by name.

    ``instance``: the instance's name, which is removed from labels, so that starts can be compared.
    """
    facts = parse_status(files.get(STATUS, ""))
    label = _CATEGORIES.sub("", files.get(LABEL, "").strip("\0\n "))
    effective, bounding = (capabilities(facts.get(name, "")) for name in ("CapEff", "CapBnd"))
    return {
        "seccomp": _filter(facts),
        "no new privileges": {"0": "no", "1": "yes"}.get(facts.get("NoNewPrivs", ""), UNKNOWN),
        "capabilities": effective,
        "bounding set": "the same" if bounding == effective else bounding,
        "users": users(files.get(UIDS, "")),
        "label": (label.replace(instance, "NAME") if instance else label) or "none",
    }


def of_process(pid: int, instance: str = "") -> dict[str, str]:
    """Describe the confinement of a process of this host's, with its name (``process``); {} if it has ended."""
    files = {}
    for name in FILES:
        try:
            files[name] = process_table.text(pid, name)
        except OSError:  # There is no label without a security module.
            files[name] = ""
    process = parse_status(files[STATUS]).get("Name")
    return {"process": process, **of_files(files, instance)} if process else {}


def beside(pids: Iterable[int]) -> dict[str, dict[str, str]]:
    """Describe the confinement of an instance's `DEVICES`, by program.

    Of several processes that is the last to be started: virtiofsd's first one only waits for the one that serves.
    """
    last: dict[str, tuple[int, int]] = {}
    for pid in pids:
        program, stat = PurePath(next(iter(process_table.argv(pid)), "")).name, process_table.stat(pid)
        if program in DEVICES and stat is not None:
            last[program] = max((stat.start_ticks, pid), last.get(program, (0, 0)))
    postures = {program: of_process(pid) for program, (_, pid) in sorted(last.items())}
    return {program: facts for program, facts in postures.items() if facts}


def foremost(pids: Iterable[int], agent: str) -> int | None:
    """Return the process that represents an instance's programs: the agent, or the largest (a monitor), or None."""
    sizes: dict[int, tuple[bool, int]] = {}
    for pid in pids:
        facts = process_table.status(pid)
        if facts:
            sizes[pid] = (facts.get("Name") == agent[:15], int(facts.get("VmRSS", "0").split()[0]))
    return max(sizes, key=lambda pid: sizes[pid], default=None)


def capabilities(mask: str) -> str:
    """Describe a set of capabilities, from its mask in hexadecimal: how many, and which it has or lacks."""
    if not re.fullmatch(r"[0-9a-f]{1,16}", mask):
        return UNKNOWN
    bits = int(mask, 16)
    names = [name for number, name in enumerate(CAPABILITIES) if bits >> number & 1]
    if not names:
        return "none"
    if len(names) <= len(CAPABILITIES) // 2:
        return f"{len(names)}: {', '.join(names)}"
    # A kernel knows the capabilities up to its highest number.
    lacking = [name for name in CAPABILITIES[: bits.bit_length()] if name not in names]
    return f"{len(names)}, all but {', '.join(lacking)}" if lacking else f"all {len(names)}"


def users(uid_map: str) -> str:
    """Describe the user of root inside, from a ``uid_map``."""
    rows = [tuple(line.split()) for line in uid_map.splitlines() if line.split()]
    # The text comes from a guest, which may write anything.
    if not rows or not all(re.fullmatch(r"\d{1,10} \d{1,10} \d{1,10}", " ".join(row), re.ASCII) for row in rows):
        return UNKNOWN
    if rows == [_ALL_IDS]:
        return "not mapped"
    root = next((row[1] for row in rows if row[0] == "0"), None)
    count = sum(int(row[2]) for row in rows)
    return f"root is user {root} outside, of {count:,}" if root is not None else f"no root, {count:,} users"


def _filter(facts: Mapping[str, str]) -> str:
    mode = _FILTERS.get(facts.get("Seccomp", ""), UNKNOWN)
    count = facts.get("Seccomp_filters", "")
    return f"{mode} ({count})" if mode == "filter" and count.isdigit() else mode
