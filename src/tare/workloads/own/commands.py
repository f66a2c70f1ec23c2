"""Commands as a user types them: split into words, with the values of scanned parameters, and named.

A text is split as a shell splits words (`shlex`), and nothing else that a shell does is done, unless it goes to the
image's ``sh -c``. Names in braces are parameters; other braces are the command's own.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from tare.errors import UsageError
from tare.model import UserProgram
from tare.safe_text import clean
from tare.suggest import nearest
from tare.workloads.own.program import in_short
from tare.workloads.own.service import SHELL

#: Commands with the values of their parameters that one campaign may have.
MAX_COMMANDS = 100
#: What the agent's protocol takes: words of a command, variables, and bytes of all together.
MAX_WORDS, MAX_VARIABLES, MAX_BYTES = 240, 200, 1 << 17
#: Characters of a name that comes from the command, and of a user's own.
MAX_NAME, MAX_OWN_NAME = 40, 80
_PARAMETER = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,9})?", re.ASCII)
#: Words that only a shell understands, and that are hardly anything else.
_OF_A_SHELL = frozenset({"|", "||", "&", "&&", ">", ">>", "<", "2>", "2>&1", "&>"})


@dataclass(frozen=True, slots=True)
class Typed:
    """The user's command as typed, still with names in braces."""

    argv: Sequence[str] = ()  # after `--`
    texts: Sequence[str] = ()  # of `--command`
    names: Sequence[str] = ()  # for the commands, in their order
    scans: Sequence[str] = ()
    prepare: str | None = None
    cleanup: str | None = None
    env: Sequence[str] = ()
    shell: bool = False  # whether texts go to the image's `sh -c`


def programs(typed: Typed, common: UserProgram) -> list[tuple[str, UserProgram]]:
    """Each command with each value of the parameters, and its name. ``common``: what all of them have alike.

    Raises `UsageError`.
    """
    commands = [*([tuple(typed.argv)] if typed.argv else []), *(_words(text, typed.shell) for text in typed.texts)]
    if len(typed.names) > len(commands):
        problem = f"--name is given {len(typed.names)} times, for {len(commands)} commands"
        raise UsageError(problem, fix="give it once for each, in their order")
    scanned = dict(map(_scan, typed.scans))
    if len(scanned) < len(typed.scans):
        raise UsageError("--scan names a parameter twice", fix="give all of its values at once: --scan n=1,2,4")
    pattern = replace(
        common,
        prepare=_words(typed.prepare, typed.shell) if typed.prepare is not None else (),
        cleanup=_words(typed.cleanup, typed.shell) if typed.cleanup is not None else (),
        env=dict(map(_variable, typed.env)),
    )
    names = [*map(_own_name, typed.names), *[""] * (len(commands) - len(typed.names))]
    made = [
        (_filled(name, values), _program(pattern, argv, values))
        for argv, name in zip(commands, names, strict=True)
        for values in _combined(scanned)
    ]
    _check_used(scanned, commands, pattern)
    named = [(name or _name_of(program), program) for name, program in made]
    if scanned:
        named = _with_values(named, list(_combined(scanned)))
    return list(_unique(named))


def _words(text: str, shell: bool) -> tuple[str, ...]:
    """Return the words of a text. Raises `UsageError`, also where it has what only a shell understands."""
    if shell:
        if not text.strip():
            raise UsageError("a command is empty", fix="--command 'make test'")
        return (*SHELL, text)
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"{in_short(text, 80)!r} cannot be split into words: {error}", fix="close it") from error
    if not words:
        raise UsageError("a command is empty", fix="--command 'make test'")
    for word in words:
        if word in _OF_A_SHELL:
            problem = f"{in_short(text, 80)!r} has {word!r}, which only a shell understands"
            raise UsageError(problem, fix="give --shell too, by which sh -c runs it")
    return words


def _scan(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a parameter and its values, of ``n=1,2,4`` or ``n=1:8:1``, whose last may be reached."""
    name, equals, listed = text.partition("=")
    fix = "--scan threads=1,2,4 or --scan n=1:8:1"
    if not (equals and _PARAMETER.fullmatch(name)):
        raise UsageError(f"{text!r} is no parameter with values", fix=fix)
    parts = listed.split(":")
    values = _steps(text, parts) if len(parts) in {2, 3} and all(map(_NUMBER.fullmatch, parts)) else listed.split(",")
    if not all(values) or len(set(values)) < len(values):
        raise UsageError(f"{text!r} has an empty value, or one twice", fix=fix)
    return name, tuple(values)


def _steps(text: str, parts: Sequence[str]) -> list[str]:
    first, last, step = (Decimal(part) for part in (*parts, "1")[:3])
    if step == 0 or (last - first) / step < 0:
        raise UsageError(f"{text!r} reaches its last value by no step", fix="--scan n=1:8:1 is FIRST:LAST:STEP")
    count = int((last - first) / step) + 1
    if count > MAX_COMMANDS:
        raise UsageError(f"{text!r} has {count} values", fix=f"at most {MAX_COMMANDS} commands are measured at once")
    return [str(first + at * step) for at in range(count)]


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and _VARIABLE.fullmatch(name)):
        raise UsageError(f"{text!r} is no variable with its value", fix="--env NAME=VALUE")
    return name, value


def _combined(scanned: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """Each combination of the parameters' values; one without any where there are no parameters."""
    for values in itertools.product(*scanned.values()):
        yield dict(zip(scanned, values, strict=True))


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Return a text with the values of the parameters; all are put in at once, so that no value is filled in again."""
    if not values:
        return text
    names = "|".join(map(re.escape, values))
    return re.sub(rf"\{{({names})\}}", lambda match: values[match[1]], text)


def _program(pattern: UserProgram, argv: tuple[str, ...], values: Mapping[str, str]) -> UserProgram:
    def filled(words: Iterable[str]) -> tuple[str, ...]:
        return tuple(_filled(word, values) for word in words)

    program = replace(
        pattern,
        argv=filled(argv),
        prepare=filled(pattern.prepare),
        cleanup=filled(pattern.cleanup),
        env={name: _filled(value, values) for name, value in pattern.env.items()},
    )
    for words in (program.argv, program.prepare, program.cleanup):
        _check(words, program.env)
    return program


def _check(words: Sequence[str], env: Mapping[str, str]) -> None:
    """Raise `UsageError` for what no program can be given, or the agent's protocol does not take."""
    if words and not words[0]:
        raise UsageError("a command has no program", fix="--command 'make test'")
    texts = (*words, *env.values())
    size = sum(len(text.encode(errors="surrogateescape")) for text in texts)
    if any("\0" in text for text in texts) or any(0xD800 <= ord(character) < 0xE000 for character in "".join(texts)):
        raise UsageError("a command has bytes that are no text (UTF-8)", fix="put them into a file of --folder")
    if len(words) > MAX_WORDS or len(env) > MAX_VARIABLES or size > MAX_BYTES:
        problem = f"a command has {len(words)} words, {len(env)} variables and {size >> 10} KiB"
        fix = f"at most {MAX_WORDS}, {MAX_VARIABLES} and {MAX_BYTES >> 10} KiB; put it into a script of --folder"
        raise UsageError(problem, fix=fix)


def _check_used(scanned: Mapping[str, object], commands: Iterable[Sequence[str]], pattern: UserProgram) -> None:
    texts = "\n".join([
        *itertools.chain.from_iterable(commands), *pattern.prepare, *pattern.cleanup, *pattern.env.values()
    ])  # fmt: skip
    for name in scanned:
        if f"{{{name}}}" not in texts:
            braced = re.findall(r"\{([A-Za-z][A-Za-z0-9_-]*)\}", texts)
            fix = nearest(name, braced) if braced else f"write {{{name}}} where its value goes"
            raise UsageError(f"no command has {{{name}}}, which --scan gives values", fix=fix)


def _own_name(name: str) -> str:
    if not name.strip() or name != clean(name) or len(name.splitlines()) > 1 or len(name) > MAX_OWN_NAME:
        raise UsageError(f"{in_short(name, 80)!r} is no name", fix=f"one line of at most {MAX_OWN_NAME} characters")
    return name


def _name_of(program: UserProgram) -> str:
    """Return the command as a name: of a shell its text, with the program's own name alone, and cut if long."""
    first, *rest = program.argv
    script = program.argv[len(SHELL) :] if program.argv[: len(SHELL)] == SHELL else ()
    line = script[0] if script else shlex.join((first.rpartition("/")[2] or first, *rest))
    return in_short(clean(line), MAX_NAME)


def _with_values(
    named: Sequence[tuple[str, UserProgram]], combined: Sequence[Mapping[str, str]]
) -> list[tuple[str, UserProgram]]:
    """Return the same, where commands that share a name have the values of their parameters behind it."""
    times = Counter(name for name, _ in named)
    texts = [", ".join(f"{name}={value}" for name, value in values.items()) for values in combined]
    return [
        (f"{name} ({texts[at % len(texts)]})" if times[name] > 1 else name, program)
        for at, (name, program) in enumerate(named)
    ]


def _unique(named: Iterable[tuple[str, UserProgram]]) -> Iterator[tuple[str, UserProgram]]:
    """Yield the same, where the second command of a name has a number behind it."""
    taken: set[str] = set()
    for name, program in named:
        free = (f"{name} #{number}" for number in itertools.count(2))
        own = name if name not in taken else next(other for other in free if other not in taken)
        taken.add(own)
        yield own, program
