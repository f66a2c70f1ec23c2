"""The file that describes a user's application: every field is checked, and all mistakes are told at once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, ValidationError, model_validator

from tare import expressions
from tare.errors import UsageError, key_shown
from tare.inputs import read_text, refuse_writable
from tare.model import Direction
from tare.records import Strict
from tare.suggest import nearest
from tare.workloads.own import toml_lines
from tare.workloads.own.toml_lines import Lined, Mistake
from tare.workloads.workload_contract import MAX_PARAM, NAME, RESERVED

GUIDE = "docs/applications-own.md"
#: Bytes of a file.
MAX_FILE_BYTES = 1 << 16
#: What a text may name in braces besides parameters; other braces are the application's own.
PLACES = ("port", "address", "memory", "cpus")
PLACE = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_PARAMETER = re.compile(r"[a-z][a-z0-9_]*")
#: Debian's names of packages (its policy, 5.6.1).
PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
JSON_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")
MAX_RUN_S = 3600.0


def _expression(value: str) -> str:
    groups = expressions.compiled(value).groups
    if groups not in {1, 2}:
        raise ValueError(f"it has {groups} groups, and the figure is the one in (...), its unit may be a second")
    return value


def _any_expression(value: str) -> str:
    expressions.compiled(value)
    return value


def _steps(value: str) -> str:
    if not value or "".join(match[0] for match in JSON_STEP.finditer(value)) != value:
        raise ValueError("it is no path such as summary.latency[0].p99")
    return value


def _word(value: str) -> str:
    if not NAME.fullmatch(value):
        raise ValueError("it is not lower case words, joined by dashes")
    return value


def _package(value: str) -> str:
    if not PACKAGE.fullmatch(value):
        raise ValueError(f"{value!r} is no name of a Debian package")
    return value


def _absolute(value: str) -> str:
    if not value.startswith("/"):
        raise ValueError("it does not begin with /, which is the instance's root")
    return value


def _page(value: str) -> str:
    if not re.fullmatch(r"/[!-~]*", value):
        raise ValueError("it does not begin with /, or has spaces or letters that no address has")
    return value


def _user(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?", value):
        raise ValueError("it is no USER or USER:GROUP, names or numbers")
    return value


Text = Annotated[str, Field(min_length=1)]
Words = Annotated[tuple[Text, ...], Field(strict=False, min_length=1)]
Packages = Annotated[tuple[Annotated[str, AfterValidator(_package)], ...], Field(strict=False)]
Absolute = Annotated[str, AfterValidator(_absolute)]
Seconds = Annotated[float, Field(gt=0, le=MAX_RUN_S)]


class SourceTable(Strict):
    """The source of the application: one of the three."""

    image: Text | None = None  # an OCI layout, an archive of one, or docker://HOST/NAME:TAG
    tag: Text | None = None
    folder: Text | None = None  # a root filesystem
    packages: Packages = ()

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        if sum((self.image is not None, self.folder is not None, bool(self.packages))) != 1:
            raise ValueError("name exactly one of image, folder and packages")
        if self.tag is not None and self.image is None:
            raise ValueError("tag chooses among the images of a layout, and no image is named")
        return self


class StartTable(Strict):
    """The start of the application; settings that are left out are the image's."""

    command: Words | None = None
    arguments: Annotated[tuple[str, ...], Field(strict=False)] | None = None  # after the image's own entry point
    env: dict[str, str] = {}
    directory: Absolute | None = None
    user: Annotated[str, AfterValidator(_user)] | None = None
    files: dict[Absolute, str] = {}

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.command is not None and self.arguments is not None:
            raise ValueError("command is all of it, and arguments go after the image's own: name one of them")
        return self


class ReadyTable(Strict):
    """The sign that the application is in service: one of the four."""

    tcp: Literal[True] | None = None
    http: Annotated[str, AfterValidator(_page)] | None = None
    command: Words | None = None  # ends with 0 inside
    output: Text | None = None
    within: Seconds = 10.0

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        if sum(way is not None for way in (self.tcp, self.http, self.command, self.output)) != 1:
            raise ValueError('name exactly one of tcp = true, http = "/PATH", command = [...] and output = "TEXT"')
        return self


class LoadTable(Strict):
    """The table ``load``: what asks the application for work, from the client's side."""

    built_in: Literal["http-get"] | None = None
    path: Annotated[str, AfterValidator(_page)] = "/"
    command: Words | None = None
    packages: Packages = ()
    program: Literal["tare", "application"] = "tare"  # whose image has the command's program
    refused: Annotated[str, AfterValidator(_any_expression)] | None = None  # an output with this fails the trial
    within: Seconds = 60.0

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        if (self.built_in is None) == (self.command is None):
            raise ValueError("name exactly one of built_in and command")
        if self.built_in is not None and (self.packages or self.program != "tare" or self.refused is not None):
            raise ValueError("packages, program and refused go with a command")
        if self.command is None:
            return self
        if self.path != "/":
            raise ValueError("path goes with built_in")
        return self


class FigureTable(Strict):
    """The place of a figure in the load's output."""

    regex: Annotated[str, AfterValidator(_expression)] | None = None
    which: Literal["first", "last"] | None = None  # of several matches; None: there is one
    json_path: Annotated[str, AfterValidator(_steps)] | None = Field(default=None, alias="json")
    unit: Text
    units: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False, strict=False)]] = {}  # printed ones, in ``unit``

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        if (self.regex is None) == (self.json_path is None):
            raise ValueError("name exactly one of regex and json")
        if self.which is not None and self.regex is None:
            raise ValueError("which chooses among the matches of a regex")
        if bool(self.units) != (self.regex is not None and expressions.compiled(self.regex).groups == 2):
            raise ValueError("units says what each text of the regex's second group is worth: give both, or neither")
        return self


class MetricTable(FigureTable):
    """A figure that is compared."""

    better: Annotated[Direction, Field(strict=False)]
    title: Text | None = None


class ResourcesTable(Strict):
    """The table ``resources``: what the application needs."""

    memory: int = Field(default=0, ge=0, le=1 << 30)  # MiB
    processes: int = Field(default=0, ge=0, le=1 << 22)  # with threads; 2^22 is the most that Linux numbers


class OwnFile(Strict):
    """A whole file that describes a user's application."""

    name: Annotated[str, AfterValidator(_word)]
    title: Text | None = None
    source: SourceTable
    start: StartTable = StartTable()
    ready: ReadyTable
    load: LoadTable
    metrics: dict[Annotated[str, AfterValidator(_word)], MetricTable] = {}
    work: FigureTable | None = None
    resources: ResourcesTable = ResourcesTable()
    parameters: dict[str, dict[str, int | float | str]] = {}  # by profile


@dataclass(frozen=True, slots=True)
class Described:
    """A file that is as it should be."""

    file: Path
    contents: OwnFile
    digest: str  # SHA-256 of the file
    lined: Lined

    def at(self, *path: str | int) -> str:
        """Return the place of a key, as FILE:LINE."""
        return f"{self.file}:{self.lined.line(path)}"


def load(file: Path) -> Described:
    """Read a file. Raises `UsageError` with the first mistake, and how many more there are."""
    described, mistakes = examine(file)
    if described is None:
        first, *more = mistakes
        others = f" (and {len(more)} more: tare app check {file})" if more else ""
        raise UsageError(f"{file}:{first.line}: {first.what}{others}", fix=first.fix or GUIDE)
    return described


def examine(file: Path) -> tuple[Described | None, list[Mistake]]:
    """Return what a file describes, and None and all of its mistakes in the order of their lines where it has any.

    Raises `UsageError` for a file that cannot be read.
    """
    return parse(text_of(file, "name a file of TOML; tare app init writes one to begin with"), file)


def parse(text: str, file: Path) -> tuple[Described | None, list[Mistake]]:
    """Examine a text, as `examine` does; ``file``: the file that messages name, in whose folder its paths begin."""
    lined = toml_lines.parse(text)
    mistakes = [*lined.mistakes, *_places(lined)]
    values, of_parameters = _by_profile(lined)
    mistakes += of_parameters
    try:
        contents = OwnFile.model_validate(values)
    except ValidationError as error:
        # Where a line is no TOML its key is lacking for that reason alone.
        about = [details for details in error.errors() if not (lined.mistakes and _may_lack(details))]
        mistakes += (_mistake(details, lined) for details in about)
    else:
        mistakes += _between(contents, lined)
        if not mistakes:
            return Described(file, contents, hashlib.sha256(text.encode()).hexdigest(), lined), []
    return None, sorted(mistakes, key=lambda mistake: mistake.line)


def text_of(file: Path, fix: str) -> str:
    """Return the text of a short file that not everybody may write. Raises `UsageError`."""
    text = read_text(file, fix, largest=MAX_FILE_BYTES)
    refuse_writable(file, "says what is run, on native as root")
    return text


def _by_profile(lined: Lined) -> tuple[dict[str, Any], list[Mistake]]:
    """Return the values with the parameters sorted by profile: a value alone is that of both."""
    values = dict(lined.values)
    table = values.pop("parameters", {})
    if not isinstance(table, Mapping):
        return values, [Mistake(lined.line(("parameters",)), "parameters: it is no table")]
    sorted_out: dict[str, dict[str, Any]] = {"quick": {}, "full": {}}
    mistakes = []
    for name, value in table.items():
        pair = value if isinstance(value, Mapping) else {"quick": value, "full": value}
        wrong = _parameter_mistake(name, pair)
        if wrong:
            line = lined.line(("parameters", name))
            fix = f"{name} = 10, or {name} = {{ quick = 1, full = 10 }}"
            mistakes.append(Mistake(line, f"parameters.{name}: {wrong}", fix))
            continue
        number = any(isinstance(part, float) for part in pair.values())
        for profile, parameters in sorted_out.items():
            parameters[name] = float(pair[profile]) if number else pair[profile]
    return {**values, "parameters": sorted_out}, mistakes


def _parameter_mistake(name: str, pair: Mapping[str, Any]) -> str:
    if not _PARAMETER.fullmatch(name) or name in PLACES or name == "file":
        return "this name cannot be given: lower case letters, digits and _, and none of tare's own"
    if set(pair) != {"quick", "full"}:
        return "it is one value, or a value for quick and one for full"
    kinds = {str if isinstance(value, str) else float for value in pair.values()}
    for value in pair.values():
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return "it is neither a number nor a text"
        if not isinstance(value, str) and not 0 <= value <= MAX_PARAM:
            return f"{value} is not between 0 and {MAX_PARAM:g}"
    return "" if len(kinds) == 1 else "it is a number in one profile and a text in the other"


def _places(lined: Lined) -> Iterator[Mistake]:
    """Yield a mistake for each name in braces that nothing stands for, in what is filled in."""
    parameters = lined.values.get("parameters")
    placeholders = {*PLACES, *(parameters if isinstance(parameters, Mapping) else ()), "time_s", "warmup_s"}
    for path, text in _filled(lined.values):
        for name in PLACE.findall(text):
            if name not in placeholders:
                problem = f"{_shown(path)}: nothing stands for {{{name}}}"
                yield Mistake(lined.line(path), problem, nearest(name, sorted(placeholders)))


def _filled(values: Mapping[str, Any]) -> Iterator[tuple[toml_lines.Path, str]]:
    start = values.get("start")
    for table in ("start", "ready", "load"):
        named = values.get(table)
        if not isinstance(named, Mapping):
            continue
        for key in ("command", "arguments"):
            words = named.get(key)
            for number, word in enumerate(words if isinstance(words, list) else ()):
                if isinstance(word, str):
                    yield (table, key, number), word
    env = start.get("env") if isinstance(start, Mapping) else None
    for name, text in env.items() if isinstance(env, Mapping) else ():
        if isinstance(text, str):
            yield ("start", "env", name), text


def _between(contents: OwnFile, lined: Lined) -> Iterator[Mistake]:
    """Yield what does not go together between tables."""
    start, load_table = contents.start, contents.load
    if contents.source.image is None:
        if start.command is None:
            problem = "start.command: it is missing, and only an image says by itself how it is started"
            yield Mistake(lined.line(("start",)), problem, 'command = ["PROGRAM", "--port", "{port}"]')
        if start.arguments is not None:
            line = lined.line(("start", "arguments"))
            yield Mistake(line, "start.arguments: only an image has a program that they go to", "give all of command")
    texts = [*(start.command or ()), *(start.arguments or ()), *start.env.values(), *start.files.values()]
    if not any("{port}" in text for text in texts):
        problem = "start: nothing in it names {port}, and tare gives every instance a port of its own to listen on"
        yield Mistake(lined.line(("start",)), problem, "write {port} into command, arguments, env or files")
    if load_table.command is not None and not contents.metrics:
        problem = "metrics: there are none, and a load command's output says nothing by itself"
        yield Mistake(lined.line(("load",)), problem, '[metrics.rate] with regex, unit and better = "higher"')
    if load_table.built_in is not None and (contents.metrics or contents.work):
        key = "metrics" if contents.metrics else "work"
        yield Mistake(lined.line((key,)), f"{key}: the built-in load has its own", f"leave {key} out")
    for name in RESERVED & contents.metrics.keys():
        line = lined.line(("metrics", name))
        yield Mistake(line, f"metrics.{name}: tare has a metric of this name itself", "choose another name")


def _may_lack(details: Any) -> bool:
    """Return True if one of pydantic's errors may be about a key that is not there."""
    return details["type"] == "missing" or (details["type"] == "value_error" and len(details["loc"]) == 1)


def _mistake(details: Any, lined: Lined) -> Mistake:
    """One of pydantic's errors, with its line and in plain words."""
    path = tuple(step for step in details["loc"] if step != "[key]")
    kind, message = details["type"], details["msg"].removeprefix("Value error, ")
    where = _shown(path)
    if kind == "extra_forbidden":
        keys = sorted(_known_keys(path[:-1]))
        return Mistake(lined.line(path), f"{where}: there is no such key", nearest(str(path[-1]), keys))
    if kind == "missing":
        return Mistake(lined.line(path[:-1]), f"{where}: it is missing", GUIDE)
    if kind in _WRONG_KINDS and path:
        return Mistake(lined.line(path), f"{where}: it is not {_WRONG_KINDS[kind]}", _written(path[-1], kind, details))
    return Mistake(lined.line(path), f"{where}: {message[0].lower()}{message[1:]}" if where else message)


#: Characters of a value that is written as it should be.
MAX_SHOWN = 100
#: What a value of the wrong kind is not, by pydantic's name of the error.
_WRONG_KINDS = {
    "tuple_type": "a list of words",
    "string_type": "a text in quotes",
    "float_type": "a number",
    "int_type": "a whole number",
    "bool_type": "true or false",
}


def _written(key: str | int, kind: str, details: Any) -> str:
    """Return the fix for a value of the wrong kind: how it is written."""
    value = details["input"]
    if kind == "tuple_type" and isinstance(value, str) and len(value) <= MAX_SHOWN:
        with contextlib.suppress(ValueError):  # a quote that is not closed
            return f"write a list: {json.dumps(shlex.split(value), ensure_ascii=False)}"
    if key == "http":
        return 'write the path of a page: http = "/"'
    if kind == "string_type" and isinstance(value, int | float) and len(str(value)) <= MAX_SHOWN:
        return f'write "{value}"'
    return ""


def _known_keys(path: tuple[str | int, ...]) -> set[str]:
    models: dict[str, type[BaseModel]] = {
        "source": SourceTable, "start": StartTable, "ready": ReadyTable, "load": LoadTable, "metrics": MetricTable,
        "work": FigureTable, "resources": ResourcesTable,
    }  # fmt: skip
    model = models.get(str(path[0]), OwnFile) if path else OwnFile
    return {field.alias or name for name, field in model.model_fields.items()}


def _shown(path: tuple[str | int, ...]) -> str:
    text = ""
    for step in path:
        text += f"[{step + 1}]" if isinstance(step, int) else f"{'.' if text else ''}{key_shown(step)}"
    return text
