"""Ansible, played by ansible-runner: what is played, with which settings, and what is told of it.

ansible-playbook and all of its forks hold the lock of the fleet's folder, since they live on where this process is
killed: a second controller would play beside them. The lock is taken by flock(1) before the program is executed.
They are told to end when this process dies (setpriv(1)), and no file that they write is larger than a bound.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shlex
import shutil
import signal
import stat
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tare.errors import HostError, UsageError
from tare.host import distribution, processes
from tare.host.kernel import process_table
from tare.timeouts import stretched, until

PLAYBOOK = Path(__file__).parent / "playbook"
#: In a fleet's folder: what Ansible needs while it plays, and the locks.
WORK = ".fleet"
_CONTROLLER, _PLAY = "controller", "play"
_LOCKS = (_CONTROLLER, _PLAY)
#: Bits of a folder's mode by which others than its owner write to it.
_OTHERS_WRITE = 0o022
#: What one file that is fetched may take, and the memory of each of Ansible's processes, which keep what hosts print.
MAX_FILE_BYTES = 1 << 30
_MAX_MEMORY_BYTES = 8 << 30
#: flock's exit code where the lock is held by others.
_HELD = 75
#: Bits of ansible-playbook's exit code for hosts: one failed, was not reached, or the last one failed.
_OF_HOSTS = 2 | 4 | 8
#: How much of its errors is read to say why Ansible itself failed.
_SAID_BYTES = 4096
_END_LIMIT_S = 20.0
_LIST_LIMIT_S = 60.0
#: A socket's path has at most some 108 characters, and Ansible and ssh add up to 40 to this one.
_MAX_CONTROL_PATH = 60
#: Of the user's environment: where Ansible finds its settings and ssh its keys. No variable that holds a secret itself.
_ANSIBLES = (
    "CONFIG", "VAULT_PASSWORD_FILE", "VAULT_IDENTITY_LIST", "SSH_ARGS", "SSH_COMMON_ARGS", "SSH_EXECUTABLE",
    "PRIVATE_KEY_FILE", "REMOTE_USER", "TIMEOUT", "COLLECTIONS_PATH", "HOST_KEY_CHECKING", "BECOME",
    "BECOME_METHOD", "BECOME_USER",
)  # fmt: skip
_AGENTS = ("SSH_AUTH_SOCK", "KRB5CCNAME")
_KEPT = (*(f"ANSIBLE_{name}" for name in _ANSIBLES), *_AGENTS)
_SETTINGS = {
    "ANSIBLE_PIPELINING": "True",
    "ANSIBLE_NOCOLOR": "True",
    "ANSIBLE_RETRY_FILES_ENABLED": "False",
    "ANSIBLE_DEPRECATION_WARNINGS": "False",
    "ANSIBLE_SYSTEM_WARNINGS": "False",
    "ANSIBLE_INVENTORY_UNPARSED_FAILED": "True",
    "ANSIBLE_REMOTE_TEMP": "/tmp",  # noqa: S108 (a folder in it for each copy, which is removed; ~/.ansible would stay)
    # Warnings and errors may be a host's words, with escape sequences that are ansible-runner's events in stdout.
    "ANSIBLE_DISPLAY_FAILED_STDERR": "True",
    # What a host calls its facts would be variables, and some name programs to run here (ansible_sftp_executable).
    "ANSIBLE_INJECT_FACT_VARS": "False",
    # A link that is lost closes no connection by itself. No host gets a way to the user's agent and screen: these
    # options come last, and win over those before them, which `-o ForwardAgent=no` does not.
    "ANSIBLE_SSH_EXTRA_ARGS": "-o ServerAliveInterval=5 -o ServerAliveCountMax=3 -a -x",
}
OnEvent = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Inventory:
    """The inventories as the user named them, and the part of them that is meant."""

    sources: tuple[str, ...]
    limit: str = ""

    def words(self) -> list[str]:
        """As options of Ansible's programs."""
        named = [word for source in self.sources for word in ("-i", absolute(source))]
        return [*named, *(["--limit", self.limit] if self.limit else [])]


def program(name: str) -> str:
    """One of Ansible's programs, beside this Python or on PATH. Raises `UsageError` where it is not installed."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else processes.find(name)
    if found is None:
        raise missing("ansible-core")
    return found


def missing(package: str) -> UsageError:
    """Return the error for a missing extra."""
    fix = f"{sys.executable} -m pip install ansible-core ansible-runner"
    return UsageError(f"a fleet needs {package}, which is not installed", fix=fix)


def hosts(inventory: Inventory) -> list[str]:
    """Return the hosts' names in the inventory. Raises `UsageError` if it is no inventory or names no host."""
    argv = [program("ansible-playbook"), "--list-hosts", *inventory.words(), str(PLAYBOOK / "look.yml")]
    with tempfile.TemporaryDirectory(prefix="tare-fleet-") as scratch:
        done = processes.run(argv, time_limit_s=_LIST_LIMIT_S, env=_environment(Path(scratch)))
    _, _, listed = done.text.partition("hosts (")
    names = [line.strip() for line in listed.splitlines()[1:] if line.strip()]
    if done.code != 0 or not names:
        said = [line for line in done.stderr.decode(errors="replace").split("\n") if "WARNING" not in line]
        shown = " ".join(" ".join(said).split())[-300:] or "it names no host that the limit leaves"
        where = " ".join(inventory.sources)
        raise UsageError(f"the inventory {where} gives no hosts: {shown}", fix="docs/fleet.md has an example")
    return sorted(names)


@contextlib.contextmanager
def owned(folder: Path) -> Iterator[Path]:
    """Hold the fleet's folder for this controller alone; yield an empty place in it for Ansible's files.

    Raises `HostError` where another controller, or what is left of one, is at work.
    """
    import fcntl  # noqa: PLC0415 (only here)

    work = folder / WORK
    work.mkdir(mode=0o700, parents=True, exist_ok=True)
    require_own(folder)
    for name in _LOCKS:
        if (work / name).is_symlink():
            raise _of_others(work / name, "is a link")
    descriptor = os.open(work / _CONTROLLER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.read(descriptor, 32).decode(errors="replace").strip()
            raise HostError(
                f"another tare fleet works in {folder}: process {pid or 'unknown'}", fix="wait for its end"
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        _end_survivors(work / _PLAY, folder)
        _close_connections(work)  # of a controller that was killed
        _clear(work)
        try:
            yield work
        finally:
            _close_connections(work)
            shutil.rmtree(work / "ansible", ignore_errors=True)
    finally:
        os.close(descriptor)


def require_own(folder: Path) -> None:
    """Raise `UsageError` if another user could have written to a fleet's folder, or to what Ansible has in it.

    What is in it decides what root does here and on every host: an inventory may be a program.
    """
    for place in (folder, folder / WORK):
        try:
            facts = place.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        if not stat.S_ISDIR(facts.st_mode):
            raise _of_others(place, "is a link" if stat.S_ISLNK(facts.st_mode) else "is no folder")
        if facts.st_uid != os.geteuid():
            raise _of_others(place, f"belongs to user {facts.st_uid}")
        if facts.st_mode & _OTHERS_WRITE:
            fix = f"if nobody has: chmod go-w {shlex.quote(str(place))}"
            raise UsageError(f"{place} is no fleet of yours alone: other users may write to it", fix=fix)


def make_own(folder: Path) -> None:
    """Make a fleet's folder, or take an empty one of this user's. Raises `UsageError`."""
    require_own(folder)
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}", fix="give another folder") from error
    require_own(folder)


def _of_others(place: Path, why: str) -> UsageError:
    return UsageError(f"{place} is no fleet of yours alone: it {why}", fix="give a new folder")


def _clear(work: Path) -> None:
    """Remove all but the locks: the folder may have come with links, which writing would follow."""
    for place in work.iterdir():
        if place.name in _LOCKS:
            continue
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()


def _end_survivors(lock: Path, folder: Path) -> None:
    """Wait until the forks of a controller that was killed have ended, and end those that go on.

    Nobody takes their answers, and hosts go on without them. One may go on where its controller was killed before its
    death was to be a signal to it (`_guarded`). Raises `HostError` where they do not end.
    """
    if _is_free(lock):
        return
    for pid in _holders(lock):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    if _is_free(lock):
        return
    named = " ".join(map(str, _holders(lock)))
    fix = f"wait for its end, or end it: kill -KILL {named}" if named else "wait for its end"
    raise HostError(f"ansible-playbook of a tare fleet that was killed still works in {folder}", fix=fix)


def _is_free(lock: Path) -> bool:
    """Wait for the lock of the plays, for half of `_END_LIMIT_S`; return whether nobody holds it."""
    patience = f"{stretched(_END_LIMIT_S / 2):.1f}"
    argv = ["flock", "--timeout", patience, "--conflict-exit-code", str(_HELD), str(lock), "true"]
    done = processes.run(argv, time_limit_s=2 * _END_LIMIT_S)
    if done.code != _HELD:
        done.require()
    return done.code != _HELD


def _holders(lock: Path) -> list[int]:
    """Return the processes that have this file open."""
    return [pid for pid in process_table.pids() if str(lock.resolve()) in process_table.open_files(pid)]


def _is_play(words: Sequence[str], folder: Path) -> bool:
    return any("ansible-playbook" in word for word in words) and any(str(folder / WORK) in word for word in words)


def play(
    name: str,
    inventory: Inventory,
    variables: Mapping[str, Any],
    work: Path,
    on_event: OnEvent,
    *,
    forks: int,
    limit: Sequence[str],
) -> None:
    """Play one playbook to its end on the hosts ``limit``, and tell of each host's events.

    Hosts that fail are events. Raises `HostError` where Ansible itself fails, and `UsageError` where it is missing.
    """
    runner = _module("ansible_runner.runner")
    config_module = _module("ansible_runner.config.runner")
    place = work / "ansible"
    variables_file = work / "variables.json"
    variables_file.write_text(json.dumps(dict(variables)))
    command = [program("ansible-playbook"), *Inventory(inventory.sources).words()]
    hosts_file = work / "limit"
    hosts_file.write_text("\n".join(limit) + "\n")
    command += [
        "--limit",
        f"@{hosts_file}",
        "-e",
        f"@{variables_file}",
        "--forks",
        str(forks),
        str(PLAYBOOK / f"{name}.yml"),
    ]
    environment = _environment(_control_folder(work))
    config = config_module.RunnerConfig(
        str(place),
        playbook=str(PLAYBOOK / f"{name}.yml"),
        quiet=True,
        settings={"pexpect_timeout": 1},
        envvars=environment,
    )
    config.prepare()
    config.env = _for_ansible(config.env, environment)
    errors = work / "errors"
    config.command = [*_guarded(work), "sh", "-c", 'exec "$@" 2>"$0"', str(errors), *command]

    def heard(event: Mapping[str, Any]) -> bool:
        on_event(event)
        return False  # no file of it is kept

    playing = runner.Runner(config, event_handler=heard)
    try:
        playing.run()
    except BaseException:
        _end_children(work)
        raise
    finally:
        shutil.rmtree(place, ignore_errors=True)
    _require_played(playing.rc, errors)


def _require_played(code: int, errors: Path) -> None:
    if code & ~_OF_HOSTS == 0:
        return
    if code == _HELD:
        raise HostError("another tare fleet works in this folder", fix="wait for its end")
    said = " ".join(_end_of(errors).split())[-400:]
    raise HostError(f"ansible-playbook failed with {code}: {said or 'it said nothing'}", fix="see docs/fleet.md")


def _end_of(file: Path) -> str:
    with contextlib.suppress(FileNotFoundError), file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - _SAID_BYTES))
        return opened.read(_SAID_BYTES).decode(errors="replace")
    return ""


def _guarded(work: Path) -> list[str]:
    """Before ansible-playbook: its lock, which its forks inherit, its end with this process, and its bounds."""
    lacking = [name for name in ("flock", "setpriv", "prlimit") if processes.find(name) is None]
    if lacking:
        raise HostError(f"{lacking[0]} is not installed", fix=distribution.install("util-linux"))
    lock = ["flock", "--nonblock", "--no-fork", "--conflict-exit-code", str(_HELD), str(work / _PLAY)]
    bounds = ["prlimit", f"--fsize={MAX_FILE_BYTES}", f"--as={_MAX_MEMORY_BYTES}"]
    return [*lock, "setpriv", "--pdeathsig", "TERM", *bounds]


def _end_children(work: Path) -> None:
    """End ansible-playbook, which passes it on to its forks, and wait for it."""
    mine = [pid for pid, stat in process_table.stats().items() if stat.parent == os.getpid()]
    plays = [pid for pid in mine if _is_play(process_table.argv(pid), work.parent)]
    for pid in plays:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = until(_END_LIMIT_S)
    while plays and time.monotonic() < deadline:
        for pid in [*plays]:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    continue
            plays.remove(pid)
        time.sleep(0.05)


def _module(name: str) -> Any:
    try:
        with contextlib.chdir("/"):
            return importlib.import_module(name)
    except ImportError as error:
        raise missing("ansible-runner") from error


def _for_ansible(runners: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return ansible-playbook's environment: a listed one, and what ansible-runner itself sets.

    ansible-runner writes it into a file, and by itself takes all of this process's, with the secrets in it.
    """
    combined = ("ANSIBLE_CALLBACK_PLUGINS", "ANSIBLE_STDOUT_CALLBACK")
    own = {
        name: value
        for name, value in runners.items()
        if name.startswith(("ANSIBLE_", "AWX_", "RUNNER_")) and (name in combined or name not in os.environ)
    }
    return {**processes.environment(), **own, **environment}


def _environment(control: Path) -> dict[str, str]:
    found = {**_SETTINGS, "ANSIBLE_HOST_KEY_CHECKING": "True", **processes.kept(*_KEPT)}
    found["ANSIBLE_SSH_CONTROL_PATH_DIR"] = str(control)
    found["ANSIBLE_LOCAL_TEMP"] = str(control / "tmp")
    if "ANSIBLE_CONFIG" not in found and (local := _local_settings()) is not None:
        found["ANSIBLE_CONFIG"] = str(local)
    # Beside ansible-playbook are the programs that it starts itself.
    found["PATH"] = f"{Path(sys.executable).parent}:{processes.path()}"
    return found


def _local_settings() -> Path | None:
    """Return the current folder's ansible.cfg, which may name programs to run; None if another user has put it there.

    Ansible itself looks at the folder's mode alone. Root may type the command in any user's folder.
    """
    local = Path("ansible.cfg").absolute()
    for place in (local, local.parent):
        try:
            facts = place.lstat()
        except FileNotFoundError:
            return None
        if facts.st_uid not in {os.geteuid(), 0} or (facts.st_mode & 0o002 and not stat.S_ISLNK(facts.st_mode)):
            return None
    return local if local.is_file() else None


def _control_folder(work: Path) -> Path:
    """Where the sockets of ssh's connections are: in the fleet's folder, or below /tmp where that path is too long."""
    named = work / "c"
    if len(str(named)) > _MAX_CONTROL_PATH:
        named = Path(tempfile.gettempdir()) / _short_name(work)
    named.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_own_folder(named):
        raise HostError(f"{named} belongs to another user", fix="give -o a folder with a shorter path")
    (work / "control").write_text(str(named))
    return named


def _short_name(work: Path) -> str:
    return f"tare-fleet-{zlib.crc32(str(work).encode()):08x}"


def _is_own_folder(place: Path) -> bool:
    facts = place.lstat()
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()


def _close_connections(work: Path) -> None:
    """End the connections that ssh keeps in the background, and remove the folder of their sockets."""
    try:
        control = Path((work / "control").read_text())
        named = control == work / "c" or control.name == _short_name(work)
        # The folder may come from elsewhere: no other path that it names is removed.
        if not (named and _is_own_folder(control)):
            return
    except (OSError, ValueError):
        return
    for socket in filter(Path.is_socket, control.glob("*")):
        processes.run(["ssh", "-O", "exit", "-o", f"ControlPath={socket}", "fleet"], time_limit_s=5)
    shutil.rmtree(control, ignore_errors=True)


def absolute(source: str) -> str:
    """Return the path of an inventory, as Ansible runs in another folder; names ("a,b,") stay. Raises `UsageError`."""
    path = Path(source)
    if "," in source and not path.exists():
        return source
    if not path.exists():
        raise UsageError(f"there is no inventory {source}", fix="name a file or a folder, or hosts: -i a.example,")
    _require_no_strangers(path.absolute())
    return str(path.absolute())


def _require_no_strangers(source: Path) -> None:
    """Raise `UsageError` where others may change an inventory, or put variables beside it, which name programs."""
    owner = source.stat().st_uid
    for place in (source,) if source.is_dir() else (source, source.parent):
        facts = place.stat()
        if facts.st_mode & 0o002:
            why = "everybody may write to it"
        elif facts.st_uid not in {os.geteuid(), 0, owner}:
            why = f"it belongs to user {facts.st_uid}"
        else:
            continue
        problem = f"Ansible runs here what {place} says for the inventory {source.name}, and {why}"
        raise UsageError(problem, fix="move the inventory to a folder of your own")
