"""Operation without root: tare is root of a user namespace of its own, with its own mounts, processes and network.

The kernel gives every user such namespaces. In them tare does the same as with root: the same overlays, the same
bridge, the same client. None of that belongs to the host, and all of it ends with the namespaces, however tare ends:
they live as long as their first process, which ends with the command that the user started.

tare run (the user)                  waits, and passes signals on
└─ unshare: users, mounts, groups    the user's ids and subordinate ids; /run without root's folders
   └─ unshare: processes
      └─ tare run (root in here)     and, once the image exists, its own network (`leave_hosts_network`)
"""

from __future__ import annotations

import ctypes
import functools
import os
import pwd
import sys
from pathlib import Path

from tare.errors import HostError
from tare.host import distribution, processes
from tare.host.kernel import host_text

#: Number of subordinate ids: those in the image's files (nobody is 65534). The user's own id becomes root's.
SUBORDINATE_IDS = (1 << 16) - 1
_NEW_NETWORK = 0x40000000  # unshare(2): CLONE_NEWNET
#: Kernel switches of user namespaces: the value that forbids them, and the command that allows them.
_SWITCHES = (
    ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=15000"),
    ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "sysctl kernel.apparmor_restrict_unprivileged_userns=0"),
)
#: A scope of the user's own systemd, whose control groups the user may manage.
_DELEGATED = ("systemd-run", "--user", "--scope", "--quiet", "--collect", "--property=Delegate=yes", "--")
#: /run is mounted anew, with the host's files except the folders that tare's tools write to and only root can. Each
#: hierarchy of control groups is mounted again, as the namespace sees it: its top is then the group that tare was
#: started in. The kernel mounts no hierarchy on itself, so it is moved there from elsewhere; that makes /proc/mounts
#: longer, so it is read before. If the group is the user's, the processes outside of the inner namespace move to a leaf
#: of it.
_MAKE = """\
mount --rbind /run /mnt
mount -t tmpfs -o mode=755 tare /run
for entry in /mnt/*; do
    name=${entry##*/}
    case $name in mount|netns|xtables.lock|tare|lock) continue ;; esac
    if [ -L "$entry" ]; then cp -P "$entry" "/run/$name"
    elif [ -d "$entry" ]; then mkdir "/run/$name"; mount --rbind "$entry" "/run/$name"
    elif [ -e "$entry" ]; then : >"/run/$name"; mount --bind "$entry" "/run/$name"
    fi
done
umount -l /mnt
mkdir -p /run/lock /run/netns
while read -r _ place kind options _; do
    case $kind in
    cgroup2) options= ;;
    cgroup)
        options=$(echo "$options" | tr , '\\n' | grep -vxE 'rw|ro|nosuid|nodev|noexec|(rel|no)atime' | paste -sd,)
        ;;
    *) continue ;;
    esac
    mount -t "$kind" ${options:+-o "$options"} none /mnt && mount --bind /mnt "$place" && umount /mnt || :
    if [ -w "$place/cgroup.procs" ] && mkdir "$place/tare-harness"; then
        for setting in cpuset.cpus cpuset.mems; do
            [ "$kind" = cgroup2 ] || [ ! -e "$place/$setting" ] || cat "$place/$setting" >"$place/tare-harness/$setting"
        done
        echo $$ >"$place/tare-harness/cgroup.procs"
    fi
done <<END 2>/dev/null
$(cat /proc/mounts)
END
exec "$@"
"""
#: /sys shows the links of the network namespace that mounted it, which here is the host's.
_SHOW_NETWORK = """\
mount -t sysfs none /mnt
for folder in class/net devices/virtual/net; do mount --bind "/mnt/$folder" "/sys/$folder"; done
umount -l /mnt
ip link set lo up
"""
#: The variable with the user's own process, to be named as the lock's holder.
_HOLDER = "TARE_LOCK_HOLDER"
_USERS = ("unshare", "--user", "--map-root-user", "--map-auto", "--mount", "--cgroup", "--")
_PROCESSES = ("unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--")
#: Names of network namespaces are files, which vanish with their mounts.
_APART = ("unshare", "--mount", *_PROCESSES[1:], "sh", "-ec")
_NAMES_APART = 'mount -t tmpfs none /run/netns; exec "$@"'


class CarriedOut(SystemExit):
    """The end of a command that was carried out in the namespaces, with its exit code; all output is printed."""


@functools.cache
def inside() -> bool:
    """Return True if this process is root only in a user namespace, and so without rights on the host.

    Raises `HostError` if /proc does not show it.
    """
    try:
        first, *others = host_text.read("/proc/self/uid_map").splitlines()
    except FileNotFoundError as error:
        raise HostError("/proc is not mounted here", fix="mount -t proc proc /proc") from error
    return os.geteuid() == 0 and (bool(others) or first.split() != ["0", "0", str(0xFFFFFFFF)])


def is_ours() -> bool:
    """Return True if tare made this user namespace (`enter`)."""
    return _HOLDER in os.environ


def apart() -> list[str]:
    """Return the command prefix of another tare, in namespaces that end with it, like a user's; empty for root."""
    return [*_APART, _NAMES_APART, "sh"] if inside() else []


def ids_outside() -> tuple[int, int]:
    """Return the user's and the group's id outside of this user namespace for its root."""
    uid, gid = (int(host_text.read(f"/proc/self/{kind}_map").split()[1]) for kind in ("uid", "gid"))
    return uid, gid


def enter(home: Path) -> None:
    """Carry out this process's command in namespaces of its own; does nothing for root.

    ``home``: the user's TARE_HOME, which was checked (`state.home`). Raises `CarriedOut`, and `HostError` if the user
    may not create such namespaces.
    """
    if os.geteuid() == 0:
        return
    lacking = obstacle()
    if lacking is not None:
        raise lacking
    command = [sys.executable, "-P", "-m", "tare", *sys.argv[1:]]
    argv = [*_USERS, "sh", "-ec", _MAKE, "sh", *_PROCESSES, *command]
    environment = {**processes.own_environment(), "TARE_HOME": str(home), _HOLDER: str(os.getpid())}
    scope = _DELEGATED if delegates() else ()
    raise CarriedOut(processes.stand_for([*scope, *processes.WITH_TARE, *argv], env=environment))


def obstacle() -> HostError | None:
    """Return the reason why this user cannot have the namespaces, with the fix, or None."""
    for name, forbids, fix in _SWITCHES:
        switch = Path("/proc/sys", name)
        if host_text.said(switch) == forbids:
            return _needs(f"user namespaces are forbidden to users ({name.replace('/', '.')} is {forbids})", fix)
    for program, package in (("unshare", "util-linux"), ("newuidmap", "uidmap")):
        if processes.find(program) is None:
            return _needs(f"{program} is not installed", distribution.install(package))
    if _me()[0].isdigit():  # newuidmap refuses such names.
        return _needs(f"user {_me()[0]} has no account in /etc/passwd", "run tare as a user that has one")
    for kind in ("uid", "gid"):
        file = Path(f"/etc/sub{kind}")
        count = subordinate(host_text.said(file), *_me())
        if count < SUBORDINATE_IDS:
            cause = (
                f"{_me()[0]} has {count} subordinate {kind}s in {file}, and the image's files take {SUBORDINATE_IDS}"
            )
            return _needs(cause, f"usermod --add-sub{kind}s 100000-165535 {_me()[0]} (a range that is nobody else's)")
    tried = processes.run([*_USERS, "true"], time_limit_s=10)
    if tried.code != 0:
        return _needs(
            f"a user namespace cannot be made: {tried.message}", "it takes util-linux 2.38 or newer, and uidmap"
        )
    return None


def delegates() -> bool:
    """Return True if the user's own systemd delegates control groups."""
    if processes.find("systemd-run") is None or not os.environ.get("XDG_RUNTIME_DIR"):
        return False
    bus = processes.kept("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
    return processes.run([*_DELEGATED, "true"], time_limit_s=10, env=bus).code == 0


def subordinate(text: str, name: str, uid: int) -> int:
    """Return a user's number of subordinate ids, from ``/etc/subuid`` or ``/etc/subgid`` (subuid(5))."""
    rows = (line.split(":") for line in text.splitlines())
    return sum(int(row[2]) for row in rows if len(row) == 3 and row[0] in {name, str(uid)})


def leave_hosts_network() -> None:
    """Move this thread, and processes that it starts from now on, to an empty network namespace.

    Does nothing unless tare is root in a namespace. Build an image before, because that needs the host's network.
    Raises `HostError`.
    """
    global _left  # noqa: PLW0603 (a network is the process's)
    if not inside() or _left:
        return
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NETWORK) != 0:
        raise HostError(f"no network namespace can be made: {os.strerror(ctypes.get_errno())}", fix="run tare as root")
    processes.run(["sh", "-ec", _SHOW_NETWORK]).require()
    _left = True


_left = False  # By this process.


def _me() -> tuple[str, int]:
    uid = os.getuid()
    try:
        return pwd.getpwuid(uid).pw_name, uid
    except KeyError:
        return str(uid), uid


def _needs(problem: str, fix: str) -> HostError:
    return HostError(f"without root tare needs a user namespace: {problem}", fix=f"{fix}; or run tare as root (sudo)")
