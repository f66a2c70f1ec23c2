"""The daemon for containers of LXD (and Incus): the host's own where it answers, else one of tare's."""

from __future__ import annotations

import io
import json
import os
import secrets
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tare.errors import PlatformError
from tare.host import cgroup, distribution, own_daemon, processes, state, userns
from tare.host.daemons import activation, lxd_access
from tare.host.filesystems import opened
from tare.host.resources import removers
from tare.host.resources.claims import LXC_LOCKS
from tare.host.resources.journal import CleanupStack
from tare.platforms.parts.common import root_rights

LIMIT_S = 30.0


#: The client, a container's name, and the command to run in it.
_START = """\
name=$1; shift
"$0" start "$name" </dev/null >&2 || { "$0" info --show-log "$name" >&2; exit 1; }
exec "$0" exec -T "$name" -- "$@"
"""


@dataclass(frozen=True, slots=True)
class LxdKind:
    """LXD or Incus: what its programs and files are called."""

    title: str
    client: str
    daemons: tuple[str, ...]  # where the daemon's program may be
    variable: str  # names the daemon's folder in the environment, with _DIR, _CONF, _SOCKET behind it
    sockets: tuple[str, ...]  # of the host's own daemon
    fix: str

    @property
    def daemon(self) -> str:
        """The daemon's program, as it is called on this host."""
        return next(filter(processes.find, self.daemons), self.daemons[0])


LXD = LxdKind(
    "LXD",
    "lxc",
    ("lxd",),
    "LXD",
    ("/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket"),
    distribution.install("lxd", "lxd-client", lean=True),
)
INCUS = LxdKind(
    "Incus",
    "incus",
    ("incusd", "/usr/libexec/incus/incusd"),  # Debian has it on no path
    "INCUS",
    ("/var/lib/incus/unix.socket", "/run/incus/unix.socket"),
    f"{distribution.install('incus', lean=True)} (Debian 13, or 12 with backports)",
)


class LxdServer:
    """A running daemon, with a storage pool and an empty image of tare's, which `close` removes."""

    def __init__(self, kind: LxdKind) -> None:
        """Find the host's daemon or start one. Raises `PlatformError`, `HostError`."""
        self._kind = kind
        self._cleanup = CleanupStack()
        self.label = f"tare-{os.getpid()}{secrets.token_hex(3)}"
        self._daemon: own_daemon.Daemon | None = None
        self._first_user: int | None = None
        try:
            self._folder = self._made()
            (self._folder / "client").mkdir(mode=0o700)
            host_socket = answering(kind.sockets)
            self.own = host_socket is None
            self._place = host_socket.parent if host_socket else self._folder
            if self.own:
                self.revive()
            self._reach = lxd_access.LxdAccess(kind.client, self._folder, host_socket, self._folder / "client")
            self.client = self._reach.argv
            self._furnish()
        except BaseException:
            self.close()
            raise

    def _made(self) -> Path:
        """Return the daemon's folder: on tare's disk, and where the root of a container can pass (`first_user`)."""
        folder = state.work() / self.label
        self._cleanup.own(removers.folder(folder))
        folder.mkdir(parents=True, mode=0o711)
        return opened.show(self._cleanup, folder, self.label, owner=0)

    def ask(self, *words: str, stdin: bytes = b"", procs: Sequence[Path] = ()) -> str:
        """Return the client's output for these arguments. Raises `PlatformError` with the daemon's message."""
        done = processes.run([*self.client, *words], stdin=stdin, time_limit_s=LIMIT_S, cgroup_procs=procs)
        if done.code != 0:
            raise PlatformError(
                f"{self._kind.title} refuses: {done.message}", fix=f"see what `{self._kind.client} info` says"
            )
        return done.text

    def new_container(
        self,
        cleanup: CleanupStack,
        name: str,
        group: cgroup.Group,
        cpus: Sequence[int],
        settings: Sequence[str],
        devices: Mapping[str, Any],
        *,
        privileged: bool,
    ) -> None:
        """Make a container that does nothing, its control groups below ``group``.

        ``settings`` are LXC's own (lxc.container.conf(5)). ``privileged``: root inside is the host's.
        """
        if not privileged:
            self.first_user()  # who passes the daemon's folder
        text = container(self.label, group.inner, cpus, settings, devices, privileged=privileged)
        self.own_container(cleanup, name, group, devices)
        self.ask(*self.init_words(name), stdin=text.encode(), procs=group.leaf("tool"))

    def init_words(self, name: str) -> tuple[str, ...]:
        """Return the client's words that create a container, whose configuration is on its stdin."""
        return ("init", "--quiet", "--no-profiles", self.label, name)

    def own_container(self, cleanup: CleanupStack, name: str, group: cgroup.Group, devices: Mapping[str, Any]) -> None:
        """Have the cleanup remove a container that is to be created, and what its daemon keeps of it."""
        folder, variable = self._place, self._kind.variable.lower()
        # A daemon forgets the logs of containers that it removes; and killed, their disks' mounts.
        cleanup.own(*(removers.folder(logs / name) for logs in (folder / "logs", Path("/var/log", variable))))
        if self.own:
            disks = [device["path"].strip("/") for device in devices.values() if "source" in device]
            cleanup.own(*(removers.mount(folder / f"devices/{name}/disk.{path}.{path}") for path in disks))
        cleanup.own(removers.of_lxd(self._reach, "container", name, group.inner))

    def first_user(self) -> int:
        """Return the host's id of root in an unprivileged container, from one that is never started."""
        if self._first_user is None:
            name = f"{self.label}-ids"
            with CleanupStack() as cleanup:
                cleanup.own(removers.of_lxd(self._reach, "container", name))
                self.ask("init", "--quiet", "--no-profiles", self.label, name, "--storage", self.label)
                config = json.loads(self.ask("query", f"/1.0/instances/{name}"))["config"]
            self._first_user = first_user(config)
            opened.pass_on(self._folder, self._first_user)
        return self._first_user

    def start_argv(self, name: str, argv: Sequence[str]) -> list[str]:
        """Start a container and run a command in it, as a user would: stdin and stdout are the command's.

        When the start fails, why it did is in the daemon's log of the container.
        """
        return ["sh", "-c", _START, self._kind.client, name, *argv]

    def revive(self) -> None:
        """Start tare's own daemon when it does not run: at first, and when it died. Its containers outlive it."""
        kind, folder = self._kind, self._folder
        if not self.own or (self._daemon is not None and self._daemon.ended() is None):
            return
        # liblxc keeps its locks here, each below the path of the folder that its container is in.
        locks = removers.folder(LXC_LOCKS / str(folder).lstrip("/"), below=LXC_LOCKS)
        mounts = [folder / "shmounts", folder / f"dev{kind.variable.lower()}", folder / "guestapi"]
        self._cleanup.own(locks, *map(removers.mount, mounts))
        wait = ["env", f"{kind.variable}_DIR={folder}", kind.daemon, "waitready", "--timeout=5"]
        self._daemon = own_daemon.start(
            self._cleanup,
            self._kind.daemons[0],
            [kind.daemon, "--group", "root"],
            ready=lambda: processes.run(wait, time_limit_s=10).code == 0,
            log=folder / "daemon.log",
            env={f"{kind.variable}_DIR": str(folder)},
        )

    def restart(self) -> None:
        """Stop tare's own daemon and start it again; its containers outlive it. Raises `HostError`."""
        assert self._daemon is not None, "others' are never restarted"
        self._daemon.stop()
        self.revive()

    def ended(self) -> PlatformError | None:
        """Return how tare's own daemon ended; None while it runs, or where it is not tare's."""
        how = self._daemon.ended(own_daemon.DYING_S) if self._daemon is not None else None
        if how is None:
            return None
        return PlatformError(
            f"{self._kind.title}'s daemon {how}", fix="the next start has a new one; see the host's log"
        )

    @property
    def environment(self) -> list[str]:
        """The command prefix by which the client finds its daemon."""
        return self._reach.environment

    def version(self) -> str:
        """Return the daemon's version."""
        return str(self._facts()["environment"]["server_version"])

    def group(self) -> cgroup.Group | None:
        """Return the daemon's control group, for reading; None when it has none of its own."""
        if self._daemon is not None:
            return cgroup.Group(self._daemon.group.path)
        return cgroup.usage_of(int(self._facts()["environment"]["server_pid"]))

    def close(self) -> None:
        """Remove what is tare's in the daemon, and the daemon too where it is tare's."""
        if self._daemon is not None:
            self._daemon.stop()
        self._cleanup.release()

    def _furnish(self) -> None:
        """Make a storage pool and an empty image: each container gets its root elsewhere."""
        tar = self._folder / "empty.tar"
        empty_image(tar)
        for kind in ("storage", "image"):
            self._cleanup.own(removers.of_lxd(self._reach, kind, self.label))
        self.ask("storage", "create", self.label, "dir")
        self.ask("image", "import", str(tar), "--alias", self.label)

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads(self.ask("query", "/1.0"))
        return facts


def first_user(config: Mapping[str, str]) -> int:
    """Return the host's id of root in a container, by its configuration. Raises `PlatformError` where it has none."""
    for ids in json.loads(config.get("volatile.idmap.next", "[]")):
        if ids["Isuid"] and ids["Nsid"] == 0 and ids["Maprange"] >= userns.COUNT:
            return int(ids["Hostid"])
    fix = f"give root {userns.COUNT} ids in /etc/subuid and /etc/subgid, and restart the daemon"
    raise PlatformError("the daemon has no users for an unprivileged container", fix=fix)


def container(
    label: str,
    group: str,
    cpus: Sequence[int],
    settings: Sequence[str],
    devices: Mapping[str, Any],
    *,
    privileged: bool,
    init: str = "/bin/sleep infinity",
) -> str:
    """Return a container's configuration as the client reads it (YAML, of which JSON is a part).

    ``init``: its first process. The agent is another, since the daemon keeps the first one's stdin and stdout.
    """
    lines = [
        f"lxc.init.cmd = {init}",
        f"lxc.cgroup.dir.monitor = {group}/monitor",
        f"lxc.cgroup.dir.monitor.pivot = {group}/pivot",
        f"lxc.cgroup.dir.container = {group}/box",
        *root_rights.lxc_settings(),
        *settings,
    ]
    config = {
        **({"security.privileged": "true"} if privileged else {}),
        # Ranges: a single number would be how many. Without it the daemon spreads its containers over all CPUs.
        "limits.cpu": ",".join(f"{cpu}-{cpu}" for cpu in cpus),
        "raw.lxc": "\n".join(lines),
    }
    root = {"type": "disk", "path": "/", "pool": label}
    return json.dumps({"config": config, "devices": {"root": root, **devices}})


def empty_image(place: Path) -> None:
    """Write an image for LXD with an empty root filesystem, as a tar."""
    facts = json.dumps({"architecture": os.uname().machine, "creation_date": 1}).encode()
    with tarfile.open(place, "w") as tar:
        root = tarfile.TarInfo("rootfs")
        root.type, root.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(root)
        metadata = tarfile.TarInfo("metadata.yaml")
        metadata.size, metadata.mode = len(facts), 0o644
        tar.addfile(metadata, io.BytesIO(facts))


def answering(sockets: Sequence[str]) -> Path | None:
    """Return the first of the sockets that a daemon listens on. One that a request would only start does not count."""
    return next((Path(path) for path in sockets if activation.runs(path)), None)
