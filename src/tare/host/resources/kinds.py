"""Kinds of resources that plug-ins make on a host, besides those that tare has removers for itself (`removers`).

A platform from outside of tare names its kinds in ``RESOURCES`` of a module that is registered under the entry point
group ``tare.resources``. A kind defines what its entries in the journal may hold, by rules from a closed list, and how
such a resource is removed. Root acts on the journal: so a remover only ever gets facts that follow its kind's rules,
and the name of a kind begins with its package's, so that no plug-in can replace another's kind or one of tare's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from tare.errors import HostError, UsageError
from tare.host import cgroup
from tare.host.kernel import mounts, removal
from tare.host.kernel.owner import Owner
from tare.host.resources.resource import Fact, HostResource
from tare.plugins import with_plugins

GROUP: Final = "tare.resources"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*:[a-z][a-z0-9]*(-[a-z0-9]+)*")
_FACT = re.compile(r"[a-z][a-z_]*")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}")
#: Where programs keep what they know of a sandbox: nobody but root can put anything there.
_KEPT_IN = ("/run/", "/var/lib/", "/var/log/", "/var/cache/")
_PATTERN = re.compile(r"(?:/(?:[A-Za-z0-9_.,:@+-]|\{name\}|\{pid\})+)+")
_GUIDE = "see docs/add-a-platform.md"

Facts = Mapping[str, Fact]


class FactRule(StrEnum):
    """A rule for a fact of a resource; the value describes it."""

    SANDBOX = "a sandbox's name: tare-ID, and what may follow"
    LINK = "a network link's name: tareID, and what may follow; at most 15 characters"
    GROUP = "the path of a control group of tare's: tare/..."
    PLACE = "a path below TARE_HOME's folder work"
    PROCESS = "a process that may have ended, as `process` tells it; never to be killed by that"


@dataclass(frozen=True, slots=True)
class OneOf:
    """A fact that is one of a few words."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """A kind of resource: the facts that identify one, and how it is removed.

    ``remove`` may be called for what was never made, is half made or is gone, and then does nothing. It raises
    `HostError` for what stays. It must find what it removes by the facts alone: the process that made it may be dead.

    ``left``: what of this kind carries an instance's label on the host, a line each, by which `tare platform check`
    sees whether it was removed. Without it only what is in a place that all platforms use is seen there: mounts,
    links, control groups, files below /run, units, iptables' rules and processes.
    """

    name: str  # "PACKAGE:WORD", such as "tare-firejail:notes"
    must: Mapping[str, FactRule | OneOf]  # every one has these
    remove: Callable[[Facts], None]
    may: Mapping[str, FactRule | OneOf] = field(default_factory=dict)  # and perhaps these (`CleanupStack.learn`)
    left: Callable[[str], Iterable[str]] = field(default=lambda _: ())

    def resource(self, **facts: str) -> HostResource:
        """Return a resource of this kind with these facts, for `CleanupStack.own`."""
        return HostResource(self.name, facts)


def process(pid: int) -> str:
    """Return the process that has this id now, as a fact of the rule `Rule.PROCESS`."""
    return str(Owner.of(pid))


def files(name: str, *patterns: str) -> ResourceKind:
    """Files and folders that a program keeps of a sandbox outside of tare's folders, and may leave there.

    ``patterns``: their whole paths, with ``{name}`` for the sandbox's name or ``{pid}`` for the id of the program's
    process. Each has the facts ``name``, ``group`` (the instance's control group) and, once it is known, ``process``.
    All in the group is ended first, so that nothing makes them anew; files named after a process whose id is by now
    another's are that one's, and stay. Raises `UsageError` for a pattern that cannot be the path of a sandbox's files,
    and for none.
    """

    def remove(facts: Facts) -> None:
        cgroup.destroy(str(facts["group"]))
        for path in _paths(patterns, facts):
            require_in_place(path)
            mounts.clear(path)
            removal.remove(path)

    wrong = [pattern for pattern in patterns if not _usable_pattern(pattern)]
    if wrong or not patterns:
        raise UsageError(
            f"{', '.join(wrong) or 'no pattern'} cannot be the path of a sandbox's files",
            fix=f"a whole path below one of {', '.join(_KEPT_IN)}, with {{name}} or {{pid}} in its last parts",
        )

    def left(label: str) -> Iterator[str]:
        for pattern in (pattern for pattern in patterns if "{name}" in pattern):
            yield from map(str, Path("/").glob(pattern.replace("{name}", f"*{label}*").lstrip("/")))

    return ResourceKind(
        name, {"name": FactRule.SANDBOX, "group": FactRule.GROUP}, remove, {"process": FactRule.PROCESS}, left
    )


def _usable_pattern(pattern: str) -> bool:
    parts = pattern.split("/")
    return (
        _PATTERN.fullmatch(pattern) is not None
        and pattern.startswith(_KEPT_IN)
        and not {".", ".."} & set(parts)
        and ("{name}" in pattern) != ("{pid}" in pattern)
    )


def _paths(patterns: Sequence[str], facts: Facts) -> Iterator[Path]:
    owner = Owner.parse(str(facts["process"])) if "process" in facts else None
    if owner is not None and not owner.ended():
        raise HostError(f"process {owner.pid} still runs, and is in none of its instance's control groups")
    for pattern in patterns:
        if "{name}" in pattern:
            yield Path(pattern.replace("{name}", str(facts["name"])))
        elif owner is not None and not owner.replaced():
            yield Path(pattern.replace("{pid}", str(owner.pid)))


def require_in_place(path: Path) -> None:
    """Raise `HostError` where a link on the way leads elsewhere: what is there is not what the path names."""
    above = path.parent
    if above.exists() and above.resolve() != above:
        raise HostError(f"{path} is not removed: a link leads to {above.resolve()}", fix=f"ls -ld {above}")


def registered() -> dict[str, ResourceKind]:
    """Return the kinds of all plug-ins by name. One that breaks the contract is left out with all of its module's."""
    return with_plugins((), GROUP, _usable, prefixed=True)


def _usable(module: object) -> Sequence[ResourceKind]:
    kinds: Sequence[ResourceKind] = getattr(module, "RESOURCES", ())
    if not kinds or not all(isinstance(kind, ResourceKind) for kind in kinds):
        raise UsageError(f"has no RESOURCES that are each a tare.host.resources.kinds.ResourceKind: {_GUIDE}")
    breaches = [breach for kind in kinds for breach in problems(kind)]
    if breaches:
        raise UsageError(f"{'; '.join(breaches)}: {_GUIDE}")
    return kinds


def problems(kind: ResourceKind) -> Iterable[str]:
    """Each breach of what a kind must be, as half a sentence."""
    if not isinstance(kind.name, str) or not _NAME.fullmatch(kind.name):
        yield f"names a resource {kind.name!r}, and not PACKAGE:WORD"
    if not callable(kind.remove):
        yield f"has nothing that removes a {kind.name}"
    if not callable(kind.left):
        yield f"has a left of a {kind.name} that is no function"
    if not all(isinstance(facts, Mapping) for facts in (kind.must, kind.may)):
        yield f"tells a {kind.name} by no mapping of facts to rules"
        return
    for name, rule in {**kind.must, **kind.may}.items():
        if not isinstance(name, str) or not _FACT.fullmatch(name):
            yield f"has a fact of a {kind.name} that is not lower case words: {name!r}"
        if not isinstance(rule, FactRule) and not _words(rule):
            yield f"has a rule for the {name} of a {kind.name} that is none of Rule and no OneOf of plain words"
    if not {FactRule.SANDBOX, FactRule.LINK, FactRule.GROUP, FactRule.PLACE} & set(kind.must.values()):
        yield f"tells a {kind.name} by nothing that must carry tare's label"


def _words(rule: object) -> bool:
    return (
        isinstance(rule, OneOf)
        and bool(rule.words)
        and all(isinstance(word, str) and _WORD.fullmatch(word) for word in rule.words)
    )
