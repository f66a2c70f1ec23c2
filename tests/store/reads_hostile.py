"""Reads files with commands, each in a child of its own with little memory and time; prints how each ended, as JSON.

Forked from one process that has loaded the commands' modules and started none of their threads: a case costs some ms.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path

from tare.cli import main

MEMORY, LIMIT_S = 3 << 30, 30.0
LOADED = (
    "tare.cli.report", "tare.cli.compare", "tare.cli.score", "tare.cli.spread", "tare.cli.export", "tare.cli.run",
    "tare.cli.calibrate", "tare.cli.surface", "tare.cli.footprint", "tare.cli.consent", "tare.cli.commands.app",
)  # fmt: skip


def child(argv: list[str], out: Path, err: Path) -> None:
    """Never returns."""
    code = 99
    try:
        for path, number in ((os.devnull, 0), (str(out), 1), (str(err), 2)):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        sys.argv = ["tare", *argv]
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 98
    except BaseException:  # noqa: BLE001 (whatever it is, it is shown)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def read(argv: list[str], scratch: Path) -> dict:
    out, err = scratch / "out", scratch / "err"
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        child(argv, out, err)
    ended = 0
    while not ended and time.monotonic() - began < LIMIT_S:
        ended, status, used = os.wait4(pid, os.WNOHANG)
        time.sleep(0.002)
    if not ended:
        os.kill(pid, signal.SIGKILL)
        _, status, used = os.wait4(pid, 0)
    return {
        "argv": argv,
        "code": os.waitstatus_to_exitcode(status) if ended else None,
        "seconds": time.monotonic() - began,
        "mib": used.ru_maxrss >> 10,
        "stderr": err.read_text(errors="replace"),
    }


if __name__ == "__main__":
    for name in LOADED:
        importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(read(json.loads(line), Path(sys.argv[1]))), flush=True)
