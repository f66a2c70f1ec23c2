"""TOML with the line of every key, and all of its mistakes at once.

`tomllib` knows neither: it gives values alone, and ends at the first mistake. tomlkit keeps the text, but tells no
lines, and ends there too. So the text is cut into its statements here, by asking tomllib itself where one is whole:
what counts as TOML is decided by it alone.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tare import inputs
from tare.inputs import MAX_PARTS, line_of_long_key

#: Most characters of a mistake.
MAX_WHAT = 300
#: A key's place: names of tables and keys, and numbers in lists.
Path = tuple[str | int, ...]
#: How tomllib says where; in a part of the text the line is that part's.
_AT = re.compile(r" \(at (?:line (?P<line>\d+), column \d+|end of document)\)$")
_OPEN = "(at end of document)"
#: Most statements to check in a file with mistakes, and most ends to try for a statement of several lines.
MAX_STATEMENTS = 500
#: One of these is on the last line of a text or a list of several lines.
_CLOSES = re.compile(r"\"{3}|'{3}|[\]}]")
#: As TOML has them: other characters that part lines are part of a text or a comment.
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
#: What tomllib says in words that only a reader of its code understands.
_PLAINER = {"Illegal character '\\n'": "a text in quotes ends with its line, without the second quote"}


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake at a line, counted from 1; in one sentence without a full stop, whatever the file has in it."""

    line: int
    what: str
    fix: str = ""

    def __post_init__(self) -> None:
        what = self.what if len(self.what) <= MAX_WHAT else f"{self.what[:MAX_WHAT]}..."
        shown = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in what)
        object.__setattr__(self, "what", shown)


@dataclass(slots=True)
class Lined:
    """The values of a text, the line of each key, and what could not be understood."""

    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[Path, int] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def line(self, path: Path) -> int:
        """Return the line of a key, or of the nearest table above it; 1 where there is none."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def parse(text: str) -> Lined:
    """Values, lines and mistakes of a text. Statements with a mistake are left out of the values."""
    read = Lined()
    if (line := line_of_long_key(text)) is not None:
        read.mistakes.append(Mistake(line, f"a key of {MAX_PARTS} parts or more is not read"))
        return read
    try:
        whole = tomllib.loads(text)
    except (ValueError, RecursionError):
        whole = None
    taken = _Taken(sound=whole is not None)
    for number, (first, statement) in enumerate(_statements(text, read.mistakes)):
        if number == MAX_STATEMENTS and whole is None:
            read.mistakes.append(Mistake(first, f"the first {MAX_STATEMENTS} keys have mistakes; the rest is not read"))
            break
        try:
            taken.add(statement)
        except ValueError as error:
            read.mistakes.append(Mistake(first, _why(error)))
            continue
        for path in _paths(tomllib.loads(taken.alone(statement)), ()):
            read.lines.setdefault(path, first)
    if whole is not None:  # at worst, no line is known of what comes behind a statement that is too long
        read.mistakes.clear()
    read.values = tomllib.loads(taken.text) if whole is None else whole
    return read


class _TooLongError(ValueError):
    """A statement of several lines with too many possible ends."""


class _Taken:
    """The statements that are whole and fit together; ``sound``: all do, and none has to be tried."""

    def __init__(self, *, sound: bool) -> None:
        self.text = ""
        self._table = ""
        self._sound = sound

    def add(self, statement: str) -> None:
        """Take a statement. Raises `ValueError` where it does not go with those before it."""
        if not self._sound:
            longer = self.text + statement
            tomllib.loads(longer)
            self.text = longer
        if statement.lstrip().startswith("["):
            self._table = statement

    def alone(self, statement: str) -> str:
        """Return the statement in its table, and nothing else."""
        return statement if statement == self._table else self._table + statement


def _statements(text: str, mistakes: list[Mistake]) -> Iterator[tuple[int, str]]:
    """Each statement of a text with its first line: a table's name, or a key and its value, whose lines may be many."""
    lines = inputs.lines(text)
    at = 0
    while at < len(lines):
        part, after, error = _next(lines, at)
        if isinstance(error, _TooLongError):
            mistakes.append(Mistake(at + 1, str(error)))
            return
        if error is not None:
            mistakes.append(Mistake(at + _line(error), _why(error)))
        elif part.strip() and not _is_comment(part):
            yield at + 1, part if part.endswith("\n") else f"{part}\n"
        at = after if error is None else at + 1


def _next(lines: list[str], at: int) -> tuple[str, int, BaseException | None]:
    """Return the statement that begins at a line, the line after it, and what is wrong with it."""
    tries = 0
    for end in range(at + 1, len(lines) + 1):
        if at + 1 < end < len(lines) and not _CLOSES.search(lines[end - 1]):
            continue  # what is open stays so
        tries += 1
        if tries > MAX_STATEMENTS:
            return (
                "",
                end,
                _TooLongError(f"this has more than {MAX_STATEMENTS} lines where it may end, and is not read"),
            )
        part = "".join(lines[at:end])
        try:
            tomllib.loads(part)
        except (ValueError, RecursionError) as error:
            if not (str(error).endswith(_OPEN) and end < len(lines) and _may_go_on(part)):
                return part, end, error
        else:
            return part, end, None
    raise AssertionError("a text has an end")


def _is_comment(part: str) -> bool:
    return part.lstrip().startswith("#")


def _may_go_on(part: str) -> bool:
    """Return True if a statement may have more lines: in a text of several lines, or in brackets."""
    return '"""' in part or "'''" in part or part.count("[") > part.count("]") or part.count("{") > part.count("}")


def _paths(value: object, path: Path) -> Iterator[Path]:
    if path:
        yield path
    if isinstance(value, Mapping):
        for name, below in value.items():
            yield from _paths(below, (*path, name))


def _line(error: BaseException) -> int:
    """Return the line of a statement that an error is about, from 1: the first of one that does not end."""
    where = _AT.search(str(error))
    return int(where["line"]) if where is not None and where["line"] and "nclosed" not in str(error) else 1


def _why(error: BaseException) -> str:
    text = _AT.sub("", str(error)) or type(error).__name__
    text = _PLAINER.get(text, text)
    return f"this is not TOML: {text[0].lower()}{text[1:]}"
