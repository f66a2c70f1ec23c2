"""Hosts for a fleet on this machine: an sshd each, in a host of its own (scripts/own-host) with a name and a disk.

They are reached by a veth pair each, out of the network for benchmarks (RFC 2544). Their disk is /srv. A host ends when
the pipe to its first process is closed, so that none outlives the tests.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tare.errors import HostError
from tare.host import processes
from tare.host.kernel import process_table

TOP = Path(__file__).parents[1]
HOME, FOLDER = "/srv/tare", "/srv/tare-fleet"
START_LIMIT_S = 90.0
#: In a host of its own: its name, its disk, what its images folder has of the real one's, its address, its sshd.
_BOOT = """\
name=$1 disk=$2 address=$3 images=$4 hide=$5 extra=$6 within=$7
hostname "$name"
mount --bind "$disk" /srv
mkdir -p -m 700 /srv/tare /srv/root
mount --bind /srv/root /root
for image in $images; do
    mkdir -p /srv/tare/images/"${image##*/}"
    mount --rbind -o ro "$image" /srv/tare/images/"${image##*/}"
done
for program in $hide; do mount --bind /dev/null "$program"; done
sh -ec "$extra"
until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
ip addr add "$address/30" dev eth0
ip link set eth0 up
mkdir -p /run/sshd
$within /usr/sbin/sshd -D -e -f "$disk/sshd_config" &
cat >/dev/null
"""


@dataclass(slots=True)
class Host:
    """A host that answers, or did."""

    name: str
    address: str
    here: str
    disk: Path  # its /srv, as this machine sees it
    images: Sequence[Path] = ()
    hide: Sequence[str] = ()
    path: str = ""
    extra: str = ""
    within: str = ""  # the command that its sshd, and so everything that is run there, is started by
    settings: Sequence[str] = ()  # of its sshd, before all others
    process: subprocess.Popen[bytes] | None = None
    log: Path = Path()

    @property
    def folder(self) -> Path:
        """What fleets bring there."""
        return self.disk / "tare-fleet"


@dataclass
class Bed:
    """The hosts of a test."""

    scratch: Path
    hosts: dict[str, Host] = field(default_factory=dict)

    @property
    def inventory(self) -> Path:
        """An inventory of all hosts."""
        return self.scratch / "hosts.ini"

    def write_inventory(self, variables: Mapping[str, str] | None = None, besides: Sequence[str] = ()) -> Path:
        """Write it: a line a host, with these variables of some, and lines besides."""
        given = variables or {}
        lines = [f"{host.name} ansible_host={host.address} {given.get(host.name, '')}" for host in self.hosts.values()]
        ssh = f"-F /dev/null -o UserKnownHostsFile={self.scratch}/known -o IdentitiesOnly=yes"
        common = [
            "[all:vars]",
            "ansible_user=root",
            f"ansible_ssh_private_key_file={self.scratch}/user",
            f"ansible_ssh_common_args={shlex.quote(ssh)}",
            f"tare_home={HOME}",
            f"tare_fleet_folder={FOLDER}",
        ]
        self.inventory.write_text("\n".join(["[all]", *lines, *besides, "", *common]) + "\n")
        return self.inventory

    def add(self, name: str, **facts: object) -> Host:
        """Make a host, with keys of its own, and start it."""
        number = zlib.crc32(f"{self.scratch}{name}".encode()) % 16384 * 4
        third, fourth = divmod(number, 256)
        disk = self.scratch / f"disk-{name}"
        disk.mkdir()
        host = Host(name, f"198.18.{third}.{fourth + 2}", f"198.18.{third}.{fourth + 1}", disk, **facts)  # type: ignore[arg-type]
        self.hosts[name] = host
        self.new_key(host)
        settings = [
            *host.settings,
            "Port 22",
            f"HostKey {disk}/key",
            f"AuthorizedKeysFile {self.scratch}/allowed",
            "PermitRootLogin prohibit-password",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "StrictModes no",
            "UsePAM no",
            "PrintMotd no",
            "PidFile none",
            "MaxStartups 100",
            "Subsystem sftp internal-sftp",
            *([f"SetEnv PATH={host.path}"] if host.path else []),
        ]
        (disk / "sshd_config").write_text("\n".join(settings) + "\n")
        self.start(host)
        return host

    def join(self, one: Host, other: Host) -> tuple[str, str]:
        """Connect two hosts by a link of their own; returns their addresses on it."""
        ends = ("198.19.0.1", "198.19.0.2")
        inits = [str(self._init(host)) for host in (one, other)]
        names = ("between0", "between1")
        link = ["ip", "link", "add", names[0], "netns", inits[0], "type", "veth", "peer", "name", names[1]]
        processes.run([*link, "netns", inits[1]]).require()
        for init, name, address in zip(inits, names, ends, strict=True):
            within = ["nsenter", "-t", init, "-n", "ip"]
            processes.run([*within, "addr", "add", f"{address}/30", "dev", name]).require()
            processes.run([*within, "link", "set", name, "up"]).require()
        return ends

    def let_in(self, one: Host, other: Host, address: str) -> None:
        """Let root of one host reach another at this address by ssh, as its user would set it up."""
        folder = one.disk / "root" / ".ssh"
        folder.mkdir(mode=0o700)
        shutil.copy(self.scratch / "user", folder / "id_ed25519")
        (folder / "known_hosts").write_text(f"{address} {(other.disk / 'key.pub').read_text()}")

    def slow(self, host: Host, rate: str) -> None:
        """Let a host's link pass no more than this, such as `40mbit`, in both directions."""
        shape = ["root", "tbf", "rate", rate, "burst", "64kb", "latency", "400ms"]
        processes.run(["tc", "qdisc", "replace", "dev", _link(self.scratch, host), *shape]).require()
        within = ["nsenter", "-t", str(self._init(host)), "-n", "tc", "qdisc", "replace", "dev", "eth0", *shape]
        processes.run(within).require()

    def cut(self, host: Host, *, off: bool) -> None:
        """Cut a host's link, or mend it."""
        processes.run(["ip", "link", "set", _link(self.scratch, host), "down" if off else "up"]).require()

    def new_key(self, host: Host, *, known: bool = True) -> None:
        """Give a host a new key, and tell those who reach it, or not."""
        for file in (host.disk / "key", host.disk / "key.pub"):
            file.unlink(missing_ok=True)
        processes.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(host.disk / "key")]).require()
        if known:
            with (self.scratch / "known").open("a") as file:
                file.write(f"{host.address} {(host.disk / 'key.pub').read_text()}")

    def start(self, host: Host) -> None:
        """Start a host, or start it again."""
        own = f"f{zlib.crc32(f'{self.scratch}{host.name}'.encode()):08x}"
        host.log = self.scratch / f"{host.name}.log"
        images = " ".join(map(str, host.images))
        boot = [host.name, str(host.disk), host.address, images, " ".join(host.hide), host.extra, host.within]
        argv = [str(TOP / "scripts" / "own-host"), own, "unshare", "--uts", "sh", "-ec", _BOOT, "boot", *boot]
        with host.log.open("ab") as log:
            home = {"TARE_HOME": str(self.scratch / "home")}
            host.process = processes.start(argv, stdin=subprocess.PIPE, stdout=log, stderr=log, env=home)
        deadline = time.monotonic() + START_LIMIT_S
        link = _link(self.scratch, host)
        while (init := self._init(host)) is None:
            self._require(host, deadline)
        processes.run(["ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(init)]).require()
        processes.run(["ip", "addr", "add", f"{host.here}/30", "dev", link]).require()
        processes.run(["ip", "link", "set", link, "up"]).require()
        while not _answers(host.address):
            self._require(host, deadline)

    def _require(self, host: Host, deadline: float) -> None:
        if host.process is None or host.process.poll() is not None or time.monotonic() > deadline:
            raise HostError(f"{host.name} does not start: {host.log.read_text(errors='replace')[-500:]}")
        time.sleep(0.05)

    def _init(self, host: Host) -> int | None:
        """The first process of a host, once it has the host's own network."""
        assert host.process is not None
        for pid in _children(host.process.pid):
            if process_table.argv(pid)[:1] != ["unshare"]:
                continue
            for init in _children(pid):
                with contextlib.suppress(OSError):
                    if Path(f"/proc/{init}/ns/net").readlink() != Path("/proc/self/ns/net").readlink():
                        return init
        return None

    def kill(self, host: Host) -> None:
        """Take a host's power away: every process of it ends at once."""
        init = self._init(host)
        assert init is not None
        os.kill(init, signal.SIGKILL)
        self._put_away(host)

    def end(self, host: Host) -> None:
        """End a host."""
        if host.process is not None and host.process.stdin is not None:
            host.process.stdin.close()
        self._put_away(host)

    def _put_away(self, host: Host) -> None:
        if host.process is not None:
            host.process.wait(START_LIMIT_S)  # own-host removes its control groups
            if host.process.stdin is not None:
                host.process.stdin.close()
            host.process = None


def _link(scratch: Path, host: Host) -> str:
    """Return this machine's end of the link to a host."""
    return f"tf{zlib.crc32(f'{scratch}{host.name}'.encode()):08x}"


def _children(parent: int) -> list[int]:
    return [pid for pid, process in process_table.stats().items() if process.parent == parent]


def _answers(address: str) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((address, 22), timeout=5) as connection:
        return connection.recv(4) == b"SSH-"
    return False


@contextlib.contextmanager
def bed(needed_bytes: int = 0) -> Iterator[Bed]:
    """An empty bed, which leaves nothing: in memory where that has room for 4 GiB and for what is needed."""
    room = shutil.disk_usage("/dev/shm").free > max(needed_bytes * 2, 4 << 30)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if room else "/var/tmp", prefix="tare-bed-") as folder:
        made = Bed(Path(folder))
        processes.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/user"]).require()
        shutil.copy(f"{folder}/user.pub", f"{folder}/allowed")
        (made.scratch / "home").mkdir(mode=0o700)
        try:
            yield made
        finally:
            for host in made.hosts.values():
                if host.process is not None and host.process.stdin is not None:
                    host.process.stdin.close()  # all at once: each takes a moment
            for host in made.hosts.values():
                made.end(host)
