"""Commands as a user runs them, without a new interpreter for each: forked from a process that has loaded the modules.

They run in a child with a folder, environment, descriptors and limits of its own. The process that forks has started no
thread. As a script it is that process.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import pkgutil
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import tare.features
import tare.platforms

#: What every command loads.
EVERY = ("tare.cli",)
#: All that commands load which read campaign files: it would cost each of them a second or more.
READING = (
    "tare.cli.report", "tare.cli.export", "tare.cli.run", "tare.cli.calibrate",
    "tare.cli.consent", "tare.cli.commands.report_command",
    "tare.cli.commands.export_command", "tare.cli.commands.run_command", "tare.cli.commands.calibrate_command",
    "tare.cli.sql", "tare.cli.commands.sql_command", "tare.cli.figure",
    "tare.cli.commands.figure_command", "tare.cli.cite", "tare.cli.commands.cite_command", "tare.cli.bundle",
    "tare.cli.commands.bundle_command", "tare.features.capacity.run", "tare.features.capacity.command",
    "tare.cli.fleet_report",
    "tare.cli.commands.fleet_command", "tare.analysis.comparisons.merged_hosts", "tare.estimates.random_effects",
    "tare.report.formats.fleet_page", "tare.store.sqlite", "duckdb", "nanoarrow", "rich._emoji_codes", "rich.status",
    "scipy.optimize", "scipy.stats", "matplotlib.figure", "matplotlib.backends.backend_svg",
    *(module.name for module in pkgutil.walk_packages(tare.features.__path__, "tare.features.")),
    *(module.name for module in pkgutil.iter_modules(tare.platforms.__path__, "tare.platforms.")),
)  # fmt: skip


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str
    seconds: float
    peak_mib: int  # of its process until then
    modules: frozenset[str]  # what its process had loaded by then


class Commands:
    """Runs commands; a context, since a process stands behind it."""

    def __init__(self, preloaded: tuple[str, ...]) -> None:
        self._scratch = tempfile.TemporaryDirectory()
        argv = [sys.executable, __file__, *preloaded]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Commands:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            self._process.stdin.close()
        self._scratch.cleanup()

    def run(self, *arguments: str, **where) -> Ended:
        """How ``tare ARGUMENTS`` ended, in a process of its own; see `run_each`."""
        [ended] = self.run_each([arguments], **where)
        return ended

    def run_each(
        self,
        commands,
        *,
        cwd,
        env=None,
        stdin=os.devnull,
        time_limit_s=120.0,
        memory=resource.RLIM_INFINITY,
        stdout="file",
    ) -> list[Ended]:
        """How each of the commands ended, one after the other in one process.

        That process is in the folder ``cwd``, has these changes of the environment, and at most ``memory`` bytes of
        addresses and ``time_limit_s`` for all; where it dies, so does the test. ``stdout``: one of `DESTINATIONS`.
        """
        order = {
            "commands": [[str(word) for word in words] for words in commands], "cwd": str(cwd),
            "env": {**os.environ, **(env or {})}, "stdin": str(stdin), "time_limit_s": time_limit_s, "memory": memory,
            "stdout": stdout, "scratch": self._scratch.name,
        }  # fmt: skip
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        died = json.loads(self._process.stdout.readline())
        ended = [json.loads(line) for line in Path(self._scratch.name, "ended").read_text().splitlines()]
        assert died == 0, f"{commands[len(ended)]} ended its process: {died}"
        return [Ended(**{**record, "modules": frozenset(record["modules"])}) for record in ended]


def _child(order: dict) -> None:
    """Be the commands' process. Never returns."""
    died = 1
    try:
        os.dup2(os.open(order["stdin"], os.O_RDWR | os.O_NOCTTY), 0)
        os.chdir(order["cwd"])
        os.environ.clear()
        os.environ.update(order["env"])
        if lock := sys.modules.get("tare.host.lock"):  # a campaign that runs on this host is not theirs to wait for
            lock.FOLDER = Path(order["scratch"], "lock")
        resource.setrlimit(resource.RLIMIT_AS, (order["memory"], resource.RLIM_INFINITY))
        scratch = Path(order["scratch"])
        with (scratch / "ended").open("w") as ended:
            for words in order["commands"]:
                print(
                    json.dumps(_command(words, scratch / "out", scratch / "err", order["stdout"])),
                    file=ended,
                    flush=True,
                )
        died = 0
    finally:
        os._exit(died)


def _file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)


def _full(_: Path) -> int:
    return os.open("/dev/full", os.O_WRONLY)


def _closed(_: Path) -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def _slow(path: Path) -> int:
    """A small non-blocking pipe, whose reader begins late and writes all of it into a file."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    if os.fork() == 0:
        os.close(writing)
        time.sleep(0.2)
        with os.fdopen(reading, "rb") as pipe, path.open("wb") as file:
            shutil.copyfileobj(pipe, file)
        os._exit(0)
    os.close(reading)
    os.set_blocking(writing, False)
    return writing


#: What standard output may be.
DESTINATIONS = {"file": _file, "full": _full, "closed": _closed, "slow": _slow}


def _command(words: list[str], out: Path, err: Path, destination: str) -> dict:
    """How the command ended, in this process."""
    main = sys.modules["tare.cli"].main
    out.write_bytes(b"")
    for descriptor, number in ((DESTINATIONS[destination](out), 1), (_file(err), 2)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.argv = ["tare", *words]
    began, code = time.monotonic(), 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 98
    except BaseException:  # noqa: BLE001 (whatever it is, it is shown)
        code = 99
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    if destination == "slow":
        os.dup2(2, 1)  # the reader gets to the end
        os.wait()
    return {
        "returncode": code,
        "stdout": out.read_text(errors="replace"),
        "stderr": err.read_text(errors="replace"),
        "seconds": time.monotonic() - began,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        "modules": list(sys.modules),
    }


def _died(order: dict) -> int:
    """What became of the commands' process: 0 where it got through all of them."""
    Path(order["scratch"], "ended").write_text("")
    pid = os.fork()
    if pid == 0:
        _child(order)
    watch = os.pidfd_open(pid)
    if not select.select([watch], [], [], order["time_limit_s"])[0]:
        os.kill(pid, signal.SIGKILL)
    os.close(watch)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    for module in sys.argv[1:]:
        importlib.import_module(module)
    if page := sys.modules.get("tare.report.formats.html"):  # each command would compile them anew
        templates = page.environment()
        for template in templates.list_templates(extensions=["html"]):
            templates.get_template(template)
    gc.freeze()  # a collection in a child would copy every page that it looks at
    for line in sys.stdin:
        print(_died(json.loads(line)), flush=True)
