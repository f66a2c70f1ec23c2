"""A Docker daemon of tare's own, for hosts on which none answers: started for a while, and always stopped again.

It is what the host's own would be: the same settings and data, on the usual socket, with crun and gVisor's runtimes
besides where these are there. It runs with all its children in a control group of its own; what it changes on the host
is given back, also after a kill (`tare clean`). Its images stay, as a cache.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from tare.errors import HostError
from tare.host import distribution, own_daemon, processes, state
from tare.host.daemons import dockerd, runtimes
from tare.host.daemons.dockerd_traces import Traces
from tare.host.kernel import host_text
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack, Journal

#: What the user's own daemon would read; kept, and added to.
USERS_CONFIG = Path("/etc/docker/daemon.json")
#: gVisor's runtimes that are runsc with a flag.
RUNSC_FLAGS = {"ptrace": "--platform=ptrace", "host": "--network=host"}
START_LIMIT_S = 60.0
STOP_LIMIT_S = 30.0
#: Of the daemon that this process has started, where it has: ends it and starts it again.
_RESTARTS: list[Callable[[], None]] = []


@contextlib.contextmanager
def lent(journal: Journal | None = None) -> Iterator[bool]:
    """Provide a Docker daemon for a while: the one that answers, which is used as it is, else one that is started.

    ``journal``: of what is given back; by default this host's. Yields whether it was started. Raises `HostError` where
    none can be.
    """
    if dockerd.listens(dockerd.named()):  # one that begins its service listens before it answers
        yield False
        return
    with started(journal):
        yield True


@contextlib.contextmanager
def started(journal: Journal | None = None) -> Iterator[None]:
    """Provide a daemon of tare's own. Raises `HostError`."""
    if os.geteuid() != 0:
        raise HostError("no Docker daemon answers, and to start one takes root", fix="run it by sudo, or start dockerd")
    if processes.find("dockerd") is None:
        raise HostError("no Docker daemon answers, and dockerd is not installed", fix=distribution.install("docker.io"))
    settings, before = configuration(), Traces.read()
    folder = state.home() / "dockerd"  # its settings and its log of the last time
    folder.mkdir(mode=0o700, exist_ok=True)
    with CleanupStack(journal) as cleanup:
        cleanup.own(removers.dockerd_traces(before))
        (folder / "daemon.json").write_text(json.dumps(settings, indent=1))

        def begin() -> own_daemon.Daemon:
            return own_daemon.start(
                cleanup,
                "dockerd",
                ["dockerd", "--config-file", str(folder / "daemon.json")],
                ready=lambda: dockerd.answers(""),
                log=folder / "log",
                env=processes.kept(*processes.DOWNLOADS, "DOCKER_*"),  # it is the one that pulls images
                time_limit_s=START_LIMIT_S,
            )

        daemons = [begin()]

        def again() -> None:
            daemons[-1].stop(time_limit_s=STOP_LIMIT_S)
            daemons.append(begin())

        _RESTARTS.append(again)
        try:
            yield
        finally:
            _RESTARTS.remove(again)
            daemons[-1].stop(time_limit_s=STOP_LIMIT_S)


def restart() -> bool:
    """End the daemon that this process has started, and start it again; False where it has started none.

    Raises `HostError`.
    """
    for again in _RESTARTS:
        again()
    return bool(_RESTARTS)


def configuration() -> dict[str, object]:
    """Return settings of the daemon: the user's own, and crun and gVisor's runtimes where these are.

    Raises `HostError`.
    """
    try:
        users_config: dict[str, object] = json.loads(host_text.read(USERS_CONFIG)) if USERS_CONFIG.exists() else {}
    except ValueError as error:
        raise HostError(f"{USERS_CONFIG} is not JSON: {error}", fix="correct it, or remove it") from error
    ours: dict[str, object] = {}
    if processes.find("crun") is not None:
        ours["crun"] = {"path": runtimes.crun()}
    runsc = runtimes.find("runsc")
    if runsc is not None:
        ours["runsc"] = {"path": runsc}
        ours |= {f"runsc-{name}": {"path": runsc, "runtimeArgs": [flag]} for name, flag in RUNSC_FLAGS.items()}
    known = users_config.get("runtimes")
    return {**users_config, "runtimes": {**(known if isinstance(known, dict) else {}), **ours}}
