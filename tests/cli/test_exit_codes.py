"""The exit codes of the code are those of docs/exit-codes.md, and there are no others."""

import re
from pathlib import Path

from tare.cli.exit_codes import ExitCode

ROOT = Path(__file__).parents[2]


def test_the_document_has_every_code():
    rows = re.findall(r"^\| (\d+) \| (\w+) \|", (ROOT / "docs" / "exit-codes.md").read_text(), re.MULTILINE)
    assert {int(code): name for code, name in rows} == {code.value: code.name.lower() for code in ExitCode}


def test_no_command_ends_with_a_bare_number():
    for file in (ROOT / "src" / "tare" / "cli").rglob("*.py"):
        assert not re.search(r"(typer\.Exit|sys\.exit)\(\d", file.read_text()), file
