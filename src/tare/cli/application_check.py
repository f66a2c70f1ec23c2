"""`tare app check` for a file that has no mistakes: its application runs once, for real."""

from __future__ import annotations

from collections.abc import Sequence

from tare.campaign.execution import app_check
from tare.campaign.execution.app_check import Tried
from tare.cli.console import Console, emit
from tare.errors import ImageError, SessionError, TareError
from tare.host import own_namespaces, state
from tare.workloads.own import own_application
from tare.workloads.own.file import Described
from tare.workloads.own.own_application import OwnApplication


def try_once(described: Described, memory_bytes: int, platforms: Sequence[str] = (app_check.PLATFORM,)) -> bool:
    """Run an application once on each of these platforms, and print its figures; whether it ran on all of them.

    Raises `TareError` that begins with FILE:LINE where the application does not run on the one platform, and what
    concerns them all.
    """
    own_namespaces.enter(state.home())
    workload = own_application.of(described, str(described.file))
    console = Console(stderr=True)

    def progress(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)

    good: list[str] = []
    try:
        for platform, result in app_check.each(workload, memory_bytes, progress, platforms):
            if isinstance(result, Tried):
                good.append(platform)
                _show(workload, platform if len(platforms) > 1 else "", result)
            elif len(platforms) == 1:
                raise result.error
            else:
                emit(f"{platform}: {_placed(described, result.error)}")
    except TareError as error:
        raise _placed(described, error) from error
    if good:
        asked = " ".join(f"-p {platform}" for platform in good if platform != app_check.PLATFORM) or "-p docker"
        emit(f"{described.file} runs on {', '.join(good)}: tare run -w {workload.origin} {asked}")
    return len(good) == len(platforms)


def _show(workload: OwnApplication, platform: str, result: Tried) -> None:
    figures = {sample.metric: sample.value for sample in (*result.measured.samples, *result.measured.costs)}
    for metric in workload.all_metrics:
        if metric.name in figures:
            where = f"{platform}: " if platform else ""
            emit(f"{where}{metric.name}: {figures[metric.name]:.6g} {metric.unit}, {metric.title}")


def _placed(described: Described, error: Exception) -> Exception:
    """The error with the line that it is about in front, as FILE:LINE and a colon: of a figure it is there already."""
    if isinstance(error, TareError) and not error.what.startswith(f"{described.file}:"):
        error.what = f"{_place(described, error)}{error.what}"
    return error


def _place(described: Described, error: TareError) -> str:
    if isinstance(error, SessionError):
        return f"{described.at('start')}: "
    if isinstance(error, ImageError):
        return f"{described.at('source')}: "
    return f"{described.at('load')}: " if error.outputs else ""
