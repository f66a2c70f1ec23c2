"""User-Mode Linux: a Linux kernel as processes of the host. Variants differ in its root: hostfs, or a block device.

The agent speaks over a TCP connection to the host that bash opens in the guest (``/dev/tcp``). UML's own channel, a
serial line, is of no use for it: once the guest has not kept up (4 KiB unread), the line's driver stops listening to
its descriptor, and when the guest is ready again it reads what is there and never listens again (``line_throttle`` and
``line_unthrottle`` in the kernel's arch/um/drivers/line.c): the next request of the host would not arrive.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tare.errors import PlatformError
from tare.host import distribution, processes, userns
from tare.host.filesystems import roots
from tare.host.filesystems.roots import Workspace
from tare.host.network import bridge
from tare.host.network.bridge import Endpoint
from tare.host.resources.journal import CleanupStack
from tare.image import forms, outer
from tare.image.image_build import Image
from tare.platforms.base import STARTED, Address, Availability, Instance, LaunchSpec, Life, Platform, Prepared
from tare.platforms.parts.common import left_open, signal_commands
from tare.platforms.parts.common.attempt import TrialSite, complaint, system_folders
from tare.platforms.parts.common.jail import FIX as CONFINE_FIX
from tare.platforms.parts.common.jail import PROGRAM as CONFINER
from tare.platforms.parts.common.jail import Jail, command, within
from tare.platforms.parts.machines import vm
from tare.platforms.parts.machines.channel import GuestChannel
from tare.platforms.watchers.marks import EchoPing, FirstByte
from tare.session.byte_streams import SocketStream
from tare.timeouts import stretched, until

PROGRAM = "linux.uml"
#: What the processes on the host that the guest's are may take beside the guest's memory.
KERNEL_BYTES = 64 << 20
FIX = distribution.install("user-mode-linux", lean=True)
#: Printed by a kernel that saves less of the processor's state than the host's kernel expects (xstateregs_set).
NO_ROOM = "ptrace set fp regs failed"
REGISTERS = "this User-Mode Linux does not know all registers of this processor (AMX): no program runs in its guests"
NEWER = "use a newer user-mode-linux, or a processor without AMX"
#: Each page of a process of the guest's can be a map of its own on the host; the kernel's limit is 65,530 by default.
MAPPED = "a process beyond 256 MiB may be killed where the host's vm.max_map_count is 65530: each page can take a map"
#: Starts a program as it is, without its setuid bit (ld.so(8)).
LOADER = "/lib64/ld-linux-x86-64.so.2"
#: The kernel's own tool, and why what it does is missing without it.
MCONSOLE = "uml_mconsole"
NO_MCONSOLE = f"{MCONSOLE} is not installed (uml-utilities)"
#: Where the guest sees the folder with its first script, for a moment.
_SCRIPTS = "/mnt"


@dataclass(frozen=True, slots=True)
class UmlMachine:
    """All that the kernel's command line depends on. Its paths are those of its jail."""

    id: str
    memory_bytes: int
    tap: str
    mac: str
    ubd: bool  # whether root and /data are filesystems on files; else the folders /root and /data, by hostfs


def words(machine: UmlMachine) -> list[str]:
    """Return the words that start a machine. It runs ``init`` in /guest."""
    if machine.ubd:
        # c: shared. UML's lock on the image, which it only reads, would keep every QEMU from it.
        # In a folder: a COW file whose backing file lies in / cannot be made (absolutize in UML's cow_user.c).
        root = ["ubd0c=/uml/written,/image/root.ext4", "root=/dev/ubda", "rootfstype=ext4", "ubd1=/data/data.ext4"]
    else:
        root = ["root=/dev/root", "rootfstype=hostfs", "rootflags=/root"]
    return [
        *(f"mem={machine.memory_bytes >> 20}M", "quiet", f"umid={machine.id}", "uml_dir=/uml"),
        *(*root, "rw", "con=null", "con0=null,fd:1", "ssl=null"),
        f"vec0:transport=tap,ifname={machine.tap},depth=128,gro=1,mac={machine.mac}",
        *("init=/bin/bash", "--", "-c", f'"mount -t hostfs none {_SCRIPTS} -o /guest && . {_SCRIPTS}/init"'),
    ]


def jail(folder: Path, users: Path, *, disk: Path | None) -> Jail:
    """All that the kernel sees. A guest's hostfs reaches what its kernel does: the kernel's own option is no guard.

    ``disk``: the image's filesystem, which is never written; None: the root is a folder.
    """
    program = outer.located(PROGRAM)
    written = {name: folder / name.strip("/") for name in ("/uml", "/data")}
    read = {"/guest": folder / "guest", "/proc/cpuinfo": Path("/proc/cpuinfo")}
    if disk is None:
        written["/root"] = folder / "root"
    else:
        read["/image/root.ext4"] = disk
    return Jail(program, users, outer.with_libraries(program), read, written, ("/dev/null", str(bridge.TUN)))


def script(address: str, gateway: str, port: int, data: str, agent: Sequence[str]) -> str:
    """Return what the guest's PID 1 does before it becomes the agent. ``data``: how /data is mounted."""
    return f"""\
PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
read -r began _ </proc/uptime
mount {data} /data || echo "tare: the data volume cannot be mounted" >/dev/console
ip link set lo up
ip link set vec0 name eth0
ip addr add {address} dev eth0
ip link set eth0 up
ip route add default via {gateway}
exec 3<>/dev/tcp/{gateway}/{port}
umount -l {_SCRIPTS}
exec {shlex.join(agent)} --init --userspace-at "$began" <&3 >&3 2>/dev/console 3>&-
"""


#: hostfs forgets a file's pages with its last close (fs/hostfs/hostfs_kern.c: generic_delete_inode).
HOSTFS_CACHE = "the guest's page cache while a file is open, over the host's"


class Uml(Platform):
    """A kernel that is a program: the guest's processes are processes of the host, traced by it."""

    own_kernel = True
    monitor_bytes = KERNEL_BYTES
    by_default = False  # a start takes seconds
    network_path = "client, bridge, TAP, UML's vector device"

    def __init__(self, name: str, *, ubd: bool) -> None:
        self.name = name
        self.title = f"User-Mode Linux, its root {'a block device (ubd)' if ubd else 'a folder of the host (hostfs)'}"
        self.shares_data = not ubd
        self.disk_cache = vm.DISK_CACHE if ubd else HOSTFS_CACHE
        self.open_by_design = left_open.BY_BRIDGE
        self.not_honoured = (
            "one virtual processor, however many CPUs the instance has",
            vm.monitor_beyond_limit(KERNEL_BYTES),
            MAPPED,
        )
        if ubd:
            self.not_honoured += (vm.OWN_VOLUME,)
            self.no_direct_io = vm.NO_DIRECT_IO
        self._ubd = ubd

    def detect(self) -> Availability:
        """Boot a kernel on the host's own root, read-only, that switches itself off."""
        for program, fix in ((PROGRAM, FIX), (CONFINER, CONFINE_FIX)):
            if processes.find(program) is None:
                return Availability(False, reason=f"{program} is not installed", fix=fix)
        lacking = bridge.no_tun()
        if lacking is not None:
            return Availability(False, reason=lacking.what, fix=lacking.fix or "")
        why = complaint(_trivial, NO_ROOM)
        if NO_ROOM in why:
            return Availability(False, reason=REGISTERS, fix=NEWER)
        if why:
            return Availability(False, reason=f"a trivial guest fails: {why}", fix=f"try `{PROGRAM} --version`")
        version = processes.run([PROGRAM, "--version"], time_limit_s=5).text.strip()
        return Availability(True, version=version)

    def prepare(self, image: Image) -> Prepared:
        """Return the image as a folder or as an ext4 filesystem; and the kernel."""
        program = Path(processes.find(PROGRAM) or PROGRAM)
        root = vm.root_disk(image) if self._ubd else image.root
        form = "ext4 file and kernel" if self._ubd else "folder and kernel"
        return Prepared(form, forms.disk_bytes(root) + forms.disk_bytes(program), (root, program), (PROGRAM,))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Make TAP, root and first script, start the kernel, and wait until the guest connects."""
        with spec.network.listener() as listener:
            endpoint, prefix, argv = self._made(spec, cleanup, listener)
            started, process = vm.begin(spec, argv, prefix)
            ping = EchoPing(endpoint.address) if spec.measured else None
            try:
                stream = accept(listener, endpoint.address, process, time_limit_s=spec.start_limit_s)
            except BaseException:
                processes.end(process)
                if ping is not None:
                    ping.wait(0)
                raise
        address_seen = Address(endpoint.address, spec.port, spec.port, endpoint.address)
        return Instance(spec, stream, started, address_seen, FirstByte(stream.fileno()), ping)

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:
        """Return the words of the kernel, of its own tool (uml_mconsole), and of the guest channel, which ends it."""
        with contextlib.ExitStack() as on_failure:
            listener = on_failure.enter_context(spec.network.listener())
            endpoint, prefix, start = self._made(spec, cleanup, listener)

            def accepted(listener: socket.socket, limit_s: float) -> PromptStream:
                return PromptStream(_connected(listener, endpoint.address, time_limit_s=limit_s))

            channel = GuestChannel(listener, argv, limit_s=spec.start_limit_s, accept=accepted)
            made = spec.made()
            on_failure.pop_all()
        console = (processes.find(MCONSOLE) or "", str(spec.space.folder / "uml" / spec.id / "mconsole"))
        return Life(
            start=tuple(start),
            execute=(),
            stop=(),
            kill=(*console, "halt") if console[0] else signal_commands.sent("KILL", STARTED),
            pause=(*console, "stop") if console[0] else (),
            resume=(*console, "go") if console[0] else (),
            lacks={} if console[0] else dict.fromkeys(("pause", "resume"), NO_MCONSOLE),
            start_within=tuple(prefix),
            stays=True,
            made_ns=made,
            acts={"start": lambda _: channel.open(), "execute": channel.run, "stop": lambda _: channel.switch_off()},
            close=channel.close,
        )

    def _made(
        self, spec: LaunchSpec, cleanup: CleanupStack, listener: socket.socket
    ) -> tuple[Endpoint, list[str], list[str]]:
        """Make TAP, root and first script; return the TAP's other end, and the kernel's command after its prefix."""
        endpoint, tap = spec.network.new_tap(cleanup, spec.id, userns.FIRST)
        held = confined(cleanup, spec.space, spec.image, ubd=self._ubd)
        machine = UmlMachine(spec.id, spec.resources.memory_bytes, tap, endpoint.mac, self._ubd)
        mount = "-t ext4 /dev/ubdb" if self._ubd else "-t hostfs none -o /data"
        address, port = f"{endpoint.address}/{spec.network.prefix}", listener.getsockname()[1]
        text = script(address, spec.network.host, port, mount, spec.agent_argv())
        (spec.space.folder / "guest" / "init").write_text(text)
        return endpoint, within(held), command(held, words(machine))


def confined(cleanup: CleanupStack, space: Workspace, image: Image, *, ubd: bool) -> Jail:
    """Return a kernel's jail, with root and data for it, which belong to the jail's root."""
    folder, disk = space.folder, None
    for name in ("guest", "uml"):
        (folder / name).mkdir()
    userns.give(folder / "uml")
    with userns.new(cleanup, folder / "users"):
        pass
    if ubd:
        disk = folder / "image.ext4"
        disk.touch()
        userns.show(cleanup, vm.root_disk(image), disk, folder / "users")
        userns.give(space.data, vm.data_volume(space.data))
    else:
        roots.overlay_root(cleanup, space, image.root, folder / "users")
    return jail(folder, folder / "users", disk=disk)


class PromptStream(SocketStream):
    """A guest's connection whose short frames arrive at once."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def receive(self, limit: int) -> bytes | None:
        """Read what is there; see `ByteStream.receive`."""
        data = super().receive(limit)
        _acknowledge(self._socket)
        return data


class GuestStream(vm.MachineStream):
    """The guest's connection. A killed guest does not close it: the end of the kernel's process is its end too."""

    def __init__(self, connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
        super().__init__(connection, process)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ended = os.pidfd_open(process.pid)
        self._either = select.epoll()
        self._either.register(connection, select.EPOLLIN)
        self._either.register(self._ended, select.EPOLLIN)

    def fileno(self) -> int:
        """Return a descriptor that polls readable when the guest has sent something or has ended."""
        return -1 if self._either.closed else self._either.fileno()

    def receive(self, limit: int) -> bytes | None:
        """Read what is there; see `ByteStream.receive`."""
        ready = {fd for fd, _ in self._either.poll(0)}
        if self._socket.fileno() not in ready:
            return b"" if self._ended in ready else None
        data = super().receive(limit)
        _acknowledge(self._socket)
        return data

    def close(self) -> None:
        """Close the connection: the agent switches the machine off. By force if it does not."""
        if not self._either.closed:
            self._either.close()
            os.close(self._ended)
        super().close()


def _acknowledge(connection: socket.socket) -> None:
    """Acknowledge at once: the guest's side waits for that before it sends its next short frame (Nagle's algorithm).

    It would be 40 ms late. Linux forgets this option by and by.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def _trivial(site: TrialSite) -> list[str]:
    folder, users = site.folder, site.folder / "users"
    for name in ("guest", "uml", "root/proc"):
        (folder / name).mkdir(parents=True)
    userns.give(folder / "uml")
    with userns.new(site.cleanup, users):
        pass
    held = jail(folder, users, disk=None)
    # In place of an image the host's own programs, to be read.
    read = {**held.read, "/root/proc": folder / "root/proc", **{f"/root{path}": path for path in system_folders()}}
    held = replace(held, read=read, written={"/uml": folder / "uml"})
    # Started by the loader, mount is not setuid: as the owner that it has in there it could read nothing.
    off = f'"{LOADER} /bin/mount -t proc proc /proc && echo o >/proc/sysrq-trigger && read"'
    root = ["root=/dev/root", "rootfstype=hostfs", "rootflags=/root", "ro", "con=null", "con0=null,fd:1", "ssl=null"]
    kernel_words = ["mem=64M", "quiet", f"umid={folder.name}", "uml_dir=/uml", *root, "init=/bin/bash", "--", "-c", off]
    return [*within(held), *command(held, kernel_words)]


def accept(listener: socket.socket, address: str, process: subprocess.Popen[bytes], time_limit_s: float) -> GuestStream:
    """Return the connection of the guest at this address, and of no other.

    Raises `PlatformError` where it ends or does not connect in time.
    """
    return GuestStream(_connected(listener, address, time_limit_s=time_limit_s, ended=process.poll), process)


def _connected(
    listener: socket.socket,
    address: str,
    time_limit_s: float,
    ended: Callable[[], int | None] = lambda: None,
) -> socket.socket:
    """Return the socket of `accept`. ``ended``: the code with which the kernel has ended, or None."""
    deadline = until(time_limit_s)
    listener.settimeout(vm.TURN_S)
    while time.monotonic() < deadline:
        try:
            connection, peer = listener.accept()
        except TimeoutError:
            if (code := ended()) is None:
                continue
            raise PlatformError(f"the guest ended with {code} before it connected") from None
        if peer[0] == address:
            return connection
        connection.close()
    raise PlatformError(f"the guest did not connect within {stretched(time_limit_s):g} s")


PLATFORMS = (Uml("uml", ubd=False), Uml("uml-ubd", ubd=True))
