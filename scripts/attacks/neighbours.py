"""L16, L17, L20: what another user of the host does while an instance runs; L19: a file that a guest leaves."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from findings import Finding
from guests import shown

from tare.campaign.instances.launcher import InstanceLauncher, RunningInstance
from tare.errors import TareError
from tare.host.filesystems import roots
from tare.host.network.fence import OPEN_PORTS
from tare.model import Arm
from tare.platforms.base import Platform

NOBODY = 65_534
#: The file has so many pieces of data, so far apart.
WINDOWS, APART = 60_000, 128 << 20
LOOK_LIMIT_S = 30.0
#: So many connections to tare's ports are held at a time.
_HELD = 64
_SPARSE = f"""
open my $file, ">", "/data/sparse" or die "$!";
for my $at (0 .. {WINDOWS - 1}) {{ sysseek $file, $at * {APART}, 0; syswrite $file, "x" or die "$!" }}
"""
Seen = list[tuple[str, str]]


def as_nobody(look: Callable[[], Seen]) -> Seen:
    """What a process of nobody's finds."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        with contextlib.suppress(BaseException):
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os.write(write, json.dumps(look()).encode()[:60_000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return [(str(place), str(words)) for place, words in json.loads(text)] if text else [("nobody", "did not answer")]


def listening() -> set[str]:
    """The sockets with a path that somebody listens on."""
    lines = Path("/proc/net/unix").read_text(errors="replace").splitlines()[1:]
    rows = [line.split() for line in lines]
    return {row[7] for row in rows if len(row) > 7 and row[3] == "00010000" and row[7].startswith("/")}


def opened_roots() -> Seen:
    """What nobody opens, makes or lists below the mounts whose names everybody reads."""
    found: Seen = []
    lines = [line.split(" ") for line in Path("/proc/self/mounts").read_text(errors="replace").splitlines()]
    # Whoever opens a namespace's file has no right to enter it.
    for place in sorted({line[1] for line in lines if "tare" in line[1] and line[2] != "nsfs"}):
        for name in ("", "etc/passwd", "etc/shadow", "root", "data", "rootfs/etc/passwd", "root/etc/passwd"):
            path = Path(place, name)
            with contextlib.suppress(OSError):
                found.append((str(path), "is listed") if path.is_dir() and os.listdir(path) else ("", ""))  # noqa: PTH208
            with contextlib.suppress(OSError), path.open("rb"):
                found.append((str(path), "is read"))
        for name in ("planted", "tmp/planted", "root/tmp/planted"):
            with contextlib.suppress(OSError), Path(place, name).open("x"):
                found.append((f"{place}/{name}", "is made"))
    return [(path, words) for path, words in found if path]


def tokens_and_ports() -> Seen:
    """Tokens of starts in the processes' words, and ports of tare's that nobody takes."""
    found: Seen = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = file.read_bytes()
            if b"--token" in words or re.search(rb"--beacon.*[0-9a-f]{32}", words, re.DOTALL):
                found.append((str(file), words.replace(b"\0", b" ").decode(errors="replace")[-120:]))
    for port in OPEN_PORTS:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with socket.socket(socket.AF_INET, kind) as mine, contextlib.suppress(OSError):
                mine.bind(("", port))
                found.append((f"port {port}", "is nobody's"))
    return found


def connected(paths: set[str]) -> Seen:
    """The sockets that nobody connects to."""
    found: Seen = []
    for path in sorted(paths):
        with socket.socket(socket.AF_UNIX) as mine:
            mine.settimeout(2)
            with contextlib.suppress(OSError):
                mine.connect(path)
                found.append((path, "takes nobody's connection"))
    return found


def call(host: str, held: list[socket.socket]) -> None:
    """Call at each port of tare's where an agent may be waited for, say something, and hold the connection."""
    for port in OPEN_PORTS:
        mine = socket.socket()
        mine.settimeout(1)
        try:
            mine.connect((host, port))
            mine.sendall(b"attack\n" * 8)
        except OSError:
            mine.close()
        else:
            held.append(mine)
    for old in held[:-_HELD]:
        old.close()
    del held[:-_HELD]


@contextlib.contextmanager
def _watched(host: str) -> Iterator[Callable[[], Seen]]:
    """A process of nobody's that reads the process list and calls at tare's ports, again and again.

    The function ends it and returns its finds.
    """
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        with contextlib.suppress(BaseException):
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            held: list[socket.socket] = []
            while True:
                call(host, held)
                for found in tokens_and_ports():
                    os.write(write, f"{json.dumps(found)}\n".encode())
                time.sleep(0.01)
        os._exit(0)
    os.close(write)

    def end() -> Seen:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with os.fdopen(read, "rb") as answer:
            return sorted({tuple(json.loads(line)) for line in answer if line.endswith(b"\n")})

    yield end


@contextlib.contextmanager
def started(
    findings: Mapping[str, Finding], platform: Platform, launcher: InstanceLauncher, before: set[str], *, sparse: bool
) -> Iterator[RunningInstance]:
    """Start an instance that is measured, under the eyes of nobody's; look what of it is nobody's too, and yield it.

    ``before``: the sockets with a path before the platform was prepared, which may start a daemon. ``sparse``: it
    leaves a file of many pieces, which its end has to look at.
    """
    name = platform.name
    with _watched(launcher.network.host) as end:
        try:
            running = launcher.start(platform, Arm(name), measured=True)
        except TareError as error:
            findings["L20"].attempt(name, f"its start failed while another user called: {error.what}")
            raise
        finally:
            seen = end()
    findings["L20"].attempt(name, shown(seen))
    try:
        sockets = listening() - before
        findings["L16"].attempt(f"{name} ({len(sockets)} sockets)", shown(as_nobody(lambda: connected(sockets))))
        findings["L17"].attempt(name, shown(as_nobody(opened_roots)))
        yield running
        if sparse:
            _sparse(findings["L19"], running)
    finally:
        began = time.monotonic()
        running.stop()
        if sparse:
            took = time.monotonic() - began
            findings["L19"].attempt("its end", f"{took:.0f} s" if took > LOOK_LIMIT_S else "")


def _sparse(finding: Finding, running: RunningInstance) -> None:
    done = running.session.execute(["perl", "-e", _SPARSE], time_limit_s=200)
    data = running.instance.spec.space.data
    if done.code != 0 or (data / "sparse").stat().st_size < (WINDOWS - 1) * APART:
        finding.untried.append(f"the file was not made: {done.stderr.decode(errors='replace')[-100:]}")
        return
    looks = {
        "dropping caches": lambda: roots.drop_page_cache(data),
        "what is cached": lambda: roots.cached_share(data, "sparse"),
    }
    for called, look in looks.items():
        began = time.monotonic()
        with contextlib.suppress(TareError):
            look()
        took = time.monotonic() - began
        finding.attempt(called, f"{took:.0f} s for {WINDOWS} pieces" if took > LOOK_LIMIT_S else "")
