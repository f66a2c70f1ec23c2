"""The instances' peer, which sends what they answer: on this host, or on another machine (`far_client`).

What it runs reads bytes that a hostile server chose, so that a mistake in one of its tools must not be the host's. Each
program is a user's whom nobody else is, without rights and without a way to new ones, in namespaces of processes, IPC
and mounts of its own, on a root whose /dev has harmless devices alone (`roots.client_mounts`). `unshare` makes the
namespaces, and the agent gives up the rights (``run --confined``), since an application's own image may have no other
program for that. There is no seccomp filter: what its tools call differs, and none of util-linux's sets one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from tare.host import instance_limits, processes
from tare.host.cgroup import Group
from tare.host.filesystems import roots
from tare.host.network.bridge import CLIENT_NAMESPACE
from tare.platforms.base import AGENT, Address

#: Bytes that are kept of each output of a command, wherever it runs.
OUTPUT_CAP = 4 << 20
#: Namespaces of a program's own; it ends with ``unshare``, which is in its process group.
_APART = ("unshare", "--pid", "--ipc", "--mount", "--propagation=slave", "--fork", "--kill-child=KILL")
#: Root's rights that programs keep, by their names, in the host's network: in the client's they need none of them
#: (`bridge.Network.let_ping`).
KEPT = {"ping": "net-raw"}
#: As commands have it in an instance (agent/src/exec.rs); nothing of what tare itself was started with.
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/data",
    "LANG": "C.UTF-8",
}


class LoadClient(Protocol):
    """The client that loads the instances' servers."""

    @property
    def cpu_count(self) -> int:
        """CPUs that its commands may use."""

    def cpu_ns(self) -> int | None:
        """CPU time that its commands have used so far, in ns; None where it is not accounted."""

    def towards(self, address: Address) -> LoadClient:
        """Return the client that reaches an instance at this address."""

    def in_own_image(self) -> LoadClient:
        """Return the client with the application's own image as its root.

        Where none was brought, this client itself.
        """

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/data",
        env: Mapping[str, str] = MappingProxyType({}),
        stdin: bytes = b"",
        time_limit_s: float,
    ) -> processes.Finished:
        """Run a program at the client to its end, or to the time limit."""

    def serving(self, argv: Sequence[str]) -> contextlib.AbstractContextManager[Serving]:
        """Run a server at the client; it is ended at the latest when the context is left."""


class Serving(Protocol):
    """A program that runs at the client."""

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""


def confined(argv: Sequence[str], cwd: str, env: Mapping[str, str], kept: str | None) -> list[str]:
    """Return the command by which the agent runs a program as the client's user.

    ``kept``: the only right that it keeps.
    """
    rights = ["--confined", str(roots.client_user()), *(["--keep", kept] if kept else [])]
    place = ["--directory", cwd, *(word for name, value in env.items() for word in ("--env", f"{name}={value}"))]
    return [AGENT, "run", "--limits", instance_limits.for_programs(), *rights, *place, "--", *argv]


@dataclass(frozen=True, slots=True)
class HostClient:
    """The instances' peer on the host: commands of the image in a network namespace and control group of its own."""

    root: Path
    cgroup_procs: Sequence[Path]
    namespace: str | None = CLIENT_NAMESPACE  # None: the host's own
    own: Path | None = None  # the root of an application's own image; None: no application brought one
    group: Group | None = None  # of all that it runs; None: not accounted
    cpu_count: int = 1

    def cpu_ns(self) -> int | None:
        """CPU time that its commands have used so far, in ns; None where it is not accounted."""
        return self.group.cpu_ns() if self.group is not None and self.group.accounts else None

    def towards(self, address: Address) -> HostClient:
        """Return the client that reaches an instance at this address."""
        return self if address.client is None else dataclasses.replace(self, namespace=None)

    def start(
        self, argv: Sequence[str], *, cwd: str = "/data", env: Mapping[str, str] = MappingProxyType({})
    ) -> subprocess.Popen[bytes]:
        """Start a program of the image at the client, with pipes."""
        pipe = subprocess.PIPE
        return processes.start(
            self._command(argv, cwd, env),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cgroup_procs=self.cgroup_procs,
            env=ENVIRONMENT,
        )

    def in_own_image(self) -> HostClient:
        """Return the client with the application's own image as its root.

        Where none was brought, this client itself.
        """
        return self if self.own is None else dataclasses.replace(self, root=self.own, own=None)

    def _command(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> list[str]:
        """Return the command that runs a program in its network, root and namespaces, without rights."""
        network = ["nsenter", f"--net=/run/netns/{self.namespace}"] if self.namespace is not None else []
        apart = [*_APART, f"--root={self.root}", "--mount-proc", "--"]
        kept = KEPT.get(Path(argv[0]).name) if self.namespace is None else None
        return [*network, *apart, *confined(argv, cwd, env, kept)]

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/data",
        env: Mapping[str, str] = MappingProxyType({}),
        stdin: bytes = b"",
        time_limit_s: float,
    ) -> processes.Finished:
        """Run a program at the client to its end, or to the time limit."""
        process = self.start(argv, cwd=cwd, env=env)
        return processes.finish(process, argv, stdin=stdin, time_limit_s=time_limit_s, output_cap=OUTPUT_CAP)

    @contextlib.contextmanager
    def serving(self, argv: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
        """Run a server at the client; it is ended at the latest when the context is left."""
        server = self.start(argv)
        try:
            yield server
        finally:
            processes.end(server)
