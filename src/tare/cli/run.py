"""`tare run`: measures, and shows the report."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tare.campaign.execution import run_campaign
from tare.campaign.plan.campaign_request import ALL, CampaignRequest
from tare.campaign.plan.presets import foreword
from tare.cli.choices import ProgressOptions, ProgressStyle
from tare.cli.consent import agreed
from tare.cli.console import Console
from tare.cli.progress import CampaignDisplay
from tare.cli.report import show
from tare.cli.watchers import CombinedWatcher, JsonLines, Stopping, Telling
from tare.errors import HostError, StoreError
from tare.host import own_dockerd, own_namespaces, state
from tare.host.facts import machine_facts
from tare.model import CampaignStatus
from tare.outputs import page_of
from tare.platforms import platform_registry
from tare.report.campaign import calibration_views
from tare.safe_text import encodable
from tare.store import exists, read_store

#: The workload that restarts an engine.
RESTART = "engine-restart"
#: After an interrupt while platforms were still looked for and tried.
NOTHING_YET = "nothing was measured yet: there is no campaign file"


def measure(
    request: CampaignRequest,
    file: Path,
    progress_options: ProgressOptions,
    *,
    as_json: bool,
    prepare: Callable[[], object] = lambda: None,
) -> None:
    """Run a new campaign into a file, and show it. Raises `TareError`.

    ``prepare``: called once the campaign has ended, and before its report is made.
    """
    _require_rights(request.platforms)
    own_namespaces.enter(state.home())
    console = Console(stderr=True)
    if (notice := foreword(request)) and progress_options.shown is ProgressStyle.AUTO:
        console.print(notice, markup=False, soft_wrap=True)
    with _docker_to_restart(request, console), _watched(console, file, progress_options, _resolution) as watcher:
        run_campaign.begin(request, file, watcher)
    prepare()
    show([file], html=page_of(file), as_json=as_json)


def _require_rights(names: Sequence[str]) -> None:
    """Raise `HostError` where a user names platforms that all need root: what a user lacks is then not the point."""
    chosen = [] if os.geteuid() == 0 or ALL in names else platform_registry.choose(names)
    if chosen and not any(platform.without_root for platform in chosen):
        needing = ", ".join(platform.name for platform in chosen)
        raise HostError(f"{needing}: this needs root", fix="run tare as root (sudo)")


def go_on(
    file: Path, progress_options: ProgressOptions, *, trusted: bool, as_json: bool, more_s: float | None = None
) -> None:
    """Go on with a campaign, and show it. Raises `TareError`.

    ``trusted``: see `tare.cli.consent`; ``more_s``: with so many seconds more. Without it a complete campaign is left
    as it is, and a line says so.
    """
    own_namespaces.enter(state.home())
    if more_s is None and _is_whole(file):
        Console(stderr=True).print(_whole(file), markup=False, soft_wrap=True)
        return
    answer = agreed(file, trusted=trusted)
    with _watched(Console(stderr=True), file, progress_options) as watcher:
        run_campaign.resume(file, watcher, watcher.warn, answer, more_s)
    show([file], html=page_of(file), as_json=as_json)


@contextlib.contextmanager
def _docker_to_restart(request: CampaignRequest, console: Console) -> Iterator[None]:
    """Start a Docker daemon of tare's own if its restart is to be measured and none runs.

    The user's own is never restarted.

    Raises `HostError`.
    """
    asked = any(name.startswith("docker") for name in request.platforms or ())
    if not asked or RESTART not in (request.workloads or ()):
        yield
        return
    with own_dockerd.lent() as started:
        if started:
            console.print("no Docker daemon runs: tare starts one, to restart it", markup=False, soft_wrap=True)
        yield


@contextlib.contextmanager
def _watched(
    console: Console, file: Path, progress_options: ProgressOptions, preface: Callable[[], str] | None = None
) -> Iterator[CombinedWatcher]:
    """Watch a campaign. If it, or the host, ends early, print how to continue it."""
    lines = JsonLines(console)
    display = CampaignDisplay(console, foreword=preface)
    with contextlib.ExitStack() as held:
        watcher: Telling = lines if progress_options.shown is ProgressStyle.JSON else held.enter_context(display)
        stopping = held.enter_context(Stopping(watcher.warn))
        try:
            yield CombinedWatcher([watcher, *_exposed(progress_options.metrics, held, watcher.warn)], stopping)
        except (KeyboardInterrupt, HostError, StoreError) as end:
            by_user = isinstance(end, KeyboardInterrupt)
            if by_user or stopping.has_blocks:  # an error before the first block ends no campaign
                if progress_options.shown is ProgressStyle.JSON:
                    lines.ended(CampaignStatus.INTERRUPTED, encodable(str(file)) if exists(file) else None)
                else:
                    watcher.warn(_to_go_on(file) if exists(file) else NOTHING_YET)
            raise
        if progress_options.shown is ProgressStyle.JSON:
            lines.ended(CampaignStatus.COMPLETE, encodable(str(file)))


def _is_whole(file: Path) -> bool:
    """Return True if a campaign is complete, and no trial of its schedule is missing."""
    with read_store(file) as store:
        return store.status is CampaignStatus.COMPLETE and set(store.schedule()) <= store.done()


def _whole(file: Path) -> str:
    return f"{file} is complete: no trial is missing. For more of it: tare run --more 10m {shlex.quote(str(file))}"


def _to_go_on(file: Path) -> str:
    return f"to continue: tare run --resume {shlex.quote(str(file))}"


def _exposed(address: str | None, held: contextlib.ExitStack, warn: Callable[[str], object]) -> list[Telling]:
    """The watcher behind the endpoint for metrics, which is there until ``held`` is closed; none without an address."""
    if address is None:
        return []
    from tare.cli.metrics_endpoint import Metrics, parse_address, serving  # noqa: PLC0415 (slow to load, and rarely wanted)

    metrics = Metrics()
    held.enter_context(serving(parse_address(address), metrics, warn))
    return [metrics]


def _resolution() -> str:
    return calibration_views.line(state.home(), machine_facts.gather().machine)
