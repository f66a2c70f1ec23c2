"""`tare cite`: the campaign's own facts, and hostile names as text in BibTeX and LaTeX."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tare.cli.commands.app import app
from tare.model import Design
from tare.report.formats.citation import bibtex, paragraph
from tare.report.formats.tables import Prose
from tare.report.model import Report

EVIL = "}\n@misc{x, title={\\input{/etc/passwd} % $ # & _ ^ ~ \x1b[31m"


def entries(text: str) -> dict[str, dict[str, str]]:
    """Keys with their fields, as BibTeX takes them: a field ends where its braces are even, escaped or not."""
    parsed = {}
    for key, body in re.findall(r"@misc\{([^,]*),\n(.*?)\n\}\n", text, re.DOTALL):
        fields = dict(re.findall(r"^  (\w+) = \{(.*)\},?$", body, re.MULTILINE))
        assert len(fields) == len(body.splitlines()), "a field is a line"
        for value in fields.values():
            depth = 0
            for char in value:
                depth += (char == "{") - (char == "}")
                assert depth >= 0
            assert depth == 0
        parsed[key] = fields
    return parsed


def test_the_paragraph_has_the_campaigns_own_facts(report: Report) -> None:
    text = paragraph(report, Prose.TEXT)
    for fact in (
        "runc, docker, gvisor-systrap and gvisor-ptrace against native with tare 0.1.0 on 21 November 2025",
        report.id,
        "Invented 9000",
        "Linux 6.1.0-fake",
        "docker 1.2.3",
        "the host's CPUs 1 and a memory limit of 512 MiB",
        "Not so of gvisor-systrap: memory limit counts the sentry.",
        "prime-slices, sysbench-cpu, fileio-seqwr, iperf3-tcp and startup",
        f"{report.blocks_done} blocks in ",
        f"the seed {report.seed}",
        "1 %, 5 %",
    ):
        assert fact in text or fact.replace(", 5", " and 5") in text, fact
    assert "\n" not in text


def test_programs_have_the_versions_of_the_images_packages(report: Report) -> None:
    packages = {"sysbench": "1.0.20+ds-5", "iperf3": "3.12-1+deb12u2", "redis-server": "5:7.0.15-1", "bash": "5.2"}
    text = paragraph(report.model_copy(update={"image": {"packages": packages}}), Prose.TEXT)
    assert "The image had sysbench 1.0.20+ds and iperf3 3.12." in text
    assert "redis" not in text
    without = paragraph(report.model_copy(update={"image": {"packages": ["sysbench"]}}), Prose.TEXT)
    assert "The image had" not in without


def test_each_design_is_told_as_it_was(report: Report) -> None:
    texts = {design: paragraph(report.model_copy(update={"design": design}), Prose.TEXT) for design in Design}
    assert len(set(texts.values())) == len(Design)
    assert "by Welch" in texts[Design.SEQUENTIAL]
    assert "same block" not in texts[Design.SEQUENTIAL]


def test_the_entries_name_the_file_by_its_hash(campaign: Path) -> None:
    done = CliRunner().invoke(app, ["cite", str(campaign)])
    assert done.exit_code == 0
    program, data = entries(done.output).values()
    assert "version 0.1.0" in program["title"]
    assert hashlib.sha256(campaign.read_bytes()).hexdigest() in data["note"]
    assert (data["year"], data["month"]) == ("2025", "11")


def test_nothing_ends_a_field_or_is_a_command(report: Report) -> None:
    platforms = [platform.model_copy(update={"name": EVIL, "version": EVIL}) for platform in report.platforms]
    host = {"cpu": {"model": EVIL}, "kernel": EVIL, "distribution": EVIL}
    changes = {
        "platforms": platforms,
        "host": host,
        "id": EVIL,
        "file": EVIL,
        "tare_version": EVIL,
        "image": {"suite": EVIL},
    }
    evil = report.model_copy(update=changes)
    assert len(entries(bibtex(evil, "0" * 64))) == 2
    text = paragraph(evil, Prose.LATEX)
    assert set(re.findall(r"\\([a-zA-Z]+)", text)) <= {
        "textbackslash", "textbraceleft", "textbraceright", "textasciicircum", "textasciitilde",
    }  # fmt: skip
    assert not re.search(r"(?<!\\)[%$#&_^~]", text)
    assert "\x1b" not in bibtex(evil, "") + text


@pytest.mark.parametrize("facts", [{}, {"cpu": None}, {"cpu": {}, "memory_bytes": "much"}])
def test_a_host_of_which_little_is_known_is_told_too(report: Report, facts: dict[str, object]) -> None:
    text = paragraph(report.model_copy(update={"host": facts, "resources": {}, "image": {}}), Prose.TEXT)
    assert "a machine of unknown processor" in text
    assert "unknown size" in text


def test_what_is_pasted_into_a_paper_moves_no_cursor(campaign: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tare.cli.cite.cite", lambda *_: "a\x1b]0;x\x07\u202eb\n")
    written = tmp_path / "x.bib"
    printed = CliRunner().invoke(app, ["cite", str(campaign)]).output
    assert CliRunner().invoke(app, ["cite", str(campaign), "-o", str(written)]).exit_code == 0
    for text in (printed, written.read_text()):
        assert re.fullmatch(r"a[^\x00-\x09\x0b-\x1f\u202e]+b\n", text)
