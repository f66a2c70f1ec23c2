"""Charliecloud: containers of clusters for computing, by a user without rights; no daemon, no set-user-ID program.

It isolates the files alone: a user namespace with one user, and a mount namespace. Processes and networks are the
host's, so that the programs of a job find each other by shared memory and fast links.
"""

from __future__ import annotations

from collections.abc import Sequence

from tare.host import distribution, processes, userns
from tare.host.filesystems import roots
from tare.host.resources.journal import CleanupStack
from tare.image.forms import image_bytes
from tare.image.image_build import Image
from tare.platforms.base import LEADER, Address, Availability, Instance, LaunchSpec, Life, Platform, Prepared
from tare.platforms.parts.common import left_open, room, signal_commands
from tare.platforms.parts.common.attempt import TrialSite, complaint, system_folders
from tare.platforms.parts.common.pipes import start

PROGRAM = "ch-run"
_INSTALL = distribution.install("charliecloud-runtime")
#: Whom a job belongs to: a user of the host's without rights, whom no distribution has.
USER = ("setpriv", f"--reuid={userns.FIRST}", f"--regid={userns.FIRST}", "--clear-groups", "--")
#: ch-run asks the environment who calls it.
ENVIRONMENT = ("env", "--ignore-environment", "USER=tare", "HOME=/", "PATH=/usr/local/bin:/usr/bin:/bin")
SHARED = "it isolates the files alone, by design: processes, networks, IPC, /dev and /sys are the host's"
#: What a user without rights may do on the host; raw sockets are not among it. A session's keyring is inherited.
OPEN = (
    *("abstract-sockets", "host-ipc", "host-ports", "keys", "metadata", "other-arm", "processes", "setuid"),
    *("user-namespace", "vsock"),
)


def sandbox_argv(root: str, command: Sequence[str], *options: str) -> list[str]:
    """``ch-run`` as root of its namespace, with a /tmp of its own: the host's would be shared."""
    words = ["--uid=0", "--gid=0", "--no-passwd", "--private-tmp", "--cd=/", *options]
    return [*ENVIRONMENT, PROGRAM, *words, root, "--", *command]


class Charliecloud(Platform):
    """``ch-run`` on an unpacked image, by a user without rights; on the host's network, as all of its containers."""

    name = "charliecloud"
    title = "Charliecloud (ch-run), as a user without rights"
    network_path = "client, bridge, host stack"
    by_default = False
    needs_root = False  # its root may be a folder; it is an overlay of root's here, as on all platforms
    open_by_design = left_open.doors(SHARED, *OPEN)

    def detect(self) -> Availability:
        """Run a trivial container of the host's own files."""
        for program, fix in ((PROGRAM, _INSTALL), ("setpriv", distribution.install("util-linux"))):
            if processes.find(program) is None:
                return Availability(False, reason=f"{program} is not installed", fix=fix)
        why = complaint(trial_argv)
        if why:
            fix = "see that users may make user namespaces: /proc/sys/user/max_user_namespaces"
            return Availability(False, reason=f"a trivial container fails: {why}", fix=fix)
        shown = processes.run([*ENVIRONMENT, PROGRAM, "--version"], time_limit_s=5)
        return Availability(True, version=(shown.text or shown.stderr.decode(errors="replace")).strip() or "unknown")

    def prepare(self, image: Image) -> Prepared:
        """Return the image as a folder."""
        return Prepared("folder", image_bytes(image), (image.root,), (PROGRAM,))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Run it in the foreground: its stdin and stdout are the agent's."""
        within = self._made(spec, cleanup)
        began = start(spec, _argv(spec.agent_argv()), within)
        return Instance(spec, began.stream, began.at, Address.on_host(spec), began.first_byte)

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:
        """Return its one command: a second one joins the first one's namespaces, and signals do the rest."""
        within = self._made(spec, cleanup)
        return Life(
            start=tuple(_argv(argv)),
            execute=tuple(_argv((), "--join-pid", LEADER)),
            stop=signal_commands.sent("TERM", LEADER),
            kill=signal_commands.sent("KILL", LEADER),
            pause=signal_commands.sent("STOP", LEADER),
            resume=signal_commands.sent("CONT", LEADER),
            within=tuple(within),
            stays=True,
            made_ns=spec.made(),
        )

    def _made(self, spec: LaunchSpec, cleanup: CleanupStack) -> list[str]:
        """Make its root; return the command prefix by which its user reaches that: TARE_HOME is closed to users."""
        users = spec.space.folder / "users"
        with userns.new(cleanup, users):
            pass
        root = roots.overlay_root(cleanup, spec.space, spec.image.root, users)
        return [*room.made({"root": root, "data": spec.space.data}), *USER]


def _argv(argv: Sequence[str], *options: str) -> list[str]:
    return sandbox_argv(room.inside("root"), argv, "--write", f"--bind={room.inside('data')}:/data", *options)


def trial_argv(site: TrialSite) -> list[str]:
    """Return the host's own `true`, in a root with nothing else."""
    root = site.folder / "root"
    for below in ("dev", "etc", "proc", "sys", "tmp"):
        (root / below).mkdir(parents=True)
    for name in ("hosts", "resolv.conf"):  # what ch-run binds, where the host has it
        (root / "etc" / name).touch()
    for path in system_folders():
        (root / path.relative_to("/")).mkdir()
    userns.give(root, *root.iterdir())
    binds = [f"--bind={path.resolve()}:{path}" for path in system_folders()]
    return [*room.made({"root": root}), *USER, *sandbox_argv(room.inside("root"), ["/bin/true"], *binds)]


PLATFORMS = (Charliecloud(),)
