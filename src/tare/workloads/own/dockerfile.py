"""A Dockerfile, where it is plain: what it says of the image's start. What builds the image is a mistake at its line.

Own code: of the format's instructions a dozen say how an application is started, each in a line of words. The libraries
that read Dockerfiles are parts of builders, or give the same lines.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import takewhile

from tare import inputs
from tare.workloads.own import service
from tare.workloads.own.service import INTERVAL_S, RETRIES, SHELL, Health, OwnService
from tare.workloads.own.toml_lines import Mistake

_BUILDS = frozenset({"RUN", "COPY", "ADD"})
#: What does not change how the application starts.
_PASSED = frozenset({"LABEL", "MAINTAINER", "STOPSIGNAL"})
_ESCAPE = re.compile(r"#\s*escape\s*=\s*(.*)$", re.IGNORECASE)
_DIRECTIVE = re.compile(r"#\s*\w+\s*=", re.ASCII)
#: White space that separates an instruction's words.
_SPACE = re.compile(r"[\t\v\f\r ]+")
#: A shell's word as it is written, and one that starts a here-document: by BuildKit's rules.
_WORD = re.compile(r"(?:\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|[^\s'\"\\])+")
_HEREDOC = re.compile(r"\d*<<(-?+)([^<]+)", re.ASCII)
#: A literal dollar sign: shlex removes the quotation marks that make it one.
_LITERAL_DOLLAR = re.compile(r"\\\$|'[^']*\$[^']*'")


@dataclass(slots=True)
class _Stage:
    """The state of a stage after its instructions so far."""

    service: OwnService
    scratch: bool = False
    built: list[Mistake] = field(default_factory=list)


def read(text: str, built: bool) -> tuple[OwnService, list[Mistake]]:
    """Return the application of a Dockerfile, and what in it is not plain. ``built``: its image was built already."""
    reader = _Reader(built)
    for line, instruction, rest in _instructions(text, reader.mistakes):
        reader.take(line, instruction, rest)
    return reader.ended()


def _instructions(text: str, mistakes: list[Mistake]) -> Iterator[tuple[int, str, str]]:
    """Each instruction with the line where it begins, without comments; lines that end with the escape go on."""
    lines = [line.removesuffix("\n").removesuffix("\r") for line in inputs.lines(text.removeprefix("\ufeff"))]
    escape, at = _escape(lines, mistakes), 0
    while at < len(lines):
        first = at + 1
        instruction, at = _joined(lines, at, escape)
        name, rest = [*_SPACE.split(instruction, maxsplit=1), ""][:2]
        if name.upper() in _BUILDS:  # a text in a builder's instruction is no instruction
            for tabs, end in _heredocs(rest):
                after = _after(lines, at, end, tabs)
                if after is None:
                    mistakes.append(Mistake(first, f"{name.upper()}: no line is {end!r}, which would end its text"))
                else:
                    at = after
        if name:
            yield first, name.upper(), rest.strip()


def _heredocs(rest: str) -> Iterator[tuple[str, str]]:
    """Each here-document of an instruction: "-" if tabs before its end are ignored, and the line that ends it."""
    for word in _WORD.findall(rest):
        if begun := _HEREDOC.fullmatch(word):
            yield begun[1], re.sub(r"[\"'\\]", "", begun[2])


def _after(lines: list[str], at: int, end: str, tabs: str) -> int | None:
    """Return the number of the line after a here-document's end; None if it does not end."""
    for number, line in enumerate(lines[at:], start=at + 1):
        if (line.lstrip("\t") if tabs else line) == end:
            return number
    return None


def _escape(lines: list[str], mistakes: list[Mistake]) -> str:
    """Return what a line ends with that goes on: a directive at the top may say so."""
    for number, line in enumerate(takewhile(_DIRECTIVE.match, lines), start=1):
        if chosen := _ESCAPE.match(line):
            if chosen[1].strip() in {"\\", "`"}:
                return chosen[1].strip()
            mistakes.append(Mistake(number, f"the escape {chosen[1][:40]!r} is neither \\ nor `", "# escape=`"))
    return "\\"


def _joined(lines: list[str], at: int, escape: str) -> tuple[str, int]:
    """Return the instruction that begins at a line, and the line after it."""
    goes_on = re.compile(rf"(?<!{re.escape(escape)}){re.escape(escape)}[\t ]*$")
    words = ""
    for number, line in enumerate(lines[at:], start=at + 1):
        bare = line.strip()
        if bare.startswith("#"):
            if words:
                continue
            return "", number
        if words and not bare:
            continue
        if not goes_on.search(line):
            return (words + line).strip(), number
        words += goes_on.sub("", line)  # the blanks of a line that goes on are part of it
    return words.strip(), len(lines)


class _Reader:
    def __init__(self, built: bool) -> None:
        self._built = built
        self._arguments: dict[str, str] = {}  # ARG before the first FROM
        self._stages: dict[str, _Stage] = {}
        self._stage: _Stage | None = None
        self._local: dict[str, str] = {}  # ARG and ENV of the stage
        self.mistakes: list[Mistake] = []
        self._read: dict[str, Callable[[OwnService, int, str], None]] = {
            "ENV": self._env,
            "WORKDIR": self._workdir,
            "USER": self._user,
            "EXPOSE": self._expose,
            "VOLUME": self._volume,
            "CMD": self._command,
            "ENTRYPOINT": self._entrypoint,
            "HEALTHCHECK": self._health,
        }

    def take(self, line: int, name: str, rest: str) -> None:
        if name == "FROM":
            self._from(line, rest)
        elif name == "ARG":
            self._arg(line, rest)
        elif self._stage is None:
            self._wrong(line, f"{name} stands before FROM", "begin with FROM")
        elif name in _BUILDS:
            problem = f"{name} builds an image, and tare builds none"
            self._stage.built.append(Mistake(line, problem, _BUILD_FIRST))
        elif name in self._read:
            self._stage.service.lines.setdefault(_KEYS.get(name, name), line)
            self._read[name](self._stage.service, line, rest)
        elif name not in _PASSED:
            self._wrong(line, f"{name} is not read", "leave it out, or write the file by hand: tare app init FILE")

    def ended(self) -> tuple[OwnService, list[Mistake]]:
        if self._stage is None:
            return OwnService(), [Mistake(1, "there is no FROM in it", "name a Dockerfile"), *self.mistakes]
        described = self._stage.service
        if not self._built:
            self.mistakes += self._stage.built
            if self._stage.scratch:
                self._wrong(described.lines["image"], "scratch is an empty image", _BUILD_FIRST)
        described.name = service.word_of(described.image.partition("@")[0].rpartition("/")[2].partition(":")[0])
        return described, sorted([*self.mistakes, *service.problems(described)], key=lambda mistake: mistake.line)

    def _wrong(self, line: int, problem: str, fix: str = "") -> None:
        self.mistakes.append(Mistake(line, problem, fix))

    def _from(self, line: int, rest: str) -> None:
        words = [word for word in rest.split() if not word.startswith("--")]
        if len(words) not in {1, 3} or (len(words) == 3 and words[1].upper() != "AS"):
            self._wrong(line, f"FROM {rest} is not FROM IMAGE [AS NAME]")
            words = words[:1] or ["scratch"]
        image = self._filled(line, words[0], self._arguments)
        # What an earlier stage says holds in one that begins with it.
        self._stage = deepcopy(self._stages.get(image)) or _Stage(OwnService(image=image), scratch=image == "scratch")
        self._stage.service.lines["image"] = line
        self._local = dict(self._stage.service.env)
        if len(words) == 3:
            self._stages[words[2]] = self._stage

    def _arg(self, line: int, rest: str) -> None:
        scope = self._arguments if self._stage is None else self._local
        for word in self._words(line, rest):
            name, separator, value = word.partition("=")
            if separator:
                scope[name] = self._filled(line, value, scope)
            elif self._stage is not None and name in self._arguments:
                scope[name] = self._arguments[name]

    def _env(self, described: OwnService, line: int, rest: str) -> None:
        pairs = self._pairs(line, rest)
        before = dict(self._local)
        for name, text in pairs:
            filled = service.substituted(text, before)
            if filled.problem and self._built:
                continue  # the image has it
            if filled.problem:
                problem = f"ENV {name}: {filled.problem} here: the image that FROM names may have one"
                self._wrong(line, problem, _BUILD_FIRST)
            described.env[name] = self._local[name] = filled.text

    def _pairs(self, line: int, rest: str) -> list[tuple[str, str]]:
        """Return the names and values of an ENV: NAME=VALUE each, or NAME and all that follows it."""
        first, *others = _SPACE.split(rest, maxsplit=1)
        if "=" not in first:
            if not others or re.search(r"[\"'\\]", others[0]):
                self._wrong(line, f"ENV {first[:80]} is not NAME=VALUE, nor NAME and a text without quotation marks")
            return [(first, value.strip()) for value in others]
        words = self._words(line, rest)
        for word in words:
            if "=" not in word:
                self._wrong(line, f"ENV: {word[:80]} has no value", "put a value with spaces into quotation marks")
        return [(name, value) for name, _, value in (word.partition("=") for word in words)]

    def _workdir(self, described: OwnService, line: int, rest: str) -> None:
        path = self._filled(line, rest, self._local)
        if not path.startswith("/") and not described.directory and not self._built:
            self._wrong(line, f"WORKDIR {path} begins in a folder that only the image knows", "begin it with /")
        described.directory = path if path.startswith("/") else f"{described.directory.rstrip('/')}/{path}"

    def _user(self, described: OwnService, line: int, rest: str) -> None:
        described.user = self._filled(line, rest, self._local)

    def _expose(self, described: OwnService, line: int, rest: str) -> None:
        for word in self._filled(line, rest, self._local).split():
            text, _, protocol = word.partition("/")
            number = service.whole(text)
            if protocol.lower() not in {"", "tcp"} or number is None:
                self._wrong(line, f"EXPOSE {word[:80]} is not one TCP port", "a load calls one TCP port")
            elif described.port not in {None, number}:
                self._wrong(
                    line, f"EXPOSE {word}: {described.port} is exposed too", "leave the port that the load calls"
                )
            else:
                described.port = number

    def _volume(self, described: OwnService, line: int, rest: str) -> None:
        form = self._form(line, "VOLUME", rest)
        described.volumes += rest.split() if form is None else form

    def _command(self, described: OwnService, line: int, rest: str) -> None:
        form = self._form(line, "CMD", rest)
        described.command = (*SHELL, rest) if form is None else tuple(form)
        described.lines["command"] = line

    def _entrypoint(self, described: OwnService, line: int, rest: str) -> None:
        form = self._form(line, "ENTRYPOINT", rest)
        # Engines leave CMD out of a shell's entry point, and reset that of the image below for any.
        described.entrypoint = (*SHELL, rest) if form is None else tuple(form)
        if form is None:
            described.command = ()
        described.lines["entrypoint"] = line

    def _health(self, described: OwnService, line: int, rest: str) -> None:
        options: dict[str, str] = {}
        words = rest
        while option := re.match(r"--([a-z-]+)=(\S+)\s+", words):
            options[option[1]] = option[2]
            words = words[option.end() :]
        if unknown := sorted(options.keys() - _OF_HEALTH):
            self._wrong(line, f"HEALTHCHECK: --{unknown[0]} is not read", "leave it out")
        kind, command = [*_SPACE.split(words, maxsplit=1), ""][:2]
        if kind.upper() == "NONE":
            described.health = None
            return
        form = self._form(line, "HEALTHCHECK", command.strip())
        times = {name: service.seconds(options[name]) for name in ("start-period", "interval") if name in options}
        retries = service.whole(options.get("retries", str(RETRIES)))
        if kind.upper() != "CMD" or not command.strip() or None in times.values() or retries is None:
            self._wrong(line, "this is no HEALTHCHECK [--interval=30s ...] CMD COMMAND", "write it so, or NONE")
            return
        longest_s = service.within_s(
            times.get("start-period") or 0.0, times.get("interval") or INTERVAL_S, retries or RETRIES
        )
        described.health = Health((*SHELL, command.strip()) if form is None else tuple(form), longest_s)

    def _form(self, line: int, name: str, rest: str) -> list[str] | None:
        """Return the words of a JSON list; None where it is a shell's line."""
        if not rest.startswith("["):
            return None
        try:
            words = json.loads(rest)
        except (ValueError, RecursionError):
            words = None
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            self._wrong(line, f"{name}: this is no JSON list of texts", 'write ["PROGRAM", "ARGUMENT"]')
            return []
        return words

    def _filled(self, line: int, text: str, values: dict[str, str]) -> str:
        self._refuse_literal_dollar(line, text)
        filled = service.substituted(text.strip().strip("\"'"), values)
        if filled.problem:
            self._wrong(line, filled.problem, "give it one: ARG NAME=VALUE")
        return filled.text

    def _refuse_literal_dollar(self, line: int, text: str) -> None:
        if match := _LITERAL_DOLLAR.search(text):
            problem = f"a dollar sign that is no variable is not read: {match[0][:80]}"
            self._wrong(line, problem, "write the file by hand: tare app init FILE")

    def _words(self, line: int, rest: str) -> list[str]:
        self._refuse_literal_dollar(line, rest)
        try:
            return shlex.split(rest)
        except ValueError as error:
            self._wrong(line, f"this is not whole: {str(error).lower()}", "close the quotation marks")
            return []


_BUILD_FIRST = "build it, docker save it, and name that: --image NAME.tar"
_KEYS = {"ENV": "env", "HEALTHCHECK": "health", "EXPOSE": "ports", "VOLUME": "volumes"}
_OF_HEALTH = {"interval", "timeout", "start-period", "start-interval", "retries"}
