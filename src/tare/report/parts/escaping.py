"""Text from a guest or a file as text in each format: nothing in it is a command, markup or a formula there."""

from __future__ import annotations

import re

from tare.records import LINE_END
from tare.safe_text import clean, without_commands

#: First characters of a text that a spreadsheet takes for a formula (OWASP, "CSV Injection").
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
#: What XML 1.0 can hold; all else is no XML, not even as a reference.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",  # whatever the font's encoding, and no shorthand of babel's
    "`": r"\textasciigrave{}",
    "\N{MINUS SIGN}": r"\textminus{}",
    "\N{MULTIPLICATION SIGN}": r"\texttimes{}",
    "\N{PLUS-MINUS SIGN}": r"\textpm{}",
    "\N{MICRO SIGN}": r"\textmu{}",
    "\N{GREEK SMALL LETTER MU}": r"\textmu{}",
    "\N{EN DASH}": r"\textendash{}",
    "\N{HORIZONTAL ELLIPSIS}": r"\ldots{}",
    "\N{RIGHTWARDS ARROW}": r"\textrightarrow{}",
    "\N{UPWARDS ARROW}": r"\textuparrow{}",
    "\N{DOWNWARDS ARROW}": r"\textdownarrow{}",
    "{": r"\textbraceleft{}",  # BibTeX counts braces, escaped ones too
    "}": r"\textbraceright{}",
    **{char: f"\\{char}" for char in "&%$#_"},
}


def spreadsheet(value: object) -> object:
    """A cell for a spreadsheet: text of one line, no formula and no command of a CI's log; numbers stay as they are."""
    if not isinstance(value, str):
        return value
    guarded = f"'{value}" if value.startswith(FORMULA) else value
    return without_commands(re.sub(LINE_END, " ", guarded))


def markdown(text: str) -> str:
    """One line of text: nothing in it is Markdown or HTML, nor ends a cell of a table."""
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", _line(text)).replace("&", "&amp;")


def latex(text: str) -> str:
    """One line of text for LaTeX (pdfLaTeX with UTF-8 input too): no command, and no letter that its fonts lack."""
    shown = "".join(_LATEX.get(char, char if char.isascii() or _is_latin(char) else "?") for char in _line(text))
    return re.sub("-(?=-)", "-{}", shown)  # two would be a dash


def _is_latin(char: str) -> bool:
    return char.isalpha() and char < "\u0180"


def xml(text: str) -> str:
    """Without what XML cannot hold; its writer escapes the rest."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", clean(text))


def github(text: str, *, in_property: bool = False) -> str:
    """A part of a workflow command of GitHub's: without line ends, and as a property without what separates these."""
    shown = _line(text).replace("%", "%25")
    return shown.replace(":", "%3A").replace(",", "%2C") if in_property else shown


def _line(text: str) -> str:
    return clean(" ".join(text.split()))
