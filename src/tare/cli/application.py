"""What `tare app check` does with a file that has no mistakes: its application runs once, for real."""

from __future__ import annotations

from tare.campaign.execution import tried
from tare.cli.console import Console, emit
from tare.errors import ImageError, SessionError, TareError
from tare.host import own_namespaces, state
from tare.workloads.own import application
from tare.workloads.own.file import Described


def try_once(described: Described, memory_bytes: int) -> None:
    """Run an application on native, and print its figures. Raises `TareError` that begins with FILE:LINE."""
    own_namespaces.enter(state.home())
    workload = application.of(described, str(described.file))
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
    emit(f"{described.file} runs on {tried.PLATFORM}: tare run -w {workload.name} -p docker")


def _place(described: Described, error: TareError) -> str:
    """The line that an error is about, as FILE:LINE and a colon: of a figure it is there already."""
    if error.what.startswith(f"{described.file}:"):
        return ""
    if isinstance(error, SessionError):
        return f"{described.at('start')}: the application is not in service: "
    if isinstance(error, ImageError):
        return f"{described.at('source')}: "
    return f"{described.at('load')}: " if error.outputs else ""
