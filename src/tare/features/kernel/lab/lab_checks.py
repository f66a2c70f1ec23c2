"""Check of `tare doctor` for the lab: the flavours that are built, and if the others can be."""

from __future__ import annotations

from collections.abc import Callable

from tare.errors import ImageError
from tare.features.kernel.lab import kernel, lab_build, lab_recipes
from tare.host import state
from tare.host.host_checks import HostCheck

NAME = "lab"


def check(obstacle: Callable[[], ImageError | None] = lab_build.obstacle) -> HostCheck:
    """Check the lab without building anything. ``obstacle``: why no root can be made here, or None."""
    flavours = lab_recipes.load().flavours()
    ready = [flavour for flavour in flavours if _built(flavour)]
    missing = ", ".join(flavour for flavour in flavours if flavour not in ready)
    built = f"{', '.join(ready)}: built" if ready else "not built yet"
    if not missing:
        return HostCheck(NAME, "ok", built)
    if why := obstacle():
        return HostCheck(NAME, "warn", f"{built}; {missing} cannot be: {why.what}", why.fix)
    by_hand = "tare lab build --flavour NAME (lines: half an hour)"
    return HostCheck(NAME, "ok", f"{built}; {missing}: by what first needs it, or {by_hand}")


def _built(flavour: str) -> bool:
    """Return True if all slow parts of a flavour exist. The payload depends on its contents, and takes only seconds."""
    lab_recipe, folder = lab_recipes.load(), state.home() / "lab"
    host, counting = lab_recipe.resolved(flavour)
    parts = [folder / f"qemu-{lab_recipe.emulator.hash}", folder / f"host-{host}-{lab_recipe.host(host).hash}"]
    return all(part.is_dir() for part in parts) and (counting is None or bool(kernel.cached(counting, folder)))
