"""`tare clean --images`: removes images that are no use any more, with what engines keep of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from tare.cli.console import Console
from tare.errors import HostError, attempt
from tare.host import state
from tare.host.kernel import removal
from tare.host.resources.journal import CleanupStack
from tare.image import forms, image_build
from tare.image.build_places import locked
from tare.image.unused import Unused, unused
from tare.platforms import platform_registry as platforms
from tare.platforms.base import Availability, Platform
from tare.workloads import workload_registry as workloads


def remove_unused(console: Console, dry_run: bool) -> int:
    """Remove images that are no use any more, or with ``dry_run`` print them; how many could not be removed.

    Raises `HostError` where there is no agent to tell them by.
    """
    layers = {workload.layer for workload in workloads.all_workloads().values() if workload.layer is not None}
    n_kept = freed = 0
    with locked(state.images(), lambda message: console.print(message, markup=False)):
        folders = unused(image_build.agent_path(), layers)
        with _engines(wanted=not dry_run and any(folder.image for folder in folders)) as engines:
            for folder in folders:
                size = forms.disk_bytes(folder.place)
                named = f"image {folder.place.name}, {size / 1e6:.0f} MB, {folder.why}"
                error = None if dry_run else _remove(folder, engines)
                if error is None:
                    freed += size
                    console.print(f"{'would remove' if dry_run else 'removed'} {named}", markup=False, soft_wrap=True)
                else:
                    n_kept += 1
                    console.print(f"kept {named}: {error}", markup=False, soft_wrap=True)
    verb = "to remove" if dry_run else "removed"
    total = f"images {verb}: {len(folders) - n_kept}, {freed / 1e9:.1f} GB; kept: {n_kept}"
    console.print(total if folders else "no image is unused")
    return n_kept


@contextlib.contextmanager
def _engines(*, wanted: bool) -> Iterator[list[Platform]]:
    """A platform of each engine here that keeps copies of images."""
    by_engine = {type(platform).kept: platform for platform in reversed(platforms.all_platforms().values())}
    by_engine.pop(Platform.kept, None)
    engines = [platform for platform in by_engine.values() if wanted and _runs(platform)]
    try:
        yield engines
    finally:
        for platform in engines:
            platform.close()


def _runs(platform: Platform) -> bool:
    answer = attempt(platform.detect)
    return isinstance(answer, Availability) and answer.available


def _remove(folder: Unused, engines: Sequence[Platform]) -> HostError | None:
    """Remove a folder of the cache, and before it what engines keep of its image; the error where that fails.

    It first loses its name, for what has that is whole (`tare.image.build_places`).
    """
    if (folder.place / "root").is_mount():
        return HostError("something is mounted there", fix="unmount it, if it is yours")
    try:
        with CleanupStack() as copies:
            if folder.image is not None:
                for platform in engines:
                    copies.own(*platform.kept(folder.image))
        place = folder.place
        if not place.name.startswith("new-"):
            place = place.with_name(f"new-{place.name}")
            removal.remove(place)  # of a build that was killed
            folder.place.rename(place)
        removal.remove(place)
    except HostError as error:
        return error
    except OSError as error:
        return HostError(f"{folder.place} cannot be renamed: {error.strerror}")
    return None
