"""What `tare app` does: writes a file to begin with, and tries one."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from tare import outputs
from tare.campaign.execution import tried
from tare.cli.console import Console, emit
from tare.errors import SessionError, TareError, UsageError
from tare.host import own_namespaces, state
from tare.workloads.own import application
from tare.workloads.own import file as own_file
from tare.workloads.own.file import GUIDE, Described


def write(file: Path) -> None:
    """Write the example to a new file. Raises `UsageError`."""
    text = resources.files("tare.workloads.own").joinpath("example.toml").read_text()
    with outputs.written(file, new=True) as target:
        target.write(text.replace("{FILE}", str(file)))
    emit(f"{file} is written: change it, then tare app check {file}")


def examine(file: Path, memory_bytes: int) -> None:
    """Say all that is wrong with a file, or run its application once. Raises `TareError`."""
    described, mistakes = own_file.examine(file)
    if described is None:
        for mistake in mistakes:
            emit(f"{file}:{mistake.line}: {mistake.what}{f' (fix: {mistake.fix})' if mistake.fix else ''}")
        count = "one mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        raise UsageError(f"{file} has {count}", fix=GUIDE)
    own_namespaces.enter(state.home())
    workload = application.of(described, str(file))
    console = Console(stderr=True)
    try:
        result = tried.once(workload, memory_bytes, lambda line: console.print(line, markup=False, soft_wrap=True))
    except TareError as error:
        error.what = f"{_place(described, error)}{error.what}"
        raise
    figures = {sample.metric: sample.value for sample in (*result.measured.samples, *result.measured.costs)}
    for metric in workload.all_metrics:
        if metric.name in figures:
            emit(f"{metric.name}: {figures[metric.name]:.6g} {metric.unit}, {metric.title}")
    emit(f"{file} runs on {tried.PLATFORM}: tare run -w app:{file} -p docker")


def _place(described: Described, error: TareError) -> str:
    """The line that an error is about, as FILE:LINE and a colon: of a figure it is there already."""
    if error.what.startswith(f"{described.file}:"):
        return ""
    if isinstance(error, SessionError):
        return f"{described.at('start')}: the application is not in service: "
    return f"{described.at('load')}: " if error.outputs else f"{described.at('source')}: "
