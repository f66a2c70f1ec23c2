"""An index of campaign files as a page: what each holds, by its record alone, so that many are listed at once."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tare.errors import Failed, TareError, attempt
from tare.report.formats.html import rendered
from tare.report.model import host_title
from tare.safe_text import encodable
from tare.store import read_store

#: More files are not listed, and the page says so.
MAX_CAMPAIGNS = 2_000
_SUFFIX = ".tare"


@dataclass(frozen=True, slots=True)
class IndexedCampaign:
    """A file of the index. ``problem``: why it cannot be read; then the rest is empty."""

    key: str  # by which its page is asked for
    name: str  # its path below the folder
    created: float | None
    host: str
    profile: str
    platforms: tuple[str, ...]  # but the baseline
    workloads: int
    status: str
    problem: str
    answer: str = ""  # in sentences; empty until it is known


def campaign_files(folder: Path) -> Mapping[str, Path]:
    """Campaign files below a folder by a key that tells nothing of the path; no symbolic link is followed."""
    files: dict[str, Path] = {}
    for parent, folders, names in os.walk(folder, followlinks=False):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            if name.endswith(_SUFFIX) and _is_plain(path):
                files[_key(path.relative_to(folder))] = path
    return files


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:  # of what the host does not let one look at, the listing says so
        return True


def entries(folder: Path) -> list[IndexedCampaign]:
    """The files below a folder, the newest campaign first; what cannot be read comes last."""
    listed = [_entry(key, path, folder) for key, path in list(campaign_files(folder).items())[:MAX_CAMPAIGNS]]
    return sorted(listed, key=lambda entry: (entry.created is None, -(entry.created or 0.0), entry.name))


def index_page(folder: Path, answers: Mapping[Path, str]) -> str:
    """The page that lists the campaigns below a folder. ``answers``: in sentences, by path, where they are known."""
    known = {_key(path.relative_to(folder)): answer for path, answer in answers.items()}
    listed = [replace(entry, answer=known.get(entry.key, "")) for entry in entries(folder)]
    return rendered("index.html", ("tables.js",), folder=folder.resolve().name, entries=listed, most=MAX_CAMPAIGNS)


def _key(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:20]


def _entry(key: str, path: Path, folder: Path) -> IndexedCampaign:
    name = encodable(str(path.relative_to(folder)))
    try:
        read = attempt(lambda: _read(key, path, name))
    except TareError as error:
        return IndexedCampaign(key, name, None, "", "", (), 0, "", encodable(error.what))
    return IndexedCampaign(key, name, None, "", "", (), 0, "", read.reason) if isinstance(read, Failed) else read


def _read(key: str, path: Path, name: str) -> IndexedCampaign:
    with read_store(path) as store:
        record = store.record
        platforms = tuple(platform.name for platform in record.platforms if platform.name != record.baseline)
        host = host_title(record.host)
        return IndexedCampaign(
            key, name, record.created, host, record.profile, platforms, len(record.workloads), store.status, ""
        )
