"""What an error says to do can be done: its commands and options exist, its files are there, its packages can be had.

Each fix that stands in the source is a test of its own, so that `pytest --collect-only` lists them all.
"""

import ast
import functools
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tare.cli.commands.app import COMMANDS, load

HERE = Path(__file__).parents[1]
SOURCE = HERE / "src" / "tare"
#: Where a text says what to do.
_NAMES = re.compile(r"(?:^|_)(?:fix|advice|anew|again)$", re.IGNORECASE)
#: Options of other programs that fixes name.
OF_OTHERS = {
    "--add-sub": "usermod",
    "--debug": "tare, before its command",
    "--privileged": "docker run",
    "--ro-bind": "bwrap",
    "--show-log": "lxc",
    "--upgrade": "pip",
    "--version": "Firecracker, Linux",
    "--volatile": "systemd-nspawn",
}
_COMMAND = re.compile(r"(?<![\w/.-])tare ((?:" + "|".join(COMMANDS) + r")\b[^`;,:()]*)")
HOLE = "HOLE"


def _constants(tree):
    """The texts that names of a module stand for."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found[node.target.id] = node.value
    return found


def _texts(node, constants, depth=0):
    """Each text that an expression may give, with `HOLE` where it is only known when tare runs."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.IfExp):
        return _texts(node.body, constants, depth) + _texts(node.orelse, constants, depth)
    if isinstance(node, ast.BoolOp):
        return [text for value in node.values for text in _texts(value, constants, depth)]
    if isinstance(node, ast.Name) and depth < 3:
        return _texts(constants.get(node.id), constants, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = (_texts(side, constants, depth) or [HOLE] for side in (node.left, node.right))
        return [a + b for a in left for b in right]
    if isinstance(node, ast.JoinedStr):
        parts = [
            (_texts(part.value, constants, depth) or [HOLE])[0] if isinstance(part, ast.FormattedValue) else part.value
            for part in node.values
        ]
        return ["".join(parts)]
    return []


@functools.cache
def fixes():
    """Every text that says what to do, by the place where it stands first."""
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(file.read_text())
        constants = _constants(tree)
        for node in ast.walk(tree):
            values = []
            if isinstance(node, ast.keyword) and node.arg in {"fix", "advice"}:
                values = [node.value]
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                values = [node.value] if _NAMES.search(node.targets[0].id) else []
            for text in (text for value in values for text in _texts(value, constants)):
                found.setdefault(text, f"{file.relative_to(SOURCE)}:{values[0].lineno}")
    return found


@functools.cache
def _options():
    """The options of all commands."""
    options = {"--help"}  # of every command, and no parameter
    for name in COMMANDS:
        command = load(name)
        for each in getattr(command, "commands", {"": command}).values():
            options |= {option for parameter in each.params for option in [*parameter.opts, *parameter.secondary_opts]}
    return options


def _packages():
    """The packages of all calls of `distribution.install` with texts."""
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "distribution.install":
                yield from (word.value for word in node.args if isinstance(word, ast.Constant))


def test_fixes_are_found():
    assert len(fixes()) > 300


@pytest.mark.parametrize("text", sorted(fixes()), ids=lambda text: f"{fixes()[text]}-{text[:40]}")
def test_a_fix_names_what_there_is(text):
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text))
    assert named <= _options() | OF_OTHERS.keys(), text
    for path in re.findall(r"(?<![\w/])((?:docs|src|scripts)/[\w/.-]*\w)", text):
        assert (HERE / path).exists(), path
    for call in _COMMAND.findall(text):
        words = call.replace(HOLE, "X").split()
        inner = getattr(load(words[0]), "commands", None)
        assert inner is None or len(words) == 1 or words[1] in inner, text
    assert not re.search(r"(?<!\w)TARE_HOME/", text), "a path that cannot be typed"


@pytest.mark.skipif(shutil.which("apt-cache") is None, reason="no Debian: the names of its packages are not known here")
def test_packages_that_fixes_name_are_debians():
    names = {name for name in _packages() if HOLE not in name}
    assert len(names) > 20
    known = subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True, check=True).stdout.split()
    assert names - set(known) <= {"incus", "virtiofsd"}, "not of Debian 12: of 13"
