"""`tare report --share`: a copy of a campaign's file without what names the machine or its people."""

from __future__ import annotations

from pathlib import Path

from tare.cli.console import Console
from tare.host.facts import identity
from tare.outputs import written
from tare.store import share_store


def share_copy(file: Path, copy: Path) -> None:
    """Write the copy, and print on standard error what was removed and what was kept."""
    with written(copy, "wb", new=True) as out:
        done = share_store(file, out, hosts=identity.hosts(), users=identity.users())
    console = Console(stderr=True)
    removed = ", ".join(f"{count} of {kind.replace('-', ' ')}" for kind, count in sorted(done.removed.items()))
    console.print(f"shared: {copy}: {done.outputs} outputs looked through", markup=False, soft_wrap=True)
    console.print(f"removed, each with a stand-in: {removed or 'nothing was there'}", markup=False, soft_wrap=True)
    console.print(f"kept: {'; '.join(done.kept)}", markup=False, soft_wrap=True)
    console.print(f"kept of the host: {', '.join(done.facts) or 'nothing'}", markup=False, soft_wrap=True)
