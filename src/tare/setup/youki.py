"""youki at one version, built from crates.io into ``TARE_HOME/bin``: Debian has no package of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tare.errors import HostError
from tare.host import processes, state
from tare.model import Progress
from tare.setup.gvisor import into_place

VERSION = "0.7.0"
LIMIT_S = 3600.0


def build(tell: Progress) -> None:
    """Build it where it is not there in this version. Raises `HostError`."""
    place = state.home_if_any() / "bin" / "youki"
    if place.is_file() and f"youki version: {VERSION}\n" in processes.run([str(place), "--version"]).text:
        tell(f"youki {VERSION} is there")
        return
    cargo = processes.find("cargo")
    if cargo is None:
        raise HostError("Cargo is not installed, which builds youki", fix="tare setup --with youki, as root")
    tell(f"building youki {VERSION} (some minutes)")
    with tempfile.TemporaryDirectory() as scratch:
        # It has no features by default, and then no control groups.
        argv = [cargo, "install", "youki", "--version", VERSION, "--locked", "--features", "v1,v2", "--root", scratch]
        environment = {**os.environ, "CARGO_TARGET_DIR": f"{scratch}/target"}
        fix = "see that crates.io can be reached, and that Rust is new enough (rustup update)"
        processes.run(argv, cwd=Path(scratch), time_limit_s=LIMIT_S, env=environment).require(fix=fix)
        into_place(Path(scratch, "bin", "youki"), place)
