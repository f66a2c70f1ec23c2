"""A campaign's citation: BibTeX for tare and for the campaign, and a paragraph on the method."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from tare.report.formats.tables import Prose
from tare.report.model import Report
from tare.report.parts.escaping import latex, markdown
from tare.report.sentences.methods import methods


def cite(report: Report, prose: Prose, sha256: str) -> str:
    """The entries, and after an empty line the paragraph. ``sha256``: of the campaign's file, for its entry."""
    return f"{bibtex(report, sha256)}\n{paragraph(report, prose)}\n"


def bibtex(report: Report, sha256: str) -> str:
    """An entry for the program and one for the data."""
    began = datetime.fromtimestamp(report.created, UTC)
    version, file = latex(report.tare_version), latex(report.file)
    program = {
        "title": f"{{tare}}: what each isolation technology costs against bare metal, version {version}",
        "author": "{The tare developers}",
        "year": str(began.year),
        "note": "Apache License 2.0",
    }
    data = {
        "title": f"Measurements of a campaign of {{tare}}: {file}",
        "author": "{The authors of the campaign}",
        "year": str(began.year),
        "month": str(began.month),
        "note": f"Campaign {latex(report.id)}, measured {began:%Y-%m-%d} with tare {version}; SHA-256 {latex(sha256)}",
    }
    return _entry(f"tare-{_key(report.tare_version)}", program) + "\n" + _entry(f"campaign-{_key(report.id)[:8]}", data)


def paragraph(report: Report, prose: Prose) -> str:
    """The method in prose."""
    text = " ".join(" ".join(sentence.split()) for sentence in methods(report))
    if prose is Prose.LATEX:
        return latex(text)
    return markdown(text) if prose is Prose.MARKDOWN else text


def _entry(key: str, fields: dict[str, str]) -> str:
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"@misc{{{key},\n{lines}\n}}\n"


def _key(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]", "", text) or "unknown"
