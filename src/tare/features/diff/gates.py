"""A diff for those who decide on a change: JUnit's XML, SARIF 2.1.0, and annotations of GitHub Actions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from urllib.parse import quote
from xml.etree import ElementTree as ET

from tare.features.diff.analysis import Diff, FigureChange, FigureOutcome
from tare.features.diff.words import (
    OUTCOMES,
    RULE,
    RULE_HELP,
    changed,
    conclusion,
    figure,
    heading,
    more_in_table,
    values,
    why,
)
from tare.report.parts.escaping import github, xml
from tare.safe_text import clean

_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_RULE = "regression"
#: Annotations of each kind that GitHub shows for a step; it drops the rest silently.
_SHOWN = 10


def to_junit(diff: Diff) -> str:
    """A test a figure: a regression is a failure, what nobody can tell is skipped."""
    failures = sum(change.outcome is FigureOutcome.REGRESSION for change in diff.changes)
    skipped = sum(change.outcome is FigureOutcome.OPEN for change in diff.changes)
    counts = {"tests": str(len(diff.changes)), "failures": str(failures), "errors": "0"}
    # As Jenkins' schema has it: how many were skipped is a suite's, and not that of all suites.
    suite = ET.Element(
        "testsuite", {"name": xml(f"tare diff {diff.old} {diff.new}"), **counts, "skipped": str(skipped)}
    )
    for change in diff.changes:
        case = ET.SubElement(suite, "testcase", {"classname": xml(change.platform), "name": xml(figure(change))})
        if change.outcome is not FigureOutcome.FINE:
            tag = "failure" if change.outcome is FigureOutcome.REGRESSION else "skipped"
            ET.SubElement(case, tag, {"message": xml(_message(change))}).text = xml(_from_to(change))
    suites = ET.Element("testsuites", counts)
    suites.append(suite)
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"


def to_sarif(diff: Diff, version: str, source: str) -> str:
    """A result a figure that regressed (``fail``) or is open (``open``), each at a file of the repository.

    ``version``: tare's. ``source``: the file, from the repository's top. A figure has the same fingerprint in every
    diff, so that an alert is closed when it is fine.
    """
    rule = {
        "id": _RULE,
        "name": "Regression",
        "shortDescription": {"text": RULE},
        "helpUri": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html",
        "help": {"text": RULE_HELP},
    }
    run = {
        "tool": {"driver": {"name": "tare", "version": version, "rules": [rule]}},
        "results": [_result(change, source) for change in diff.changes if change.outcome is not FigureOutcome.FINE],
        "properties": {"outcome": diff.outcome, "comparison": clean(heading(diff))},
    }
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _result(change: FigureChange, source: str) -> dict[str, object]:
    worse = change.outcome is FigureOutcome.REGRESSION
    text = f"{change.platform}, {figure(change)}: {_message(change)} ({_from_to(change)})"
    names = "\0".join((change.platform, change.workload, change.metric))
    place = {"artifactLocation": {"uri": quote(source, safe="/", errors="replace")}, "region": {"startLine": 1}}
    return {
        "ruleId": _RULE,
        "kind": "fail" if worse else "open",
        "level": "error" if worse else "none",
        "message": {"text": clean(text)},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"figure/v1": hashlib.sha256(names.encode(errors="replace")).hexdigest()},
    }


def to_annotations(diff: Diff) -> Iterator[str]:
    """Workflow commands, one a line: an error a regression, a warning an open figure, and the outcome as a notice."""
    for outcome, command in ((FigureOutcome.REGRESSION, "error"), (FigureOutcome.OPEN, "warning")):
        changes = [change for change in diff.changes if change.outcome is outcome]
        shown = changes if len(changes) <= _SHOWN else changes[: _SHOWN - 1]
        for change in shown:
            title = github(f"{change.platform}: {figure(change)}", in_property=True)
            yield f"::{command} title={title}::{github(f'{_message(change)} ({_from_to(change)})')}"
        if len(shown) < len(changes):
            yield f"::{command} title=tare diff::{more_in_table(len(changes) - len(shown))}"
    yield f"::notice title=tare diff::{github(conclusion(diff))}"


def _message(change: FigureChange) -> str:
    return f"{OUTCOMES[change.outcome]}: {changed(change) or 'no figure'}; {why(change)}"


def _from_to(change: FigureChange) -> str:
    old, new = values(change)
    return f"{old} → {new}"
