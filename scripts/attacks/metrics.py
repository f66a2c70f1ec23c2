"""M7: a user of the host with thousands of idle connections to `tare run --metrics` while a campaign runs."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from command import TARE
from findings import Finding

CONNECTIONS = 3_000
#: What the process of a campaign has of threads and open files by itself, several times.
MOST_THREADS, MOST_FILES = 60, 300
CAMPAIGN = ("-p", "native", "-p", "runc", "-w", "startup", "-w", "udp-rtt", "--blocks", "2")


def campaign(finding: Finding, file: Path) -> None:
    """Run a campaign under the attack; its file is what other attacks begin from."""
    port = _free_port()
    printed = file.with_suffix(".txt")
    with printed.open("wb") as output:
        process = subprocess.Popen(
            [TARE, "run", *CAMPAIGN, "--metrics", f"127.0.0.1:{port}", "-o", file],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        attacker, most = 0, {"threads": 0, "files": 0}
        rebound = ""
        try:
            while process.poll() is None:
                if not attacker and _listens(port):
                    rebound = _asked(port, "attacker.example")
                    attacker = _as_nobody(port)
                with contextlib.suppress(OSError):
                    most["threads"] = max(most["threads"], len(os.listdir(f"/proc/{process.pid}/task")))  # noqa: PTH208
                    most["files"] = max(most["files"], len(os.listdir(f"/proc/{process.pid}/fd")))  # noqa: PTH208
                time.sleep(0.1)
        finally:
            if attacker:
                os.kill(attacker, signal.SIGKILL)
                os.waitpid(attacker, 0)
            if process.poll() is None:
                process.terminate()
                process.wait()
    words = printed.read_text(errors="replace")
    if not attacker:
        finding.untried.append(f"the campaign served no metrics: {words.strip()[-200:]}")
        return
    said = f"the campaign ended with {process.returncode}: {words.strip()[-200:]}" if process.returncode else ""
    said = "Too many open files" if "Too many open files" in words else said
    finding.attempt(f"{CONNECTIONS} idle connections", said)
    finding.attempt("its threads", f"{most['threads']}" if most["threads"] > MOST_THREADS else "")
    finding.attempt("its open files", f"{most['files']}" if most["files"] > MOST_FILES else "")
    finding.attempt("another host's name", f"answered: {rebound}" if " 200 " in rebound else "")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _asked(port: int, host: str) -> str:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as asker:
        asker.sendall(f"GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return asker.recv(100).decode(errors="replace").splitlines()[0]
    return ""


def _as_nobody(port: int) -> int:
    """A process of nobody's that holds as many connections as it may, and opens those that are closed anew."""
    pid = os.fork()
    if pid:
        return pid
    with contextlib.suppress(BaseException):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        os.setgroups([])
        os.setresgid(65_534, 65_534, 65_534)
        os.setresuid(65_534, 65_534, 65_534)
        held: list[socket.socket] = []
        while True:
            with contextlib.suppress(OSError):
                held.append(socket.create_connection(("127.0.0.1", port), timeout=1))
            if len(held) >= min(CONNECTIONS, hard - 20):
                held.pop(0).close()
                time.sleep(0.01)
    sys.stdout.flush()
    os._exit(0)
