"""A campaign with all that a reviewer needs, in one zip: an RO-Crate 1.1. `tare.report.formats.bundled` verifies it.

The metadata are one document of JSON-LD, written here: the library rocrate wants requests and more packages for what is
some sixty lines.
"""

from __future__ import annotations

import hashlib
import json
import platform
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from tare import __version__
from tare.errors import UsageError
from tare.model import CampaignStatus
from tare.report.formats import parquet
from tare.report.formats.citation import bibtex, paragraph
from tare.report.formats.columns import COLUMNS
from tare.report.formats.html import Material, material_of, page_text, write_page
from tare.report.formats.table_export import export_results
from tare.report.formats.table_frames import results_frame, whole
from tare.report.formats.tables import CampaignTable, Format, Prose
from tare.report.model import Report, to_json
from tare.store import Store, read_store, require_file_of

CRATE = "ro-crate-metadata.json"
MANIFEST = "manifest-sha256.txt"
CAMPAIGN = "campaign.tare"
REPORT = "report.json"
#: The clock of a zip begins here; a fixed one makes the same bundle of the same campaign.
_EPOCH = (1980, 1, 1, 0, 0, 0)
PROFILE = "https://w3id.org/ro/crate/1.1"
_TYPES = {
    ".tare": "application/vnd.sqlite3",
    ".json": "application/json",
    ".html": "text/html",
    ".csv": "text/csv",
    ".md": "text/markdown",
    ".tex": "application/x-tex",
    ".bib": "application/x-bibtex",
    ".parquet": "application/vnd.apache.parquet",
    ".txt": "text/plain",
}


@dataclass(frozen=True, slots=True)
class Member:
    """A file of a bundle, as the crate describes it."""

    name: str
    description: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Credits:
    """The credits of a bundle: authors, a publisher and a licence (an SPDX identifier or an address); "": not given."""

    authors: Sequence[str] = ()
    publisher: str = ""
    license: str = ""

    def entities(self) -> list[dict[str, object]]:
        """Return what the crate says of each."""
        people: list[dict[str, object]] = [
            {"@id": f"#author-{at}", "@type": "Person", "name": name} for at, name in enumerate(self.authors, 1)
        ]
        published: dict[str, object] = {"@id": "#publisher", "@type": "Organization", "name": self.publisher}
        licence: dict[str, object] = {"@id": self._licence(), "@type": "CreativeWork", "name": self.license}
        return [*people, *([published] if self.publisher else []), *([licence] if self.license else [])]

    def of_root(self) -> dict[str, object]:
        """The properties of the data set."""
        authors = [{"@id": f"#author-{at}"} for at, _ in enumerate(self.authors, 1)]
        return {
            "license": {"@id": self._licence()} if self.license else "not given: ask the authors",
            **({"author": authors} if authors else {}),
            **({"publisher": {"@id": "#publisher"}} if self.publisher else {}),
        }

    def _licence(self) -> str:
        return self.license if "://" in self.license else f"https://spdx.org/licenses/{self.license}"


def write(file: Path, out: IO[bytes], named: Credits | None = None) -> list[Member]:
    """Write the bundle of a campaign's file. Raises `TareError`."""
    members: list[Member] = []
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with read_store(file) as store, store.snapshot():
            # Made once: the report is what takes long.
            material = material_of(store, CAMPAIGN)
            report = material.report
            for name, description in _content(file, store, material, folder):
                members.append(_added(archive, folder / name, name, description))
        crate = json.dumps(_crate(report, members, named or Credits()), indent=2, ensure_ascii=False).encode()
        manifest = "".join(f"{member.sha256}  {member.name}\n" for member in members)
        manifest += f"{hashlib.sha256(crate).hexdigest()}  {CRATE}\n"
        for name, data in ((CRATE, crate), (MANIFEST, manifest.encode())):
            archive.writestr(_header(name), data)
    return members


def _content(file: Path, store: Store, material: Material, folder: Path) -> Iterator[tuple[str, str]]:
    """Write each file into the folder, and say what it is."""
    report = material.report
    if store.status is CampaignStatus.RUNNING:
        raise UsageError(f"{file} is still being written", fix="bundle it after its run has ended")
    (folder / CAMPAIGN).write_bytes(require_file_of(file, "a bundle has a copy of it").read_bytes())
    yield CAMPAIGN, "the campaign itself: every sample, output and fact (tare report reads it)"
    (folder / REPORT).write_text(to_json([report]), encoding="utf-8")
    yield REPORT, "the report as data (schema tare.report/2)"
    write_page(page_text([material]), folder / "report.html")
    yield "report.html", "the report as a page, which opens without a network"
    (folder / "tables").mkdir()
    for table in COLUMNS:
        name = f"tables/{table}.parquet"
        frame = results_frame(report) if table is CampaignTable.RESULTS else whole(store, table)
        if frame.height:
            parquet.write(frame, table, folder / name, campaign=report.id)
            yield name, f"the table {table}; units and meanings are in its fields' metadata"
    for name, form in (
        ("tables/results.csv", Format.CSV),
        ("tables/overheads.tex", Format.LATEX),
        ("tables/overheads.md", Format.MARKDOWN),
    ):
        with (folder / name).open("w", encoding="utf-8") as text:
            export_results(report, form, text)
        yield name, f"the table {Path(name).stem}"
    sha256 = _hash(folder / CAMPAIGN)
    (folder / "citation.bib").write_text(bibtex(report, sha256), encoding="utf-8")
    yield "citation.bib", "BibTeX for tare and for this campaign"
    (folder / "method.txt").write_text(paragraph(report, Prose.TEXT) + "\n", encoding="utf-8")
    yield "method.txt", "the method in a paragraph"
    (folder / "environment.json").write_text(json.dumps(_environment(report), indent=2, ensure_ascii=False))
    yield "environment.json", "the host, its image and what measured; and what made this bundle"


def _environment(report: Report) -> dict[str, Any]:
    """Return what the figures depend on, then and now."""
    packages = ("numpy", "polars", "pydantic", "scipy")
    return {
        "measured": {
            "tare": report.tare_version,
            "agent": report.agent_hash,
            "host": report.host,
            "image": report.image,
            "resources": report.resources,
            "platforms": {facts.name: facts.version for facts in report.platforms},
        },
        "bundled": {
            "tare": __version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "packages": {name: metadata.version(name) for name in packages},
        },
    }


def _crate(report: Report, members: list[Member], named: Credits) -> dict[str, Any]:
    """RO-Crate 1.1: the descriptor, the data set, a file each, and the act of measuring."""
    began = datetime.fromtimestamp(report.created, UTC).isoformat(timespec="seconds")
    tare = {"@id": "#tare", "@type": "SoftwareApplication", "name": "tare", "version": report.tare_version}
    measured = {
        "@id": "#campaign",
        "@type": "CreateAction",
        "name": f"tare run, campaign {report.id}",
        "startTime": began,
        "instrument": {"@id": tare["@id"]},
        "result": {"@id": CAMPAIGN},
    }
    files = [
        {
            "@id": member.name,
            "@type": "File",
            "name": member.name.rpartition("/")[2],
            "description": member.description,
            "encodingFormat": _TYPES[Path(member.name).suffix],
            "contentSize": str(member.size),
            "sha256": member.sha256,
        }
        for member in members
    ]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "identifier": report.id,
        "name": f"Campaign {report.id} of tare",
        "description": " ".join(paragraph(report, Prose.TEXT).split()),
        "datePublished": began[:10],
        **named.of_root(),
        "hasPart": [{"@id": member.name} for member in members],
        "mentions": {"@id": measured["@id"]},
    }
    descriptor = {
        "@id": CRATE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": PROFILE},
        "about": {"@id": root["@id"]},
    }
    return {"@context": f"{PROFILE}/context", "@graph": [descriptor, root, *files, measured, tare, *named.entities()]}


def _added(archive: zipfile.ZipFile, source: Path, name: str, description: str) -> Member:
    with source.open("rb") as file, archive.open(_header(name), "w", force_zip64=True) as out:
        while piece := file.read(1 << 20):
            out.write(piece)
    return Member(name, description, _hash(source), source.stat().st_size)


def _header(name: str) -> zipfile.ZipInfo:
    header = zipfile.ZipInfo(name, _EPOCH)
    header.compress_type = zipfile.ZIP_DEFLATED
    header.external_attr = 0o644 << 16
    return header


def _hash(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
