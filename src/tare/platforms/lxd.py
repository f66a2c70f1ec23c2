"""LXD, and Incus, which came of it: containers of LXC's that a daemon makes, starts and runs commands in."""

from __future__ import annotations

import contextlib
import shlex
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tare.errors import TareError
from tare.host import criu, processes, userns
from tare.host.filesystems import opened, roots
from tare.host.kernel import pinning
from tare.host.network.bridge import Endpoint
from tare.host.network.fence import BRIDGE
from tare.host.resources.journal import CleanupStack
from tare.image.forms import image_bytes
from tare.image.image_build import Image
from tare.platforms.base import HELPER_PIDS, Address, Availability, Instance, LaunchSpec, Life, Platform, Prepared
from tare.platforms.parts.common import adopt, left_open
from tare.platforms.parts.common.attempt import TrialSite, complaint
from tare.platforms.parts.common.pipes import TOOL, start
from tare.platforms.parts.engines.lxd_server import INCUS, LXD, LxdKind, LxdServer, container
from tare.platforms.watchers.marks import EchoPing

#: What a program of the host's needs below /, where a trivial container runs one.
SYSTEM = ("/bin", "/lib", "/lib64", "/usr")
#: The program of a life, as a script in /data: LXC's setting for the first process knows no escapes, and has no lines.
PROGRAM = "program"


class Lxd(Platform):
    """A container, started and entered as users do: ``lxc start``, then ``lxc exec`` of the agent."""

    network_path = "client, bridge, veth"
    by_default = False
    helper_pids = HELPER_PIDS

    def __init__(self, name: str, kind: LxdKind, *, privileged: bool = False) -> None:
        self.name = name
        self.title = f"{kind.title}: a container of its daemon{', privileged' if privileged else ''}"
        self.open_by_design = left_open.PRIVILEGED_LXC if privileged else left_open.UNPRIVILEGED_LXC
        self._privileged = privileged
        self.daemon = Path(kind.daemon).name
        self._kind = kind
        self._held: LxdServer | None = None
        self._lock = threading.Lock()  # several instances may start at once, and the first starts the daemon

    def detect(self) -> Availability:
        """Start a trivial container of the host's own files, in a daemon that is stopped again where it is tare's."""
        kind = self._kind
        missing = [program for program in (kind.client, kind.daemon) if processes.find(program) is None]
        if missing:
            return Availability(False, reason=f"{missing[0]} is not installed", fix=kind.fix)
        try:
            with contextlib.closing(LxdServer(kind)) as server:
                why = complaint(lambda site: _trivial(server, site, privileged=self._privileged))
                details = {"daemon": "tare's own" if server.own else "the host's"}
                version = server.version()
        except TareError as error:
            return Availability(False, reason=error.what, fix=error.fix or "")
        if why:
            fix = f"see `{kind.client} info --show-log` and lxc-checkconfig"
            return Availability(False, reason=f"a trivial container fails: {why}", fix=fix)
        return Availability(True, version=version, details=details)

    def prepare(self, image: Image) -> Prepared:
        """Return the image as a folder, and the daemon, which stays until `close`."""
        self._server()
        return Prepared("folder", image_bytes(image), (image.root,))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Make the container; then start it and run the agent in it."""
        server = self._server()
        name = f"tare-{spec.id}"
        endpoint, settings, devices = self._made(server, spec, cleanup)
        server.new_container(
            cleanup, name, spec.group, spec.resources.cpus, settings, devices, privileged=self._privileged
        )
        group = server.group()
        began = start(spec, server.start_argv(name, spec.agent_argv()), server.environment)
        ping = EchoPing(endpoint.address) if spec.measured else None
        address = Address(endpoint.address, spec.port, spec.port, endpoint.address)
        daemons = () if group is None else (group,)

        def settle() -> None:
            adopt.adopt(spec.group, lambda argv: helps(argv, name))

        return Instance(
            spec,
            began.stream,
            began.at,
            address,
            began.first_byte,
            ping=ping,
            daemons=daemons,
            client=TOOL,
            settle=settle,
        )

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:
        """Return the client's own commands. `lxc init` reads the configuration from its stdin."""
        server = self._server()
        name, client = f"tare-{spec.id}", self._kind.client
        _, settings, devices = self._made(server, spec, cleanup)
        (spec.space.data / PROGRAM).write_text(f"exec {shlex.join(argv)}\n")
        text = container(
            server.label,
            spec.group.inner,
            spec.resources.cpus,
            settings,
            devices,
            privileged=self._privileged,
            init=f"/bin/sh /data/{PROGRAM}",
        )
        config = spec.space.folder / "config.yaml"
        config.write_text(text)
        server.own_container(cleanup, name, spec.group, devices)
        group = server.group()
        # A snapshot with the memory in it (--stateful) is CRIU's, and goes with the container that it is of.
        kept = criu.why_not() or f"`{client} delete` removes a container's snapshots with it: none is left to restore"
        return Life(
            create=("sh", "-c", 'exec "$@" <"$0"', str(config), client, *server.init_words(name)),
            start=(client, "start", name),
            execute=(client, "exec", "-T", name, "--"),
            stop=(client, "stop", name),
            kill=(client, "stop", "--force", name),
            remove=(client, "delete", name),
            pause=(client, "pause", name),
            resume=(client, "start", name),
            lacks=dict.fromkeys(("snapshot", "restore"), kept),
            within=tuple(server.environment),
            made_ns=spec.made(),
            daemons=() if group is None else (group,),
        )

    def _made(
        self, server: LxdServer, spec: LaunchSpec, cleanup: CleanupStack
    ) -> tuple[Endpoint, list[str], dict[str, dict[str, Any]]]:
        """Make its root and network; return its end of that, and LXC's settings and LXD's devices of both."""
        endpoint, link = spec.network.new_endpoint(cleanup, spec.id)
        root = self._root(server, spec, cleanup)
        settings = [
            *root_settings(root, privileged=self._privileged),
            f"lxc.net.0.ipv4.address = {endpoint.address}/{spec.network.prefix}",
            f"lxc.net.0.ipv4.gateway = {spec.network.host}",
        ]
        nic = {"type": "nic", "nictype": "bridged", "parent": BRIDGE, "name": "eth0"}
        devices = {
            "eth0": {**nic, "host_name": link, "hwaddr": endpoint.mac},
            "data": {"type": "disk", "path": "/data", "source": str(spec.space.data)},
        }
        return endpoint, settings, devices

    def _root(self, server: LxdServer, spec: LaunchSpec, cleanup: CleanupStack) -> Path:
        """Return the writable image; root's of the container where that is not the host's, and where it can pass."""
        if self._privileged:
            return roots.overlay_root(cleanup, spec.space, spec.image.root)
        first = server.first_user()
        # The users of a namespace that ends with this: the daemon makes its own, of the same ids.
        place = spec.space.folder / "users"
        with userns.new(cleanup, place, first):
            root = roots.overlay_root(cleanup, spec.space, spec.image.root, place, first)
        return opened.show(cleanup, root, f"tare-{spec.id}", first)

    def restart_engine(self) -> None:
        """Stop tare's own daemon and start it again."""
        server = self._server()
        if not server.own:
            super().restart_engine()
        server.restart()

    def daemon_failure(self) -> TareError | None:
        """Return the error where tare's own daemon has died, else None."""
        return self._held.ended() if self._held is not None else None

    def close(self) -> None:
        """Stop the daemon where it is tare's, and remove what is tare's where it is not."""
        with self._lock:
            held, self._held = self._held, None
        if held is not None:
            held.close()

    def _server(self) -> LxdServer:
        with self._lock:
            if self._held is None:
                self._held = LxdServer(self._kind)
            self._held.revive()
            return self._held


def root_settings(root: Path, *, privileged: bool) -> list[str]:
    """LXC's settings of a root that belongs to the container's root already."""
    # Incus would map an unprivileged one's once more, which an overlay cannot be.
    return [f"lxc.rootfs.path = dir:{root}", *([] if privileged else ["lxc.rootfs.options ="])]


def helps(argv: Sequence[str], name: str) -> bool:
    """Return True if a command line is that of the daemon's child that runs a command in this container."""
    return len(argv) > 2 and argv[1].startswith("fork") and name in argv


def _trivial(server: LxdServer, site: TrialSite, *, privileged: bool) -> list[str]:
    """Return the command that starts a container of the host's own files, and runs a program in it."""
    root = site.folder / "root"
    system = [path for path in map(Path, SYSTEM) if path.exists()]
    for below in ("dev", "proc", "sys", *(path.name for path in system)):
        (root / below).mkdir(parents=True)
    binds = [f"lxc.mount.entry = {path.resolve()} {path.name} none rbind,ro 0 0" for path in system]
    name = f"tare-{site.folder.name}"
    root = opened.show(site.cleanup, root, name)
    settings = [f"lxc.rootfs.path = dir:{root}", *binds]
    cpus = sorted(pinning.usable())
    server.new_container(site.cleanup, name, site.group, cpus, settings, {}, privileged=privileged)
    return [*server.environment, *server.start_argv(name, ["true"])]


PLATFORMS = (
    Lxd("lxd", LXD),
    Lxd("lxd-privileged", LXD, privileged=True),
    Lxd("incus", INCUS),
    Lxd("incus-privileged", INCUS, privileged=True),
)
