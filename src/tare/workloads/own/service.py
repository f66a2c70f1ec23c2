"""The one application of a Dockerfile or a compose file, and the file of ours that is made of it.

Both are read where they are plain: what only a builder, a shell or an engine could tell is a mistake at its line.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tare.workloads.own.file import MAX_RUN_S, PLACE
from tare.workloads.own.toml_lines import Mistake

#: Where an application listens when it listens everywhere, and what a health check calls.
_EVERYWHERE = re.compile(r"(?<![\w.])0\.0\.0\.0(?![\w.])")
#: A health check without any asks its program's usual port.
_NAMES_A_PORT = re.compile(r"\{port\}|://|\d\d")
_LOOPBACK = re.compile(r"(?<![\w.-])(?:localhost|127\.0\.0\.1|0\.0\.0\.0)(?![\w.-])")
#: Options of curl's and wget's with which either does no more than fetch a page and say whether it came.
_FETCHING = frozenset({
    "-f", "--fail", "-s", "--silent", "-S", "--show-error", "-q", "--quiet", "-nv", "--no-verbose", "--spider", "-fs",
    "-fsS", "-sf", "-sS", "-sSf", "-fSs", "-qO-", "-O-", "-O", "-o", "-", "/dev/null", "--tries=1", "-t", "1",
})  # fmt: skip
_NEVER_MIND = re.compile(r"\s*\|\|\s*exit(?:\s+1)?\s*$")
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)(ms|us|ns|h|m|s))")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_WHOLE = re.compile(r"[0-9]{1,9}")
SHELL = ("/bin/sh", "-c")
#: A health check's interval, and how often it may fail, where they are not given.
INTERVAL_S = 30.0
RETRIES = 3


@dataclass(frozen=True, slots=True)
class Health:
    """A health check: a command that ends with 0, and how long engines wait for the first time that it does."""

    command: tuple[str, ...]
    within_s: float


@dataclass(slots=True)
class OwnService:
    """The one application of a file. None and "": as the image says."""

    name: str = ""
    image: str = ""
    entrypoint: tuple[str, ...] | None = None
    command: tuple[str, ...] | None = None  # after the entry point
    env: dict[str, str] = field(default_factory=dict)
    port: int | None = None
    user: str = ""
    directory: str = ""
    left_out: list[str] = field(default_factory=list)  # variables with a value of whoever reads the file
    volumes: list[str] = field(default_factory=list)
    health: Health | None = None
    lines: dict[str, int] = field(default_factory=dict)  # by what is told there

    @property
    def texts(self) -> Iterator[tuple[str, str]]:
        """All texts in which names in braces would be tare's, by what they are."""
        for key, words in (("entrypoint", self.entrypoint), ("command", self.command), ("env", self.env.values())):
            yield from ((key, word) for word in words or ())
        yield from (("health", word) for word in (self.health.command if self.health else ()))


def problems(service: OwnService) -> list[Mistake]:
    """Return what of a service cannot be said in a file of ours."""
    mistakes = []
    if service.port is None:
        problem = "no port is named, and a load has to call one"
        mistakes.append(
            Mistake(service.lines.get("image", 1), problem, "EXPOSE PORT in a Dockerfile, ports in a compose file")
        )
    for volume in service.volumes:
        if not volume.isprintable():
            problem = f"the volume {volume!r} has a control character"
            mistakes.append(Mistake(service.lines.get("volumes", 1), problem, "name a folder"))
    if service.port is not None and not 0 < service.port < 1 << 16:
        mistakes.append(Mistake(service.lines.get("ports", 1), f"{service.port} is no TCP port", "1 to 65535"))
    for key, text in service.texts:
        if braced := PLACE.search(text):
            problem = f"{braced[0]} would stand for something of tare's"
            mistakes.append(Mistake(service.lines.get(key, 1), problem, "another name, or capital letters"))
    return mistakes


def seconds(text: str) -> float | None:
    """Return a duration such as 1m30s; None where it is none."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return float(sum(float(number) * _SECONDS[unit] for number, unit in parts))


def within_s(start_period_s: float, interval_s: float, retries: int) -> float:
    """Return how long an engine waits before it calls a service unhealthy; at most what a file of ours can say."""
    return min(max(start_period_s + interval_s * retries, 1.0), MAX_RUN_S)


def word_of(text: str) -> str:
    """Return a name as ours are: lower case words, joined by dashes."""
    return "-".join(re.findall(r"[a-z0-9]+", text.lower())) or "app"


def place_of(image: str) -> str:
    """Return where an image is fetched from by its name in these files."""
    return f"docker://{image}"


def toml_of(service: OwnService, source: str, built: str | None) -> str:
    """Return tare's file. ``source``: what it was read from; ``built``: the place of the image built from it.

    Of such an image only what names the port is repeated, since the image has the rest itself.
    """
    port = service.port or 0
    parts = [
        f"# From {_remark(source)} (docs/applications-own.md says what else can be in it).",
        f"name = {_text(service.name)}",
    ]
    parts += ["", "[source]", f"image = {_text(built or place_of(service.image))}"]
    parts += ["", *_start(service, port, built is not None)]
    parts += ["", *_ready(service.health, port), "", *_load(service.health, port)]
    return "\n".join(parts) + "\n"


def _start(service: OwnService, port: int, only_port: bool) -> list[str]:
    entrypoint, command = (
        None if words is None else [_ported(word, port) for word in words]
        for words in (service.entrypoint, service.command)
    )
    env = {name: _ported(value, port) for name, value in service.env.items()}
    named = any("{port}" in text for text in (*(entrypoint or ()), *(command or ()), *env.values()))
    if only_port:
        env = {name: value for name, value in env.items() if "{port}" in value}
        if not any("{port}" in word for word in (*(entrypoint or ()), *(command or ()))):
            entrypoint = command = None
    rows = ["[start]"]
    if not named:
        rows.append(
            f"# It listens on {port}, which nothing here sets: name {{port}} in command, arguments, env or files."
        )
    if entrypoint is not None:
        rows.append(f"command = {_words([*entrypoint, *(command or ())])}")
    elif command is not None:
        rows.append(f"arguments = {_words(command)}")
    if service.directory and not only_port:
        rows.append(f"directory = {_text(service.directory)}")
    if service.user and not only_port:
        rows.append(f"user = {_text(service.user)}")
    rows += [
        f"# {_remark(volume)} is a volume there: here it is part of the instance's root, and /data is its data volume."
        for volume in service.volumes
        if volume != "/data"
    ]
    rows += [
        f"# {_remark(name)} has its value from your environment there, and none here: write it under [start.env]."
        for name in service.left_out
    ]
    if env:
        rows += ["", "[start.env]", *(f"{_text(name)} = {_text(value)}" for name, value in env.items())]
    return rows


def _ready(health: Health | None, port: int) -> list[str]:
    if health is None:
        return ["[ready]", "tcp = true"]
    page = _page(health.command, port)
    if page is not None:
        way = f"http = {_text(page)}"
    else:
        words = [_LOOPBACK.sub("{address}", _number(word, port)) for word in health.command]
        if not any(_NAMES_A_PORT.search(word) for word in words):
            return [
                "[ready]",
                f"# Its health check names no port, and would ask {port}, where nothing listens here. To have it, name",
                f"# {{port}} in it: command = {_words(words)}",
                "tcp = true",
                f"within = {health.within_s:g}",
            ]
        way = f"command = {_words(words)}"
    return ["[ready]", way, f"within = {health.within_s:g}"]


def _load(health: Health | None, port: int) -> list[str]:
    page = _page(health.command, port) if health is not None else None
    if page is not None:
        return ["# The page of the health check; another may tell more, and a command of your own load tool most.",
                "[load]", 'built_in = "http-get"', f"path = {_text(page)}"]  # fmt: skip
    return ["# What asks it for work: these files do not say it.", "# [load]", '# built_in = "http-get"']


def _page(command: Sequence[str], port: int) -> str | None:
    """Return the path of the page that a health check fetches from the service itself, where it does that alone."""
    words = list(command)
    if tuple(words[:2]) == SHELL and len(words) == 3:
        try:
            words = shlex.split(_NEVER_MIND.sub("", words[2]))
        except ValueError:
            return None
    pages = [word for word in words if word.startswith("http://")]
    rest = set(words[1:]) - set(pages)
    if len(pages) != 1 or words[0].rpartition("/")[2] not in {"curl", "wget"} or not rest <= _FETCHING:
        return None
    try:
        page = urlsplit(pages[0])
        from_itself = (page.port or 80) == port and _LOOPBACK.fullmatch(page.hostname or "")
    except ValueError:
        return None
    path = (page.path or "/") + (f"?{page.query}" if page.query else "")
    return path if from_itself and re.fullmatch(r"/[!-~]*", path) else None


def _ported(text: str, port: int) -> str:
    return _EVERYWHERE.sub("{address}", _number(text, port))


def _number(text: str, port: int) -> str:
    """Return a text with {port} where the port stands as a number of its own."""
    return re.sub(rf"(?<![\w.]){port}(?![\w.])", "{port}", text)


def _words(words: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, words))}]"


def _remark(text: str) -> str:
    """Return a text for a comment, which a line feed would end."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def whole(text: str) -> int | None:
    """Return a whole number of at most nine digits; None where it is none."""
    return int(text) if _WHOLE.fullmatch(text) else None


def _text(text: str) -> str:
    """Return a TOML string: JSON's, which forbids fewer characters unescaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


@dataclass(frozen=True, slots=True)
class FilledText:
    """A text with its variables filled in."""

    text: str
    problem: str = ""  # the first that has no value, or is written in a way that is not read
    lone: bool = False  # whether a dollar sign stands for itself
    taken: frozenset[str] = frozenset()  # variables whose values are in it


def substituted(text: str, values: Mapping[str, str]) -> FilledText:
    """Fill in what both kinds of file know: ``$NAME``, ``${NAME}``, and ``-``, ``+``, ``?`` with ``:`` or without."""
    filler = _Filler(values)
    filled = filler.fill(text, 0)
    problem = filler.problems[0] if filler.problems else ""
    return FilledText(filled, problem, filler.lone, frozenset(filler.taken))


class _Filler:
    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self.problems: list[str] = []
        self.taken: set[str] = set()
        self.lone = False

    def fill(self, text: str, depth: int) -> str:
        parts, at = [], 0
        while (dollar := text.find("$", at)) >= 0:
            parts.append(text[at:dollar])
            if name := _NAME.match(text, dollar + 1):
                parts.append(self._value(name[0], "", "", depth))
                at = name.end()
            elif text.startswith("{", dollar + 1):
                at = _closing(text, dollar)
                parts.append(self._braced(text[dollar:at], depth))
            else:
                self.lone = True
                parts.append("$")
                at = dollar + 1
        return "".join([*parts, text[at:]])

    def _braced(self, use: str, depth: int) -> str:
        parts = _VARIABLE.fullmatch(use)
        if parts is None or depth > MAX_DEPTH:
            self.problems.append(f"{use[:80]} is not read")
            return ""
        return self._value(parts[1], parts[2] or "", parts[3] or "", depth)

    def _value(self, name: str, operator: str, word: str, depth: int) -> str:
        content = self._values.get(name)
        absent = content is None or (operator.startswith(":") and not content)
        kind = operator[-1:]
        if kind == "+":
            return "" if absent else self.fill(word, depth + 1)
        if absent and kind == "-":
            return self.fill(word, depth + 1)
        if absent:
            self.problems.append(f"{name} has no value{f': {word[:80]}' if word else ''}")
        self.taken.add(name)
        return content or ""


def _closing(text: str, dollar: int) -> int:
    """Return the position after a variable in braces that begins at a dollar sign.

    The text's end if it is not closed.
    """
    depth = 0
    for brace in _BRACE.finditer(text, dollar):
        depth += 1 if brace[0] == "${" else -1
        if depth == 0:
            return brace.end()
    return len(text)


#: Deepest nesting of defaults.
MAX_DEPTH = 20
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_BRACE = re.compile(r"\$\{|\}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?:(:?[-+?])(.*))?\}", re.ASCII | re.DOTALL)
