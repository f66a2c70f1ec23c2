"""The inside of a nested platform's guest: its programs, and the order that starts it. Pure data.

An order is a shell script that the guest's system runs (`image/outer.sh`), with stdin and stdout connected to tare.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.model import Resources
from tare.platforms.parts.bundles.oci_bundle import bundle_config

#: Where the guest's system has its first disk and the data volume.
IMAGE, DATA = Path("/image"), Path("/data")
#: The guest's own network, for a container that is to be in it.
GUESTS_NETWORK = Path("/proc/1/ns/net")
#: Stands in an order for the uptime at which the guest's userspace began, which only the guest knows.
BEGAN = "@began@"
#: The image's tag in the guest's Docker.
TAG = "tare"
SECTOR = 512
CONTAINERD = "/run/containerd/containerd.sock"


@dataclass(frozen=True, slots=True)
class Task:
    """The task of an inner platform, and the resources of its guest."""

    agent: Sequence[str]
    port: int
    cpus: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Inner:
    """A container platform as it is inside of a guest."""

    program: str  # whose version is shown
    title: str
    packages: Mapping[str, str]  # of Debian's, by program; those not named are in the first one's
    network: str  # its part of the way of a packet
    order: Callable[[Task], str]
    not_honoured: Sequence[str] = ()
    start_limit_factor: float = 2.0  # see `Platform.start_limit_factor`; several may start at once, emulated on one CPU
    beside: Sequence[str] = ()  # the other programs that it takes
    libraries: Sequence[str] = ()  # what programs load by themselves: patterns below /
    modules: Sequence[str] = ()
    store: bool = False  # whether the image is in a store of Docker's in place of a filesystem of its own

    def programs(self) -> tuple[str, ...]:
        """All that its guest's system is made of. The order of what a pattern finds does not change."""
        loaded = (str(file) for pattern in self.libraries for file in sorted(Path("/").glob(pattern)))
        return (self.program, *self.beside, *loaded)


def runtime(program: str) -> Inner:
    """Return an OCI runtime without a daemon, on a bundle whose root is the disk with the image."""
    return Inner(
        program,
        f"{program} on an OCI bundle",
        {program: program},
        "the guest's own stack",
        lambda task: _bundle(program, task),
        ("the container is in its guest's network: there is no veth inside",),
    )


def _bundle(program: str, task: Task) -> str:
    whole = Resources(tuple(range(task.cpus)), task.memory_bytes)
    argv = [*task.agent, "--userspace-at", BEGAN]
    config = json.dumps(bundle_config(argv, IMAGE, DATA, whole, "tare", GUESTS_NETWORK))
    return (
        "mkdir /run/bundle\n"
        f"sed \"s/{BEGAN}/$began/\" >/run/bundle/config.json <<'END'\n{config}\nEND\n"
        f"{program} --root /run/state run --bundle /run/bundle tare\n"
    )


def _dockerd(store: Path) -> str:
    """Start a daemon and wait until it says that it serves; where it ends instead, its last line goes to the console.

    containerd is started before it, as Debian does: a dockerd that starts it gives it 15 s, and an emulated one may
    take longer. It is not polled by a client: on an emulated CPU that would take its time.
    """
    return f"""\
ln -s xtables-legacy-multi /usr/sbin/iptables
mkdir -p /etc/containerd
printf 'version = 2\\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\\n' >/etc/containerd/config.toml
containerd --log-level error </dev/null >/dev/console 2>&1 &
until [ -S {CONTAINERD} ]; do
    kill -0 $! || return 1
    usleep 100000
done
mkfifo /run/said
dockerd --containerd {CONTAINERD} --data-root {store} --storage-driver overlay2 </dev/null >/run/said 2>&1 &
daemon=$!
exec 3</run/said
said=
until [ "${{said#*API listen on}}" != "$said" ]; do
    last=$said
    if ! read -r said <&3; then
        echo "$last" >/dev/console
        return 1
    fi
done
cat <&3 >/dev/null &
"""


def _docker(task: Task) -> str:
    argv = ["docker", "run", "--rm", "-i", "--publish", f"{task.port}:{task.port}"]
    argv += ["--publish", f"{task.port}:{task.port}/udp", "--volume", f"{DATA}:/data", TAG, *task.agent]
    return f'{_dockerd(IMAGE)}{shlex.join(argv)} --userspace-at "$began"\n'


def docker_import(disk: str) -> str:
    """Import the tar on a disk into a new store on the data volume, and print its id to tare."""
    return f"""\
{_dockerd(DATA)}\
docker import - {TAG} <{disk} >/run/imported 2>/dev/console || return 1
kill $daemon
wait $daemon
umount {DATA} || return 1
cat /run/imported
"""


#: The network that Docker makes by itself: a bridge, address translation, and a published port.
DOCKER = Inner(
    program="dockerd",
    title="Docker",
    packages={"dockerd": "docker.io", "containerd": "containerd", "containerd-shim-runc-v2": "containerd",
              "runc": "runc", "xtables-legacy-multi": "iptables"},
    network="a published port (NAT), docker0, veth",
    order=_docker,
    beside=("containerd", "containerd-shim-runc-v2", "runc", "docker", "docker-proxy", "xtables-legacy-multi"),
    libraries=tuple(
        f"usr/lib/*/xtables/libxt_{name}.so"
        for name in ("addrtype", "conntrack", "standard", "tcp", "udp", "NAT", "DNAT", "MASQUERADE")
    ),
    modules=(
        "overlay", "bridge", "br_netfilter", "veth", "iptable_filter", "iptable_nat", "nf_conntrack_netlink",
        "xt_addrtype", "xt_conntrack", "xt_nat", "xt_tcpudp", "xt_MASQUERADE",
    ),
    store=True,
    start_limit_factor=8.0,
)  # fmt: skip


def padded(order: str) -> bytes:
    """Return an order as the contents of a disk: with newlines up to whole sectors, which a shell passes over."""
    raw = order.encode()
    return raw + b"\n" * (-len(raw) % SECTOR)
