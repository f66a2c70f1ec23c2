"""Checks before a campaign resumes: changes that decide its figures are refused, others are reported.

Only facts that both the record and this host have are compared: a record of an older tare, which lacks some of today's
facts, is not refused for that. The rule is in docs/method.md ("Going on with a campaign").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tare
from tare.campaign.execution.preflight import StartedPlatform
from tare.campaign.instances import program_environment
from tare.errors import StoreError
from tare.host.facts.machine_facts import HostFacts
from tare.host.kernel import pinning
from tare.image import work
from tare.image.image_build import Image
from tare.image.image_manifest import OwnManifest
from tare.store import CampaignRecord, ClientRecord, LeftOut, Store
from tare.workloads import workload_registry as workloads
from tare.workloads.base import Workload

#: Facts of the host that decide what work costs on it; the others are settings, whose changes are reported.
_DECISIVE = ("architecture", "kernel", "virtualised", "mitigations", "cpu.model", "cpu.threads")
_SETTINGS = (
    "distribution", "cpu.microcode", "cpu.smt", "cpu.governors", "cpu.turbo", "memory_bytes", "swap_bytes",
    "clock_source", "cgroup", "huge_pages", "aslr", "filesystem",
    "bridge_filter", "connection_tracking",
    "memory_policy.merging", "memory_policy.swappiness", "memory_policy.overcommit", "memory_policy.high",
)  # fmt: skip
#: Of the fairness manifest: the memory that a guest's kernel, or a sandbox, reports; the limit has a name of its own.
_SEEN = "memory seen inside"
#: A kernel reserves a few pages more or less in every boot: a difference up to this share is not another memory size.
_MEMORY_SLACK = 0.01
_INEXACT = (_SEEN, "memory_bytes")
#: Of the fairness manifest, what is reported and not refused: settings of a host are those of its containers.
_REPORTED = frozenset({_SEEN, *program_environment.SETTINGS})


@dataclass(frozen=True, slots=True)
class ChangedFact:
    """A fact whose value differs from when the campaign began."""

    what: str
    before: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.what} was {_shown(self.before)}, and is {_shown(self.now)}"


def check_known(store: Store) -> None:
    """Raise `StoreError` where the record has fields that this tare does not know, and so would not honour."""
    if store.unknown_fields:
        raise StoreError(
            f"the record of {store.location} has fields that tare {tare.__version__} does not know:"
            f" {', '.join(store.unknown_fields)}",
            fix=f"resume with tare {store.record.tare_version}, or a later one",
        )


def check_cpus(record: CampaignRecord) -> None:
    """Raise `StoreError` where CPUs of the campaign cannot be used any more."""
    gone = sorted(set(record.resources.cpus) - pinning.reachable())
    if gone:
        raise StoreError(
            f"the campaign runs on CPU {','.join(map(str, gone))}, which cannot be used here now",
            fix="give tare that CPU, or start a new campaign",
        )


def check_revisions(record: CampaignRecord, present: Iterable[Workload]) -> None:
    """Raise `StoreError` where the figures of a workload of the campaign are computed otherwise now.

    ``present``: workloads as they are now; those that are not in the campaign do not matter.
    """
    before = {workload.name: workload.revision for workload in record.workloads}
    changes = [
        ChangedFact(f"the revision of {workload.name}'s figures", before[workload.name], workload.revision)
        for workload in present
        if before.get(workload.name, workload.revision) != workload.revision
    ]
    _refuse(changes)


def check_same(record: CampaignRecord, image: Image, host: HostFacts) -> None:
    """Raise `StoreError` where the campaign ran another image (the agent is part of it), or on another host."""
    if record.image.get("hash") != image.hash:
        _refuse_folder(record, image)
        before = str(record.image.get("hash"))[:16]
        raise StoreError(
            f"the campaign ran image {before}, and now there is {image.hash[:16]}: other bits, other figures",
            fix=f"resume with tare {record.tare_version}, or start a new campaign",
        )
    _refuse(_host_changes(record, host, _DECISIVE))


def _refuse_folder(record: CampaignRecord, image: Image) -> None:
    """Raise `StoreError` where the folder that the user's commands run in is not as it was."""
    folders = {entry.program.folder for entry in record.workloads if entry.program is not None} - {""}
    if not folders:
        return
    now = image.manifest.digests.get(work.DIGEST) if isinstance(image.manifest, OwnManifest) else None
    if now != record.image.get("digests", {}).get(work.DIGEST):
        raise StoreError(
            f"{' and '.join(folders)} has changed since the campaign began: its files, their modes or their times",
            fix="start a new campaign, or restore the folder",
        )


def check_all_there(missing: Sequence[LeftOut]) -> None:
    """Raise `StoreError` where a platform of the campaign cannot be started any more."""
    for platform in missing:
        raise StoreError(
            f"{platform.platform} is in the campaign and does not run here now: {platform.reason}",
            fix=platform.fix or "mend it (tare doctor), or start a new campaign",
        )


def check_platforms(record: CampaignRecord, ready: Sequence[StartedPlatform]) -> None:
    """Raise `StoreError` where a platform has another version, or its instances' resources differ."""
    _refuse(change for entry in ready for change in _platform_changes(record, entry))


def check_client(record: CampaignRecord, now: ClientRecord | None) -> None:
    """Raise `StoreError` where the machine that loads the instances is another one, or calls them by another way."""
    before = record.client
    if before is not None and now is not None:
        decisive = ("name", "kernel", "model", "cpus", "address", "called")
        facts = ((name, getattr(before, name), getattr(now, name)) for name in decisive)
        _refuse(ChangedFact(f"the client's {name}", then, is_now) for name, then, is_now in facts if then != is_now)


def notes(record: CampaignRecord, host: HostFacts, ready: Sequence[StartedPlatform]) -> Iterator[str]:
    """Yield a sentence for each change that may make later blocks differ from earlier ones."""
    if record.tare_version != tare.__version__:
        yield f"resumed: {ChangedFact('tare', record.tare_version, tare.__version__)}"
    for change in _packages(record, ready):
        yield f"resumed: {change}"
    for change in _host_changes(record, host, _SETTINGS):
        yield f"resumed: {change}"
    for entry in ready:
        for fact in sorted(_REPORTED):
            before, now = _fairness(record, entry).get(fact), entry.fairness.get(fact)
            if not _alike(fact, before, now):
                yield f"resumed: {ChangedFact(f'{entry.platform.name}: {fact}', before, now)}"


def _packages(record: CampaignRecord, ready: Sequence[StartedPlatform]) -> Iterator[ChangedFact]:
    """Platforms and workloads that come from another package, or another version of it, than when it began."""
    of_platforms = {platform.name: platform.package for platform in record.platforms}
    present = [(entry.platform.name, of_platforms[entry.platform.name], entry.record.package) for entry in ready]
    present += [(workload.name, workload.package, workloads.package(workload.name)) for workload in record.workloads]
    for name, before, now in present:
        if before != now:
            yield ChangedFact(f"the package of {name}", before or "tare itself", now or "tare itself")


def _refuse(changes: Iterable[ChangedFact]) -> None:
    differ = [str(change) for change in changes]
    if differ:
        raise StoreError(
            f"the campaign cannot continue under the same conditions: {'; '.join(differ)}",
            fix="start a new campaign, or restore the former state",
        )


def _host_changes(record: CampaignRecord, host: HostFacts, facts: Iterable[str]) -> Iterator[ChangedFact]:
    present = host.model_dump(mode="json")
    for fact in facts:
        before, now = _at(record.host, fact), _at(present, fact)
        if not _alike(fact, before, now):
            yield ChangedFact(f"the host's {fact.replace('.', ' ').replace('_', ' ')}", before, now)


def _platform_changes(record: CampaignRecord, ready: StartedPlatform) -> Iterator[ChangedFact]:
    name = ready.platform.name
    before = next(platform for platform in record.platforms if platform.name == name)
    if before.version != ready.record.version:
        yield ChangedFact(f"{name}'s version", before.version, ready.record.version)
    present = {**ready.record.details, **ready.fairness}
    for fact, value in {**before.details, **_fairness(record, ready)}.items():
        if fact not in _REPORTED and not _alike(fact, value, present.get(fact)):
            yield ChangedFact(f"{name}: {fact}", value, present[fact])


def _fairness(record: CampaignRecord, ready: StartedPlatform) -> Mapping[str, Any]:
    facts = record.fairness.get(ready.platform.name)
    return facts if isinstance(facts, dict) else {}


def _at(facts: Mapping[str, Any], path: str) -> Any:
    """Return the fact at a path such as ``cpu.model``; None where it is missing."""
    value: Any = facts
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _alike(fact: str, before: Any, now: Any) -> bool:
    """Return True if a fact has not changed. A fact that is missing on one side counts as unchanged."""
    if before is None or now is None:
        return True
    if fact in _INEXACT:
        return bool(abs(now - before) <= _MEMORY_SLACK * before)
    if isinstance(before, dict) and isinstance(now, dict):
        return all(_alike(name, before[name], now.get(name)) for name in before)
    return bool(before == now)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {text}" for name, text in value.items())
    return (", ".join(map(str, value)) or "nothing") if isinstance(value, list) else str(value)
