"""A user's own command as a workload: what `tare run -- COMMAND` measures (docs/programs.md).

Each run is the command alone, started by the agent in the instance. Where the user gave a folder, it is in the image
(`tare.image.own`), so that each instance's own writable layer has the changes, and before each run the agent undoes
what earlier runs in the instance have changed. A run that does not end with 0 fails its trial, unless that is ignored.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar

from tare.errors import ParseError, UsageError
from tare.model import WORK, WORK_ORIGINAL, Direction, Family, ImageSource, Layer, Metric, UserProgram
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.network.exchange import AGENT
from tare.workloads.output import shown
from tare.workloads.own.file import PACKAGE

WALL, PEAK_RSS = "wall", "peak-rss"
#: How long a folder may take to be renewed; it has as many files as the user likes.
RENEW_LIMIT_S = 600.0
#: Names of signals by number would be those of the host: these have one everywhere.
_SIGNALS = {6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
#: Characters of a command in a sentence, and in a workload's title.
_SHOWN, _TITLE = 80, 400


class OwnProgram(RunWorkload):
    """A command. Parameters: ``rounds``, its runs in each block, and ``program``, a digest by which it is known again.

    The name of a folder is not in the digest: the folder's contents are in the image, and so in its hash.
    """

    family = Family.APPLICATION
    loaded = False
    counts_peak = True
    kept_output = 4096
    metrics = (
        Metric(WALL, "s", Direction.LOWER, "wall time of a run, by the agent beside it"),
        Metric(PEAK_RSS, "MiB", Direction.LOWER, "resident memory of the largest process, as its own kernel counts it"),
    )
    work_unit = "run"
    program: ClassVar[UserProgram]

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        program = self.program
        renewal = (Command((AGENT, "renew", WORK_ORIGINAL, WORK), cwd="/", time_limit_s=RENEW_LIMIT_S),)
        each: tuple[Command, ...] = renewal if program.folder else ()
        if program.prepare:
            each += (self._command(program.prepare, around),)
        measured = self._command(program.argv, around)
        ignored = self._command(program.argv, around, may_fail=program.ignore_failure)
        return RunPlan(
            prepare=(*each, ignored) * program.warmup,
            each=each,
            measures=(measured,),
            cleanup=(self._command(program.cleanup, around),) if program.cleanup else (),
        )

    def _command(self, argv: tuple[str, ...], around: Surroundings, *, may_fail: bool = False) -> Command:
        """Return a command as the image runs it: as its user, with its environment, in its folder or another.

        The agent becomes another user by one more program; as root there is none before the command.
        """
        image = around.application
        if image is not None and image.user not in {"", "0", "root", "0:0", "root:root"}:
            argv = (AGENT, "run", "--user", image.user, "--", *argv)
        return Command(
            argv,
            time_limit_s=self.program.time_limit_s,
            env={**(image.env if image is not None else {}), **self.program.env},
            cwd=WORK if self.program.folder else image.directory if image is not None else "/data",
            may_fail=may_fail,
        )

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        (done,) = results
        program = self.program
        if done.timed_out:
            raise ParseError(
                f"{quoted(program.argv)} did not end within {done.wall_ns / 1e9:.0f} s: {_printed(done)}",
                fix="a longer --time-limit",
            )
        if done.exit_code != 0 and not program.ignore_failure:
            raise ParseError(f"{quoted(program.argv)} {_how_it_ended(done)}: {_printed(done)}")
        samples = {WALL: done.wall_ns / 1e9}
        if done.max_rss_bytes:
            samples[PEAK_RSS] = done.max_rss_bytes / 2**20
        unseen = {} if done.max_rss_bytes else {PEAK_RSS: "the kernel that runs it does not say"}
        return Outcome(samples, 1, unseen=unseen)


def _printed(done: Completed) -> str:
    """Return the first and last lines of what a command printed, of its errors where it printed any."""
    return shown((done.stderr.strip() or done.stdout).decode(errors="replace"))


def _how_it_ended(done: Completed) -> str:
    """Return how a command ended, as the rest of a sentence."""
    if done.exit_code is not None:
        return f"ended with exit code {done.exit_code}"
    name = _SIGNALS.get(done.signal or 0)
    return f"was killed by signal {done.signal}{f' ({name})' if name else ''}"


def quoted(argv: Sequence[str]) -> str:
    """Return a command in a sentence."""
    return f"`{in_short(shlex.join(argv), _SHOWN)}`"


def in_short(text: str, most: int) -> str:
    """Return a text in one line, cut where it has more than ``most`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def of(name: str, program: UserProgram) -> OwnProgram:
    """Return the workload of a program under this name. Raises `UsageError` for what is no name of a Debian package."""
    packages = tuple(sorted(set(program.packages)))
    for package in packages:
        if not PACKAGE.fullmatch(package):
            raise UsageError(f"{package!r} is no name of a Debian package", fix="such as python3-minimal")
    listed = ", ".join(f'"{package}"' for package in packages)
    definition = {key: value for key, value in asdict(program).items() if key != "folder"}
    digest = hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()
    params: Params = {"rounds": 1, "program": digest}

    class _Program(OwnProgram):
        title = in_short(shlex.join(program.argv), _TITLE)
        layer = Layer("program", f"[recorded]\npackages = [{listed}]\n") if packages else None
        source = _source(program)
        profiles: ClassVar[Mapping[str, Params]] = {"quick": params, "full": params}
        least: ClassVar[Mapping[str, float]] = {"rounds": 1}

    _Program.name, _Program.packages, _Program.program = name, packages, program
    return _Program()


def _source(program: UserProgram) -> ImageSource | None:
    if not (program.image or program.folder):
        return None
    return ImageSource(program.image, folder=_is_root(program.image), work=program.folder or None)


def _is_root(image: str) -> bool:
    """Return True if a place is a folder with a root filesystem, and not an OCI layout."""
    place = Path(image)
    return bool(image) and place.is_dir() and not (place / "oci-layout").exists()
