"""The instances' peer on the host, which sends what they answer."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tare.host import processes
from tare.host.cgroup import Group
from tare.host.network.bridge import CLIENT_NAMESPACE
from tare.platforms.base import AGENT, Address

#: How much is kept of each output of a command, in bytes, wherever it runs.
OUTPUT_CAP = 4 << 20


@dataclass(frozen=True, slots=True)
class Client:
    """The instances' peer on the host: commands of the image in a network namespace and control group of its own."""

    root: Path
    cgroup_procs: Sequence[Path]
    namespace: str | None = CLIENT_NAMESPACE  # None: the host's own
    own: Path | None = None  # the root of an application's own image; None: no application brought one
    bare: bool = False  # whether ``root`` may lack all programs but the agent
    group: Group | None = None  # of all that it runs; None: not accounted

    def cpu_ns(self) -> int | None:
        """CPU time that its commands have used so far, in ns; None where it is not accounted."""
        return self.group.cpu_ns() if self.group is not None and self.group.accounts else None

    def towards(self, address: Address) -> Client:
        """The client that reaches an instance at this address."""
        return self if address.client is None else dataclasses.replace(self, namespace=None)

    def start(
        self, argv: Sequence[str], *, cwd: str = "/data", env: Mapping[str, str] = MappingProxyType({})
    ) -> subprocess.Popen[bytes]:
        """Start a program of the image at the client, with pipes."""
        pipe = subprocess.PIPE
        within = ["nsenter", f"--net=/run/netns/{self.namespace}"] if self.namespace is not None else []
        return processes.start(
            [*within, "chroot", str(self.root), *self._within(cwd, env), *argv],
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cgroup_procs=self.cgroup_procs,
        )

    def in_own_image(self) -> Client:
        """The client with the application's own image as its root; where none was brought, this client itself."""
        return self if self.own is None else dataclasses.replace(self, root=self.own, own=None, bare=True)

    def _within(self, cwd: str, env: Mapping[str, str]) -> list[str]:
        """What takes a program to its folder and environment: of an application's root only the agent is known."""
        assignments = [f"{name}={value}" for name, value in env.items()]
        if not self.bare:
            return ["env", "-C", cwd, *assignments]
        return [AGENT, "run", "--directory", cwd, *(word for text in assignments for word in ("--env", text)), "--"]

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
