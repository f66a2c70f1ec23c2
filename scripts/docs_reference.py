"""The generated part of the documentation site, from the code: commands, the report's models, platforms, workloads.

`docs_reference.py FOLDER` writes Markdown below FOLDER/reference.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import docs_tables

from tare.cli.commands.app import COMMANDS, load
from tare.platforms import platform_registry as platforms
from tare.platforms.base import Platform
from tare.workloads import workload_registry as workloads
from tare.workloads.base import Workload


def pages() -> Mapping[str, str]:
    """All generated pages by their path below ``reference/``."""
    platforms_by_name = dict(sorted(platforms.all_platforms().items()))
    workloads_by_name = dict(sorted(workloads.all_workloads().items()))
    return {
        "commands.md": "\n".join(_commands()),
        "report.md": docs_tables.reference(),
        "columns.md": docs_tables.columns_reference(),
        "platforms.md": _index(
            "All platforms", {name: platform.title for name, platform in platforms_by_name.items()}, "platforms"
        ),
        "workloads.md": _index(
            "All workloads", {name: workload.title for name, workload in workloads_by_name.items()}, "workloads"
        ),
        **{f"platforms/{name}.md": "\n".join(_platform(platform)) for name, platform in platforms_by_name.items()},
        **{f"workloads/{name}.md": "\n".join(_workload(workload)) for name, workload in workloads_by_name.items()},
    }


def _index(title: str, titles: Mapping[str, str], folder: str) -> str:
    rows = [f"| [`{name}`]({folder}/{name}.md) | {_cell(heading)} |" for name, heading in titles.items()]
    return "\n".join([f"# {title}", "", "| name | what |", "| --- | --- |", *rows, ""])


# --- commands ----------------------------------------------------------------------------------------------


def _commands() -> Iterator[str]:
    yield "# Commands\n"
    yield "From the program's own help. `tare --debug COMMAND` shows a traceback, `tare --version` the version.\n"
    for name in COMMANDS:
        command = load(name)
        inner = getattr(command, "commands", None)
        if inner:
            yield f"## tare {name}\n\n{_prose(command.help or COMMANDS[name].help)}\n"
            for word, subcommand in inner.items():
                yield from _command(f"tare {name} {word}", subcommand, "###")
        else:
            yield from _command(f"tare {name}", command, "##")


def _command(name: str, command: Any, level: str) -> Iterator[str]:
    yield f"{level} {name}\n\n{_prose(command.help or '')}\n"
    rows = [
        _parameter(parameter)
        for parameter in command.params
        if parameter.name != "help" and not getattr(parameter, "hidden", False)
    ]
    if rows:
        yield "\n".join(["| option | default | what |", "| --- | --- | --- |", *rows, ""])


def _parameter(parameter: Any) -> str:
    named = parameter.opts if parameter.param_type_name == "option" else [parameter.name.upper()]
    names = ", ".join(f"`{name}`" for name in named)
    default = parameter.default
    shown = f"`{getattr(default, 'value', default)}`" if isinstance(default, int | float | str) and default else ""
    return f"| {names} | {shown} | {_cell(_plain(parameter.help or ''))} |"


def _plain(text: str) -> str:
    """Help without rich's markup."""
    for mark in ("[cyan]", "[bold]", "[/]"):
        text = text.replace(mark, "")
    return text


def _prose(text: str) -> str:
    marked = inspect.cleandoc(text).replace("[cyan]", "`").replace("[bold]", "`").replace("[/]", "`").replace("\b", "")
    return _escaped(marked)


# --- platforms and workloads -------------------------------------------------------------------------------


def _platform(platform: Platform) -> Iterator[str]:
    yield f"# {platform.name}\n\n{_sentence(platform.title)}\n"
    yield _facts(
        {
            "takes part by default": "yes" if platform.by_default else f"no: `tare run -p {platform.name}`",
            "network path": platform.network_path,
            "open to the host by design": "; ".join(
                f"{'every door' if door == '*' else door}: {why}" for door, why in platform.open_by_design.items()
            )
            or "nothing is declared",
        }
    )
    yield _about(platform)
    yield "\nHow it is run, what is counted where, and what was verified: [Platforms](../../platforms.md).\n"


def _workload(workload: Workload) -> Iterator[str]:
    yield f"# {workload.name}\n\n{_sentence(workload.title)}\n"
    yield _facts(
        {
            "family": workload.family.value,
            "schedule": workload.mode.value,
            "margin": f"{100 * workload.margin:g} %",
            "runs by default": "yes" if workload.by_default else f"no: `tare run -w {workload.name}`",
            "unit of work": workload.work_unit,
            "packages in the image": ", ".join(getattr(workload, "packages", ())),
            **{f"parameters of `{name}`": _params(params) for name, params in workload.profiles.items()},
        }
    )
    yield "\n## Metrics\n\n| metric | unit | better | what |\n| --- | --- | --- | --- |"
    for metric in workload.all_metrics:
        yield f"| `{metric.name}` | {_cell(metric.unit)} | {metric.direction.value} | {_cell(metric.title)} |"
    yield _about(workload)
    yield "\nAll of them by family: [Workloads](../../workloads.md).\n"


def _params(params: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in params.items()) or "none"


def _facts(facts: Mapping[str, str]) -> str:
    rows = [f"| {name} | {_cell(value)} |" for name, value in facts.items() if value]
    return "\n".join(["| | |", "| --- | --- |", *rows])


def _about(subject: object) -> str:
    """What the module and the class say of themselves."""
    module = inspect.getmodule(type(subject))
    texts = [inspect.getdoc(source) for source in (module, type(subject)) if source is not None and source.__doc__]
    words = "\n\n".join(_escaped(text.replace("``", "`")) for text in texts if text)
    return f"\n## From its source\n\n{words}\n" if words else ""


def _sentence(text: str) -> str:
    return f"{_escaped(text)}."


def _cell(text: str) -> str:
    return " ".join(_escaped(text).split()).replace("|", "\\|")


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*")


def main() -> None:
    """Write the pages."""
    folder = Path(sys.argv[1], "reference")
    for name, text in pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"{len(pages())} pages in {folder}")


if __name__ == "__main__":
    main()
