"""Verifies a bundle on any machine: checksums, the crate, and the figures, which are computed again from the samples.

Nothing but the campaign's file is unpacked, into a folder of its own, and every read has a limit.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tare.errors import StoreError, UsageError
from tare.report.campaign.report_builder import build
from tare.report.formats.crate import CAMPAIGN, CRATE, MANIFEST, PROFILE, REPORT
from tare.report.model import to_json
from tare.report.sentences import bundles as words

#: Bytes of a member, of all together, and of what describes the bundle: more is nobody's campaign.
_MAX_MEMBER_BYTES, _MAX_BYTES, _MAX_TEXT_BYTES = 4 << 30, 8 << 30, 4 << 20
#: Limits of an unpacked bundle: bytes, and bytes for each of its own. Deflate gets to a thousand with zeros.
_UNPACKED_BYTES, _UNPACKED_RATIO = 64 << 20, 200
_MAX_MEMBERS = 100
#: Characters of a problem that are shown: it may quote what is in the bundle.
_MAX_LINE = 500
#: Read at once: more than the list of so many members, and what is read of a member.
_MAX_READ_BYTES = 2 << 20
_COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
#: How many times as long as the report that is computed again the one in the bundle may be, and how many more values it
#: may have: each costs memory when it is read. Versions of tare differ by less.
_REPORT_RATIO, _REPORT_BYTES = 4, 1 << 20
_SEPARATORS = ",:[{"
#: Two machines' libraries may differ in the last digits.
_ALIKE = 1e-6
_WRITE, _ANEW = "tare bundle FILE -o X.zip", "get the bundle anew"
#: What zipfile raises, and what reads for it, for what is damaged on purpose.
_UNREADABLE = (
    zipfile.BadZipFile, zlib.error, struct.error, ValueError, NotImplementedError, EOFError, RuntimeError, OSError,
    OverflowError,
)  # fmt: skip


class _Piecewise(io.FileIO):
    """A file of which little is read at once: the list of its members is, and takes 20 times as much memory."""

    def read(self, size: int | None = -1) -> bytes:
        """Read as every file does. Raises `zipfile.BadZipFile` for more than any bundle's list has."""
        if size is None or size < 0:
            size = os.fstat(self.fileno()).st_size - self.tell()
        if size > _MAX_READ_BYTES:
            raise zipfile.BadZipFile(words.long_list(size))
        return super().read(size)


@dataclass(frozen=True, slots=True)
class Verified:
    """The verification of a bundle. ``recomputed``: figures that are the same; ``tare``: the version that made it."""

    campaign: str
    members: int
    recomputed: int
    tare: str
    problems: tuple[str, ...]


def verify(bundle: Path) -> Verified:
    """Check every member against the manifest, the crate against the members, and compute the figures again.

    Raises `UsageError` for what is no bundle.
    """
    try:
        with _Piecewise(bundle) as file, zipfile.ZipFile(file) as archive, tempfile.TemporaryDirectory() as place:
            headers = _headers(archive, bundle.stat().st_size)
            _require_room(bundle, headers, place)
            verified = _verified(archive, headers, Path(place))
            return replace(verified, problems=tuple(map(_line, verified.problems)))
    except _UNREADABLE as error:
        raise UsageError(f"{bundle} is no bundle that can be read: {_line(str(error))}", fix=_WRITE) from error


def _line(text: str) -> str:
    """A text that quotes the bundle, as one line of some length."""
    return "".join(char if char.isprintable() else "?" for char in text[:_MAX_LINE])


def _verified(archive: zipfile.ZipFile, headers: Mapping[str, zipfile.ZipInfo], folder: Path) -> Verified:
    manifest = _manifest(_text(archive, headers, MANIFEST))
    problems = [words.unlisted(name) for name in sorted(headers.keys() - manifest.keys() - {MANIFEST})]
    problems += [words.missing(name) for name in sorted(manifest.keys() - headers.keys())]
    kept = folder / CAMPAIGN
    for name in sorted(manifest.keys() & headers.keys()):
        if _digest(archive, headers[name], kept if name == CAMPAIGN else None) != manifest[name]:
            problems.append(words.changed(name))
    problems += _crate_problems(archive, headers, manifest)
    campaign, tare, same = "", "", 0
    try:
        computed = to_json([build(kept)])
    except (StoreError, ValueError) as error:
        problems.append(words.not_computed(error))
        return Verified(campaign, len(headers), same, tare, tuple(problems))
    try:
        again, written = json.loads(computed), json.loads(_report(archive, headers, computed))
        campaign, tare = str(written.get("id", "")), str(_made_by(archive, headers))
        same, different = _compared(written, again)
        problems += different
    except (ValueError, AttributeError, LookupError, TypeError, OverflowError, RecursionError) as error:
        problems.append(words.no_report(REPORT, error))
    return Verified(campaign, len(headers), same, tare, tuple(problems))


def _headers(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """The members by name. ``size``: the bundle's bytes. Raises `UsageError` for what no bundle of ours is."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if len(names) > _MAX_MEMBERS or len(set(names)) != len(names):
        raise UsageError(f"it has {len(names)} members, or two of a name", fix=_ANEW)
    unpacked = sum(member.file_size for member in members)
    largest = min(_MAX_BYTES, _UNPACKED_BYTES + _UNPACKED_RATIO * size)
    if unpacked > largest or any(member.file_size > _MAX_MEMBER_BYTES for member in members):
        raise UsageError(f"it unpacks to {unpacked >> 20} MiB, which is more than any campaign's bundle", fix=_ANEW)
    if any(member.compress_type not in _COMPRESSIONS for member in members):
        raise UsageError("it is compressed in another way than bundles are", fix=_ANEW)
    for needed in (MANIFEST, CRATE, CAMPAIGN, REPORT):
        if needed not in names:
            raise UsageError(f"it has no {needed}: it is no bundle of tare's", fix=_WRITE)
    return dict(zip(names, members, strict=True))


def _require_room(bundle: Path, headers: Mapping[str, zipfile.ZipInfo], folder: str) -> None:
    needed, free = headers[CAMPAIGN].file_size, shutil.disk_usage(folder).free
    if needed > free:
        raise UsageError(
            f"the campaign in {bundle} has {needed >> 20} MiB, and {Path(folder).parent} has room for {free >> 20} MiB",
            fix="set TMPDIR to a folder on a larger disk",
        )


def _report(archive: zipfile.ZipFile, headers: Mapping[str, zipfile.ZipInfo], again: str) -> str:
    """The text of the report. Raises `ValueError` where reading it costs many times what the one of ``again`` does."""
    if headers[REPORT].file_size > _REPORT_RATIO * len(again.encode()) + _REPORT_BYTES:
        raise ValueError("it is far longer than the one that is computed again")
    with archive.open(headers[REPORT]) as file:
        text = file.read().decode(errors="replace")
    if _values(text) > _REPORT_RATIO * _values(again) + _REPORT_BYTES // 16:
        raise ValueError("it has far more values than the one that is computed again")
    return text


def _values(text: str) -> int:
    """About how many values a text of JSON has."""
    return sum(map(text.count, _SEPARATORS))


def _text(archive: zipfile.ZipFile, headers: Mapping[str, zipfile.ZipInfo], name: str) -> str:
    if headers[name].file_size > _MAX_TEXT_BYTES:
        raise UsageError(f"its {name} is larger than any campaign's", fix=_ANEW)
    with archive.open(headers[name]) as file:
        return file.read().decode(errors="replace")


def _manifest(text: str) -> dict[str, str]:
    lines = (line.partition("  ") for line in text.splitlines())
    return {name: digest for digest, _, name in lines if name}


def _digest(archive: zipfile.ZipFile, header: zipfile.ZipInfo, copy: Path | None) -> str:
    """A member's SHA-256; the campaign is copied out meanwhile, to be read."""
    digest = hashlib.sha256()
    with archive.open(header) as file, contextlib.nullcontext() if copy is None else copy.open("wb") as out:
        while piece := file.read(1 << 20):
            digest.update(piece)
            if out is not None:
                out.write(piece)
    return digest.hexdigest()


def _crate_problems(
    archive: zipfile.ZipFile, headers: Mapping[str, zipfile.ZipInfo], manifest: Mapping[str, str]
) -> list[str]:
    try:
        graph = {entity["@id"]: entity for entity in json.loads(_text(archive, headers, CRATE))["@graph"]}
        parts = {part["@id"] for part in graph["./"]["hasPart"]}
        if graph[CRATE]["conformsTo"]["@id"] != PROFILE:
            return [words.other_profile(CRATE)]
        plain = headers.keys() - {CRATE, MANIFEST}
        problems = [words.undescribed(CRATE, name) for name in sorted(plain - parts)]
        problems += [words.not_there(CRATE, name) for name in sorted(parts - headers.keys())]
        wrong = (name for name in sorted(parts & manifest.keys()) if graph[name].get("sha256") != manifest[name])
        return problems + [words.other_digest(CRATE, name) for name in wrong]
    except (ValueError, KeyError, TypeError, AttributeError):
        return [words.no_crate(CRATE)]


def _made_by(archive: zipfile.ZipFile, headers: Mapping[str, zipfile.ZipInfo]) -> object:
    if "environment.json" not in headers:
        return "unknown"
    bundled = json.loads(_text(archive, headers, "environment.json")).get("bundled", {})
    return bundled.get("tare", "unknown")


def _compared(written: Mapping[str, Any], again: Mapping[str, Any]) -> tuple[int, list[str]]:
    """Return how many numbers of the results are the same, and which are not."""
    if written.get("id") != again["id"]:
        return 0, [words.OTHER_CAMPAIGN]
    old, new = (dict(_numbers(report.get("results"))) for report in (written, again))
    same = sum(name in new and _close(value, new[name]) for name, value in old.items())
    different = [name for name in new if name not in old or not _close(old[name], new[name])]
    different += [name for name in old if name not in new]
    more = [words.more_differ(len(different) - 5)] if len(different) > 5 else []
    shown = [words.differs(name, old.get(name), new.get(name)) for name in different[:5]]
    return same, shown + more


def _numbers(results: object) -> Iterator[tuple[str, float]]:
    for result in results if isinstance(results, list) else []:
        for place in result["platforms"]:
            for name, value in place.items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    yield f"{result['workload']} {result['metric']} {place['platform']} {name}", float(value)


def _close(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=_ALIKE, abs_tol=_ALIKE)
