"""LXD, and Incus, which came of it: containers of LXC's that a daemon makes, starts and runs commands in."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from tare.errors import TareError
from tare.host import processes
from tare.host.filesystems import roots
from tare.host.network.fence import BRIDGE
from tare.host.resources.journal import CleanupStack
from tare.host.tuning import pinning
from tare.image.build import Image
from tare.image.forms import disk_bytes
from tare.platforms.base import Address, Availability, Instance, LaunchSpec, Platform, Prepared
from tare.platforms.parts import helpers, left_open
from tare.platforms.parts.attempt import TrialSite, complaint
from tare.platforms.parts.lxd_server import INCUS, LXD, Kind, Server
from tare.platforms.parts.marks import Ping
from tare.platforms.parts.pipes import start

#: What a program of the host's needs below /, where a trivial container runs one.
SYSTEM = ("/bin", "/lib", "/lib64", "/usr")


class Lxd(Platform):
    """A privileged container, started and entered as users do: ``lxc start``, then ``lxc exec`` of the agent."""

    network_path = "client, bridge, veth"
    by_default = False
    open_by_design = left_open.PRIVILEGED_LXC
    not_honoured = (
        "it is privileged (security.privileged), where its users get a mapped root by default: that one could not pass "
        "TARE_HOME, which only root can enter",
    )

    def __init__(self, name: str, kind: Kind) -> None:
        self.name = name
        self.title = f"{kind.title}: a container of its daemon"
        self._kind = kind
        self._held: Server | None = None
        self._lock = threading.Lock()  # several instances may start at once, and the first starts the daemon

    def detect(self) -> Availability:
        """Start a trivial container of the host's own files, in a daemon that is stopped again where it is tare's."""
        kind = self._kind
        missing = [program for program in (kind.client, kind.daemon) if processes.find(program) is None]
        if missing:
            return Availability(False, reason=f"{missing[0]} is not installed", fix=kind.fix)
        if os.geteuid() != 0:
            return Availability(False, reason=f"{kind.title} is driven as root", fix="run tare as root (sudo)")
        try:
            with contextlib.closing(Server(kind)) as server:
                why = complaint(lambda site: _trivial(server, site))
                details = {"daemon": "tare's own" if server.own else "the host's"}
                version = server.version()
        except TareError as error:
            return Availability(False, reason=error.what, fix=error.fix or "")
        if why:
            fix = f"see `{kind.client} info --show-log` and lxc-checkconfig"
            return Availability(False, reason=f"a trivial container fails: {why}", fix=fix)
        return Availability(True, version=version, details=details)

    def prepare(self, image: Image) -> Prepared:
        """The image as a folder, and the daemon, which stays until `close`."""
        self._server()
        return Prepared("folder", disk_bytes(image.root), (image.root,))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Make the container; then start it and run the agent in it."""
        server = self._server()
        endpoint, link = spec.network.new_endpoint(cleanup, spec.id)
        name = f"tare-{spec.id}"
        root = roots.overlay_root(cleanup, spec.space, spec.image.root)
        settings = [
            f"lxc.rootfs.path = dir:{root}",
            f"lxc.net.0.ipv4.address = {endpoint.address}/{spec.network.prefix}",
            f"lxc.net.0.ipv4.gateway = {spec.network.host}",
        ]
        nic = {"type": "nic", "nictype": "bridged", "parent": BRIDGE, "name": "eth0"}
        devices = {
            "eth0": {**nic, "host_name": link, "hwaddr": endpoint.mac},
            "data": {"type": "disk", "path": "/data", "source": str(spec.space.data)},
        }
        server.new_container(cleanup, name, spec.group, spec.resources.cpus, settings, devices)
        group = server.group()
        began = start(spec, server.start_argv(name, spec.agent_argv()), server.environment)
        ping = Ping(endpoint.address) if spec.measured else None
        address = Address(endpoint.address, spec.port, spec.port, endpoint.address)
        daemons = () if group is None else (group,)

        def settle() -> None:
            helpers.adopt(spec.group, lambda argv: helps(argv, name))

        return Instance(
            spec, began.stream, began.at, address, began.first_byte, ping=ping, daemons=daemons, settle=settle
        )

    def daemon_failure(self) -> TareError | None:
        """The error where tare's own daemon has died, else None."""
        return self._held.ended() if self._held is not None else None

    def close(self) -> None:
        """Stop the daemon where it is tare's, and remove what is tare's where it is not."""
        with self._lock:
            held, self._held = self._held, None
        if held is not None:
            held.close()

    def _server(self) -> Server:
        with self._lock:
            if self._held is None:
                self._held = Server(self._kind)
            self._held.revive()
            return self._held


def helps(argv: Sequence[str], name: str) -> bool:
    """Whether a command line is that of the daemon's child that runs a command in this container."""
    return len(argv) > 2 and argv[1].startswith("fork") and name in argv


def _trivial(server: Server, site: TrialSite) -> list[str]:
    """The command that starts a container of the host's own files, and runs a program in it."""
    root = site.folder / "root"
    for below in ("dev", "proc", "sys"):
        (root / below).mkdir(parents=True)
    binds = [
        f"lxc.mount.entry = {path.resolve()} {path.relative_to('/')} none rbind,ro,create=dir 0 0"
        for path in map(Path, SYSTEM)
        if path.exists()
    ]
    name = f"tare-{site.folder.name}"
    settings = [f"lxc.rootfs.path = dir:{root}", *binds]
    server.new_container(site.cleanup, name, site.group, sorted(pinning.usable()), settings, {})
    return [*server.environment, *server.start_argv(name, ["true"])]


PLATFORMS = (Lxd("lxd", LXD), Lxd("incus", INCUS))
