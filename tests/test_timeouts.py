"""Every time limit is stretched by ``TARE_PATIENCE``, once, by whoever waits: held by reading the source."""

import ast
import re
from pathlib import Path

import pytest

from tare.timeouts import stretched

SOURCE = Path(__file__).parent.parent / "src" / "tare"
#: What a limit is called. Such a value goes only into a place of such a name, or into what stretches it.
LIMIT = re.compile(r"(?i:(^|_)(limit|grace|timeout|last_words)_s$)|(^|_)TIMEOUT$")
#: Where foreign functions take a limit: what goes in there is stretched by then.
FOREIGN = "timeout"
STRETCH = {"stretched", "until"}
#: How often something is looked at, and how long it is let be: no limit to what is believed.
PACE = re.compile(r"(^|_)(turn|interval|round|lead)_(s|ns)$", re.IGNORECASE)


@pytest.mark.parametrize(
    ("patience", "limit"), [(None, 5.0), ("", 5.0), ("12", 60.0), ("1.5", 7.5), ("0.1", 5.0), ("much", 5.0)]
)
def test_limits_stretch_by_the_factor_and_never_shrink(monkeypatch, patience, limit):
    monkeypatch.delenv("TARE_PATIENCE", raising=False)
    if patience is not None:
        monkeypatch.setenv("TARE_PATIENCE", patience)
    assert stretched(5.0) == limit


def name_of(node):
    """The last part of a dotted name; "" for all else."""
    return getattr(node, "id", None) or getattr(node, "attr", None) or ""


def is_monotonic(node):
    return isinstance(node, ast.Call) and name_of(node.func) in {"monotonic", "monotonic_ns"}


class Reader(ast.NodeVisitor):
    """Collects the lines on which a limit is used as it is."""

    def __init__(self):
        self.wrong = []
        self._above = []

    def visit(self, node):
        self._above.append(node)
        super().visit(node)
        self._above.pop()

    def visit_Name(self, node):
        self._check(node)

    def visit_Attribute(self, node):
        self._check(node)
        self.generic_visit(node)

    def _check(self, node):
        if isinstance(node.ctx, ast.Load) and LIMIT.search(name_of(node)) and not self._goes_on():
            self.wrong.append((node.lineno, name_of(node)))

    def _goes_on(self):
        """Whether the value goes into a place that is named as a limit is, or into a stretch."""
        for below, above in zip(reversed(self._above), reversed(self._above[:-1]), strict=False):
            if isinstance(above, ast.Call) and below is not above.func:
                return name_of(above.func) in STRETCH
            if isinstance(above, ast.keyword):
                return bool(LIMIT.search(above.arg or "")) and above.arg != FOREIGN
            if isinstance(above, ast.Compare):  # whether there is one, and whether it is one: no clock is asked
                constant = all(isinstance(other, ast.Constant) for other in above.comparators)
                return constant or all(isinstance(operator, ast.Is | ast.IsNot) for operator in above.ops)
            if isinstance(above, ast.arguments):
                return True  # the default of a parameter of such a name
            if isinstance(above, ast.stmt):
                return self._assigned()
        return False

    def _assigned(self):
        statement = next(node for node in reversed(self._above) if isinstance(node, ast.stmt))
        if isinstance(statement, ast.Return):
            function = next(node for node in reversed(self._above) if isinstance(node, ast.FunctionDef))
            return bool(LIMIT.search(function.name))
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        return all(LIMIT.search(name_of(target)) for target in targets)

    def visit_BinOp(self, node):
        if isinstance(node.op, ast.Add) and is_monotonic(node.left) and not PACE.search(name_of(node.right)):
            self.wrong.append((node.lineno, "an instant and a span"))
        self.generic_visit(node)

    def visit_Call(self, node):
        foreign = [word.value for word in node.keywords if word.arg == FOREIGN]
        if name_of(node.func) == "settimeout":
            foreign += node.args
        for value in foreign:
            is_stretched = any(
                isinstance(inner, ast.Call) and name_of(inner.func) in STRETCH for inner in ast.walk(value)
            )
            is_stretched |= name_of(value) == FOREIGN  # of an object that was given one
            nothing = isinstance(value, ast.Constant) and value.value in {None, 0}
            if not (is_stretched or nothing or PACE.search(name_of(value))):
                self.wrong.append((node.lineno, "a limit of another's function"))
        self.generic_visit(node)


def unstretched(text):
    reader = Reader()
    reader.visit(ast.parse(text))
    return reader.wrong


#: Without one of these words there is nothing to find: to parse all files and go through them takes seconds.
WORDS = re.compile("(limit|grace|timeout|last_words)_s|timeout|monotonic", re.IGNORECASE)


def test_every_limit_is_stretched_by_whoever_waits():
    files = [file for file in SOURCE.rglob("*.py") if file.name != "timeouts.py"]
    texts = {str(file.relative_to(SOURCE)): file.read_text() for file in files}
    by_file = {name: unstretched(text) for name, text in texts.items() if WORDS.search(text)}
    assert {name: wrong for name, wrong in by_file.items() if wrong} == {}
