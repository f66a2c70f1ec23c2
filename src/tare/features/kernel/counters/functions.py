"""Counter of kernel functions, which uses a kernel module of tare's (see docs/footprint-functions.md).

The module counts in place, without a buffer, so a slow reader loses nothing. It counts every entry of a function that
ftrace can see. It cannot see functions that the compiler inlined, or those marked ``notrace``.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable
from pathlib import Path

from tare.errors import HostError, ParseError
from tare.features.kernel.reading import kmodule
from tare.footprint_model import HitCounts, Scope
from tare.host import cgroup, own_namespaces, processes
from tare.host.kernel import host_text
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack, JournalEntry
from tare.model import Level

#: Fix for a host that cannot count functions.
LAB = "tare footprint --level functions, without --here: it boots a lab, where they can"
TRACING = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
DEBUG = Path("/sys/kernel/debug")
#: Exists if the kernel has a function tracer.
SWITCH = Path("/proc/sys/kernel/ftrace_enabled")
_LINE = re.compile(r"([0-9a-f]+) (\d+) (\d+) (\S+(?: \[\w+\])?)")
#: Name that ftrace lists for a function that was replaced when the kernel was linked. It never runs.
_REPLACED = "__ftrace_invalid_address___"


class FunctionCounter:
    """Counter by the module ``tare_fcount``. This process holds its lease, so tracing ends with the process."""

    level = Level.FUNCTIONS
    reads_itself = False  # Counting pauses during a read.

    def __init__(self) -> None:
        self._resources: CleanupStack | None = None
        self._ctl: int | None = None
        self._made: tuple[str, JournalEntry] | None = None  # A control group that did not exist before.

    def start(self, group: str) -> None:
        """Load the module and count ``group`` from zero; a second call switches groups. Create a missing group."""
        if self._resources is None:
            check()
            module = kmodule.find()
            self._resources = CleanupStack()
            try:
                self._load(module)
            except BaseException:
                self.stop()
                raise
        self._unmake()
        self._make(group)
        self._say(f"cgroup /{group}")
        self._say("on")
        self._say("reset")

    def read(self) -> HitCounts:
        """Return the counts so far. Counting pauses during the read."""
        self._say("hold")
        try:
            hits, lost = parse_dump(host_text.read(_files("dump")))
            return HitCounts(hits=hits, lost=lost, known=len(known()))
        finally:
            self._say("go")

    def reset(self) -> None:
        """Restart the count from zero."""
        self._say("reset")

    def stop(self) -> None:
        """Switch the module off and remove it."""
        if self._ctl is not None:
            os.close(self._ctl)  # Closing the descriptor switches the module off.
            self._ctl = None
        self._unmake()
        if self._resources is not None:
            self._resources.release()
            self._resources = None

    def _load(self, module: Path) -> None:
        assert self._resources is not None
        self._resources.own(removers.kernel_module(kmodule.NAME))
        loaded = processes.run(["insmod", str(module)])
        if loaded.code != 0:
            message = loaded.stderr.decode(errors="replace").strip()
            raise HostError(f"the kernel does not take the module that counts functions: {message}", fix=LAB)
        self._ctl = os.open(_files("ctl"), os.O_WRONLY | os.O_CLOEXEC)

    def _say(self, command: str) -> None:
        assert self._ctl is not None, "it was not started"
        try:
            os.write(self._ctl, command.encode())
        except OSError as error:
            raise HostError(f"the kernel refuses to count functions ({command}): {error.strerror}", fix=LAB) from error

    def _make(self, group: str) -> None:
        """Create the instance's control group before the instance starts: the module needs it first."""
        root = cgroup.hierarchies().v2
        assert root is not None
        assert self._resources is not None
        if not (root / group).is_dir():
            [entry] = self._resources.journal.write(removers.control_group(group))
            self._made = (group, entry)
            cgroup.reserve(group)

    def _unmake(self) -> None:
        """Remove the group if nothing uses it. An instance that uses it has it in the journal, and removes it."""
        if self._made is not None:
            group, entry = self._made
            cgroup.give_up(group)
            entry.file.unlink(missing_ok=True)
            self._made = None


def check() -> None:
    """Raise `HostError` if functions cannot be counted here, or if another tool is tracing."""
    if os.geteuid() != 0 or own_namespaces.inside():  # Root in a user namespace may not read tracefs.
        raise HostError("only root may count kernel functions", fix="run tare as root (sudo)")
    if not SWITCH.exists():
        raise HostError(f"the kernel {os.uname().release} has no function tracer", fix=LAB)
    if not cgroup.hierarchies().unified:
        why = "control groups are not of version 2 here, by which the module knows an instance"
        raise HostError(why, fix=LAB)
    tracing = _tracing()
    if not any(DEBUG.iterdir()):
        raise HostError("debugfs is not mounted", fix=f"mount -t debugfs debugfs {DEBUG}")
    if Path("/sys/module", kmodule.NAME).exists():
        raise HostError(
            f"the module {kmodule.NAME} is loaded already: functions are being counted, or were when tare was killed",
            fix="wait for the other tare, or tare clean",
        )
    tracer = host_text.said(tracing / "current_tracer")
    if tracer != "nop":
        raise HostError(f"another program traces this kernel, by the tracer {tracer}", fix="wait until that has ended")
    foreign = host_text.said(tracing / "enabled_functions").splitlines()
    if foreign:
        problem = f"another program traces {len(foreign)} functions of this kernel, such as {foreign[0].split()[0]}"
        fix = "wait until that has ended; `bpftool prog` and `ls /sys/kernel/tracing/instances` tell more"
        raise HostError(problem, fix=fix)


def known() -> frozenset[str]:
    """Return the symbols of the functions that can be counted now. Functions that share a name appear once."""
    modules = host_text.read("/proc/modules").splitlines()
    return _known(frozenset(line.split()[0] for line in modules))


@functools.cache
def _known(modules: frozenset[str]) -> frozenset[str]:  # noqa: ARG001 (whose functions they are: the kernel is slow to say)
    return parse_functions(host_text.read(_tracing() / "available_filter_functions").splitlines())


def parse_functions(lines: Iterable[str]) -> frozenset[str]:
    """Return the symbols in an ``available_filter_functions``, with a module's as "symbol [module]"."""
    return frozenset(" ".join(line.split()) for line in lines if not line.startswith(_REPLACED))


def parse_dump(text: str) -> tuple[dict[Scope, dict[str, int]], int]:
    """Return hits by scope and symbol, and the number of events without a symbol or room. Raises `ParseError`."""
    head, *lines = text.splitlines() or [""]
    began = re.fullmatch(rf"{kmodule.NAME} 1 lost (\d+)", head)
    if began is None or not lines or lines.pop() != "end":
        raise ParseError(f"the counts of {kmodule.NAME} are incomplete: they begin with {head[:80]!r}")
    lost = int(began[1])
    hits: dict[Scope, dict[str, int]] = {Scope.HOST: {}, Scope.INSTANCE: {}}
    for line in lines:
        match = _LINE.fullmatch(line)
        if match is None:
            raise ParseError(f"{kmodule.NAME} says {line[:120]!r}, which is not a function with its hits")
        _, everybodys, groups, name = match.groups()
        if name.startswith("0x"):  # The function belonged to a module that was unloaded.
            lost += int(everybodys)
            continue
        for scope, count in ((Scope.HOST, int(everybodys)), (Scope.INSTANCE, int(groups))):
            if count:
                hits[scope][name] = hits[scope].get(name, 0) + count
    return hits, lost


def _tracing() -> Path:
    if host_text.said(SWITCH) == "0":
        raise HostError("function tracing is switched off on this host", fix="sysctl kernel.ftrace_enabled=1")
    for folder in TRACING:
        if folder.joinpath("available_filter_functions").exists():
            return folder
    raise HostError("tracefs is not mounted", fix=f"mount -t tracefs tracefs {TRACING[0]}")


def _files(name: str) -> Path:
    return DEBUG / kmodule.NAME / name
