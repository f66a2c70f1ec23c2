"""Run a command with a Docker daemon: the one that answers, else one that is started and always stopped again.

The started one knows crun and gVisor's runtimes, and runs with all its children in the control group
``tare-daemons``: so their CPU time can be counted, and nothing of them is left behind. What dockerd does to the host
(a bridge, chains of the packet filter, forwarding, mounts) it does not undo by itself: that is done here, if it was
not there before. Its data (``/var/lib/docker``) stays, as a cache.

Ends as the command ends; 2 when there is no daemon to be had.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import docker
import docker.errors
import requests.exceptions

from tare.errors import HostError, TareError
from tare.host import cgroup, processes, state
from tare.host.daemons.runtimes import crun
from tare.platforms.gvisor import find_runsc

BUILD = Path(__file__).parents[1] / "build"
LOG = BUILD / "log" / "dockerd.log"
CONFIG = BUILD / "dockerd.json"
#: What the user's own daemon would read; kept, and added to.
USERS_CONFIG = Path("/etc/docker/daemon.json")
GROUP = "tare-daemons"
#: gVisor's runtimes that are runsc with a flag.
RUNSC_FLAGS = {"ptrace": "--platform=ptrace", "host": "--network=host"}
START_LIMIT_S = 60.0
STOP_LIMIT_S = 30.0
_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
_BRIDGE = Path("/sys/class/net/docker0")


def main(argv: Sequence[str]) -> int:
    """Find or start the daemon, run the command."""
    if not argv:
        sys.stderr.write("with-dockerd: no command is given (fix: scripts/with-dockerd COMMAND...)\n")
        return 2
    # Told to stop, the command is told, and the daemon is stopped after it; a Ctrl-C reaches the command by itself.
    follower = _Foreground()
    try:
        if answers():
            return follower.run(argv)
        with started():
            return follower.run(argv)
    except TareError as error:
        sys.stderr.write(f"with-dockerd: {error}\n")
        return 2


def answers() -> bool:
    """Whether a daemon is there already."""
    try:
        client = docker.from_env(timeout=10)
    except docker.errors.DockerException:
        return False
    try:
        return bool(client.ping())
    except (docker.errors.DockerException, requests.exceptions.RequestException):
        return False
    finally:
        client.close()


@contextlib.contextmanager
def started() -> Iterator[None]:
    """A daemon of our own."""
    if os.geteuid() != 0:
        raise HostError("no Docker daemon answers, and to start one takes root", fix="sudo make test, or start dockerd")
    if processes.find("dockerd") is None:
        raise HostError("no Docker daemon answers, and dockerd is not installed", fix="make packages")
    before = HostState.read()
    LOG.parent.mkdir(parents=True, exist_ok=True)
    CONFIG.write_text(json.dumps(configuration(), indent=1))
    with LOG.open("wb") as log:
        argv = ["dockerd", "--config-file", str(CONFIG)]
        env = processes.kept(*processes.DOWNLOADS, "DOCKER_*")  # it is the one that pulls images
        daemon = processes.start(argv, stdout=log, stderr=log, env=env, cgroup_procs=group())
    try:
        _await(daemon)
        yield
    finally:
        daemon.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            daemon.wait(STOP_LIMIT_S)
        cgroup.destroy(GROUP)  # kills what did not end by itself: dockerd, containerd, shims
        daemon.wait()
        before.restore()


def configuration() -> dict[str, object]:
    """The daemon's configuration: the user's own, and crun and gVisor's runtimes where they are there."""
    try:
        users_config: dict[str, object] = json.loads(USERS_CONFIG.read_text()) if USERS_CONFIG.exists() else {}
    except ValueError as error:
        raise HostError(f"{USERS_CONFIG} is not JSON: {error}", fix="correct it, or remove it") from error
    ours: dict[str, object] = {}
    if processes.find("crun") is not None:
        ours["crun"] = {"path": crun()}
    runsc = find_runsc()
    if runsc is not None:
        ours["runsc"] = {"path": runsc}
        ours |= {f"runsc-{name}": {"path": runsc, "runtimeArgs": [flag]} for name, flag in RUNSC_FLAGS.items()}
    runtimes = users_config.get("runtimes")
    return {**users_config, "runtimes": {**(runtimes if isinstance(runtimes, dict) else {}), **ours}}


def group() -> list[Path]:
    """Make the daemons' control group; returns the files by which a process enters it."""
    tree = cgroup.hierarchies()
    roots = [tree.v2] if tree.unified else [tree.v1["cpu"], tree.v1["cpuacct"]]
    folders = sorted({root / GROUP for root in roots if root is not None})
    for folder in folders:
        folder.mkdir(exist_ok=True)
    return [folder / "cgroup.procs" for folder in folders]


def _await(daemon: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while not answers():
        if daemon.poll() is not None or time.monotonic() > deadline:
            log_lines = LOG.read_text(errors="replace").strip().splitlines()
            how = "takes too long to start" if daemon.poll() is None else f"ended with {daemon.poll()}"
            raise HostError(f"dockerd {how}: {log_lines[-1] if log_lines else 'it said nothing'}", fix=f"see {LOG}")
        time.sleep(0.1)


@dataclass(frozen=True, slots=True)
class HostState:
    """What of the host dockerd changes and leaves."""

    bridge: bool
    forwarding: str
    policy: str | None  # of the chain FORWARD; None without a packet filter
    docker_rules: bool
    mounts: frozenset[str]

    @classmethod
    def read(cls) -> HostState:
        """The state now."""
        rules = _rules("filter")
        policy = next((rule.split()[2] for rule in rules if rule.startswith("-P FORWARD ")), None)
        return cls(
            _BRIDGE.exists(), _FORWARDING.read_text(), policy, any("DOCKER" in rule for rule in rules), _mounts()
        )

    def restore(self) -> None:
        """Back to this state. A docker0 that was there before stays, with its rules: another daemon may own it."""
        for point in sorted(_mounts() - self.mounts, reverse=True):  # inner ones first
            processes.run(["umount", point]).require()
        if self.bridge or self.docker_rules:
            return
        if _BRIDGE.exists():
            processes.run(["ip", "link", "delete", "docker0"]).require()
        if self.policy is not None:
            for table in ("filter", "nat"):
                _remove_dockers_rules(table)
            processes.run(["iptables", "-w", "-P", "FORWARD", self.policy]).require()
        if _FORWARDING.read_text() != self.forwarding:
            _FORWARDING.write_text(self.forwarding)


def _mounts() -> frozenset[str]:
    """Mounts below Docker's folders: its root, which it binds to itself, and namespaces that runtimes keep."""
    below = tuple(f"{folder}/" for folder in (configuration().get("data-root", "/var/lib/docker"), "/run/docker"))
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return frozenset(point for point in points if f"{point}/".startswith(below))


def _remove_dockers_rules(table: str) -> None:
    rules = _rules(table)
    chains = [rule.split()[1] for rule in rules if rule.startswith("-N DOCKER")]
    for rule in rules:
        if rule.startswith("-A ") and ("DOCKER" in rule or "docker0" in rule):
            processes.run(["iptables", "-w", "-t", table, "-D", *rule.split()[1:]]).require()
    for chain in chains:
        processes.run(["iptables", "-w", "-t", table, "-X", chain]).require()


def _rules(table: str) -> list[str]:
    if processes.find("iptables") is None:
        return []
    return processes.run(["iptables", "-w", "-t", table, "-S"]).text.splitlines()


class _Foreground:
    """Runs the command in the foreground, and passes on what we are told."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._stop: int | None = None
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where the parent ignores it, exit codes are lost
        signal.signal(signal.SIGINT, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._pass_on)

    def run(self, argv: Sequence[str]) -> int:
        """The command's exit code, as a shell gives it."""
        if self._stop is not None:
            return 128 + self._stop
        try:
            self._child = subprocess.Popen(list(argv))  # noqa: S603 (the caller's own command, in his terminal)
        except OSError as error:
            raise HostError(f"{argv[0]} does not start: {error.strerror}", fix="name a program on PATH") from error
        code = self._child.wait()
        return code if code >= 0 else 128 - code

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        self._stop = number
        if self._child is not None:
            self._child.send_signal(number)


if __name__ == "__main__":
    state.home()
    sys.exit(main(sys.argv[1:]))
