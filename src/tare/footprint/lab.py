"""Footprints that a host in use does not let one count: counted in a lab, and brought back into a file here.

The lab runs the same command, in it, on Debian's stock kernel; see docs/lab.md. It is a host with nobody else's work on
it, so that what everybody does is what tare does and the kernel by itself.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import tare
from tare.campaign import conduct
from tare.campaign.plan import make_jobs
from tare.errors import HostError, StoreError
from tare.footprint import kmodule
from tare.footprint.conduct import PROFILE, WORKLOADS, Order
from tare.footprint.model import Footprint, Level
from tare.footprint.record import footprints, keep
from tare.footprint.walk import countable
from tare.image.places import Progress
from tare.lab import build, headers
from tare.lab import run as lab_run
from tare.lab.run import Output
from tare.store.store import Store
from tare.workloads import registry as workloads

#: What is counted in a lab, unless one is on a host where it can be.
LEVELS = frozenset({Level.FUNCTIONS})
FLAVOUR = "kvm"
MEMORY_BYTES = 4 << 30
CPUS = 2
LIMIT_S = 6 * 3600.0
#: With all functions counted, every look at an emulated HPET takes so long that the kernel finds itself locked up.
KERNEL = ("tsc=reliable", "clocksource=tsc", "nowatchdog")
LAB_MODULE = f"/lab/files/{kmodule.NAME}.ko"
_RESULT = "footprint.tare"
#: Starts a Docker daemon for a command; in a checkout only, which goes into the lab whole.
_DOCKER = "scripts/with_dockerd.py"


def inside() -> bool:
    """Whether this is a lab."""
    return "TARE_LAB" in os.environ


def module(progress: Progress) -> Path:
    """The module that counts functions, for the lab's kernel; built if need be. Raises `ImageError`."""
    return headers.module(build.host(FLAVOUR, progress), kmodule.SOURCE, kmodule.NAME, progress)


def count(order: Order, file: Path, output: Output, progress: Progress) -> list[Footprint]:
    """Have a lab count, put the footprints into ``file``, new or there already, and return them.

    ``output`` gets what is said in the lab. What it had counted when it failed is in the file. Raises `TareError`.
    """
    order.check()
    _check_bits(order, file, progress)
    with tempfile.TemporaryDirectory(prefix=".tare-lab-", dir=file.absolute().parent) as scratch:
        results = Path(scratch)
        code = lab_run.run(_sent(order, results, module(progress)), output, progress)
        brought = bring(results / _RESULT, file) if (results / _RESULT).exists() else []
    if code != 0:
        raise HostError(f"counting in the lab ended with {code}; {len(brought)} footprints are in {file}")
    return brought


def _sent(order: Order, results: Path, compiled: Path) -> lab_run.Order:
    argv = ["tare", "footprint", *words(order), "--here", "-o", f"/lab/out/{_RESULT}"]
    if _wants_docker(order.platforms) and Path(tare.__file__).parents[2].joinpath(_DOCKER).is_file():
        argv = ["python3", _DOCKER, *argv]
    argv = ["env", f"{kmodule.BROUGHT}={LAB_MODULE}", *argv]
    return lab_run.Order(argv, FLAVOUR, MEMORY_BYTES, CPUS, LIMIT_S, (compiled,), results, KERNEL)


def words(order: Order) -> list[str]:
    """The order as words of the command; where the file is, and a subnet, are matters of this host."""
    said = [word for name in order.platforms for word in ("--platform", name)]
    said += [word for name in order.workloads for word in ("--workload", name)]
    said += ["--level", order.level.value, "--repeats", str(order.repeats), "--idle", f"{order.idle_s:g}s"]
    said += ["--memory", str(order.memory_bytes >> 20)]
    if order.seed is not None:
        said += ["--seed", str(order.seed)]
    if order.cpus:
        said += ["--cpus", ",".join(map(str, order.cpus))]
    return said


def _wants_docker(platforms: Sequence[str]) -> bool:
    """The usual platforms, which are meant when none is named, have Docker among them."""
    return not platforms or any(name == "all" or name.startswith("docker") for name in platforms)


def bring(brought: Path, file: Path) -> list[Footprint]:
    """Put the footprints of a file into another one, or make that of it; return them. Raises `StoreError`."""
    with Store.open(brought) as there:  # for writing: that takes in what a killed writer left beside it
        found, kernel = footprints(there), there.record.host["kernel"]
    if not file.exists():
        shutil.move(brought, file)
        return found
    with Store.open(file) as here:
        for one in found:
            keep(here, one)
        here.add_event(
            "info",
            f"{len(found)} footprints of {found[0].level.value if found else 'nothing'} were "
            f"counted in a lab, on Linux {kernel}",
        )
    return found


def _check_bits(order: Order, file: Path, progress: Progress) -> None:
    """Figures and footprints of one file are of the same bits."""
    if not file.exists():
        return
    jobs = make_jobs(countable(workloads.choose(order.workloads or WORKLOADS))[0], PROFILE)
    image = conduct.image_for(jobs, progress)
    with Store.read(file) as there:
        if there.record.image.get("hash") != image.hash:
            raise StoreError(f"{file} is of another image than what would be counted", fix="give a new file with -o")
