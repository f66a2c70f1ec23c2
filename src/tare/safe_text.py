"""Text from a guest, a file or a file's name made safe: for a terminal, a CI's log, and what is written as UTF-8."""

from __future__ import annotations

import contextlib
import re
import sys
import unicodedata

#: What moves the cursor, clears the screen, sets its title or turns the writing around: a guest, or a file from
#: elsewhere, may hold it in any text. C0 but tab and line feed, DEL, C1, bidi.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
#: Halves of characters, which no encoding has. As those from U+DC80 Python keeps the bytes of a name that is not UTF-8.
_HALVES, _BYTES = re.compile(r"[\ud800-\udfff]"), range(0xDC80, 0xDD00)
#: What a CI's log would obey: GitHub's commands (`::error::`), which begin a line, and its older ones (`##[error]`),
#: Azure's (`##vso[`) and TeamCity's (`##teamcity[`), which may stand anywhere in it.
COMMAND_OF_A_LINE = r"(?m)^([^\S\n]*):(:)"
COMMAND_ANYWHERE = r"#(#)((?:vso|teamcity)?\[)"
_COMMANDS = tuple(
    (re.compile(command), "\\1\N{REPLACEMENT CHARACTER}\\2") for command in (COMMAND_OF_A_LINE, COMMAND_ANYWHERE)
)
#: What tare itself prints beyond ASCII: signs of verdicts and of numbers, arrows, and the steps of a small curve. None
#: is like a colon or a #, which begin a command.
_ALIKE = {
    "\N{MINUS SIGN}": "-", "\N{EN DASH}": "-", "\N{MULTIPLICATION SIGN}": "x", "\N{PLUS-MINUS SIGN}": "+-",
    "\N{MICRO SIGN}": "u", "\N{GREEK SMALL LETTER MU}": "u", "\N{MIDDLE DOT}": ".", "\N{REPLACEMENT CHARACTER}": "?",
    "≈": "~", "≥": ">=", "†": "*", "“": '"', "”": '"', "→": "->", "↑": "^", "↓": "v", "▲": "A", "▼": "V", "△": "^",
    "▽": "v", "✓": "+", "✗": "x", "…": "...", "▸": ">", "◂": "<", "─": "-", "│": "|", "┃": "|",
    **dict(zip("▁▂▃▄▅▆▇█", "_.-~=+*@", strict=True)), **dict(zip("░▒▓", "'%8", strict=True)),
}  # fmt: skip


def clean(text: str) -> str:
    """Return the text without what a terminal, or the log of a CI, would obey."""
    return without_commands(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", encodable(text)))


def without_commands(text: str) -> str:
    """Return the text without what the log of a CI would obey."""
    for command, harmless in _COMMANDS:
        text = command.sub(harmless, text)
    return text


def encodable(text: str) -> str:
    r"""Return the text as UTF-8 can have it: what was a byte of a file's name that is not UTF-8 becomes ``\xff``."""
    return _HALVES.sub(_escaped, text)


def _escaped(half: re.Match[str]) -> str:
    code = ord(half[0])
    return f"\\x{code - 0xDC00:02x}" if code in _BYTES else f"\\u{code:04x}"


def plain(text: str, encoding: str) -> str:
    """Return the text as an encoding has it: characters that it lacks are written by others that read alike.

    What nothing is like stays, for whoever encodes it.
    """
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(_alike(character, encoding) for character in text)
    return text


def _alike(character: str, encoding: str) -> str:
    letter = unicodedata.normalize("NFD", character)[0]  # without its accents
    for written in (character, _ALIKE.get(character, ""), letter):
        with contextlib.suppress(UnicodeEncodeError):
            if written and written.encode(encoding):
                return written
    return character


def say(text: str, *, error: bool = False) -> None:
    """Print it, cleaned: for what speaks where there is no console of the command line's."""
    print(clean(text), file=sys.stderr if error else sys.stdout, flush=True)
