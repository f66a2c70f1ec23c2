"""Commands to libvirt's daemons, by virsh.

By argument lists, and not by libvirt-python: that would have to be compiled against libvirt's headers, and virsh hands
over the descriptors of a container's stream alike.
"""

from __future__ import annotations

import contextlib
import errno
import re
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.errors import PlatformError
from tare.host import cgroup, instance_console, processes
from tare.platforms.base import Instant, LaunchSpec
from tare.session.byte_streams import SocketStream
from tare.timeouts import stretched, until

VIRSH_LIMIT_S = 30.0
CREATE_LIMIT_S = 60.0
#: An agent whose stream has ended ends its domain by itself; libvirt's part is done by `libvirt_domain`'s remover.
END_LIMIT_S = 2.0
#: Time after which libvirt has logged why a machine ended by itself.
LOGGED_LIMIT_S = 0.5
#: How ``virsh event`` reports the end of a domain.
STOPPED = re.compile(rb"'lifecycle'.*: (Stopped|Crashed)")


@dataclass(frozen=True, slots=True)
class Connection:
    """A driver of a libvirtd, by URI."""

    uri: str

    def argv(self, *words: str) -> list[str]:
        """Return the virsh command with these arguments."""
        return ["virsh", "-q", "-c", self.uri, *words]

    def ask(self, *words: str, time_limit_s: float = VIRSH_LIMIT_S) -> processes.Finished:
        """Run the virsh command with these arguments, and wait for its end."""
        return processes.run(self.argv(*words), time_limit_s=time_limit_s)

    def version(self) -> str:
        """Libvirt's version and that of what it drives. Raises `PlatformError` with virsh's last error."""
        answer = self.ask("version")
        if answer.code != 0:
            raise PlatformError(last_error(answer.stderr))
        return shown_version(answer.text)


def shown_version(text: str) -> str:
    """Return the output of ``virsh version``, in short."""
    facts = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    library = facts.get("Using library", "libvirt unknown")
    return f"{library}, {facts.get('Running hypervisor', 'hypervisor unknown')}"


def last_error(stderr: bytes) -> str:
    """Return the last error that virsh printed on stderr."""
    lines = [line.strip() for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    errors = [line.removeprefix("error:").strip() for line in lines if line.startswith("error:")]
    return (errors or lines or ["no message"])[-1]


class Creation:
    """A ``virsh create`` under way, inside the instance's groups."""

    def __init__(
        self, spec: LaunchSpec, connection: Connection, xml: str, handed: Sequence[int] = (), *more: str
    ) -> None:
        self._spec = spec
        self._made_ns = spec.made()
        place = spec.space.folder / "domain.xml"
        place.write_text(xml)
        fds = ["--pass-fds", ",".join(map(str, handed))] if handed else []
        argv = connection.argv("create", str(place), *fds, *more)
        self._errors = spec.space.folder / "virsh.log"
        nothing, procs = subprocess.DEVNULL, spec.group.leaf("tool")
        with self._errors.open("wb") as errors:
            self._held = processes.start_held(
                argv,
                stdin=nothing,
                stdout=nothing,
                stderr=errors,
                cgroup_procs=procs,
                pass_fds=handed,
                rest=spec.timed,
            )
        self.process = self._held.process

    def go(self) -> Instant:
        """Let it begin; returns the start instant, just before."""
        try:
            at = self._spec.begin(self._made_ns)
        except BaseException:
            self._held.give_up()
            raise
        self._held.go()
        return at

    def failed(self) -> bool:
        """Return True if it ended with an error."""
        return self.process.poll() not in {None, 0}

    def wait(self) -> bytes | None:
        """Wait for its end: None when it went well, else its standard error."""
        try:
            code = self.process.wait(stretched(CREATE_LIMIT_S))
        except subprocess.TimeoutExpired:
            self.kill()
            return f"error: no answer within {stretched(CREATE_LIMIT_S):.0f} s".encode()
        return None if code == 0 else self._errors.read_bytes()

    def kill(self) -> None:
        """End it."""
        processes.end(self.process)


def watcher(spec: LaunchSpec, connection: Connection, name: str) -> subprocess.Popen[bytes]:
    """Start a process in the instance's group that reports a domain's events; a domain may have no process."""
    # Its output would stay in its buffer else.
    argv = ["stdbuf", "-oL", *connection.argv("event", name, "lifecycle", "--loop")]
    with instance_console.opened(spec.space.log) as log:
        nothing, procs = subprocess.DEVNULL, spec.group.leaf("tool")
        return processes.start(argv, stdin=nothing, stdout=subprocess.PIPE, stderr=log, cgroup_procs=procs)


def wait_stopped(process: subprocess.Popen[bytes]) -> None:
    """Wait until a watcher reports its domain's end, or ends itself."""
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            if STOPPED.search(line):
                return


def why_ended(log: str) -> str:
    """Return what libvirt logged of a machine once it had ended: what its emulator printed, and the reason.

    "" before that.
    """
    lines = log.splitlines()
    last_but_one = max((at for at, line in enumerate(lines) if line.endswith("\\")), default=-2)  # of the command line
    logged = [line for line in lines[last_but_one + 2 :] if " is tainted: " not in line]
    return "\n".join(logged) if any(" shutting down, reason=" in line for line in logged) else ""


class DomainStream(SocketStream):
    """The agent's stream; closing it ends the domain."""

    def __init__(self, connection: socket.socket, group: cgroup.Group) -> None:
        super().__init__(connection)
        self._group = group

    def close(self) -> None:
        """Close it, and give the domain's processes a moment to end by themselves."""
        super().close()
        deadline = until(END_LIMIT_S)
        while self._group.pids() and time.monotonic() < deadline:
            time.sleep(0.002)


class LibvirtStream(DomainStream):
    """The stream of a machine; where that has ended by itself, its console gets what libvirt logged of it."""

    def __init__(self, connection: socket.socket, spec: LaunchSpec, log: Path) -> None:
        super().__init__(connection, spec.group)
        self._log = log
        self._console = spec.space.log

    def close(self) -> None:
        """See `DomainStream.close`."""
        if self._has_ended():
            self._tell()
        super().close()

    def _has_ended(self) -> bool:
        try:
            return self._socket.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError as error:  # reset by the other end; or it was closed here before
            return error.errno != errno.EBADF

    def _tell(self) -> None:
        deadline = until(LOGGED_LIMIT_S)
        with contextlib.suppress(OSError):  # another host's, or gone with its instance
            while not (reason := why_ended(self._log.read_text(errors="replace"))) and time.monotonic() < deadline:
                time.sleep(0.01)
            if reason:
                with self._console.open("a") as file:
                    file.write(f"{reason}\n")
