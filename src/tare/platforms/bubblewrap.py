"""bubblewrap: the sandbox below Flatpak; namespaces by one small program, no daemon, no limits of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

from tare.host import distribution, processes, userns
from tare.host.filesystems import roots
from tare.host.network import bridge
from tare.host.resources.journal import CleanupStack
from tare.image.forms import image_bytes
from tare.image.image_build import Image
from tare.platforms.base import LEADER, Address, Availability, Instance, LaunchSpec, Life, Platform, Prepared
from tare.platforms.parts.bundles.oci_bundle import own_users
from tare.platforms.parts.common import left_open, room, root_rights, signal_commands
from tare.platforms.parts.common.attempt import TrialSite, complaint, system_folders
from tare.platforms.parts.common.pipes import start

_INSTALL = distribution.install("bubblewrap")
#: Not --die-with-parent: the kernel takes the parent's thread for the parent, and a campaign starts some in threads
#: that end. It ends with its stdin, or with its control group.
_NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", "tare")


def sandbox_argv(root: Path, data: Path, command: Sequence[str]) -> list[str]:
    """Return a sandbox with a writable root, its own devices, and the capabilities of the OCI runtimes' bundles."""
    # bwrap gives a real root every capability, and has no device group.
    cap_add = [word for name in root_rights.WITHOUT_NODES for word in ("--cap-add", name)]
    mounts = ["--bind", str(root), "/", "--proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys", "/sys", *guards()]
    return ["bwrap", *mounts, "--bind", str(data), "/data", *_NAMESPACES, "--cap-drop", "ALL", *cap_add, *command]


def guards() -> list[str]:
    """Mounts over the doors in /proc and /sys: as real root, bwrap itself covers nothing in /proc."""
    closed = [
        word for path in root_rights.present(root_rights.READ_ONLY) for word in ("--ro-bind", str(path), str(path))
    ]
    for path in root_rights.present(root_rights.MASKED):
        folder = ("--tmpfs", str(path), "--remount-ro", str(path))
        closed += folder if path.is_dir() else ("--dev-bind", "/dev/null", str(path))
    return closed


def trial_argv(_: TrialSite) -> list[str]:
    """Return the command of a trial: the host's own `true`, in the namespaces of an instance and one of the network."""
    binds = [word for path in system_folders() for word in ("--ro-bind", str(path), str(path))]
    return ["bwrap", *binds, "--proc", "/proc", "--dev", "/dev", *_NAMESPACES, "--unshare-net", "true"]


class Bubblewrap(Platform):
    """bwrap as root: mount, pid, ipc and uts namespaces, and a network namespace that it is started in."""

    network_path = "client, bridge, veth"
    not_honoured = (
        "bwrap can only unshare the network, not join one: it is started inside its network namespace by `ip netns "
        "exec`, before the start instant",
    )
    by_default = False
    needs_root = False  # bwrap makes a user namespace for who has no rights
    years = MappingProxyType({2022: "0.6 0.7", 2023: "0.8", 2024: "0.9 0.10 0.11"})
    open_by_design = left_open.on_bridge("no seccomp filter: bwrap has none of its own", *left_open.UNFILTERED)

    def __init__(self, name: str, *, users: bool = False) -> None:
        self.name = name
        self.title = f"bubblewrap (bwrap), run as root{' of a user namespace' if users else ''}"
        self._users = users
        self.without_root = not users

    def detect(self) -> Availability:
        """Run a trivial sandbox."""
        if processes.find("bwrap") is None:
            return Availability(False, reason="bwrap is not installed", fix=_INSTALL)
        why = complaint(trial_argv)
        if why:
            return Availability(False, reason=f"a trivial sandbox fails: {why}", fix="try `bwrap --ro-bind / / true`")
        version = processes.run(["bwrap", "--version"], time_limit_s=5).text
        return Availability(True, version=version.removeprefix("bubblewrap ").strip())

    def prepare(self, image: Image) -> Prepared:
        """Return the image as a folder."""
        return Prepared("folder", image_bytes(image), (image.root,), ("bwrap",))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Run bwrap in the foreground; bwrap itself is pid 1 inside, and reaps."""
        address, within, root, data = self._made(spec, cleanup)
        began = start(spec, sandbox_argv(root, data, spec.agent_argv()), within)
        return Instance(spec, began.stream, began.at, address, began.first_byte)

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:
        """Its one command; a sandbox is entered by nsenter, and its program ended by signals."""
        _, within, root, data = self._made(spec, cleanup)
        users = ("--user",) if self._users else ()
        return Life(
            start=tuple(sandbox_argv(root, data, argv)),
            execute=("nsenter", "--target", LEADER, "--mount", "--uts", "--ipc", "--pid", *users),
            stop=signal_commands.sent("TERM", LEADER),
            kill=signal_commands.sent("KILL", LEADER),
            lacks=dict.fromkeys(("pause", "resume"), "bubblewrap has no command for it"),
            within=tuple(within),
            stays=True,
            made_ns=spec.made(),
        )

    def _made(self, spec: LaunchSpec, cleanup: CleanupStack) -> tuple[Address, list[str], Path, Path]:
        """Make its network and its root: the address, what it is to run in, and both folders as they are there."""
        root, data, users = spec.space.folder / "root", spec.space.data, spec.space.folder / "users"
        # Not nsenter: bwrap binds the /sys that it finds, and `ip netns exec` brings the namespace's own.
        within = ["ip", "netns", "exec", bridge.namespace_path(spec.id).name]
        if self._users:
            address = own_users(spec, cleanup, users)
            within += [*room.made({"root": root, "data": data}), *userns.entered(users)]
            return address, within, Path(room.inside("root")), Path(room.inside("data"))
        address = Address.on_veth(spec, spec.network.new_namespace(cleanup, spec.id).address)
        roots.overlay_root(cleanup, spec.space, spec.image.root)
        return address, within, root, data


PLATFORMS = (Bubblewrap("bubblewrap"), Bubblewrap("bubblewrap-userns", users=True))
