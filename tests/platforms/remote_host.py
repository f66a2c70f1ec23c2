"""A host to reach by ssh, on this machine: an sshd in namespaces of its own, with a disk and a /run of its own.

Everything is journaled, so that `tare clean` ends it when its maker was killed.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tare.errors import HostError
from tare.host import cgroup, processes, state
from tare.host.network.bridge import ip_batch
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack, Journal
from tare.model import Resources

CONFIGURATION = Path("/etc/ssh/ssh_config.d")
#: What is the far side's TARE_HOME, to which the far side's own disk is bound.
FAR_HOME = "/var/lib/tare"
START_LIMIT_S = 15.0
_BOOT = """\
mount -t tmpfs tmpfs /run
mkdir /run/sshd
eval "$1"
shift
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class Remote:
    """A host that answers: its name for ssh and tare, its address, and where its disk is on this host."""

    name: str
    address: str
    disk: Path
    sshd: subprocess.Popen[bytes]

    @property
    def platform(self) -> str:
        """The name by which tare knows it."""
        return f"ssh:{self.name}"


@contextlib.contextmanager
def remote_host(disk_bytes: int | None = None, name: str = "far") -> Iterator[Remote]:
    """Start one, and leave nothing. ``disk_bytes``: the size of its disk; else it is this host's."""
    if processes.find("sshd") is None:
        raise HostError("sshd is not installed", fix="apt-get install --no-install-recommends openssh-server")
    name = f"tare-{name}-{os.getpid()}"
    with CleanupStack(Journal(state.journal())) as cleanup, tempfile.TemporaryDirectory(prefix=f"{name}-") as scratch:
        address = _network(cleanup, name)
        folder, disk, drop = Path(scratch), state.work() / name, CONFIGURATION / f"{name}.conf"
        cleanup.own(removers.folder(disk), removers.control_group(name))
        disk.mkdir()
        _keys(folder, name)
        drop.write_text(_client_settings(folder, name, address))
        group = cgroup.Group(name)
        group.create(Resources(tuple(sorted(os.sched_getaffinity(0))), 4 << 30))
        Path(FAR_HOME).mkdir(parents=True, exist_ok=True)
        if disk_bytes is None:
            mount = f"mount --bind {disk} {FAR_HOME}"
        else:
            mount = f"mount -t tmpfs -o size={disk_bytes},mode=755 tmpfs {FAR_HOME}"
        mount += f"; {_own_groups(name)}"
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "/bin/sh", "-ec", _BOOT]
        sshd = [processes.find("sshd") or "", "-D", "-e", "-f", str(folder / "sshd_config")]
        argv = ["nsenter", f"--net=/run/netns/{name}", *unshare, "sh", mount, *sshd]
        with (folder / "sshd.log").open("wb") as log:
            process = processes.start(argv, stdout=log, stderr=log, cgroup_procs=group.leaf("tool"))
        try:
            _await(process, address, folder / "sshd.log")
            yield Remote(name, address, disk, process)
        finally:
            processes.kill_group(process)
            process.wait()
            drop.unlink()


def _own_groups(name: str) -> str:
    """Lets the far side make its control groups below the host's own, which is journaled, and goes with all of them."""
    tree = cgroup.hierarchies()
    root = tree.v2 if tree.unified else tree.v1["memory"]
    return f"mount --bind {root}/{name} {root}"


def _network(cleanup: CleanupStack, name: str) -> str:
    """A veth pair between this host and the far one, out of the network for benchmarks (RFC 2544)."""
    third, fourth = divmod(zlib.crc32(name.encode()) % 16384 * 4, 256)
    here, there = f"198.18.{third}.{fourth + 1}", f"198.18.{third}.{fourth + 2}"
    link = f"tare{zlib.crc32(name.encode()):08x}"
    cleanup.own(removers.network_namespace(name), removers.link(link))
    ip_batch(
        f"netns add {name}",
        f"link add {link} type veth peer name eth0 netns {name}",
        f"addr add {here}/30 dev {link}",
        f"link set {link} up",
        f"-n {name} link set lo up",
        f"-n {name} addr add {there}/30 dev eth0",
        f"-n {name} link set eth0 up",
    )
    return there


def _keys(folder: Path, name: str) -> None:
    for key in ("host", "user"):
        processes.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]).require()
    (folder / "known").write_text(f"{name} {(folder / 'host.pub').read_text()}")
    allowed = folder / "allowed"
    allowed.mkdir()
    (allowed / "root").write_text((folder / "user.pub").read_text())
    settings = (
        "Port 22",
        f"HostKey {folder}/host",
        f"AuthorizedKeysFile {allowed}/%u",
        "PermitRootLogin prohibit-password",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "StrictModes no",
        "UsePAM no",
        "PrintMotd no",
        "PidFile none",
    )
    (folder / "sshd_config").write_text("\n".join(settings) + "\n")


def _client_settings(folder: Path, name: str, address: str) -> str:
    """What a user has in ~/.ssh/config; and the same host once more, whose key is not known."""
    common = f"  HostName {address}\n  User root\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n"
    trusted = f"Host {name}\n{common}  HostKeyAlias {name}\n  UserKnownHostsFile {folder}/known\n"
    return f"{trusted}Host {name}-strange\n{common}  UserKnownHostsFile {folder}/none\n"


def _await(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        with contextlib.suppress(OSError), socket.create_connection((address, 22), timeout=1) as connection:
            if connection.recv(4) == b"SSH-":
                return
        if process.poll() is not None or time.monotonic() > deadline:
            log_lines = log.read_text(errors="replace").strip().splitlines()
            raise HostError(f"sshd does not start: {log_lines[-1] if log_lines else 'it said nothing'}")
        time.sleep(0.05)
