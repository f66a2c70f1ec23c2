"""A user's own application as a workload: ``app:FILE.toml`` (`tare.workloads.own.file`).

The agent starts it in the instance, and knows when it is in service; it is asked for work from the client's side.
A load that fails, or whose output lacks a figure, fails the trial.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tare import expressions
from tare.errors import HostError, ParseError
from tare.model import PIDS, Family, ImageSource, Layer, Metric
from tare.workloads.applications import serving
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Side, Surroundings
from tare.workloads.network import exchange
from tare.workloads.network.exchange import AGENT
from tare.workloads.output import shown, text_of
from tare.workloads.own import file as own_file
from tare.workloads.own import tool_figures
from tare.workloads.own.file import JSON_STEP, PLACE, Described, FigureTable

#: The agent says by itself that an application was not ready in time, a little before the host gives up.
GRACE_S = 5.0
#: Parameters of the built-in load that the file does not name, by profile.
BUILT_IN: Mapping[str, Params] = {
    "quick": {"time_s": 0.5, "warmup_s": 0.1},
    "full": {"time_s": 10.0, "warmup_s": 1.0},
}


class OwnApplication(RunWorkload):
    """An application by its file. Parameters: its own, and ``file``, the SHA-256 of the file, which identifies it."""

    family = Family.APPLICATION

    def __init__(self, described: Described) -> None:
        self.described = described

    @property
    def all_metrics(self) -> tuple[Metric, ...]:
        """Own metrics, and the costs of a unit of work where the file says what a unit is."""
        contents = self.described.contents
        return super().all_metrics if contents.work or contents.load.built_in else self.metrics

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        contents = self.described.contents
        where = serving.place(contents.name, around)
        least = contents.resources.memory << 20
        if around.memory_bytes < least:
            problem = (
                f"{contents.name} needs {least >> 20} MiB of memory, and instances have {around.memory_bytes >> 20}"
            )
            raise HostError(problem, fix=f"--memory {least >> 20}")
        facts = {
            "port": str(where.inside),
            "address": where.listen,
            "memory": str(around.memory_bytes),
            "cpus": str(around.cpu_count),
        }
        inside = {name: str(value) for name, value in params.items()} | facts
        outside = {**inside, "address": where.address, "port": str(where.port)}
        files = tuple(
            Command((AGENT, "write", path), stdin=_filled(text, inside).encode(), cwd="/")
            for path, text in contents.start.files.items()
        )
        load = self._load(params, outside, around)
        user = self._user(around)
        # A sandbox with one user, as of Charliecloud, is told from an application that fails.
        as_user = (Command((AGENT, "run", "--user", user, "--", AGENT, "nothing"), cwd="/"),) if user else ()
        server = self._server(inside, where, around, load_limit_s=load.time_limit_s)
        return RunPlan(prepare=(*as_user, *files), servers=(server,), measures=(load,))

    def _user(self, around: Surroundings) -> str:
        """Return the user that it runs as; "": root."""
        image = around.application
        return self.described.contents.start.user or (image.user if image is not None else "")

    def _server(
        self, places: Mapping[str, str], where: serving.ServerAddress, around: Surroundings, *, load_limit_s: float
    ) -> Command:
        start, ready, image = self.described.contents.start, self.described.contents.ready, around.application
        image_argv = (
            (*image.entrypoint, *(image.command if start.arguments is None else start.arguments)) if image else ()
        )
        argv = start.command or image_argv
        if image is not None and not argv:
            problem = f"the image of {self.described.contents.name} does not say how it is started"
            raise HostError(problem, fix=f"give command in {self.described.at('start')}")
        user = self._user(around)
        if ready.output is not None:
            options: tuple[str, ...] = ("--ready", "output")
        elif ready.command is not None:
            local_places = {**places, "address": where.local}
            options = serving.when_answered([_filled(word, local_places) for word in ready.command])
        else:
            options = serving.when_open(where, ready.http)
        if user:
            options = ("--user", user, *options)
        env = {**(image.env if image is not None else {}), **start.env}
        return Command(
            (AGENT, "run", *options, "--within", f"{ready.within:g}", "--", *(_filled(word, places) for word in argv)),
            time_limit_s=ready.within + load_limit_s + 2 * GRACE_S,
            env={name: _filled(text, places) for name, text in env.items()},
            cwd=start.directory or (image.directory if image is not None else "/"),
            ready=serving.READY if ready.output is None else ready.output.encode(),
            ready_limit_s=ready.within + GRACE_S,
            ready_fix=f"{self.described.at('ready')}: a longer within in [ready], or see what it waits for",
        )

    def _load(self, params: Params, places: Mapping[str, str], around: Surroundings) -> Command:
        load = self.described.contents.load
        if load.command is None:
            words = ("http", places["address"], places["port"], str(params["time_s"]), str(params["warmup_s"]), "0")
            limit_s = float(params["time_s"]) + float(params["warmup_s"]) + exchange.GRACE_S
            return Command((AGENT, "ask", *words, load.path), side=Side.CLIENT, time_limit_s=limit_s, cwd="/")
        own = load.program == "application" and around.application is not None
        return Command(
            tuple(_filled(word, places) for word in load.command),
            side=Side.CLIENT_OWN if own else Side.CLIENT,
            time_limit_s=load.within,
            env=dict(around.application.env) if own and around.application is not None else {},
            cwd="/",
        )

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        contents = self.described.contents
        if contents.load.built_in is not None:
            return exchange.read(params, results)
        if len(results) != 1:
            raise ParseError(f"one load was planned, {len(results)} results came")
        output = text_of(results[0])
        if results[0].truncated:
            raise ParseError("the load printed more than is kept of its output")
        all_output = f"{output}\n{results[0].stderr.decode(errors='replace')}"
        if contents.load.refused is not None and (
            match := expressions.compiled(contents.load.refused).search(all_output)
        ):
            raise ParseError(f"{self.described.at('load', 'refused')}: the load printed {match[0][:200]!r}")
        samples = {
            name: self._figure(metric, output, all_output, "metrics", name) for name, metric in contents.metrics.items()
        }
        work = self._figure(contents.work, output, all_output, "work") if contents.work is not None else 0.0
        return Outcome(samples, work)

    def _figure(self, table: FigureTable, output: str, all_output: str, *path: str) -> float:
        at = f"{self.described.at(*path)}: {'.'.join(path)}"
        if table.regex is not None:
            return tool_figures.matched(table, all_output, at)
        return tool_figures.number(_at(output, table.json_path or "", at), at)


class _TwiceError(ValueError):
    """An object with a key twice, either of which may be the figure."""


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise _TwiceError(f"it has {next(key for key in keys if keys.count(key) > 1)[:80]!r} twice")
    return dict(pairs)


def _at(output: str, path: str, at: str) -> Any:
    """Return what is at a path of the JSON that the load printed."""
    try:
        value: Any = json.loads(output, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        why = f" ({error})" if isinstance(error, _TwiceError) else ""
        raise ParseError(f"{at}: the load did not print JSON{why}: {shown(output)}") from error
    for match in JSON_STEP.finditer(path):
        name, number = match[1], match[2]
        try:
            value = value[int(number)] if number is not None else value[name]
        except (KeyError, IndexError, TypeError) as error:
            raise ParseError(f"{at}: the JSON has no {match[0].lstrip('.')} there: {shown(output)}") from error
    return value


def _filled(text: str, places: Mapping[str, str]) -> str:
    """Return a text with what stands for the names in braces; other braces stay."""
    return PLACE.sub(lambda match: places.get(match[1], match[0]), text)


def of_file(argument: str, name: str = "") -> OwnApplication:
    """Return the workload that a file describes, which is chosen by ``app:FILE``. Raises `UsageError`.

    ``name``: the workload's, where it is not the one that the file gives.
    """
    return of(own_file.load(Path(argument)), argument, name)


def of(described: Described, argument: str, own_name: str = "") -> OwnApplication:
    """Return the workload of a file that was read."""
    contents = described.contents
    tables = contents.source
    packages = tuple(sorted({*tables.packages, *contents.load.packages}))
    listed = ", ".join(f'"{package}"' for package in packages)

    class _Application(OwnApplication):
        name = own_name or f"app:{contents.name}"
        origin = f"app:{argument}"
        title = contents.title or f"{contents.name}, as {described.file.name} describes it"
        metrics = exchange.METRICS if contents.load.built_in is not None else _metrics(described)
        work_unit = "page" if contents.work is None else contents.work.unit
        layer = Layer(f"app-{contents.name}", f"[recorded]\npackages = [{listed}]\n") if packages else None
        source = _source(described)
        profiles: ClassVar[Mapping[str, Params]] = {
            profile: {
                **(defaults if contents.load.built_in is not None else {}),
                **contents.parameters[profile],
                "file": described.digest,
            }
            for profile, defaults in BUILT_IN.items()
        }

    _Application.packages = packages
    _Application.pids = max(PIDS, contents.resources.processes)
    return _Application(described)


def _metrics(described: Described) -> tuple[Metric, ...]:
    return tuple(
        Metric(name, table.unit, table.better, table.title or name)
        for name, table in described.contents.metrics.items()
    )


def _source(described: Described) -> ImageSource | None:
    table = described.contents.source
    if table.image is None and table.folder is None:
        return None
    place = table.image or table.folder or ""
    if not place.startswith("docker://"):
        place = str((described.file.parent / place).absolute())
    return ImageSource(place, folder=table.folder is not None, tag=table.tag)
