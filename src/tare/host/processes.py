"""The one place that starts processes (a test forbids ``subprocess`` elsewhere). Arguments are lists, never shells.

A child runs in ``/``, since many programs run or obey files of the current folder, where another user may have put
them. Of tare's environment it has what `environment` lists: what is not there reaches no guest.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import os
import select
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO

from tare.errors import HostError
from tare.host import distribution, own_limits
from tare.host.kernel import host_text, pinning, process_table
from tare.host.kernel.owner import Owner
from tare.timeouts import stretched, until

#: What every child has of tare's environment, and so the guests of some platforms: no secret, and no name of code.
COMMON = ("HOME", "LANG", "LANGUAGE", "LC_*", "TERM", "TZ")
#: For children that download: the user's proxies and certificates.
DOWNLOADS = ("*_proxy", "*_PROXY", "SSL_CERT_*", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "APT_CONFIG", "TMPDIR")
#: Go's places, and where it fetches from. Not all that begins so: GOOGLE_APPLICATION_CREDENTIALS does, too.
_GO = ("AUTH", "CACHE", "ENV", "INSECURE", "MODCACHE", "NOPROXY", "NOSUMDB", "PATH", "PRIVATE", "PROXY", "SUMDB", "VCS")
#: For children that build: also the settings of Python's, Go's and Rust's own tools.
BUILDS = (
    *(*DOWNLOADS, "PIP_*", "CARGO_*", "RUSTUP_*", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"),
    *(f"GO{name}" for name in _GO),
)
ROOT = Path("/")
#: The system's own folders of programs: those that users' paths lack, and those that take the place of a path of none.
_SYSTEM, _USUAL = ("/usr/local/sbin", "/usr/sbin", "/sbin"), ("/usr/local/bin", "/usr/bin", "/bin")
#: bash, because dash cannot name descriptors above 9.
_WAIT = """\
gate=$1; shift
eval "echo >&$gate; read word <&$gate; exec $gate<&-"
exec "$@\"
"""
#: Before a command that no journal or control group covers, and that must end when tare is killed.
WITH_TARE = ("setpriv", "--pdeathsig", "KILL")
#: Once the kernel has waited to move a process between control groups (a grace period of RCU), it moves others at once
#: for a while. A runtime that moves one soon after tare did would be spared what it costs a user: some 10 ms.
REST_S = 0.1
HOLD_LIMIT_S = 10.0
#: Most that is kept of each output of a run that names no cap of its own.
OUTPUT_CAP = 4 << 20
#: How long output is still read after a kill: a process that left its group may hold the pipes open.
LAST_WORDS_S = 0.2
_PIECE = 65_536
#: The variable that names the process for which a command runs (`end_commands_of`).
_RUN_BY = "TARE_RUN_BY"
#: How long a killed command may take to leave the kernel.
_KILLED_LIMIT_S = 5.0
#: siginfo's si_code of a signal that the kernel sent: of a terminal's Ctrl-C, to all processes that it has in front.
_BY_KERNEL = 0x80
#: A process enters its cgroups itself, before it executes the program: that never runs outside them.
_ENTER = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ >"$1"; shift; n=$((n-1)); done; exec "$@"'


@dataclass(frozen=True, slots=True)
class Finished:
    """A process that ended. ``code`` is negative for a signal, as in `subprocess`."""

    argv: tuple[str, ...]
    code: int
    stdout: bytes
    stderr: bytes
    wall_ns: int
    timed_out: bool = False
    truncated: bool = False  # more came on stdout than was to be kept

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.stdout.decode(errors="replace")

    @property
    def message(self) -> str:
        """The last line of standard error, which most programs end with what is wrong."""
        return (self.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]

    def require(self, fix: str | None = None) -> Finished:
        """Return self, or raise `HostError` that shows the command and the end of its output.

        Output that was cut is an error too.
        """
        if self.truncated:
            raise HostError(f"`{shlex.join(self.argv)}` printed more than {len(self.stdout):,} bytes", fix=fix)
        if self.code == 0 and not self.timed_out:
            return self
        how = "took too long" if self.timed_out else f"failed with {self.code}"
        lines = (self.stderr or self.stdout).decode(errors="replace").strip().splitlines()
        tail = " | ".join(lines[-3:]) or "no output"
        raise HostError(f"`{shlex.join(self.argv)}` {how}: {tail}", fix=fix)


def path() -> str:
    """PATH for tare and its children: only absolute folders, and the system's sbin folders, which users' paths lack.

    By an empty or relative entry anybody who can write to the current folder would choose what root runs. Where none of
    its folders is there, it is the system's usual one.
    """
    given = [folder for folder in os.environ.get("PATH", "").split(":") if folder.startswith("/")]
    folders = given if any(map(os.path.isdir, given)) else [*given, *_USUAL]
    return ":".join(dict.fromkeys([*folders, *_SYSTEM]))


def kept(*patterns: str) -> dict[str, str]:
    """Return the variables of tare's environment whose names match one of the patterns (fnmatch)."""
    return {
        name: value
        for name, value in os.environ.items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    }


def environment() -> dict[str, str]:
    """Return the environment of every child, to which its caller may add."""
    return {**kept(*COMMON), "PATH": path()}


def own_environment() -> dict[str, str]:
    """Return the whole environment, for another process of tare itself: that one cleans its own children's."""
    return {**os.environ, "PATH": path()}


def find(program: str) -> str | None:
    """Full path of a program on PATH or in the system's folders, or None."""
    path_of_program = shutil.which(program, path=path())
    return path_of_program and str(Path(path_of_program).absolute())


def run(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    time_limit_s: float = 60.0,
    output_cap: int = OUTPUT_CAP,
    env: Mapping[str, str] = MappingProxyType({}),
    cwd: Path = ROOT,
    cgroup_procs: Sequence[Path] = (),
) -> Finished:
    """Run to the end and return what it left; never raises for its exit code (see `Finished.require` and `start`)."""
    pipe = subprocess.PIPE
    marked = {**env, _RUN_BY: str(Owner.me())}
    process = start(argv, stdin=pipe, stdout=pipe, stderr=pipe, env=marked, cwd=cwd, cgroup_procs=cgroup_procs)
    return finish(process, argv, stdin=stdin, time_limit_s=time_limit_s, output_cap=output_cap)


def end_commands_of(owners: Collection[Owner]) -> None:
    """Kill the commands that processes which are gone were running (`run`), and wait for their end.

    What such a command makes after its owner was killed would be there again after it was removed.
    """
    names = {str(owner) for owner in owners}
    ours = [Owner.of(pid) for pid, by in process_table.variables(_RUN_BY).items() if by in names]
    for command in ours:
        with contextlib.suppress(ProcessLookupError):
            os.kill(command.pid, signal.SIGKILL)
    deadline = until(_KILLED_LIMIT_S)
    while time.monotonic() < deadline and not all(command.ended() for command in ours):
        time.sleep(0.005)


def finish(
    process: subprocess.Popen[bytes],
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    time_limit_s: float = 60.0,
    output_cap: int = OUTPUT_CAP,
) -> Finished:
    """Wait for a process that was started with pipes; at the limit (see `stretched`) its group is killed.

    At most ``output_cap`` bytes of each output are kept. It goes on when it prints more, which is read and thrown away.
    """
    began = time.monotonic_ns()
    outputs = (bytearray(), bytearray())
    talk = _Talk(process, stdin, output_cap, outputs)
    try:
        timed_out = not talk.go_on(until(time_limit_s))
        if timed_out:
            kill_group(process)
            process.wait()
            talk.go_on(until(LAST_WORDS_S))
    except BaseException:
        kill_group(process)
        process.wait()
        raise
    finally:
        talk.close()
    out, err = map(bytes, outputs)
    wall_ns = time.monotonic_ns() - began
    return Finished(tuple(argv), process.returncode, out, err, wall_ns, timed_out, truncated=talk.more)


class _Talk:
    """The input and output of a process: `subprocess.Popen.communicate`, with a cap on the bytes that are kept."""

    def __init__(
        self, process: subprocess.Popen[bytes], stdin: bytes, cap: int, outputs: tuple[bytearray, bytearray]
    ) -> None:
        self.more = False  # whether stdout had more than the cap
        self._process = process
        self._stdin = memoryview(stdin)
        self._cap = cap
        self._files = [file for file in (process.stdin, process.stdout, process.stderr) if file is not None]
        self._ready = selectors.DefaultSelector()
        for file, output in zip((process.stdout, process.stderr), outputs, strict=True):
            if file is not None:
                self._ready.register(file, selectors.EVENT_READ, output)
        if process.stdin is not None and stdin:
            os.set_blocking(process.stdin.fileno(), False)
            self._ready.register(process.stdin, selectors.EVENT_WRITE)
        elif process.stdin is not None:
            process.stdin.close()

    def go_on(self, deadline: float) -> bool:
        """Until all pipes are closed and the process has ended, or the deadline; whether it has ended."""
        while self._ready.get_map():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            for key, _ in self._ready.select(left_s):
                self._take(key) if key.data is not None else self._give(key)
        if self._process.poll() is None:
            with open(os.pidfd_open(self._process.pid), "rb") as ended:  # noqa: PTH123 (a descriptor)
                ready = select.poll()  # select() takes no descriptor above 1,023
                ready.register(ended, select.POLLIN)
                if not ready.poll(1000 * max(0.0, deadline - time.monotonic())):
                    return False
            self._process.wait()
        return True

    def close(self) -> None:
        """Close the pipes."""
        self._ready.close()
        for file in self._files:
            file.close()

    def _take(self, key: selectors.SelectorKey) -> None:
        piece = os.read(key.fd, _PIECE)
        if not piece:
            self._ready.unregister(key.fileobj)
        output: bytearray = key.data
        room = self._cap - len(output)
        output += piece[:room]
        self.more |= len(piece) > room and key.fileobj is self._process.stdout

    def _give(self, key: selectors.SelectorKey) -> None:
        assert self._process.stdin is not None
        try:
            self._stdin = self._stdin[os.write(key.fd, self._stdin[:_PIECE]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._stdin = self._stdin[:0]  # it reads no more
        if not self._stdin:
            self._ready.unregister(key.fileobj)
            self._process.stdin.close()


def end(process: subprocess.Popen[bytes], *, grace_s: float = 0.0) -> None:
    """Kill a process that was started, with all of its group, and close its pipes unread.

    ``grace_s``: one that ends by itself within this time is not killed.
    """
    has_ended = grace_s > 0 and _ends(process, stretched(grace_s))
    if not has_ended:
        kill_group(process)
        process.wait()
    for file in (process.stdin, process.stdout, process.stderr):
        if file is not None:
            file.close()


def start(
    argv: Sequence[str],
    *,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.DEVNULL,
    stderr: int | IO[bytes] = subprocess.DEVNULL,
    env: Mapping[str, str] = MappingProxyType({}),
    cwd: Path = ROOT,
    cgroup_procs: Sequence[Path] = (),
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a process in a process group of its own, inside the cgroups whose ``cgroup.procs`` are given.

    ``env``: variables besides those of `environment`; ``cwd``: a folder that only tare's user can write to.
    Raises `HostError` where the program is not installed, and where no more processes can be started.
    """
    full = list(argv)
    program = find(full[0])
    if program is None:
        raise HostError(f"{full[0]} is not installed", fix=distribution.owner(full[0]))
    full[0] = program
    if cgroup_procs:
        full = ["/bin/sh", "-ec", _ENTER, "sh", str(len(cgroup_procs)), *map(str, cgroup_procs), *full]
    with pinning.for_children(), _limits_explained():
        return subprocess.Popen(  # noqa: S603 (argv lists only)
            full,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env={**environment(), **env},
            cwd=cwd,
            start_new_session=True,
            pass_fds=tuple(pass_fds),
            bufsize=0,
        )


@contextlib.contextmanager
def _limits_explained() -> Iterator[None]:
    """Raise `HostError` that names the limit where a process cannot be started."""
    try:
        yield
    except OSError as error:
        reached = own_limits.no_threads() if error.errno == errno.EAGAIN else own_limits.explained(error)
        if reached is None:
            raise
        raise reached from error


@dataclass(slots=True)
class HeldProcess:
    """A process that is inside its control groups and waits for `go` before it executes its program."""

    process: subprocess.Popen[bytes]
    _control: socket.socket

    def go(self) -> None:
        """Let it execute its program."""
        with self._control:
            self._control.sendall(b"\n")

    def give_up(self) -> None:
        """End it without executing its program."""
        self._control.close()
        end(self.process)


def start_held(
    argv: Sequence[str],
    *,
    stdin: int | IO[bytes],
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    cgroup_procs: Sequence[Path],
    within: Sequence[str] = (),
    pass_fds: Sequence[int] = (),
    rest: bool = False,
) -> HeldProcess:
    """Start a process up to the moment before it executes the program.

    Forking from Python and entering control groups take longer than some platforms' whole start; neither is the
    platform's. ``within``: a command that makes the surroundings (namespaces) and then executes what follows it; it too
    has run by then. ``pass_fds``: descriptors that the program inherits. Raises `HostError` when
    groups or surroundings cannot be entered. ``rest``: it is held for `REST_S` more, as what it
    starts is measured.
    """
    ours, theirs = socket.socketpair()
    with theirs, contextlib.ExitStack() as on_failure:
        on_failure.callback(ours.close)
        gate = theirs.fileno()
        program = find(argv[0]) or argv[0]
        held = [*within, "bash", "-ec", _WAIT, "bash", str(gate), program, *argv[1:]]
        inherited = (gate, *pass_fds)
        process = start(held, stdin=stdin, stdout=stdout, stderr=stderr, cgroup_procs=cgroup_procs, pass_fds=inherited)
        on_failure.pop_all()
    ours.settimeout(stretched(HOLD_LIMIT_S))
    try:
        ready = ours.recv(1)
    except TimeoutError:
        ready = b""
    if not ready:
        ours.close()
        end(process)
        raise HostError("the control groups or namespaces of an instance cannot be entered", fix="tare doctor")
    if rest:
        time.sleep(REST_S)
    return HeldProcess(process, ours)


def stand_for(argv: Sequence[str], *, env: Mapping[str, str]) -> int:
    """Run a command in this one's place, on its terminal, and return its exit code (128 and the signal's number).

    It has exactly the environment ``env`` and stays in the current folder, as it is what the user asked tare for.
    Signals that are sent to this process alone go on to the command's own processes, which the terminal's reach anyway.
    Raises `HostError` where the program is not installed.
    """
    passed_on = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, {*passed_on, signal.SIGCHLD})
    program = find(argv[0])
    if program is None:
        raise HostError(f"{argv[0]} is not installed", fix=f"install the package that has {argv[0]}")
    process = subprocess.Popen(  # noqa: S603 (argv lists only)
        [program, *argv[1:]],
        env=dict(env),
        # The command is to be interrupted as this process is, which has its signals blocked.
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, {*passed_on, signal.SIGCHLD}),  # noqa: PLW1509
    )
    while process.poll() is None:
        received = signal.sigwaitinfo({*passed_on, signal.SIGCHLD})
        if received.si_signo in passed_on and received.si_code != _BY_KERNEL:
            for pid in children(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, received.si_signo)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def children(pid: int) -> list[int]:
    """Return the processes that a process's first thread has started and that still live."""
    try:
        return [int(word) for word in host_text.read(f"/proc/{pid}/task/{pid}/children").split()]
    except OSError:
        return []


def _ends(process: subprocess.Popen[bytes], within_s: float) -> bool:
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the process and all of its group that still live.

    No new process gets the number of a group in which one lives. So where the process was waited for and its number is
    in use, its group is gone, and the other is a stranger: many hosts have 32,768 numbers, and use them again.
    """
    if process.returncode is not None and Path(f"/proc/{process.pid}").exists():
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
