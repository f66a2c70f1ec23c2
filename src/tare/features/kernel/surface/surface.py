"""Reader of surfaces: the kernel calls open to a running instance, for each process and in total.

Only the tenant's side counts (`tare.features.kernel.reading.process_roles`). An escape from a container, from gVisor's
sentry or from a machine's monitor ends in one of these processes, and is then limited by that process's filters.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tare.errors import HostError, ParseError
from tare.features.kernel.reading import call_tables, process_rights
from tare.features.kernel.reading.process_rights import Identity
from tare.features.kernel.reading.process_roles import InstanceProcess, sides
from tare.features.kernel.surface import cbpf, filters, ptrace
from tare.footprint_model import Abi, Call, Surface, Tasks
from tare.host.facts import security

NONE, STRICT, FILTER = 0, 1, 2
_MODES = {NONE: "none", STRICT: "strict", FILTER: "filter"}
#: All calls that strict mode allows (kernel/seccomp.c, mode1_syscalls).
_STRICT = frozenset({"read", "write", "exit", "rt_sigreturn", "sigreturn"})
#: Attempts to read a process whose threads change during the read, or an instance whose programs change.
_TRIES = 5
_RESTLESS = "programs came and went while they were read: what some of them may call is not in it"


@dataclass(frozen=True, slots=True)
class FilterReach:
    """The calls that one stack of filters allows; ``unread``: the reason why they are unknown."""

    filters: int
    calls: Mapping[str, Call] | None
    outcomes: Mapping[str, tuple[str, ...]]
    abis: Mapping[str, Abi]
    unread: str | None = None


@dataclass(frozen=True, slots=True)
class _Alike:
    """Properties that the threads of a group within one process share."""

    who: Identity  # Without its name.
    installed: ptrace.Answer
    namespaces: tuple[str, ...]
    label: str | None


class Reader:
    """Reader that evaluates a stack of filters once for all threads that have it."""

    def __init__(self) -> None:
        """Prepare the reader. Raises `HostError` on an architecture whose system calls are unknown."""
        self._table = call_tables.native()
        self._other_tables = call_tables.others()
        self._known: dict[tuple[bytes, ...], FilterReach] = {}

    def surface(self, platform: str, list_pids: Callable[[], Sequence[int]]) -> Surface:
        """Read the surface of one instance from the listed processes. Raises `HostError` if none of them lives.

        ``list_pids`` is called before and after the processes are read; if a program started or ended in between, they
        are read again. If a container's own processes were missed, the helper processes beside them would count as the
        tenant's (`tare.features.kernel.reading.process_roles`).
        """
        before = sides(list_pids())
        for _ in range(_TRIES):
            tasks = [group for side in before for group in self._tasks(side)]
            after = sides(list_pids())
            settled = _kinds(tasks) == _kinds(after)
            if settled:
                break
            before = after
        counted = [group for group in tasks if group.counted]
        if not counted:
            raise HostError(f"{platform} has no process on this host that works for its tenant")
        unread = [f"{group.role}: {group.unread}" for group in counted if group.unread]
        answers = [group.calls for group in counted if group.calls is not None]
        names = self._table.numbers if answers else ()
        together = {name: filters.most_permissive(of_group[name] for of_group in answers) for name in names}
        return Surface(
            platform=platform,
            at=time.time(),
            kernel=call_tables.kernel(),
            of=len(self._table.numbers),
            calls=together or None,
            unread=(*dict.fromkeys(unread), *([] if settled else [_RESTLESS])),
            tasks=tuple(tasks),
            abis=_widest([group.abis for group in counted]),
        )

    def _tasks(self, side: InstanceProcess) -> list[Tasks]:
        for _ in range(_TRIES):
            try:
                return list(self._read(side))
            except (FileNotFoundError, ProcessLookupError):  # A thread ended during the read.
                continue
            except PermissionError as error:
                problem = f"what process {side.pid} may do cannot be read: {error.strerror}"
                raise HostError(problem, fix="run tare as root (sudo), on the host itself") from error
        return []

    def _read(self, side: InstanceProcess) -> Iterator[Tasks]:
        """Return the threads of a process, grouped by equal properties. Only threads with a filter are stopped."""
        pid = side.pid
        identities = {thread: process_rights.identity(pid, thread) for thread in process_rights.threads(pid)}
        installed = ptrace.installed([thread for thread, identity in identities.items() if identity.seccomp == FILTER])
        groups: dict[_Alike, Counter[str]] = {}
        for thread, identity in identities.items():
            if identity.seccomp == FILTER and thread not in installed:
                continue  # The thread has ended.
            namespaces, label = process_rights.foreign_namespaces(pid, thread), security.label(pid, thread)
            alike = _Alike(identity.nameless(), installed.get(thread, ()), namespaces, label)
            groups.setdefault(alike, Counter())[identity.name] += 1
        if groups:
            places, (devices, held) = process_rights.places(pid), process_rights.open_descriptors(pid)
            for alike, names in groups.items():
                yield self._described(side, alike, names).model_copy(
                    update={"writable": places, "devices": devices, "held": held}
                )

    def _described(self, side: InstanceProcess, alike: _Alike, names: Counter[str]) -> Tasks:
        identity = alike.who
        reach = self._reach(identity, alike.installed)
        return Tasks(
            pid=side.pid,
            program=side.program,
            role=side.role,
            counted=side.counted,
            threads=dict(names),
            seccomp=_MODES.get(identity.seccomp, str(identity.seccomp)),
            filters=reach.filters,
            calls=reach.calls,
            outcomes=reach.outcomes,
            unread=reach.unread,
            abis=reach.abis,
            effective=process_rights.capabilities(identity.effective),
            bounding=process_rights.capabilities(identity.bounding),
            namespaces=alike.namespaces,
            no_new_privs=identity.no_new_privs,
            label=alike.label,
            uid=identity.uid,
            gid=identity.gid,
        )

    def _reach(self, identity: Identity, installed: ptrace.Answer) -> FilterReach:
        if identity.seccomp == STRICT:
            return self._strict()
        if isinstance(installed, HostError):
            return FilterReach(identity.filters or 0, None, {}, {}, installed.what)
        if installed not in self._known:
            self._known[installed] = self.evaluated(installed)
        return self._known[installed]

    def evaluated(self, installed: Sequence[bytes]) -> FilterReach:
        """Return the reach of stacked filters, newest first. Without filters, every call is allowed."""
        try:
            programs = [cbpf.parse(raw) for raw in installed]
        except ParseError as error:
            return FilterReach(len(installed), None, {}, {}, error.what)
        abis = {}
        for table in self._other_tables:
            answers, _ = filters.by_name(programs, table.numbers, table.architecture)
            abis[table.abi] = _abi(answers.values(), in_kernel=call_tables.has_abi(table, call_tables.symbols()))
        answers, words = filters.by_name(programs, self._table.numbers, self._table.architecture)
        return FilterReach(len(programs), answers, words, abis)

    def _strict(self) -> FilterReach:
        answers = {name: Call.ALLOWED if name in _STRICT else Call.KILL for name in self._table.numbers}
        abis = {
            table.abi: _abi(
                (Call.ALLOWED if name in _STRICT else Call.KILL for name in table.numbers),
                in_kernel=call_tables.has_abi(table, call_tables.symbols()),
            )
            for table in self._other_tables
        }
        return FilterReach(
            0, answers, {name: ("kill thread",) for name, call in answers.items() if call is Call.KILL}, abis
        )


def _kinds(processes: Iterable[InstanceProcess | Tasks]) -> set[tuple[str, str]]:
    """Return the kinds of running programs without their number, because gVisor's stubs come and go."""
    return {(process.program, process.role) for process in processes}


def _abi(answers: Iterable[Call], *, in_kernel: bool | None) -> Abi:
    outcomes = list(answers)
    reachable = sum(call in (Call.ALLOWED, Call.CONDITIONAL) for call in outcomes)
    return Abi(reachable=reachable, of=len(outcomes), in_kernel=in_kernel)


def _widest(of_groups: Sequence[Mapping[str, Abi]]) -> dict[str, Abi]:
    """Return, for each ABI, the reach of the thread that reaches most of it."""
    names = dict.fromkeys(name for abis in of_groups for name in abis)
    reached = {name: [abis[name] for abis in of_groups if name in abis] for name in names}
    return {name: max(abis, key=lambda abi: abi.reachable) for name, abis in reached.items()}
