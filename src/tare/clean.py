"""Text from a guest or a file made safe for a terminal and for the log of a CI."""

from __future__ import annotations

import re
import sys

#: What moves the cursor, clears the screen, sets its title or turns the writing around, and halves of characters that
#: no encoding has: a guest, or a file from elsewhere, may hold it in any text. C0 but tab and line feed, DEL, C1, bidi.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
#: What a CI's log would obey: GitHub's commands (`::error::`), which begin a line, and its older ones (`##[error]`),
#: Azure's (`##vso[`) and TeamCity's (`##teamcity[`), which may stand anywhere in it.
COMMAND_OF_A_LINE = r"(?m)^([^\S\n]*):(:)"
COMMAND_ANYWHERE = r"#(#)((?:vso|teamcity)?\[)"
_COMMANDS = tuple(
    (re.compile(command), "\\1\N{REPLACEMENT CHARACTER}\\2") for command in (COMMAND_OF_A_LINE, COMMAND_ANYWHERE)
)


def clean(text: str) -> str:
    """The text without what a terminal, or the log of a CI, would obey."""
    return without_commands(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text))


def without_commands(text: str) -> str:
    """The text without what the log of a CI would obey."""
    for command, harmless in _COMMANDS:
        text = command.sub(harmless, text)
    return text


def say(text: str, *, error: bool = False) -> None:
    """Print it, cleaned: for what speaks where there is no console of the command line's."""
    print(clean(text), file=sys.stderr if error else sys.stdout, flush=True)
