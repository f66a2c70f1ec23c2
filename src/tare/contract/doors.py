"""The doors out of a sandbox, as data, and how attempts at them are judged. The agent makes the attempts, inside."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

#: Results of a call that passed the kernel's check of its caller's rights.
PAST_RIGHTS = ("OK", "EINVAL", "ENOEXEC", "EFAULT", "ENOENT", "EBADF", "ENOTBLK", "EBUSY")
#: Errors for something that is not there.
ABSENT = {"ENOENT", "ENODEV", "ENXIO", "ENOSYS", "EAFNOSUPPORT"}
#: The same where bait is looked for, which may be out of reach of what is there: a kernel that knows no such thing.
ABSENT_WITH_BAIT = {"ENODEV", "ENOSYS", "EAFNOSUPPORT"}
#: Results of mounting a disk as a filesystem that it does not have, where the disk was opened.
OPENED_DISK = ("OK", "EINVAL", "EBUSY")
#: In place of a result where it led to what is no other's.
OWN = "the instance's own"
#: More than any workload of tare's has at a time.
PROCESSES = 5_000
#: Digits of a number that a guest may say: Python reads no more than some thousands.
_LONGEST_NUMBER = 20


class DoorReach(enum.Enum):
    """The condition under which an open door leads to the host."""

    ALWAYS = "always"  # it is open only where the host's bait was reached
    KERNEL = "kernel"  # when the kernel is the host's, and not the instance's own
    UTS = "uts"  # when that is so, and the instance has the host's namespace of this kind
    PID = "pid"
    IPC = "ipc"


@dataclass(frozen=True, slots=True)
class Door:
    """One way out: what an attacker would gain, and how it is tried (an attempt of the agent's and its arguments)."""

    name: str
    gain: str
    attempt: tuple[str, ...]
    reach: DoorReach = DoorReach.KERNEL
    opens: tuple[str, ...] = ("OK",)  # results for which it is open; so it is where the bait's secret was read
    owns: tuple[str, ...] = ()  # results for which it leads to what is the instance's own
    may_end_it: bool = False  # the attempt may end the whole instance, so it comes last


def _file(name: str, gain: str, path: str, mode: str) -> Door:
    kinds = {"/proc/": "proc", "/sys/": "sysfs"}
    top = next(top for top in kinds if path.startswith(top))
    return Door(name, gain, ("file", path, mode, kinds[top], path.removeprefix(top)))


def _call(name: str, gain: str, *call: str, reach: DoorReach = DoorReach.KERNEL) -> Door:
    return Door(name, gain, ("call", *call), reach, PAST_RIGHTS)


_CANARY = DoorReach.ALWAYS

#: Tried inside every instance, as root. The tables have the same order.
DOORS = (
    # The kernel's own settings
    _file(
        "core-pattern",
        "a program run as the host's root when any process crashes",
        "/proc/sys/kernel/core_pattern",
        "w",
    ),
    _file(
        "modprobe-path",
        "a program run as the host's root when a module is looked for",
        "/proc/sys/kernel/modprobe",
        "w",
    ),
    _file("uevent-helper", "a program run as the host's root when a device comes", "/sys/kernel/uevent_helper", "w"),
    Door(
        "binfmt-misc",
        "a program run as root when a file of a new format is executed",
        ("binfmt", "/proc/sys/fs/binfmt_misc/register"),
        owns=(OWN,),
    ),
    _file(
        "sysctl-vm", "the host's memory management: any sysctl, and the host's panic", "/proc/sys/vm/panic_on_oom", "w"
    ),
    _file("sysrq", "the host's reboot or crash by one byte", "/proc/sysrq-trigger", "w"),
    _file("irq-affinity", "the host's interrupts, moved between its CPUs", "/proc/irq/default_smp_affinity", "w"),
    _file(
        "sysfs", "the host's devices and memory management, by /sys", "/sys/kernel/mm/transparent_hugepage/enabled", "w"
    ),
    # The kernel's memory and messages
    _file("kcore", "all of the host's memory, for reading", "/proc/kcore", "r"),
    Door("dev-mem", "the host's physical memory", ("device", "c", "1:1", "/dev/mem", "r")),
    Door("dev-port", "the host's I/O ports, by a device", ("device", "c", "1:4", "/dev/port", "o")),
    _call("iopl", "the host's I/O ports, by a call", "iopl", "i:3"),
    Door("msr", "the host's model-specific registers", ("device", "c", "202:0", "/dev/cpu/0/msr", "o")),
    Door(
        "kmsg",
        "the host's kernel messages, by a device: addresses, and words of other sandboxes",
        ("device", "c", "1:11", "/dev/kmsg", "o"),
    ),
    _call("syslog", "the host's kernel messages, by a call", "syslog", "i:3", f"x:{'00' * 16}", "i:1"),
    Door("debugfs", "the kernel's insides: debugfs", ("mount", "debugfs")),
    Door("tracefs", "what all of the host's programs do: tracefs", ("mount", "tracefs")),
    # Code in the kernel
    _call("init-module", "code of its own in the host's kernel", "init_module", f"x:{'00' * 8}", "i:8", "s:"),
    _call("finit-module", "code of its own in the host's kernel, from a file", "finit_module", "i:-1", "s:", "i:0"),
    _call("delete-module", "the host's modules unloaded", "delete_module", "s:tare_no_such_module", "i:2048"),
    Door("bpf", "the kernel's memory, by a BPF program for a kprobe", ("bpf",)),
    _call("kexec", "another kernel in place of the host's", "kexec_load", "i:0", "i:1048576", "i:0", "i:65535"),
    Door(
        "perf",
        "what all programs on a CPU of the host's do, by the whole CPU's counters",
        # perf_event_attr: a software event (type 1, 112 bytes long), the CPU's clock; pid -1 and CPU 0
        ("call", "perf_event_open", f"x:{'0100000070000000'}{'00' * 104}", "i:-1", "i:0", "i:-1", "i:8"),
    ),
    Door(
        "user-namespace", "the kernel's code for root of a namespace, where most of its errors are", ("user_namespace",)
    ),
    # The host as a whole
    _call("reboot", "the host's reboot", "reboot", "i:0", "i:0", "i:0", "i:0", reach=DoorReach.PID),
    _call("hostname", "the host's name", "sethostname", "s:tare", "i:-1", reach=DoorReach.UTS),
    _call("clock", "the host's clock", "settimeofday", "i:0", f"x:{'1027000000000000'}"),  # 10,000 minutes from UTC
    _call("swapoff", "the host's swap", "swapoff", "s:/tare-no-such-file"),
    _call("acct", "a record of all that the host's programs do", "acct", "s:/tare-no-such-file"),
    # The host's disk and files
    Door("disk-node", "the host's disk, below its filesystem", ("device", "b", "disk", "", "r")),
    Door("disk-mount", "the host's disk, mounted", ("disk_mount",), DoorReach.KERNEL, OPENED_DISK),
    Door("files", "the host's files, below what is mounted", ("files",), _CANARY),
    Door("proc-root", "the host's files, by /proc/PID/root, cwd and fd", ("proc",), _CANARY),
    Door("chroot", "the host's files, by a chroot within the chroot", ("chroot",), _CANARY),
    Door("file-handles", "any file of the filesystem that /data is on, by its number", ("handle",), _CANARY),
    Door("hostfs", "the host's files, by User-Mode Linux's hostfs", ("hostfs",), _CANARY),
    Door("shares", "the host's files, by a machine's 9p and virtiofs", ("shares",), _CANARY),
    Door("setuid", "root on the host for any user there, by a setuid file made inside", ("setuid",), _CANARY),
    # Control groups
    Door("release-agent", "a program run as the host's root when a control group empties", ("release_agent",)),
    Door("limits", "its own limits, lifted", ("limits",), owns=(OWN,)),
    Door("freezer", "processes that no signal ends: a control group of version 1, frozen", ("freezer",)),
    Door(
        "process-ids",
        "the host's process ids, until it has none left",
        ("process_ids", str(PROCESSES)),
        owns=(OWN,),
        may_end_it=True,
    ),
    # The host's processes and what they share
    Door("processes", "the host's processes, and what their command lines say", ("processes",), _CANARY),
    Door(
        "environment",
        "variables that tare's environment hands down: a CI's tokens, a cloud's keys",
        ("environment",),
        _CANARY,
    ),
    Door("ptrace", "the memory of the host's processes", ("ptrace",), _CANARY),
    Door("keys", "the keys of the host's root", ("keys",), _CANARY),
    Door("abstract-sockets", "the host's services on abstract sockets", ("abstract",), _CANARY),
    Door(
        "daemon-sockets",
        "a daemon that starts what it is told to as the host's root",
        ("sockets",),
        _CANARY,
    ),
    Door("host-ipc", "the host's shared memory and queues", ("ipc",), DoorReach.IPC),
    # The host's networks
    Door("host-ports", "the host's services, on its addresses and its loopback", ("host_ports",), _CANARY, ()),
    Door("metadata", "the cloud's credentials for the host, and networks behind the host", ("metadata",), _CANARY),
    Door("vsock", "the hypervisor's services, and the host's of the same kind", ("vsock",)),
)

#: Tried inside one of two instances of a platform.
DOORS_TO_OTHERS = (
    Door("other-arm", "another instance's ports", ("reach",), _CANARY),
    Door("sniff", "the packets of another instance", ("sniff",), _CANARY),
    Door("spoof", "packets in another instance's name", ("spoof",), _CANARY),
)


class AttemptState(enum.Enum):
    """The outcome of an attempt."""

    CLOSED = "closed"
    OPEN = "open"
    OWN = "its own"  # it leads to what is the instance's own: a kernel, a namespace
    ABSENT = "not there"  # the kernel does not have it, or does not show it
    UNTRIED = "cannot be tried"


@dataclass(frozen=True, slots=True)
class DoorOutcome:
    """The state of one door. ``how``: the ways that are open and their results, or else the results of all ways."""

    door: Door
    state: AttemptState
    how: str


@dataclass(frozen=True, slots=True)
class DoorAnswers:
    """Output of `tare-agent doors`: facts by name, by door its ways and their results. ``whole``: to its last line."""

    facts: Mapping[str, str]
    ways: Mapping[str, Sequence[tuple[str, str]]]
    whole: bool

    @classmethod
    def parse(cls, text: str) -> DoorAnswers:
        """Parse the output; lines of another kind are ignored, as a guest may print anything."""
        facts: dict[str, str] = {}
        ways: dict[str, list[tuple[str, str]]] = {}
        lines = ["".join(c if c.isprintable() or c == "\t" else "?" for c in line) for line in text.split("\n")]
        for line in lines:
            match line.split("\t"):
                case ["fact", name, value]:
                    facts[name] = value
                case ["door", name, way, word]:
                    ways.setdefault(name, []).append((way, word))
        return cls(facts, ways, "end" in lines)


@dataclass(frozen=True, slots=True)
class HostSecrets:
    """Facts of the host that the instance is not given: a guest that knows the secret has reached the host."""

    secret: str  # the content of the canary file, the key and the other bait
    facts: Mapping[str, str] = field(default_factory=dict)  # of the same names as those of `DoorAnswers`
    while_tried_ns: tuple[int, int] = (0, 0)  # CLOCK_BOOTTIME before and after the attempts
    #: whether the kernel inside is shared with others; None: as `has_kernel_of` finds
    shared_kernel: bool | None = None


def has_kernel_of(host: HostSecrets, facts: Mapping[str, str]) -> bool:
    """Return True if an instance has the host's kernel, by its boot id (LXC and nspawn hide it) or its uptime.

    The clock of another kernel, which booted later, shows far less.
    """
    since = facts.get("since_boot_ns", "")
    first, last = host.while_tried_ns
    is_number = since.isdecimal() and len(since) <= _LONGEST_NUMBER
    return facts.get("boot") == host.facts["boot"] or (is_number and first <= int(since) <= last)


def order(doors: Iterable[Door], given: Mapping[str, str]) -> str:
    """The input of `tare-agent doors`: the bait's names, and the doors."""
    lines = [("set", *pair) for pair in given.items()] + [(door.name, *door.attempt) for door in doors]
    return "".join("\t".join(line) + "\n" for line in lines)


def judge(door: Door, answers: DoorAnswers, host: HostSecrets) -> DoorOutcome:
    """The outcome of the attempts at a door."""
    ways = answers.ways.get(door.name, ())
    opened = [(way, word) for way, word in ways if word in door.opens or word == f"={host.secret}"]
    if not ways:
        return DoorOutcome(door, AttemptState.UNTRIED, "nothing was said of it")
    if opened:
        state = AttemptState.OPEN if _reaches(door.reach, answers, host) else AttemptState.OWN
        return DoorOutcome(door, state, _rendered(opened))
    tried = [(way, word) for way, word in ways if not word.startswith("-")]
    if not tried:
        return DoorOutcome(door, AttemptState.UNTRIED, "; ".join(dict.fromkeys(word[1:] for _, word in ways)))
    if owned := [(way, word) for way, word in tried if word in door.owns]:
        return DoorOutcome(door, AttemptState.OWN, _rendered(owned))
    none_there = ABSENT_WITH_BAIT if door.reach is DoorReach.ALWAYS else ABSENT
    absent = all(word in none_there for _, word in tried)
    return DoorOutcome(door, AttemptState.ABSENT if absent else AttemptState.CLOSED, _rendered(tried))


def _reaches(reach: DoorReach, answers: DoorAnswers, host: HostSecrets) -> bool:
    if reach is DoorReach.ALWAYS:
        return True
    shared = host.shared_kernel
    if shared is None:
        shared = has_kernel_of(host, answers.facts)
    if reach is DoorReach.KERNEL:
        return shared
    return shared and answers.facts.get(reach.value) == host.facts.get(reach.value)


def _rendered(ways: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{way}: {'read' if word.startswith('=') else word}" for way, word in ways)
