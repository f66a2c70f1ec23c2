"""H1, H2, M11, M12: files and folders of a stranger's, and the commands that read them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tarfile
import zipfile
from functools import partial
from pathlib import Path

from command import at_once, tare
from findings import Finding

from tare.errors import TareError
from tare.features.kernel.execution import lab as footprint_lab
from tare.features.kernel.execution import wire
from tare.features.kernel.lab import forwarded_run as lab_run
from tare.host import processes
from tare.store import read_store

SECTOR = 512
#: What a bundle of some hundred kilobytes may take: many times what a real one of its size does.
BUNDLE_BYTES, BUNDLE_S = 1 << 30, 30.0
CI_COMMAND = "::error::attack"
#: Fields of a record that are text for people.
_TEXTS = ("title", "version", "network_path", "not_honoured", "remarks", "details", "work_unit", "daemon")
#: Modules that a program of tare's may import, or that a Python it starts may be told to run.
MODULES = (
    "ansible", "ansible_runner", "duckdb", "polars", "psycopg", "ensurepip", "venv", "pip", "tare", "json",
    "sitecustomize", "usercustomize", "docker", "yaml", "mod_attack",
)  # fmt: skip
#: What `tare store push` does with each file; without a database, as it connects before.
_PUSHES = """
import sys
from pathlib import Path
from tare.catalogue.address import CatalogueAddress as Address
from tare.cli.push import _pushed
print(_pushed(Path(sys.argv[1]), "a", Address("postgresql://192.0.2.1/x")))
"""
#: Ends of lines with which all commands are tried.
_ALL_COMMANDS = {repr("\n"), repr("\r"), repr("\u2028")}
_MODULE = """
import os, pathlib
pathlib.Path({marker!r}).write_text(f"uid {{os.getuid()}}: {name}")
"""


def journal(victim: Path, pages: int, page_size: int) -> bytes:
    """A rollback journal without a page to roll back, whose super-journal is the victim."""
    name = os.fsencode(victim)
    head = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", 0, 0, pages, SECTOR, page_size)
    ending = struct.pack(">I", pages + 1) + name + struct.pack(">II", len(name), sum(name))
    return head.ljust(SECTOR, b"\0") + ending + head[:8]


def plant(campaign: Path, folder: Path) -> tuple[Path, Path]:
    """A copy of a campaign in a folder, with a journal beside it that removes a file there; both paths."""
    folder.mkdir()
    victim, copy = folder / "victim", folder / "their.tare"
    victim.write_text("a file of the host's\n")
    shutil.copy(campaign, copy)
    with copy.open("rb") as file:
        [page_size] = struct.unpack(">16xH", file.read(18))
    page_size = page_size if page_size > 1 else 65_536
    Path(f"{copy}-journal").write_bytes(journal(victim, copy.stat().st_size // page_size, page_size))
    return copy, victim


def attack_journals(finding: Finding, campaign: Path, work: Path) -> None:
    """H1: each command on a file that has a hot journal beside it, and the way of a lab's results."""
    copy, victim = plant(campaign, work / "control")
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(copy)) as db:
        db.execute("SELECT * FROM fact").fetchall()
    if victim.exists():
        finding.untried.append("SQLite itself does not obey this journal, so that it shows nothing")
        return
    commands = {
        "report": ("report", "FILE"), "export": ("export", "FILE", "--format", "jsonl"),
        "sql": ("sql", "FILE", "select 1"), "diff": ("diff", "FILE", "FILE"), "cite": ("cite", "FILE"),
        "bundle": ("bundle", "FILE", "-o", "FOLDER/x.zip"), "resume": ("run", "--resume", "FILE"),
        "resume --trust": ("run", "--resume", "FILE", "--trust"),
        "compare": ("compare", "FILE"), "score": ("score", "FILE"), "spread": ("spread", "FILE"),
        "history": ("history", "FOLDER"), "fleet report": ("fleet", "report", "FOLDER"),
        "fleet report of a file": ("fleet", "report", "FILE"), "reserve-yaml": ("capacity", "--reserve-yaml", "FILE"),
        "by a link": ("report", "LINK"), "by a link with --trust": ("run", "--resume", "LINK", "--trust"),
        "against": ("footprint", "-p", "native", "--level", "instructions", "--against", "FILE", "-o", "FOLDER/n.tare"),
        "more": ("run", "--more", "10s", "FILE"),
        "surface": ("surface", "runc", "-o", "FILE"),
        "footprint": ("footprint", "-p", "native", "-w", "startup", "--level", "syscalls", "-o", "FILE"),
        "share": ("report", "FILE", "--share", "FOLDER/copy.tare"), "figure": ("figure", "FILE", "-o", "FOLDER/x.svg"),
    }  # fmt: skip
    for number, (name, words) in enumerate(commands.items()):
        copy, victim = plant(campaign, work / f"journal-{number}")
        link = work / f"link-{number}.tare"
        link.symlink_to(copy)
        places = {"FILE": copy, "FOLDER": copy.parent, "LINK": link}
        filled = words
        for written, place in places.items():
            filled = tuple(word.replace(written, str(place)) for word in filled)
        ended = tare(*filled)
        if victim.exists() and ended.code != 0 and "journal" not in ended.text:
            finding.untried.append(f"{name}: it ended before it opened the file: {ended.text.strip()[-150:]}")
        else:
            finding.attempt(name, "" if victim.exists() else f"the victim is gone (exit code {ended.code})")
    copy, victim = plant(campaign, work / "pushed")
    done = subprocess.run([sys.executable, "-I", "-c", _PUSHES, copy], capture_output=True, text=True, check=False)
    if victim.exists() and "journal" not in done.stdout:
        finding.untried.append(f"store push: {(done.stdout + done.stderr).strip()[-150:]}")
    else:
        finding.attempt("store push", "" if victim.exists() else "the victim is gone")
    copy, victim = plant(campaign, work / "from-lab")
    packed = work / "out.tar"
    with tarfile.open(packed, "w") as tar:
        tar.add(copy, wire.CAMPAIGN)
        tar.add(f"{copy}-journal", f"{wire.CAMPAIGN}-journal")
    place = work / "unpacked"
    with contextlib.suppress(TareError):
        lab_run.unpack(packed, place, footprint_lab._EXPECTED)
        with read_store(place / wire.CAMPAIGN) as came:
            footprint_lab.bring(came, [], work / "ours.tare")
    finding.attempt("a lab's result", "" if victim.exists() else "the victim is gone")


def attack_folder(finding: Finding, campaign: Path, work: Path) -> None:
    """H2: commands that are typed in another user's folder of Python modules and programs."""
    folder, marker = work / "of-nobody", work / "ran"
    folder.mkdir()
    for name in MODULES:
        code = _MODULE.format(marker=str(marker), name=name)
        (folder / f"{name}.py").write_text(code)
        (folder / name).mkdir()
        for file in ("__init__.py", "__main__.py"):
            (folder / name / file).write_text(code)
    (folder / "matplotlibrc").write_text("backend: module://mod_attack\n")
    for name in ("runc", "iptables", "ip", "git", "python3"):
        program = folder / name
        program.write_text(f"#!/bin/sh\necho program {name} >{marker}\n")
        program.chmod(0o755)
    for place in (folder, *folder.rglob("*")):
        os.chown(place, 65_534, 65_534)
    subprocess.run([sys.executable, "-m", "venv", "--help"], cwd=folder, capture_output=True, check=False)
    if not marker.exists():
        finding.untried.append("Python itself does not take modules from there, so that it shows nothing")
        return
    marker.unlink()
    commands = {
        "setup": ("setup", "--dry-run"), "doctor": ("doctor",), "report": ("report", str(campaign)),
        "figure": ("figure", str(campaign), "-o", str(work / "figure.svg")),
        "platform check": ("platform", "check", "native", "--only", "kill-leaves-nothing"),
        "clean": ("clean", "--dry-run"), "list": ("list", "platforms"),
        "sql": ("sql", str(campaign), "select 1"), "history": ("history", str(campaign.parent)),
        "fleet report": ("fleet", "report", str(campaign)), "diff": ("diff", str(campaign), str(campaign)),
        "export": ("export", str(campaign), "--format", "parquet", "-o", str(work / "export.parquet")),
        "fleet run": ("fleet", "run", "-i", "192.0.2.1,", "-o", str(work / "fleet-of-nobody"), "--", "-p", "native"),
        "run": ("run", "-p", "native", "-w", "startup", "--blocks", "1", "-o", str(work / "of-nobody.tare")),
        "store push": ("store", "push", str(campaign), "postgresql://127.0.0.1:1/x"),
        "surface": ("surface", "native", "-o", str(work / "surface-of-nobody.tare")),
        "lab": ("lab", "list"),
    }  # fmt: skip
    path = os.environ["PATH"]
    ways = [(name, words, path) for name, words in commands.items()]
    ways += [(f"{name} with PATH={first}:", commands[name], f"{first}:{path}") for name in ("setup", "doctor")
             for first in (".", "")]  # fmt: skip
    for name, words, value in ways:
        tare(*words, cwd=folder, limit_s=300, path=value)
        finding.attempt(name, marker.read_text().strip() if marker.exists() else "")
        marker.unlink(missing_ok=True)
    before = Path.cwd()
    os.chdir(folder)
    try:
        processes.run([sys.executable, "-m", "venv", "--help"], time_limit_s=30)
    finally:
        os.chdir(before)
    finding.attempt("a child's folder", marker.read_text() if marker.exists() else "")


def _zip(source: Path, target: Path, **changed: bytes) -> Path:
    """A bundle with other contents of some members; a name's first underscore stands for its dot."""
    others = {name.replace("_", ".", 1).replace("_", "-"): data for name, data in changed.items()}
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            if member.filename not in others:
                new.writestr(member, old.read(member))
        for name, data in others.items():
            new.writestr(name, data, compresslevel=9)
    return target


def attack_bundles(finding: Finding, campaign: Path, work: Path) -> None:
    """M11: brackets and zeros in members, in a small bundle and in one with ballast, and damaged LZMA."""
    good = work / "good.zip"
    made = tare("bundle", campaign, "-o", good)
    verified = tare("bundle", "--verify", good)
    if made.code or verified.code:
        finding.untried.append(f"no bundle was made and verified: {(made.text + verified.text).strip()[-200:]}")
        return
    brackets, ballast = b"[" + b"[],\n" * (60 << 20), os.urandom(2 << 20)
    bundles = {
        "brackets as report.json": _zip(good, work / "1.zip", report_json=brackets),
        "brackets as the crate": _zip(good, work / "2.zip", **{"ro_crate_metadata.json": brackets}),
        "brackets with ballast": _zip(good, work / "3.zip", report_json=brackets[: 60 << 20], ballast_bin=ballast),
        "zeros as the campaign": _zip(good, work / "4.zip", campaign_tare=bytes(1 << 30)),
    }
    damaged = work / "5.zip"
    with zipfile.ZipFile(damaged, "w", zipfile.ZIP_LZMA) as lzma:
        lzma.writestr("report.json", b"{}" * 5000)
        lzma.writestr("campaign.tare", b"x" * 5000)
    data = bytearray(damaged.read_bytes())
    data[80:90] = b"\xff" * 10
    damaged.write_bytes(data)
    bundles["damaged LZMA"] = damaged
    for name, file in bundles.items():
        ended = tare("bundle", "--verify", file, limit_s=200)
        said = ended.fault
        if ended.peak_bytes > BUNDLE_BYTES:
            said = f"{ended.peak_bytes >> 20} MiB for a bundle of {file.stat().st_size >> 10} KiB"
        elif ended.seconds > BUNDLE_S:
            said = f"{ended.seconds:.0f} s for a bundle of {file.stat().st_size >> 10} KiB"
        elif ended.code == 0:
            said = "it is verified as right"
        finding.attempt(name, said)


def _with_text(campaign: Path, file: Path, text: str) -> Path:
    """A copy of a campaign in whose texts this text is: the host's facts, the platforms' and workloads', warnings."""

    def more(value: object, *, key: str = "") -> object:
        if isinstance(value, dict):
            return {name: more(part, key=name) for name, part in value.items()}
        if isinstance(value, list):
            return [more(part, key=key) for part in value]
        return f"{value}{text}" if isinstance(value, str) and key in _TEXTS else value

    shutil.copy(campaign, file)
    with contextlib.closing(sqlite3.connect(file)) as db, db:
        [(record,)] = db.execute("SELECT value FROM fact WHERE name = 'record'").fetchall()
        facts = json.loads(record)
        facts["host"] = {name: f"{value}{text}" for name, value in facts["host"].items() if isinstance(value, str)}
        db.execute("UPDATE fact SET value = ? WHERE name = 'record'", (json.dumps(more(facts)),))
        db.execute("UPDATE trial SET reason = reason || ? WHERE reason IS NOT NULL", (text,))
        db.execute("INSERT INTO event (at, level, text) VALUES (0, 'warning', ?)", (f"a warning{text}",))
    return file


def attack_lines(finding: Finding, campaign: Path, work: Path) -> None:
    """M12: ends of lines before a command of GitHub's, and texts that a table breaks just there."""
    ends = ("\n", "\r", "\r\n", "\v", "\f", "\x85", "\u2028")
    shown: set[str] = set()
    texts = {repr(end): f"{end}{CI_COMMAND}{end}" for end in ends}
    texts |= {f"{width} letters": f" {'a' * width} {CI_COMMAND}" for width in (40, 60, 78, 100, 118)}
    for number, (name, text) in enumerate(texts.items()):
        theirs = _with_text(campaign, work / f"lines-{number}.tare", text)
        commands = [("report", theirs), ("diff", campaign, theirs, "--annotations"), ("cite", theirs)]
        if name in _ALL_COMMANDS:
            folder = work / f"folder-{number}"
            folder.mkdir()
            for copy in range(3):
                _with_text(campaign, folder / f"{copy}.tare", text)
            commands += [("history", folder), ("fleet", "report", folder), ("compare", theirs), ("score", theirs)]
            commands += [("spread", theirs), ("export", theirs, "--format", "markdown"), ("run", "--resume", theirs)]
            commands += [("diff", theirs, theirs, "--markdown", work / f"{number}.md")]
        for words, ended in zip(commands, at_once([partial(tare, *words) for words in commands]), strict=True):
            lines = re.split(r"[\r\n]+", ended.text)
            begins = any(line.lstrip().startswith(CI_COMMAND) for line in lines)
            finding.attempt(f"{words[0]} {name}", f"a line begins with {CI_COMMAND}" if begins else ended.fault)
            if "attack" in ended.text:
                shown.add(str(words[0]))
    _attack_by_names(finding, campaign, work)
    if "report" not in shown:
        finding.untried.append("no report shows the text, so that this shows nothing")


def _attack_by_names(finding: Finding, campaign: Path, work: Path) -> None:
    """The same by a file's name."""
    folder = work / "names-of-lines"
    folder.mkdir()
    named = folder / f"x\n{CI_COMMAND}\n.tare"
    shutil.copy(campaign, named)
    shutil.copy(campaign, folder / "y.tare")
    for words in (
        ("report", named), ("history", folder), ("fleet", "report", folder), ("diff", named, folder / "none.tare"),
        ("export", named, "--format", "csv"), ("store", "push", named, "postgresql://127.0.0.1:1/x"),
        ("run", "--resume", named), ("bundle", named, "-o", work / "x" / f"y\n{CI_COMMAND}"),
    ):  # fmt: skip
        ended = tare(*words)
        begins = any(line.lstrip().startswith(CI_COMMAND) for line in re.split(r"[\r\n]+", ended.text))
        finding.attempt(f"{words[0]}, a file's name", f"a line begins with {CI_COMMAND}" if begins else ended.fault)
