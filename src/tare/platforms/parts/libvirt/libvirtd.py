"""A libvirtd of tare's own, and the interface that it shares with a daemon of the user's.

The private one runs in a mount namespace in which libvirt's folders and /run are tare's: the user's configuration,
networks and domains are neither seen nor touched, and D-Bus is not there to hand domains over to systemd. Libvirt
starts a domain's process by a small script that enters the instance's groups first, so that all of it, from its first
instruction, is in ``spec.group``.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tare.errors import HostError
from tare.host import cgroup, instance_console, own_daemon, processes, state
from tare.host.kernel import mounts
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.platforms.base import LaunchSpec
from tare.platforms.parts.common.pipes import TOOL
from tare.platforms.parts.libvirt.virsh import Connection

#: Folders of libvirt's. All exist where it is installed.
FOLDERS = {"etc": "/etc/libvirt", "lib": "/var/lib/libvirt", "log": "/var/log/libvirt", "run": "/run"}
CACHE = "/var/cache/libvirt"
#: Where a domain's emulator may be a script: AppArmor's profile of libvirtd has it execute nothing of `state.home`.
HOOKS = "/etc/libvirt/hooks"
SOCKET = "run/libvirt/libvirt-sock"
#: Where libvirt_lxc, which is not on PATH, is looked for.
LXC_PLACES = ("/usr/lib/libvirt/libvirt_lxc", "/usr/libexec/libvirt_lxc", "/usr/lib64/libvirt/libvirt_lxc")
#: Who reaches a socket needs no password, so only root reaches them; libvirt's own default for the first is 0777.
DAEMON_CONF = """\
auth_unix_rw = "none"
auth_unix_ro = "none"
unix_sock_rw_perms = "0700"
unix_sock_ro_perms = "0700"
unix_sock_admin_perms = "0700"
log_outputs = "3:stderr"
"""
#: No control groups of libvirt's own for machines: they are in the instance's.
QEMU_CONF = """\
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
"""
#: A profile for each container would be a file in the host's /etc/apparmor.d, which a killed libvirtd leaves there.
LXC_CONF = 'security_driver = "none"\n'
#: In the daemon's mount namespace: folder of tare's and libvirt's in pairs, and what is to be hidden.
_SURROUND = """\
hidden=$1; shift
while [ "$1" != -- ]; do mkdir -p "$2"; mount --bind "$1" "$2"; shift 2; done
shift
[ -z "$hidden" ] || umount "$hidden"
exec "$@"
"""
#: In a mount namespace below the daemon's: the container's root, and the instance's groups in the place of the whole
#: hierarchies, so that libvirt makes its own below the instance's.
_INNER = """\
mount -t overlay overlay -o "$1" "$2"; shift 2
while [ "$1" != -- ]; do mount --bind "$1" "$2"; shift 2; done
shift
exec "$@"
"""
#: libvirtd runs this in the place of QEMU or libvirt_lxc. A domain whose instance has gone meanwhile does not start.
_ENTRANCE = """\
#!/bin/sh
name= before=
for word in "$@"; do
    case $before in
    --name) name=$word ;;
    -name) name=${word#guest=} name=${name%%,*} ;;
    esac
    before=$word
done
case $name in tare-*) . @WORK@/"${name#tare-}"/enter ;; esac
exec @PROGRAM@ "$@"
"""


def lxc_program() -> Path | None:
    """Return the path of libvirt_lxc; None where it is not installed."""
    return next((path for path in map(Path, LXC_PLACES) if path.exists()), None)


class LibvirtDaemon(ABC):
    """A libvirtd, and how its domains get into their instance's control groups."""

    connection: Connection
    socket: str = ""  # the daemon's own, where tare started it
    entrance: Path | None = None  # what domains name as their emulator
    security: Sequence[str] = ()  # security models that the domain's XML has to switch off
    moves: bool = False  # whether domains are moved into the groups once they are made, and so are made paused

    @property
    @abstractmethod
    def groups(self) -> list[cgroup.Group]:
        """The daemon's control groups, to read its usage."""

    @abstractmethod
    def container_root(self, spec: LaunchSpec, cleanup: CleanupStack) -> contextlib.AbstractContextManager[Path]:
        """Return a container's writable root, which exists while the context does; the container is made inside it."""

    def machine(self, spec: LaunchSpec, leaf: str = TOOL) -> None:  # noqa: B027 (most need nothing)
        """Prepare for a machine of this instance."""

    def machine_log(self, name: str) -> Path:
        """Return where the daemon logs what becomes of a machine."""
        return Path(FOLDERS["log"], "qemu", f"{name}.log")

    def settle(self, spec: LaunchSpec, name: str) -> None:  # noqa: B027
        """Move all of a new domain into the instance's groups. Raises `PlatformError`."""

    def ended(self, within_s: float = 0.0) -> str | None:  # noqa: ARG002
        """Return the daemon's end in words; None while it runs, or if it is unknown. See `daemons.Daemon.ended`."""
        return None

    def stop(self) -> None:  # noqa: B027
        """Stop it where tare started it."""


class Private(LibvirtDaemon):
    """A libvirtd of tare's own. Call `stop` when done; `tare clean` removes that of a killed tare."""

    def __init__(self, name: str, driver: str, program: Path) -> None:
        """``name``: of the platform that it is for; ``driver``: qemu or lxc; ``program``: what runs its domains."""
        self._program = program
        label = f"{name}-{os.getpid()}"
        self.folder = state.work() / label
        self._cleanup = CleanupStack()
        self.entrance = _entrance(program)
        try:
            self._daemon = self._start(label)
        except BaseException:
            with contextlib.suppress(HostError):  # what stays is noted (`host.unremoved`)
                self._cleanup.release()
            raise
        self.pid = self._daemon.process.pid
        #: Where it listens, as seen in its own mount namespace: the host's path to it may be too long for a socket.
        self.socket = f"/proc/{self.pid}/root/run/libvirt/libvirt-sock"
        self.connection = Connection(f"{driver}+unix:///system?socket={self.socket}")

    @property
    def groups(self) -> list[cgroup.Group]:
        """Its control groups, to read its usage."""
        return [cgroup.Group(self._daemon.group.path)]

    def ended(self, within_s: float = 0.0) -> str | None:
        """Return how it ended, in words; None while it runs."""
        how = self._daemon.ended(within_s)
        return how and f"libvirtd {how}"

    def stop(self) -> None:
        """End it and remove what was made for it."""
        self._daemon.stop()
        self._daemon.group.close()
        self._cleanup.release()

    @contextlib.contextmanager
    def container_root(self, spec: LaunchSpec, cleanup: CleanupStack) -> Iterator[Path]:  # noqa: ARG002
        """Make a container's writable root, in a mount namespace whose hierarchies are the instance's groups.

        Those are below the groups with its limits: libvirt lets a container write to what it sees. libvirt_lxc joins
        that namespace while this lasts; it and all mounts in it go with the last process there. It is held by a
        descriptor: kernels that number namespaces by CPU now and then refuse to keep one by a file. With v2 alone
        libvirt_lxc looks for its own group by /proc too, and so joins a namespace of control groups as well.
        """
        upper, scratch, root = (spec.space.folder / name for name in ("upper", "scratch", "root"))
        for folder in (upper, scratch, root):
            folder.mkdir()
        unified = cgroup.hierarchies().unified
        # A namespace of control groups has the maker's own group as its root, which may then hold no process itself.
        top, procs = spec.group.leaf("box"), spec.group.leaf("box/tool")
        kinds = {"mnt": "mount", "cgroup": "cgroup"} if unified else {"mnt": "mount"}
        options = f"lowerdir={spec.image.root},upperdir={upper},workdir={scratch}"
        shown = ((top[0].parent if unified else place / spec.group.inner / "box", place) for place in controllers())
        binds = [str(path) for pair in shown for path in pair]
        inner = ["unshare", *(f"--{kind}" for kind in kinds.values()), "--propagation", "private"]
        inner += ["sh", "-ec", _INNER, "sh"]
        within = ["nsenter", f"--mount=/proc/{self.pid}/ns/mnt", *inner, options, str(root), *binds, "--"]
        nothing = subprocess.DEVNULL
        with instance_console.opened(spec.space.log) as log:
            held = processes.start_held(
                ["true"], stdin=nothing, stdout=nothing, stderr=log, cgroup_procs=top, within=within
            )
        namespaces: dict[str, int] = {}
        try:
            for name, kind in kinds.items():
                namespaces[kind] = os.open(f"/proc/{held.process.pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
            held.go()
            held.process.wait()
            joined = " ".join(f"--{kind}=/proc/{os.getpid()}/fd/{number}" for kind, number in namespaces.items())
            self._let_in(spec, procs, f'exec nsenter {joined} {shlex.quote(str(self._program))} "$@"')
            yield root
        finally:
            for number in namespaces.values():
                os.close(number)

    def machine(self, spec: LaunchSpec, leaf: str = TOOL) -> None:
        """Let the machine's process enter the instance's groups before it starts."""
        self._let_in(spec, spec.group.leaf(leaf))

    def machine_log(self, name: str) -> Path:
        """Return where the daemon logs what becomes of a machine, as the host sees it."""
        return self.folder / "log" / "qemu" / f"{name}.log"

    def _let_in(self, spec: LaunchSpec, procs: Sequence[Path], *commands: str) -> None:
        lines = [*(f"echo $$ >{shlex.quote(str(path))}" for path in procs), *commands]
        (spec.space.folder / "enter").write_text("".join(f"{line}\n" for line in lines))

    def _start(self, label: str) -> own_daemon.Daemon:
        self._cleanup.own(removers.folder(self.folder))
        pairs = [(str(self.folder / name), place) for name, place in FOLDERS.items()]
        for folder, _ in pairs:
            Path(folder).mkdir(parents=True)
        (self.folder / "etc" / "libvirtd.conf").write_text(DAEMON_CONF)
        (self.folder / "etc" / "qemu.conf").write_text(QEMU_CONF)
        (self.folder / "etc" / "lxc.conf").write_text(LXC_CONF)
        pairs += [(str(_cache_folder()), CACHE), (str(_cache_folder() / "hooks"), HOOKS)]
        words = [word for pair in pairs for word in pair]
        argv = ["unshare", "--mount", "--propagation", "slave", "sh", "-ec", _SURROUND, "sh", hidden(), *words, "--"]
        return own_daemon.start(
            self._cleanup,
            label,
            [*argv, processes.find("libvirtd") or "libvirtd"],
            ready=(self.folder / SOCKET).exists,
            log=self.folder / "libvirtd.log",
            time_limit_s=30,
        )


def _cache_folder() -> Path:
    """Return the cache between campaigns: what libvirt has probed of QEMU, which takes seconds."""
    folder = state.home() / "libvirt"
    folder.mkdir(exist_ok=True)
    return folder


def _entrance(program: Path) -> Path:
    """Return the script that starts a program inside the instance's groups, as libvirtd sees its path.

    It changes when the program does: libvirt compares the time of this file with that of its cache.
    """
    place = _cache_folder() / "hooks" / f"{program.name}-entrance"
    place.parent.mkdir(exist_ok=True)
    script = _ENTRANCE.replace("@WORK@", shlex.quote(str(state.work()))).replace("@PROGRAM@", shlex.quote(str(program)))
    script += f"# of {program.stat().st_mtime_ns}\n"
    if not place.exists() or place.read_text() != script:
        part = place.with_suffix(f".{os.getpid()}")
        part.write_text(script)
        part.chmod(0o755)
        part.rename(place)
    return Path(HOOKS, place.name)


def hidden() -> str:
    """Return the v2 hierarchy where the host has one beside v1's, which libvirt cannot make containers with.

    Else nothing.
    """
    tree = cgroup.hierarchies()
    return str(tree.v2) if tree.v2 is not None and not tree.unified else ""


def controllers() -> list[Path]:
    """Return the hierarchies that have controllers; in a named one libvirt looks for itself where it is, not below."""
    tree = cgroup.hierarchies()
    if tree.unified:
        return list(tree.mounted)
    return [path for path in named_out(mounts.table(), tree.mounted) if path != tree.v2]


def named_out(mounted: Iterable[mounts.Mount], hierarchies: Sequence[Path]) -> list[Path]:
    """Return the hierarchies that have controllers: those without have a name, as an option ``name=``."""
    named = {Path(mount.point) for mount in mounted if any(text.startswith("name=") for text in mount.super_options)}
    return [path for path in hierarchies if path not in named]
