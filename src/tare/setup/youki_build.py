"""Build of youki at one version, from crates.io into ``TARE_HOME/bin``, because Debian has no package of it."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from tare.errors import HostError
from tare.host import processes, state
from tare.model import Progress
from tare.setup.gvisor_build import into_place

VERSION = "0.7.0"
#: SHA-256 of its crate, which contains the lock with the checksums of all crates that it is built from.
CRATE = "0db9124bcfe24842d30a69c6aad82f5b90d7c6a3ee92275179e3a6e86f6929a4"
LIMIT_S = 3600.0


def build(tell: Progress) -> None:
    """Build it if this version is missing. Raises `HostError`."""
    place = state.home_if_any() / "bin" / "youki"
    if place.is_file() and f"youki version: {VERSION}\n" in processes.run([str(place), "--version"]).text:
        tell(f"youki {VERSION} is there")
        return
    cargo = processes.find("cargo")
    if cargo is None:
        raise HostError("Cargo is not installed, which builds youki", fix="tare setup --with youki, as root")
    tell(f"building youki {VERSION} (some minutes)")
    cargo_home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo").absolute()
    kept = {**processes.kept(*processes.BUILDS), "CARGO_HOME": str(cargo_home)}
    fix = "see that crates.io can be reached, and that Rust is new enough (rustup update)"
    # Fetches the crate.
    processes.run([cargo, "info", f"youki@{VERSION}"], time_limit_s=LIMIT_S, env=kept).require(fix=fix)
    check_crate(cargo_home)
    with tempfile.TemporaryDirectory() as scratch:
        # By default it has no features, and thus no control groups.
        argv = [cargo, "install", "youki", "--version", VERSION, "--locked", "--features", "v1,v2", "--root", scratch]
        environment = {**kept, "CARGO_TARGET_DIR": f"{scratch}/target"}
        processes.run(argv, time_limit_s=LIMIT_S, env=environment).require(fix=fix)
        into_place(Path(scratch, "bin", "youki"), place)


def check_crate(cargo_home: Path) -> None:
    """Raise `HostError` unless the crate that Cargo fetched and builds has the known checksum."""
    crates = list(cargo_home.glob(f"registry/cache/*/youki-{VERSION}.crate"))
    sums = {hashlib.sha256(crate.read_bytes()).hexdigest() for crate in crates}
    if sums != {CRATE}:
        sums_text = ", ".join(sorted(sums)) or "Cargo has not kept it"
        problem = f"the crate youki {VERSION} does not have the checksum that tare expects ({CRATE}): {sums_text}"
        raise HostError(problem, fix=f"remove {cargo_home}/registry, and see which registry Cargo is told to use")
