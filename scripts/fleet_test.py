"""Run a fleet of sshd hosts on this machine: strike two and the controller, go on, look at what is left.

The look is by other means than the fleet's: SQLite's own, /proc, and the hosts' disks. Ends with 1 where something is
lost, doubled or left. See `make fleet-test`.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import fleet_bed
from tare.fleet import packing, run_fleet
from tare.fleet.host_states import HostState
from tare.host import state
from tare.host.kernel import process_table
from tare.image import image_build

WORDS = ["-p", "native", "-w", "startup"]


def main() -> int:
    """Do all of it, print the figures, and return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument(
        "--pushed", type=int, default=2, help="so many hosts have nothing; the others had a fleet before"
    )
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--kills", type=int, default=1, help="so often the controller is killed, at random moments")
    parser.add_argument("--within", type=float, default=8.0, help="seconds within which it is killed")
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.randrange(1 << 30)
    chance = random.Random(seed)
    print(f"seed {seed}", flush=True)
    with (
        fleet_bed.bed(given.hosts * (600 << 20) if given.pushed > 2 else 0) as bed,
        tempfile.TemporaryDirectory() as out,
    ):
        began = time.monotonic()
        _start(bed, given.hosts, given.pushed)
        print(f"{given.hosts} hosts answer after {time.monotonic() - began:.1f} s", flush=True)
        victims = chance.sample(sorted(bed.hosts), min(2, given.hosts))
        wrong: list[str] = []
        fleets, kills = 1, 0
        while kills < given.kills and not wrong:
            folder, words = _fleet(bed, out, fleets, given.blocks)
            if _strike(bed, folder, words, chance.uniform(0, given.within), victims if kills == 0 else []):
                kills += 1
                continue
            wrong += _look(bed, folder, _rows(folder), given.blocks)  # it was done before
            fleets += 1
        folder, words = _fleet(bed, out, fleets, given.blocks)
        code, rows, wall_s, cpu_s = _run(words)
        print(
            f"the last command: exit code {code}, {wall_s:.1f} s, {cpu_s:.1f} s of CPU time of the controller",
            flush=True,
        )
        wrong += _look(bed, folder, rows, given.blocks)
        print(f"controllers killed: {kills}; fleets: {fleets}")
        states = collections.Counter(row["state"] for row in rows)
        print(f"hosts: {', '.join(f'{count} {name}' for name, count in states.items())}")
        began = time.monotonic()
        argv = [*_tare(), "fleet", "clean", "-i", str(bed.inventory)]
        cleaned = subprocess.run(argv, check=False, capture_output=True)  # noqa: S603 (its own words)
        print(f"clean: exit code {cleaned.returncode}, {time.monotonic() - began:.1f} s")
        wrong += [f"{name} keeps {host.folder}" for name, host in bed.hosts.items() if host.folder.exists()]
    for line in wrong:
        print(f"WRONG: {line}")
    print("nothing is lost, doubled or left" if not wrong else f"{len(wrong)} things are wrong")
    return 1 if wrong else 0


def _tare() -> list[str]:
    return [sys.executable, "-P", "-m", "tare"]


def _start(bed: fleet_bed.Bed, count: int, pushed: int) -> None:
    """Start the hosts. All but some have the packages of an earlier fleet, linked from one copy."""
    image_build.ensure(image_build.agent_path(), progress=_quiet)
    images = [path for path in state.images().iterdir() if path.is_dir() and not path.name.startswith("new-")]
    target = packing.PackTarget("{}.{}".format(*sys.version_info), os.uname().machine)
    packages = packing.packed_for(target, _quiet)["packages"]
    shared = bed.scratch / packages["name"]
    shared.mkdir()
    with tarfile.open(packages["file"]) as tar:
        tar.extractall(shared)  # noqa: S202 (packed a moment ago, by this process)
    for number in range(count):
        name = f"web{number + 1:02}"
        there = bed.scratch / f"disk-{name}" / "tare-fleet"  # links: a host's disk is a folder of this machine
        had = f"mkdir -p -m 700 {there}; cp -al {shared} {there}/"
        bed.add(name, images=images, extra="" if number < pushed else had)
    bed.write_inventory()


def _quiet(_what: str) -> None:
    pass


def _fleet(bed: fleet_bed.Bed, out: str, number: int, blocks: int) -> tuple[Path, list[str]]:
    """Return the folder of a fleet, and the words that run it or go on with it."""
    folder = Path(out) / f"night{number}"
    words = ["fleet", "run", "-i", str(bed.inventory), "-o", str(folder), "--look", "5", "--json", "--"]
    return folder, [*words, *WORDS, "--blocks", str(blocks)]


def _strike(bed: fleet_bed.Bed, folder: Path, words: list[str], moment_s: float, victims: list[str]) -> bool:
    """Run the fleet, take the power of some hosts once they run, and kill the controller after some seconds.

    Returns False where the controller ended before.
    """
    with (bed.scratch / "first.log").open("ab") as log:
        argv = [*_tare(), *words]
        controller = subprocess.Popen(argv, stdout=log, stderr=log)  # noqa: S603 (its own words)
    deadline = time.monotonic() + 900
    while victims and not all(_state(folder, name) in {HostState.RUNNING, HostState.DONE} for name in victims):
        if controller.poll() is not None or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = controller.wait(moment_s)
        print(f"a controller ended with {code} within {moment_s:.1f} s", flush=True)
        return False
    for name in victims:
        bed.kill(bed.hosts[name])
    controller.kill()
    controller.wait()
    seen = collections.Counter(row.state.value for row in run_fleet.read_rows(folder))
    after = f"after {moment_s:.1f} s" if not victims else f"with {', '.join(victims)}"
    print(f"killed a controller {after}; as it last said: {dict(seen)}", flush=True)
    for name in victims:
        bed.start(bed.hosts[name])
    return True


def _rows(folder: Path) -> list[dict[str, object]]:
    return [asdict(row) for row in run_fleet.read_rows(folder)]


def _state(folder: Path, name: str) -> HostState | None:
    return next((row.state for row in run_fleet.read_rows(folder) if row.host == name), None)


def _run(words: list[str]) -> tuple[int, list[dict[str, object]], float, float]:
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*_tare(), *words], check=False, capture_output=True, text=True)  # noqa: S603 (its own words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if not done.stdout.startswith("{"):
        print(done.stderr)
        return done.returncode, [], time.monotonic() - began, cpu_s
    return done.returncode, json.loads(done.stdout)["hosts"], time.monotonic() - began, cpu_s


def _look(bed: fleet_bed.Bed, folder: Path, rows: list[dict[str, object]], blocks: int) -> list[str]:
    """What is lost, doubled or left, by SQLite itself, /proc and the hosts' disks."""
    wrong, campaigns = [], collections.Counter()
    wrong += [f"{row['host']} is {row['state']}: {row['reason']}" for row in rows if row["state"] != "done"]
    files = {path.stem for path in folder.glob("*.tare")}
    wrong += [f"{name} has no file" for name in bed.hosts.keys() - files]
    wrong += [f"{name}.tare is of no host" for name in files - bed.hosts.keys()]
    for name in sorted(files):
        place = folder / f"{name}.tare"
        with sqlite3.connect(f"file:{place}?mode=ro&immutable=1", uri=True) as database:
            if database.execute("pragma integrity_check").fetchone() != ("ok",):
                wrong.append(f"{place.name} is damaged")
            campaigns[database.execute("select value from fact where name = 'record'").fetchone()[0]] += 1
            keys = "select block, workload, arm from"
            planned = database.execute(f"{keys} schedule").fetchall()
            kept = database.execute(f"{keys} trial").fetchall()
        if sorted(planned) != sorted(kept):  # a trial that is doubled or lost
            wrong.append(f"{name} has {len(kept)} trials of {len(planned)}")
        if {row[0] for row in kept} != {*range(blocks)}:
            wrong.append(f"{name} has blocks {sorted({row[0] for row in kept})}")
    wrong += [f"{count} files are of one campaign" for count in campaigns.values() if count > 1]
    for name, host in bed.hosts.items():
        wrong += [f"{name} keeps {path}" for path in host.folder.glob("runs/*/*") if path.name not in {"name", "lock"}]
        wrong += [f"{name} keeps {path}" for path in host.folder.glob("incoming/*")]
        wrong += [f"{name} keeps {path}" for path in host.disk.glob("root/.ansible*")]
        work = host.disk / "tare" / "work"
        wrong += [f"{name} keeps {path}" for path in work.glob("*")]
    for pid, argv in process_table.command_lines().items():
        line = " ".join(argv)
        if str(folder) in line or "tare run" in line:
            wrong.append(f"process {pid} still runs: {line[:100]}")
    return wrong


if __name__ == "__main__":
    if shutil.which("sshd") is None:
        sys.exit("sshd is not installed (fix: apt-get install openssh-server)")
    sys.exit(main())
