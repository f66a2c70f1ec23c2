"""The containerd for tare's containers: the host's own where it runs, else one of tare's."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tare.errors import PlatformError
from tare.host import cgroup, own_daemon, processes, state
from tare.host.daemons import activation, containerd_access, runtimes
from tare.host.daemons.cri import CriRuntime
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.host.resources.resource import HostResource
from tare.image.forms import oci_archive
from tare.image.image_build import Image
from tare.timeouts import stretched, until

IMPORT_LIMIT_S = 600.0
LIMIT_S = 30.0
#: What a pod's sandbox runs: containerd's own image for it comes from a registry, and does nothing either.
PAUSE = ("/bin/sleep", "infinity")
PAUSE_TAG = "localhost/tare:pause"
#: Configuration of runsc for pods on the node's network: gVisor's own stack would have no link there.
_RUNSC_TOML = "runsc.toml"
_WITH_NODES_SOCKETS = """\
[runsc_config]
network = "host"
"""


class ContainerdServer:
    """A running containerd, which `close` stops where it is tare's own."""

    def __init__(self, *, only_own: bool = False, runtime: str = "runc") -> None:
        """Find the host's daemon or start one; ``only_own``: start one. Raises `HostError`.

        ``runtime``: of pods without a runtime class, if the daemon is tare's own.
        """
        self._cleanup = CleanupStack()
        self._folder = state.work() / f"tare-{os.getpid()}{secrets.token_hex(3)}"
        self._daemon: own_daemon.Daemon | None = None
        self._lock = threading.Lock()
        self._runtime = runtime
        hosts = None if only_own else containerd_access.hosts_own()
        self.own = hosts is None
        self.address = hosts or str(self._folder / "containerd.sock")
        try:
            if self.own:
                self._cleanup.own(removers.folder(self._folder))
                self._folder.mkdir(parents=True, mode=0o711)
                self.revive()
        except BaseException:
            self.close()
            raise

    def ask(self, *words: str, namespace: str = containerd_access.NAMESPACE, time_limit_s: float = LIMIT_S) -> str:
        """Return what `ctr` prints for these words. Raises `PlatformError` with the daemon's message."""
        done = processes.run([*containerd_access.ctr(self.address, namespace), *words], time_limit_s=time_limit_s)
        if done.code != 0:
            raise PlatformError(f"containerd refuses: {done.message}", fix="see its log, and what `ctr version` says")
        return done.text

    def version(self) -> str:
        """Return the daemon's version."""
        return server_version(self.ask("version"))

    def import_image(self, image: Image, namespace: str = containerd_access.NAMESPACE) -> None:
        """Have the image in its store and unpacked, as `image_tag`. Raises `PlatformError`."""
        with self._lock:
            present = {line.split()[0] for line in self.ask("images", "ls", namespace=namespace).splitlines() if line}
            if image_tag(image) in present:
                return
            # The host's own daemon has an image of its own for pods.
            pause = [(PAUSE_TAG, PAUSE)] if self.own else []
            with oci_archive(image, (image_tag(image), ["/bin/true"]), *pause) as archive:
                self.ask("images", "import", str(archive), namespace=namespace, time_limit_s=IMPORT_LIMIT_S)

    def kept(self, image: Image) -> list[HostResource]:
        """Return what `import_image` leaves in a daemon of the host's; tare's own goes with all in it."""
        return [] if self.own else [removers.containerd_image(self.address, image_tag(image))]

    def group(self) -> cgroup.Group | None:
        """Return the daemon's control group, for reading; None when it has none of its own."""
        if self._daemon is not None:
            return cgroup.Group(self._daemon.group.path)
        return next(iter(cgroup.usage_of_all({"containerd"})), None)

    def revive(self) -> None:
        """Start tare's own daemon where it does not run: at first, and when it died. Its containers outlive it."""
        with self._lock:
            if not self.own or (self._daemon is not None and self._daemon.ended() is None):
                return
            config = self._folder / "config.toml"
            config.write_text(configuration(self._folder, self.address, self._runtime))
            (self._folder / _RUNSC_TOML).write_text(_WITH_NODES_SOCKETS)
            # containerd finds its shims, and they the runtimes, on its PATH.
            path = f"{state.home() / 'bin'}:{processes.path()}"
            ask = [*containerd_access.ctr(self.address), "version"]
            self._daemon = own_daemon.start(
                self._cleanup,
                "containerd",
                ["containerd", "--config", str(config)],
                # Before there is a socket its client would only be started to fail.
                ready=lambda: activation.accepts(self.address) and processes.run(ask, time_limit_s=10).code == 0,
                log=self._folder / "daemon.log",
                env={"PATH": path},
            )

    def restart(self) -> None:
        """End tare's own daemon and start it again. Raises `HostError`."""
        assert self._daemon is not None, "others' are never restarted"
        self._daemon.stop()
        self.revive()

    def ended(self, within_s: float = own_daemon.DYING_S) -> PlatformError | None:
        """Return how tare's own daemon ended; None while it runs. Of the host's, that it does not answer any more.

        ``within_s``: as of `own_daemon.Daemon.ended`; 0 where nothing has been noticed.
        """
        if self._daemon is None:
            gone = not activation.runs(self.address)
            return PlatformError("containerd does not answer", fix="systemctl start containerd") if gone else None
        how = self._daemon.ended(within_s)
        return None if how is None else PlatformError(f"containerd {how}", fix="the next start has a new one")

    def close(self) -> None:
        """Stop the daemon, and remove all that it has, where it is tare's."""
        if self._daemon is not None:
            self._daemon.stop()
        self._cleanup.release()


class SharedServer:
    """One server for all platforms of a process that want one: it is started for the first, and stopped by the last."""

    def __init__(self, *, only_own: bool = False) -> None:
        """``only_own``: the server is never the host's."""
        self._only_own = only_own
        self._lock = threading.Lock()  # several instances may start at once
        self._server: ContainerdServer | None = None
        self._users: set[object] = set()

    @contextlib.contextmanager
    def lent(self) -> Iterator[ContainerdServer]:
        """Provide the running server for a question: the one that others have, else one for its time.

        Raises `HostError`.
        """
        user = object()
        try:
            yield self.taken(user)
        finally:
            self.given_back(user)

    def taken(self, user: object) -> ContainerdServer:
        """Return the running server, which stays until this user, a platform's name, gives it back.

        Raises `HostError`.
        """
        with self._lock:
            if self._server is None:
                self._server = ContainerdServer(only_own=self._only_own)
            self._users.add(user)
            self._server.revive()
            return self._server

    def held(self) -> ContainerdServer | None:
        """Return the server, where one is taken."""
        return self._server

    def given_back(self, user: object) -> None:
        """Release it, also if it was never acquired."""
        with self._lock:
            self._users.discard(user)
            if self._users or self._server is None:
                return
            server, self._server = self._server, None
        server.close()


SHARED = SharedServer()
#: For pods without a kubelet: one that runs on the host's daemon ends pods that it does not know.
OWN = SharedServer(only_own=True)


def image_tag(image: Image) -> str:
    """Return the tag of the imported image."""
    return f"localhost/tare:{image.hash[:12]}"


def server_version(printed: str) -> str:
    """Return the daemon's version in what ``ctr version`` prints: of the client it says the same before."""
    server = printed.partition("Server:")[2]
    return next((line.split()[1] for line in server.splitlines() if line.strip().startswith("Version:")), "unknown")


def configuration(folder: Path, address: str, runtime: str = "runc") -> str:
    """Return the configuration of a daemon of tare's own: containerd's, but for its places and the runtimes by name.

    ``runtime``: of pods without a runtime class.
    """
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    text = json.dumps  # a string of TOML is one of JSON
    lines = [
        "version = 2",
        f"root = {text(str(folder / 'root'))}",
        f"state = {text(str(folder / containerd_access.STATE))}",
        "[grpc]",
        f"address = {text(address)}",
        f"[{cri}]",
        f"sandbox_image = {text(PAUSE_TAG)}",
        # A host that is a container may lack the right (CAP_SYS_RESOURCE) to lower it as the CRI does.
        "restrict_oom_score_adj = true",
        f"[{cri}.containerd]",
        f"default_runtime_name = {text(runtime)}",
        f"[{cri}.containerd.runtimes.runc]",
        'runtime_type = "io.containerd.runc.v2"',
    ]
    lines += [
        f"[{cri}.containerd.runtimes.crun]",
        f"runtime_type = {text(runtime_type('crun'))}",
        f"[{cri}.containerd.runtimes.crun.options]",
        f"BinaryName = {text(runtimes.crun())}",
        f"[{cri}.containerd.runtimes.runsc]",
        f"runtime_type = {text(runtime_type('runsc'))}",
        f"[{cri}.containerd.runtimes.runsc.options]",
        'TypeUrl = "io.containerd.runsc.v1.options"',
        f"ConfigPath = {text(str(folder / _RUNSC_TOML))}",
    ]
    return "\n".join([*lines, ""])


def runtime_type(runtime: str) -> str:
    """Return what containerd calls the shim that starts a runtime."""
    return {"runsc": "io.containerd.runsc.v1", "kata": "io.containerd.kata.v2"}.get(runtime, "io.containerd.runc.v2")


def pods_ids(address: str, label: str) -> list[str]:
    """Return the ids of a pod's sandbox and of its running containers, by its label; none where no container runs."""
    with contextlib.closing(CriRuntime(address)) as runtime:
        pods = runtime.pods(label)
        containers = [container for pod in pods for container in runtime.containers(pod)]
    return [*pods, *containers] if containers else []


def started_ids(address: str, label: str) -> list[str]:
    """Return `pods_ids` once containerd lists the container as running, which may be after its agent has connected.

    Raises `PlatformError`.
    """
    deadline = until(LIMIT_S)
    while not (ids := pods_ids(address, label)):
        if time.monotonic() > deadline:
            late = f"containerd does not list the pod {label} as running after {stretched(LIMIT_S):.0f} s"
            raise PlatformError(late, fix="see containerd's log")
        time.sleep(0.02)
    return ids


def shim_program(runtime: str) -> str:
    """Return the shim's program, which containerd looks for on its PATH."""
    _, _, name, version = runtime_type(runtime).split(".")
    return f"containerd-shim-{name}-{version}"


def helps(argv: Sequence[str], container: str) -> bool:
    """Return True if a command line is that of a container's own shim, or of a runsc that its shim has begun."""
    of_shim = "containerd-shim" in argv[0] and ("-id", container) in itertools.pairwise(argv)
    return of_shim or (argv[0].rpartition("/")[2] == "runsc" and argv[-1] == container)
