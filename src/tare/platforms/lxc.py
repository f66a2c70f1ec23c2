"""LXC: system containers by lxc-start in the foreground, with the settings that its templates include."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

from tare.host import criu, distribution, processes
from tare.host.facts import security
from tare.host.filesystems import roots
from tare.host.network.bridge import Endpoint
from tare.host.network.fence import BRIDGE
from tare.host.resources import removers
from tare.host.resources.claims import LXC_LOCKS
from tare.host.resources.journal import CleanupStack
from tare.image.forms import image_bytes
from tare.image.image_build import Image
from tare.platforms.base import HELPER_PIDS, Address, Availability, Instance, LaunchSpec, Life, Platform, Prepared
from tare.platforms.parts.common import left_open
from tare.platforms.parts.common.attempt import TrialSite, complaint, system_folders
from tare.platforms.parts.common.pipes import start
from tare.platforms.parts.common.root_rights import lxc_settings
from tare.platforms.watchers.marks import EchoPing

#: Seccomp filter, mounts and devices: what every template of LXC's includes.
COMMON = Path("/usr/share/lxc/config/common.conf")
FIX = distribution.install("lxc", lean=True)
#: LXC's own profile for containers that name none. It is loaded with the host, where the one that ``generated`` makes
#: for each start is compiled within the start's time, and stays in the kernel when lxc-start is killed.
PROFILE = "lxc-container-default-cgns"


def config(name: str, group: str, *more: str) -> str:
    """Return a container's configuration (lxc.container.conf(5)), its control groups below ``group``."""
    lines = [
        f"lxc.include = {COMMON}",
        f"lxc.uts.name = {name}",
        # The agent's streams are lxc-start's own: with a console or a tty, it puts a pty in between.
        "lxc.console.path = none",
        "lxc.tty.max = 0",
        f"lxc.cgroup.dir.monitor = {group}/monitor",
        f"lxc.cgroup.dir.monitor.pivot = {group}/pivot",
        f"lxc.cgroup.dir.container = {group}/box",
        *([f"lxc.apparmor.profile = {PROFILE}"] if security.apparmor() else []),
        *lxc_settings(),
        *more,
    ]
    return "\n".join(lines) + "\n"


def trial_config(name: str, group: str, root: Path) -> str:
    """Return the configuration of a container that runs the host's own programs, in a root with nothing else.

    It has a root of its own since AppArmor's profile of lxc-start lets it mount below LXC's folder for roots alone.
    """
    for folder in ("proc", "sys", "dev"):
        (root / folder).mkdir(parents=True)
    binds = [f"lxc.mount.entry = {path} {path.name} none bind,ro,create=dir 0 0" for path in system_folders()]
    return config(name, group, f"lxc.rootfs.path = dir:{root}", *binds, "lxc.net.0.type = empty")


def start_argv(cleanup: CleanupStack, folder: Path, name: str, argv: Sequence[str]) -> list[str]:
    """Return the command that starts a container whose configuration is in the folder, in the foreground."""
    return [*_command(cleanup, folder, name, "lxc-start"), "-F", "--", *argv]


def _command(cleanup: CleanupStack, folder: Path, name: str, program: str) -> list[str]:
    # liblxc keeps a lock file for each container, named after the containers' path (-P), for good.
    cleanup.own(removers.file(LXC_LOCKS / f".{name}"))
    # With a file of its own, the path given by -P only decides where the locks are.
    return [program, "-P", "/.", "-n", name, f"--rcfile={folder / 'config'}"]


class Lxc(Platform):
    """A container of lxc-start's, the agent its first process, on a veth that LXC makes and plugs into the bridge."""

    name = "lxc"
    title = "LXC: lxc-start, no daemon"
    network_path = "client, bridge, veth"
    by_default = False
    helper_pids = HELPER_PIDS
    open_by_design = left_open.PRIVILEGED_LXC
    years = MappingProxyType({2020: "4.0", 2022: "5.0", 2024: "6.0"})

    def detect(self) -> Availability:
        """Start a trivial container of the host's own programs."""
        if processes.find("lxc-start") is None or not COMMON.exists():
            return Availability(False, reason="LXC is not installed", fix=FIX)
        version = processes.run(["lxc-start", "--version"], time_limit_s=5).text.strip()
        why = complaint(self._command, cause=" - Failed to ")
        if why:
            return Availability(False, reason=f"a trivial container fails: {why}", fix="see `lxc-checkconfig`")
        return Availability(True, version=version)

    def _command(self, site: TrialSite) -> list[str]:
        name = f"tare-{site.folder.name}"
        (site.folder / "config").write_text(trial_config(name, site.group.inner, site.folder / "root"))
        return start_argv(site.cleanup, site.folder, name, ["true"])

    def prepare(self, image: Image) -> Prepared:
        """Return the image as a folder."""
        return Prepared("folder", image_bytes(image), (image.root,), ("lxc-start",))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Write the configuration and start it in the foreground: its stdin and stdout are the agent's."""
        endpoint = self._configure(spec, cleanup)
        argv = start_argv(cleanup, spec.space.folder, f"tare-{spec.id}", spec.agent_argv())
        began = start(spec, argv, roots.privileged_within(spec.space.folder / "root"))
        ping = EchoPing(endpoint.address) if spec.measured else None
        address = Address(endpoint.address, spec.port, spec.port, endpoint.address)
        return Instance(spec, began.stream, began.at, address, began.first_byte, ping)

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:
        """LXC's own commands."""
        self._configure(spec, cleanup)

        def command(program: str) -> tuple[str, ...]:
            return tuple(_command(cleanup, spec.space.folder, f"tare-{spec.id}", program))

        return Life(
            start=(*command("lxc-start"), "-d", "--", *argv),
            execute=(*command("lxc-attach"), "--"),
            stop=command("lxc-stop"),
            kill=(*command("lxc-stop"), "-k"),
            pause=command("lxc-freeze"),
            resume=command("lxc-unfreeze"),
            lacks=dict.fromkeys(("snapshot", "restore"), criu.why_not() or "tare does not know lxc-checkpoint yet"),
            within=tuple(roots.privileged_within(spec.space.folder / "root")),
            made_ns=spec.made(),
        )

    def _configure(self, spec: LaunchSpec, cleanup: CleanupStack) -> Endpoint:
        """Make its root, its network and the configuration of both."""
        endpoint, link = spec.network.new_endpoint(cleanup, spec.id)
        root = roots.overlay_root(cleanup, spec.space, spec.image.root)
        settings = [
            f"lxc.rootfs.path = dir:{root}",
            f"lxc.mount.entry = {spec.space.data} data none bind,create=dir 0 0",
            *_network(spec, endpoint, link),
        ]
        (spec.space.folder / "config").write_text(config(f"tare-{spec.id}", spec.group.inner, *settings))
        return endpoint


def _network(spec: LaunchSpec, endpoint: Endpoint, link: str) -> list[str]:
    return [
        "lxc.net.0.type = veth",
        f"lxc.net.0.link = {BRIDGE}",
        f"lxc.net.0.veth.pair = {link}",
        "lxc.net.0.name = eth0",
        f"lxc.net.0.hwaddr = {endpoint.mac}",
        f"lxc.net.0.ipv4.address = {endpoint.address}/{spec.network.prefix}",
        f"lxc.net.0.ipv4.gateway = {spec.network.host}",
        "lxc.net.0.flags = up",
    ]


PLATFORMS = (Lxc(),)
