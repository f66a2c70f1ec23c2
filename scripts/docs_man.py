"""Man pages of tare and of its commands, from the program's own help: `docs_man.py FOLDER` writes them there."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tare import __version__
from tare.cli.commands.app import COMMANDS, GROUPS, load

#: The commands that end with 3 where they cannot tell.
_GATES = frozenset({"diff", "history"})


def pages() -> Mapping[str, str]:
    """All pages by the names of their files."""
    texts = {"tare.1": "\n".join(_overview())}
    for name in COMMANDS:
        command = load(name)
        for inner, subcommand in getattr(command, "commands", {"": command}).items():
            words = f"{name} {inner}".strip()
            texts[f"tare-{words.replace(' ', '-')}.1"] = "\n".join(_page(words, subcommand))
    return texts


def _overview() -> Iterator[str]:
    yield from _head("tare", "weigh virtualization: what each isolation technology costs against bare metal")
    yield from (".SH SYNOPSIS", r".B tare", r"[\-\-version] [\-\-debug] COMMAND ...", ".SH COMMANDS")
    for title, names in GROUPS.items():
        yield f".SS {_text(title)}"
        for name in (command for command in names if command in COMMANDS):
            yield from (".TP", f".BR tare\\-{_text(name)} (1)", _text(COMMANDS[name].help))
    yield from (".SH ENVIRONMENT", ".TP", ".B TARE_HOME", "where images, campaigns' work and settings are kept")
    yield from (".TP", ".B NO_COLOR", "no colours, where it is set")


def _page(words: str, command: Any) -> Iterator[str]:
    about, _, examples = _plain(command.help or "").partition("Examples:")
    first, _, rest = about.partition("\n")
    yield from _head(f"tare-{words.replace(' ', '-')}", first.rstrip("."))
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    named = " ".join(parameter.name.upper() + ("..." if parameter.nargs != 1 else "") for parameter in arguments)
    yield from (".SH SYNOPSIS", f".B tare {_text(words)}", f"[OPTIONS] {_text(named)}".rstrip(), ".SH DESCRIPTION")
    yield _text(first)
    for paragraph in re.split(r"\n\s*\n", rest.strip()):
        yield from (".PP", _text(" ".join(paragraph.split())))
    yield ".SH OPTIONS"
    for parameter in command.params:
        if parameter.name != "help":
            help_text = " ".join(_plain(parameter.help or "").split())
            yield from (".TP", f".B {_text(_names(parameter))}", _text(help_text) or r"\&")
    if examples.strip():
        yield ".SH EXAMPLES"
        for example in re.split(r"\n\s*\n", examples.strip()):
            typed, _, comment = re.sub(r"\n\s*", " ", example.strip()).partition("   ")
            yield from (".TP", f".B {_text(typed.strip())}", _text(comment.strip()) or r"\&")
    yield ".SH EXIT STATUS"
    for code, meaning in _exit_codes():
        if words in _GATES or code != "3":
            yield from (".TP", f".B {code}", _text(meaning))
    yield from (".SH FILES", ".TP", ".B *.tare", "a campaign: all that was measured, in one file of SQLite")
    yield from (".TP", ".B /var/lib/tare", "images, and the work of campaigns; TARE_HOME names another folder")
    yield from (".SH SEE ALSO", ".BR tare (1)")


def _exit_codes() -> list[tuple[str, str]]:
    """Every exit code with what it says, of the table that users have."""
    table = (Path(__file__).parents[1] / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    return [
        (code, text.replace("`", "")) for code, text in re.findall(r"^\| (\d+) \| \w+ \| (.+) \|$", table, re.MULTILINE)
    ]


def _plain(text: str) -> str:
    """A help text without its marks for a terminal."""
    return re.sub(r"\[/?(?:cyan|bold)?\]", "", text).replace("\b", "")


def _names(parameter: Any) -> str:
    """What is typed: an option's names and what follows it, or the argument."""
    if parameter.param_type_name != "option":
        return str(parameter.name.upper())
    value = "" if parameter.is_flag else f" {parameter.metavar or parameter.name.upper()}"
    return f"{', '.join(parameter.opts)}{value}"


def _head(name: str, summary: str) -> Iterator[str]:
    yield f'.TH "{_text(name.upper())}" "1" "" "tare {_text(__version__)}" "tare"'
    yield from (".SH NAME", f"{_text(name)} \\- {_text(summary)}")


def _text(text: str) -> str:
    """Text that roff takes for text."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def main() -> None:
    """Write the pages."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    texts = pages()
    for name, text in texts.items():
        (folder / name).write_text(f"{text}\n", encoding="utf-8")
    print(f"{len(texts)} pages in {folder}; `man -l {folder}/tare.1` shows one")


if __name__ == "__main__":
    main()
