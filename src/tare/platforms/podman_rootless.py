"""Podman without root's rights: user namespace, its network in user space, overlay storage in a user's home.

Nothing of the host's is changed for it. A mount namespace, made before the start, holds what a rootless podman needs:
an account with subordinate ids, a run-time folder, a home, a TUN device that it may open. That account need not exist;
``podman-rootless:NAME`` uses one that does.

Where tare has no root's rights either, its user's podman is in the user namespace that tare is root of
(`tare.host.own_namespaces`): podman would make itself one just like it, and is told that it has (`_IN_ONES_OWN`).
"""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.errors import PlatformError
from tare.host import cgroup, distribution, own_namespaces, processes, state, userns
from tare.host.daemons import runtimes
from tare.host.daemons.runtimes import surroundings
from tare.host.facts import security
from tare.host.kernel import host_text, process_table
from tare.host.network import bridge
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.image.forms import oci_tar
from tare.image.image_build import Image
from tare.platforms.base import (
    HELPER_PIDS,
    Address,
    Availability,
    Instance,
    LaunchSpec,
    Platform,
    PlatformFamily,
    Prepared,
)
from tare.platforms.parts.common import adopt, left_open, room
from tare.platforms.parts.common.attempt import TrialSite, complaint
from tare.platforms.parts.common.pipes import start
from tare.platforms.podman import LABEL, SYSTEM, Podman, image_tag, output, ulimits

#: An id that no distribution hands out: the account is in files that only the mount namespace sees.
MADE_UP_UID = 60600
MADE_UP_SUBIDS, SUBIDS = userns.FIRST, userns.COUNT
TUN = Path("/dev/net/tun")
NEEDS = ("podman", "newuidmap", "setpriv")
#: What Podman takes for users without rights, by itself: since version 5 pasta, of the package passt.
PASTA, SLIRP = "pasta", "slirp4netns"
PACKAGES = {PASTA: "passt", SLIRP: "slirp4netns"}
#: The way of a packet: pasta forwards the published port by itself. Both open a container's connections as programs of
#: the network that podman is started in, which therefore is a namespace on tare's bridge, and not the host's own.
PATHS = {
    PASTA: "client, bridge, veth, published port (pasta), TAP",
    SLIRP: "client, bridge, veth, published port (rootlessport), slirp4netns, TAP",
}

#: Makes the room (in a mount namespace of its own) and then becomes the command, with the account's rights only.
#: ``own``: the variables by which podman knows that it is in a user namespace, where it is in tare's; that namespace's
#: root can make no device, and need not become anybody. Where it has no groups, all this is in a process namespace
#: (`cgroup.Group.surroundings`), and podman finds its threads in a /proc of that alone.
_ENTER = f"""\
room=$1 uid=$2 gid=$3 v2=$4 names=$5 own=$6; shift 6
[ -z "$v2" ] || umount "$v2"
mount -t tmpfs -o mode=755 tare "$room"
mount -t tmpfs -o mode=1777 tare /dev/shm
mkdir "$room/tare"
mkdir -m 700 "$room/$uid"
if [ -z "$own" ]; then
    chown "$uid:$gid" "$room/$uid"
    mknod -m 666 "$room/tun" c 10 200
    mount --bind "$room/tun" /dev/net/tun
else
    mount -t proc proc /proc
fi
[ -z "$names" ] || for file in passwd subuid subgid; do mount --bind "$names/$file" "/etc/$file"; done
{room.BINDS}cd "$room/tare/home"
set -- env -i HOME="$room/tare/home" XDG_RUNTIME_DIR="$room/$uid" $own \\
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
[ -n "$own" ] || set -- setpriv --reuid="$uid" --regid="$gid" --clear-groups "$@"
exec "$@"
"""
#: What podman gives itself when it goes on in the user namespace that it has made (`podman unshare`), with the ids
#: that its user has outside.
_IN_ONES_OWN = "_CONTAINERS_USERNS_CONFIGURED=done _CONTAINERS_ROOTLESS_UID={} _CONTAINERS_ROOTLESS_GID={}"
#: cgroupfs: its user has no session of systemd's here. Quiet: warnings are not why a container fails.
PODMAN = ("podman", "--cgroup-manager=cgroupfs", "--log-level=error")
#: The leaf of the instance's group for podman itself: without control groups of its own, podman leaves the container
#: and all its helpers in the leaf that it was started in.
CLIENT = "client"
#: A user's podman is rarely the first one since login: its pause process and its database exist already.
_WARM = 'podman --cgroup-manager=cgroupfs --log-level=error image exists "$0" </dev/null >/dev/null; exec "$@"'
#: For commands that are no instance: all that they start ends with them (podman's pause process would stay).
_GOING = ("--pid", "--fork", "--kill-child", "--mount-proc")


@dataclass(frozen=True, slots=True)
class Account:
    """The account with whose rights podman runs."""

    name: str
    uid: int
    gid: int
    made_up: bool = False
    own: str = ""  # where tare runs by its rights: the variables that tell podman so (`_IN_ONES_OWN`)

    @property
    def described(self) -> str:
        """The account in words, for the facts of a campaign."""
        if self.own:
            return "who runs tare, as root of tare's user namespace"
        return f"id {self.uid}, known to tare's mount namespace only" if self.made_up else self.name


class PodmanRootless(Platform):
    """A container of ``podman run`` by a user without rights."""

    network_path = PATHS[SLIRP]
    by_default = False
    helper_pids = HELPER_PIDS
    years = Podman.years
    needs_root = False
    publishes = True
    not_honoured = ("it makes its container within its start: from prepared, that is in it too",)
    open_by_design: Mapping[str, str] = left_open.BY_PODMANS_FILTER

    def __init__(self, name: str, user: str = "") -> None:
        self.name = name
        self.title = f"Podman, rootless ({f'user {user}' if user else 'a user without an account'})"
        self._user = user
        self._network = SLIRP
        self.without_root = not user  # who has no root's rights becomes nobody else

    def detect(self) -> Availability:
        """Run a trivial container of the host's own files, on the network that this Podman takes by default."""
        networks = list(PACKAGES.values())  # which of them it takes, Podman's version says
        if processes.find("podman") is not None:
            self._network = default_network(processes.run(["podman", "--version"], time_limit_s=5).text)
            self.network_path = PATHS[self._network]
            networks = [PACKAGES[self._network]]
        missing = [program for program in (*NEEDS, self._network) if processes.find(program) is None]
        if missing:
            fix = distribution.install("podman", *networks, "uidmap", lean=True)
            return Availability(False, reason=f"{missing[0]} is not installed", fix=fix)
        why, fix = _tun_obstacle()
        if why:
            return Availability(False, reason=f"{self._network} needs {TUN}, which {why}", fix=fix)
        try:
            self._account()
        except PlatformError as error:
            return Availability(False, reason=error.what, fix=error.fix or "")
        why = complaint(self._command)
        if why:
            fix = "see what `podman info` says to a user without rights"
            return Availability(False, reason=f"a trivial container fails: {why}", fix=fix)
        version = processes.run(["podman", "--version"], time_limit_s=5).text.split()
        details = {"storage": "overlay", "network": self._network, "runtime": self._default_runtime()}
        if self._network == PASTA:
            details["network"] += " (its published port was never tried)"
        details["user"] = self._account().described
        return Availability(True, version=version[-1] if version else "unknown", details=details)

    def _account(self) -> Account:
        if self._user:
            return existing(self._user)
        if own_namespaces.inside():
            return Account("own", 0, 0, own=_IN_ONES_OWN.format(*own_namespaces.ids_outside()))
        try:
            holder = pwd.getpwuid(MADE_UP_UID).pw_name
        except KeyError:
            return Account("tare", MADE_UP_UID, MADE_UP_UID, made_up=True)
        raise PlatformError(
            f"the user id {MADE_UP_UID} is {holder}'s",
            fix="name another user: -p podman-rootless:NAME",
        )

    def _command(self, site: TrialSite) -> list[str]:
        account = self._account()
        home, root = site.folder / "home", site.folder / "root"
        _make_home(home, account)
        root.mkdir()
        os.chown(root, account.uid, account.gid)
        binds = [f"--volume={path.resolve()}:{path}:ro" for path in map(Path, SYSTEM) if path.exists()]
        inside = room.inside("root")
        binds += security.binds_of_hosts_own()
        argv = [*self._run("tare"), f"--network={self._network}", *binds, "--rootfs", inside, "/bin/true"]
        return [*_room(account, {"home": home, "root": root}, _GOING), *argv]

    def prepare(self, image: Image) -> Prepared:
        """Import the image once, into a store of the account's beside the image, which goes with it."""
        account = self._account()
        home, store = _account_folder(account) / "home", _store(account, image)
        if not home.exists():
            _make_home(home, account)
        if not store.exists():
            store.mkdir()
            os.chown(store, account.uid, account.gid)
        tar = oci_tar(image)
        entering = _room(account, {"home": home, "images": store, "root.tar": tar}, _GOING)
        podman = [*entering, *PODMAN, f"--root={room.inside('images')}"]
        tag = image_tag(image)
        if processes.run([*podman, "image", "exists", tag]).code != 0:
            _output(
                [*podman, "import", "--quiet", f"--change=LABEL {LABEL}={image.hash}", room.inside("root.tar"), tag]
            )
        return Prepared(f"image {tag}", int(_output([*podman, "image", "inspect", "--format", "{{.Size}}", tag])))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """``podman run -i`` with storage of its own, removed with the instance; the image's store is only read."""
        account = self._account()
        home = spec.space.folder / "home"
        _make_home(home, account, reads_images=True)
        os.chown(spec.space.data, account.uid, account.gid)
        endpoint = spec.network.new_namespace(cleanup, spec.id)
        where = f"{endpoint.address}:{spec.port}:{spec.port}"
        ports = [f"--publish={where}/tcp", f"--publish={where}/udp"] if spec.published else []
        argv = [
            *self._run(f"tare-{spec.id}"),
            f"--network={self._network}",
            f"--volume={room.inside('data')}:/data:{security.writable_bind()}",
            *ports,
            "--pull=never",
            image_tag(spec.image),
            *spec.agent_argv(),
        ]
        folders = {"home": home, "data": spec.space.data, "images": _store(account, spec.image)}
        warm = ["sh", "-ec", _WARM, image_tag(spec.image)]
        # All of it goes at once, before its folder does: podman, pause process, conmon, slirp4netns, ports.
        cleanup.own(removers.control_group(f"{spec.group.inner}/tool"))
        started: list[int] = []
        within = [*bridge.entered(spec.id), *_room(account, folders), *warm]
        began = start(spec, argv, within, own=started.append)
        why = "its address is that of podman's own network namespace, which answers before the start"
        address = Address(endpoint.address, spec.port, spec.port, None, why)
        instance = Instance(spec, began.stream, began.at, address, began.first_byte, client=CLIENT)

        def settle() -> None:
            adopt.enter(spec.group.leaf(CLIENT), waiting(started))

        instance.settle = settle
        return instance

    def _run(self, name: str) -> list[str]:
        options = ["--interactive", "--rm", f"--name={name}", "--log-driver=none"]
        return [*PODMAN, "run", *options, *ulimits()]

    def _default_runtime(self) -> str:
        """Return the runtime that its user's podman takes when it is told none."""
        account = self._account()
        home = _account_folder(account) / "home"
        if not home.exists():
            _make_home(home, account)
        info = [*PODMAN, "info", "--format", "{{.Host.OCIRuntime.Path}}"]
        return runtimes.described(_output([*_room(account, {"home": home}, _GOING), *info]))


def waiting(started: Collection[int]) -> list[int]:
    """Return the podman processes among ``started`` and their descendants: they only wait for their container.

    No process of the container is among the descendants: conmon leaves podman's tree before it starts the container.
    """
    argvs = process_table.command_lines()
    return [pid for pid in process_table.descendants(started) if Path(argvs.get(pid, [""])[0]).name == PODMAN[0]]


def default_network(version: str) -> str:
    """Return the network of containers without root, by what ``podman --version`` prints."""
    words = version.split()
    major = words[-1].partition(".")[0] if words else ""
    return PASTA if major.isdigit() and int(major) >= 5 else SLIRP


def _tun_obstacle() -> tuple[str, str]:
    """Return why there is no TUN device for podman, and the fix; "" if there is one. Root makes its own."""
    if not TUN.exists():
        return "is not there", "modprobe tun"
    if own_namespaces.inside():
        try:
            os.close(os.open(TUN, os.O_RDWR | os.O_CLOEXEC))
        except OSError:
            return "this user may not open", f"chmod 666 {TUN}, as udev has it; or run tare as root (sudo)"
    return "", ""


def existing(name: str) -> Account:
    """Return a user of the host's.

    Raises `PlatformError` when there is none of that name, or none with subordinate ids.
    """
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise PlatformError(f"there is no user {name!r}", fix=f"useradd {name}, or give another name") from None
    if entry.pw_uid == 0:
        raise PlatformError("root is not a rootless user", fix="-p podman")
    for kind in ("uid", "gid"):
        file = Path(f"/etc/sub{kind}")
        count = own_namespaces.subordinate(host_text.said(file), name, entry.pw_uid)
        if count < SUBIDS:
            raise PlatformError(
                f"{name} has {count} subordinate {kind}s in {file}, and the image takes {SUBIDS}",
                fix=f"usermod --add-sub{kind}s 100000-165535 {name} (a range that is nobody else's)",
            )
    return Account(name, entry.pw_uid, entry.pw_gid)


def _room(account: Account, folders: Mapping[str, Path], going: Sequence[str] = ()) -> list[str]:
    """Return the command prefix that makes a room with these folders (`room.inside`) and then runs what follows."""
    hidden = surroundings(cgroup.hierarchies())
    names = str(_names(account)) if account.made_up else ""
    facts = [room.where(), str(account.uid), str(account.gid), hidden[-1] if hidden else "", names, account.own]
    return [
        "unshare",
        "--mount",
        "--propagation",
        "slave",
        *going,
        "sh",
        "-ec",
        _ENTER,
        "sh",
        *facts,
        *room.named(folders),
    ]


def _account_folder(account: Account) -> Path:
    folder = state.home() / "rootless" / account.name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


#: Where crun, podman's usual default, looks for cgroup v2 beside v1: it starts no container there.
_V2_BESIDE_V1 = Path("/sys/fs/cgroup/unified")


def _store(account: Account, image: Image) -> Path:
    return image.root.parent / f"podman-{account.name}"


def _names(account: Account) -> Path:
    """Return the folder with the files that make the account known to newuidmap and podman."""
    folder = _account_folder(account) / "names"
    if not folder.exists():
        part = Path(tempfile.mkdtemp(dir=folder.parent))
        part.chmod(0o755)
        ids = f"{account.uid}:{account.gid}::{room.inside('home')}:/bin/sh"
        (part / "passwd").write_text(f"root:x:0:0::/root:/bin/sh\n{account.name}:x:{ids}\n")
        for kind in ("subuid", "subgid"):
            (part / kind).write_text(f"{account.name}:{MADE_UP_SUBIDS}:{SUBIDS}\n")
        part.rename(folder)
    return folder


def _make_home(home: Path, account: Account, *, reads_images: bool = False) -> None:
    """Make a home in which podman uses overlay (its default is vfs), and with ``reads_images`` the store."""
    config = home / ".config" / "containers"
    config.mkdir(parents=True)
    stores = f'[storage.options]\nadditionalimagestores = ["{room.inside("images")}"]\n' if reads_images else ""
    (config / "storage.conf").write_text(f'[storage]\ndriver = "overlay"\n{stores}')
    if own_namespaces.inside() and _V2_BESIDE_V1.exists():  # only root of the host can hide it from crun
        (config / "containers.conf").write_text('[engine]\nruntime = "runc"\n')
    for folder in (home, config.parent, config):
        os.chown(folder, account.uid, account.gid)


def _output(argv: list[str]) -> str:
    return output(argv, name="rootless podman", fix="free disk space below TARE_HOME, and try again")


PLATFORMS = (PodmanRootless("podman-rootless"),)
FAMILIES = {
    "podman-rootless": PlatformFamily(
        lambda user: PodmanRootless(f"podman-rootless:{user}", user),
        "ACCOUNT",
        "podman-rootless as an account of this host's",
        "name one with subordinate ids: -p podman-rootless:ACCOUNT",
    )
}
