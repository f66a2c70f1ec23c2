"""docs/platforms.md has for each platform what its users type and what ours adds."""

import re
from pathlib import Path

from tare.platforms import platform_registry

TEXT = (Path(__file__).parents[2] / "docs" / "platforms.md").read_text()
TYPE, ADDS = "| users type", "| ours adds |"


def _names(text):
    """The words that may be names of platforms, families without their argument."""
    return set(re.findall(r"(?<![\w-])[a-z][a-z0-9-]*", text))


def _by_section():
    """The platforms named in the headings of sections that have both rows."""
    sections = [section.partition("\n") for section in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]]
    return {name for head, _, body in sections if TYPE in body and ADDS in body for name in _names(head)}


def _by_row():
    """The platforms in the first cells of tables that have what users type beside them, and no empty cell there."""
    names = set()
    for table in re.findall(r"(?:^\|.*\n)+", TEXT, flags=re.MULTILINE):
        head, _, *rows = [[cell.strip() for cell in line.strip("|\n").split(" | ")] for line in table.splitlines()]
        column = next((number for number, cell in enumerate(head) if cell.startswith("users type")), None)
        if column is not None:
            names |= {name for row in rows if row[column] for name in _names(row[0])}
    return names


def test_each_platform_says_what_its_users_type_and_what_ours_adds():
    described = _by_section() | _by_row()
    names = [*platform_registry.all_platforms(), *platform_registry.families()]
    assert [name for name in names if name not in described] == []
    assert len(names) > 80


def test_a_platform_without_such_a_row_would_be_missed():
    assert "qemu-none" not in _by_section() | _by_row()
    assert "docker-none" in _by_row() - _by_section()
    assert {"runc", "docker", "ssh"} <= _by_section() - _by_row()
