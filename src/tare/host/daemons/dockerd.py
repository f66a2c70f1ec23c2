"""Access to a Docker daemon: detection of a listening one, and a client with a version of the API that both know."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tare import lazily
from tare.errors import HostError
from tare.host.daemons import activation
from tare.timeouts import stretched

if TYPE_CHECKING:
    import docker
    import docker.constants
    import docker.errors
    import requests.exceptions
else:
    docker, requests = lazily.LazyModule("docker"), lazily.LazyModule("requests")

SOCKET = "/var/run/docker.sock"
LIMIT_S = 5.0


def named() -> str:
    """Return the daemon in the environment's ``DOCKER_HOST``; "": the default."""
    return os.environ.get("DOCKER_HOST", "")


def listens(host: str) -> bool:
    """Return True if a daemon listens there. Always True for other than Unix sockets: only a request can tell.

    Call this before the SDK, which leaks a socket each time that no daemon listens.
    """
    path = host.removeprefix("unix://") or SOCKET
    return "://" in path or activation.accepts(path, limit_s=LIMIT_S)


def answers(host: str) -> bool:
    """Return True if a daemon there is in service; it listens some seconds earlier."""
    if not listens(host):
        return False
    try:
        client = connect(host, timeout_s=LIMIT_S)
    except (docker.errors.DockerException, requests.exceptions.RequestException, HostError):
        return False
    client.close()
    return True


def connect(host: str, timeout_s: float) -> docker.DockerClient:
    """Return a client of the daemon there, with the newest version of the API that both know (`api_version`).

    Raises the SDK's errors if the daemon does not answer, and `HostError` if there is no such version.
    """
    timeout = round(stretched(timeout_s))
    ours = str(docker.constants.DEFAULT_DOCKER_API_VERSION)
    client = _client(host, timeout, ours)
    try:
        chosen = api_version(client.version(api_version=False), ours, str(docker.constants.MINIMUM_DOCKER_API_VERSION))
    except BaseException:
        client.close()
        raise
    if chosen == ours:
        return client
    client.close()
    return _client(host, timeout, chosen)


def _client(host: str, timeout: int, version: str) -> docker.DockerClient:
    client = docker.from_env(timeout=timeout, environment={**os.environ, "DOCKER_HOST": host}, version=version)
    if "://" not in host or host.startswith("unix://"):
        client.api.trust_env = False  # Use no proxy for a socket of this host.
    return client


def api_version(daemon: Mapping[str, Any], newest: str, oldest: str) -> str:
    """Return the newest version of the API that daemon and SDK know. Raises `HostError` if there is none.

    ``daemon``: its answer to ``/version``; ``newest`` and ``oldest``: the versions that the SDK knows.
    """
    name = f"the Docker daemon (engine {daemon.get('Version', 'unknown')})"
    least, most = str(daemon.get("MinAPIVersion") or oldest), str(daemon.get("ApiVersion") or newest)
    if _number(least) > _number(newest):
        raise HostError(
            f"{name} is too new: it speaks its API from version {least} on, and tare's Docker SDK up to {newest}",
            fix="pip install --upgrade docker (in tare's environment), or a newer tare",
        )
    if _number(most) < _number(oldest):
        raise HostError(
            f"{name} is too old: it speaks its API up to version {most}, and tare's Docker SDK from {oldest} on",
            fix="install a newer Docker engine (17.05 or later)",
        )
    return min(most, newest, key=_number)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
