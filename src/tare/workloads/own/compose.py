"""A compose file with one service, where it is plain. What not every platform could be given is a mistake at its line.

PyYAML reads it: it is small, known everywhere, and tells the line of every node.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping

import yaml

from tare.safe_text import encodable
from tare.workloads.own import service
from tare.workloads.own.service import INTERVAL_S, RETRIES, SHELL, Health, OwnService
from tare.workloads.own.toml_lines import Mistake

#: What a run of tare's says by itself, what is about an engine's own way with its containers, or about other services.
_PASSED = frozenset({
    "build", "container_name", "cpus", "deploy", "expose", "hostname", "init", "labels", "logging", "mem_limit",
    "networks", "platform", "pull_policy", "restart", "stop_grace_period", "stop_signal",
})  # fmt: skip
_TOP = frozenset({"services", "version", "name", "networks", "volumes"})
_YAML = "tag:yaml.org,2002:"
_NULL = f"{_YAML}null"
#: Unquoted texts that engines read as numbers, and those that stay the same text then: not 010, 1_000, 1.10.
_NUMBER = re.compile(r"[-+]?(?:0[xXoObB][0-9a-fA-F_]+|\.?[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9_]+)?)")
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{0,9}[1-9])?")
_HAND = "leave it out, or write the file by hand: tare app init FILE"
_PORT = re.compile(r"(?:\[?[\w.:]*\]?:)??(?:\d+:)?(\d+)(?:/tcp)?", re.ASCII)


def read(text: str, built: bool, environment: Mapping[str, str]) -> tuple[OwnService, list[Mistake]]:
    """Return the application of a compose file, and what in it is not plain.

    ``built``: its image was built already; ``environment``: values of ${VARIABLES}, as for the engine's own command.
    """
    reader = _Reader(built, environment)
    try:
        top = _tree(text)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or "it is nested too deeply"
        return reader.service, [Mistake(mark.line + 1 if mark else 1, f"this is not YAML: {why}")]
    return reader.take(top)


def _tree(text: str) -> yaml.Node | None:
    """Return the file's nodes. Raises `yaml.YAMLError`, also for an escape that names no character."""
    loader = yaml.SafeLoader(text)
    try:
        return loader.get_single_node()
    except (ValueError, OverflowError) as error:  # of chr(), which PyYAML calls for \U and eight digits
        raise yaml.MarkedYAMLError(problem="an escape names no character", problem_mark=loader.get_mark()) from error
    finally:
        loader.dispose()


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


class _Reader:
    def __init__(self, built: bool, environment: Mapping[str, str]) -> None:
        self.service = OwnService()
        self._built = built
        self._environment = environment
        self._mistakes: list[Mistake] = []
        self._taken: frozenset[str] = frozenset()  # variables whose values are in the last text
        self._theirs: dict[str, str | None] = {}  # the application's variables with such values
        self._read: dict[str, Callable[[yaml.Node], None]] = {
            "image": self._image,
            "command": self._command,
            "entrypoint": self._entrypoint,
            "environment": self._env,
            "ports": self._ports,
            "healthcheck": self._health,
            "user": self._user,
            "working_dir": self._directory,
            "volumes": self._volumes,
        }

    def take(self, top: yaml.Node | None) -> tuple[OwnService, list[Mistake]]:
        if top is not None:
            self._top(top)
        else:
            self._mistakes.append(Mistake(1, "there are no services in it", "name a compose file"))
        for name, value in self._theirs.items():
            if value is not None and service.whole(value) == self.service.port:
                self.service.env[name] = value  # {port} stands for it
            else:
                self.service.left_out.append(name)
        if not self._mistakes:
            self._mistakes += service.problems(self.service)
        return self.service, sorted(self._mistakes, key=lambda mistake: mistake.line)

    def _top(self, top: yaml.Node) -> None:
        self._readable(top)
        keys = dict(self._pairs(top, "the file"))
        for key, (node, _) in keys.items():
            if key not in _TOP and not key.startswith("x-"):
                self._wrong(node, f"{key} is not read", _HAND)
        if "services" not in keys:
            self._wrong(top, "there are no services in it", "name a compose file")
            return
        services = list(self._pairs(keys["services"][1], "services"))
        if len(services) != 1:
            names = ", ".join(name for name, _ in services) or "none"
            where = services[1][1][0] if services else keys["services"][0]
            problem = f"there are {len(services)} services ({names}), and an application is one"
            self._wrong(where, problem, "leave one of them, or put all into one image")
            return
        [(name, (_, node))] = services
        self.service.name = service.word_of(name)
        self._one(name, node)

    def _readable(self, top: yaml.Node) -> None:
        """Refuse what no value can be read from.

        Those are tags (compose's own, !reset and !override, are for several files) and halves of characters, which the
        application's file cannot have.
        """
        waiting, seen = [top], set()
        while waiting:
            node = waiting.pop()
            if id(node) in seen:  # an alias
                continue
            seen.add(id(node))
            if not str(node.tag).startswith(_YAML):
                self._wrong(node, f"{node.tag} is not read", "write what the value is")
            if isinstance(node, yaml.ScalarNode) and encodable(node.value) != node.value:
                self._wrong(node, f"{encodable(node.value)[:40]} has half a character", "write the whole character")
            if isinstance(node, yaml.MappingNode):
                waiting += [part for pair in node.value for part in pair]
            elif isinstance(node, yaml.SequenceNode):
                waiting += node.value

    def _one(self, name: str, node: yaml.Node) -> None:
        self.service.lines["image"] = _line(node)
        keys = dict(self._pairs(node, f"services.{name}"))
        for key, (at, value) in keys.items():
            self.service.lines.setdefault({"environment": "env", "healthcheck": "health"}.get(key, key), _line(at))
            if key in self._read:
                self._read[key](value)
            elif key not in _PASSED and not key.startswith("x-"):
                self._wrong(at, f"services.{name}.{key} is nothing that every platform can be given", _HAND)
        if self._built:
            return
        if "build" in keys:
            fix = f"docker compose build, docker save the image of {name}, and name that: --image NAME.tar"
            self._wrong(keys["build"][0], f"services.{name}.build builds an image, and tare builds none", fix)
        elif "image" not in keys:
            self._wrong(node, f"services.{name} has no image", "image: NAME:TAG")

    def _wrong(self, node: yaml.Node, problem: str, fix: str = "") -> None:
        self._mistakes.append(Mistake(_line(node), problem, fix))

    def _pairs(self, node: yaml.Node, path: str) -> Iterator[tuple[str, tuple[yaml.Node, yaml.Node]]]:
        """Yield the keys of a mapping, with the nodes of key and value."""
        if not isinstance(node, yaml.MappingNode):
            self._wrong(node, f"{path} is no mapping")
            return
        seen = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.value in seen:
                self._wrong(key, f"{path} has a key twice, or one that is no text")
                continue
            if key.value == "<<":
                self._wrong(key, f"{path} takes keys from elsewhere (<<)", "write them out")
                continue
            seen.add(key.value)
            yield str(key.value), (key, value)

    def _text(self, node: yaml.Node, path: str) -> str:
        if not isinstance(node, yaml.ScalarNode) or node.tag == _NULL:
            self._wrong(node, f"{path} is no text")
            return ""
        if not node.style and _NUMBER.fullmatch(node.value) and not _PLAIN_NUMBER.fullmatch(node.value):
            self._wrong(node, f"{path}: {node.value[:40]} is a number that is written in another way too", "quote it")
        return self._filled(node, str(node.value))

    def _filled(self, node: yaml.Node, text: str) -> str:
        """Return a text with its variables filled in; $$ is a dollar."""
        parts = [service.substituted(part, self._environment) for part in text.split("$$")]
        for part in parts:
            if part.problem:
                self._wrong(node, part.problem, "NAME=... tare app init ..., or ${NAME:-DEFAULT}")
            elif part.lone:
                self._wrong(node, f"a dollar sign in {text[:80]!r} is no variable", "write $$ for a dollar sign")
        self._taken = frozenset[str]().union(*(part.taken for part in parts))
        return "$".join(part.text for part in parts)

    def _list(self, node: yaml.Node, path: str) -> list[yaml.Node]:
        if isinstance(node, yaml.SequenceNode):
            return list(node.value)
        self._wrong(node, f"{path} is no list")
        return []

    def _argv(self, node: yaml.Node, path: str) -> tuple[str, ...] | None:
        """Return a list of words, or a line that is split as a shell does, without one."""
        if isinstance(node, yaml.ScalarNode):
            if node.tag == _NULL:
                return None
            try:
                return tuple(shlex.split(self._text(node, path)))
            except ValueError as error:
                self._wrong(node, f"{path} is not whole: {str(error).lower()}", "close the quotation marks")
                return ()
        return tuple(self._text(word, path) for word in self._list(node, path))

    def _image(self, node: yaml.Node) -> None:
        self.service.image = self._text(node, "image")

    def _command(self, node: yaml.Node) -> None:
        self.service.command = self._argv(node, "command")

    def _entrypoint(self, node: yaml.Node) -> None:
        self.service.entrypoint = self._argv(node, "entrypoint")

    def _user(self, node: yaml.Node) -> None:
        self.service.user = self._text(node, "user")

    def _directory(self, node: yaml.Node) -> None:
        self.service.directory = self._text(node, "working_dir")

    def _env(self, node: yaml.Node) -> None:
        if isinstance(node, yaml.MappingNode):
            for name, (key, value) in self._pairs(node, "environment"):
                self._taken = frozenset()
                text = None if value.tag == _NULL else self._text(value, f"environment.{name}")
                self._variable(key, name, text)
            return
        for entry in self._list(node, "environment"):
            self._taken = frozenset()
            name, separator, value = (str(entry.value) if isinstance(entry, yaml.ScalarNode) else "").partition("=")
            self._variable(entry, name, self._filled(entry, value) if separator else None)

    def _variable(self, node: yaml.Node, name: str, value: str | None) -> None:
        """Take a variable; without a value it has that of the environment of whoever starts it.

        Such a value may be a secret: the file names the variable without it.
        """
        if not name:
            self._wrong(node, "a variable has no name", "NAME=VALUE")
        elif value is None or self._taken:
            self._theirs[name] = value
        else:
            self.service.env[name] = value

    def _ports(self, node: yaml.Node) -> None:
        for entry in self._list(node, "ports"):
            target = entry
            if isinstance(entry, yaml.MappingNode):
                keys = dict(self._pairs(entry, "ports"))
                target = keys["target"][1] if "target" in keys else entry
                if "protocol" in keys and self._text(keys["protocol"][1], "protocol") != "tcp":
                    target = entry
            text = self._text(target, "ports") if isinstance(target, yaml.ScalarNode) else ""
            match = _PORT.fullmatch(text)
            if match is None:
                self._wrong(entry, f"ports: {text or 'this'} is not one TCP port", "a load calls one TCP port")
                continue
            number = service.whole(match[1])
            if number is None:
                self._wrong(entry, f"ports: {match[1][:40]} is no TCP port", "1 to 65535")
            elif self.service.port not in {None, number}:
                problem = f"ports: {match[1]} comes after {self.service.port}"
                self._wrong(entry, problem, "leave the port that the load calls")
            else:
                self.service.port = number

    def _volumes(self, node: yaml.Node) -> None:
        for entry in self._list(node, "volumes"):
            if isinstance(entry, yaml.MappingNode):
                keys = {key: value for key, (_, value) in self._pairs(entry, "volumes")}
                source, target = (self._text(keys[key], key) if key in keys else "" for key in ("source", "target"))
                host = "type" in keys and self._text(keys["type"], "type") == "bind"
            else:
                parts = self._text(entry, "volumes").split(":")
                source, target = ("", parts[0]) if len(parts) == 1 else (parts[0], parts[1])
                host = source.startswith((".", "/", "~"))
            if host or not target.startswith("/"):
                problem = f"volumes: {source or target or 'this'} is of this host, which an instance does not see"
                self._wrong(entry, problem, "leave it out here, and put what it has under [start.files]")
            else:
                self.service.volumes.append(target)

    def _health(self, node: yaml.Node) -> None:
        keys = {key: value for key, (_, value) in self._pairs(node, "healthcheck")}
        disable = self._text(keys["disable"], "disable") if "disable" in keys else "false"
        if disable not in {"true", "false"}:
            self._wrong(keys["disable"], "healthcheck.disable is neither true nor false", "true")
        if disable == "true" or "test" not in keys:
            return
        test = keys["test"]
        if isinstance(test, yaml.ScalarNode):
            words = ["CMD-SHELL", self._text(test, "test")]
        else:
            words = [self._text(word, "test") for word in self._list(test, "test")]
        if words[:1] == ["NONE"]:
            return
        if words[:1] not in (["CMD"], ["CMD-SHELL"]) or len(words) < 2:
            self._wrong(test, "healthcheck.test begins with none of CMD, CMD-SHELL and NONE", '["CMD", "PROGRAM"]')
            return
        times = {}
        for key, default in (("start_period", 0.0), ("interval", INTERVAL_S)):
            duration_s = service.seconds(self._text(keys[key], key)) if key in keys else default
            if duration_s is None:
                self._wrong(keys[key], f"healthcheck.{key} is no duration", "30s, 1m30s")
            times[key] = duration_s or 0.0
        retries = self._text(keys["retries"], "retries") if "retries" in keys else str(RETRIES)
        times_failed = service.whole(retries)
        if times_failed is None:
            self._wrong(keys["retries"], "healthcheck.retries is no number of at most nine digits", "3")
            return
        # An engine takes 0 for its default, of a time too.
        longest_s = service.within_s(times["start_period"], times["interval"] or INTERVAL_S, times_failed or RETRIES)
        command = (*SHELL, words[1]) if words[0] == "CMD-SHELL" else tuple(words[1:])
        self.service.health = Health(command, longest_s)
