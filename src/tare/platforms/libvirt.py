"""libvirt: virtual machines of QEMU and containers of libvirt's own, made by ``virsh create``.

The platforms that have a name get a libvirtd of tare's own (see `libvirtd.Private`).
"""

from __future__ import annotations

import contextlib
import socket
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from tare.errors import HostError, ImageError, PlatformError, UnsupportedError
from tare.host import distribution, instance_console, own_daemon, processes
from tare.host.network.bridge import Endpoint, no_tun
from tare.host.network.fence import BRIDGE
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.image import forms, guest
from tare.image.image_build import Image
from tare.platforms.base import Address, Availability, Instance, Instant, LaunchSpec, Life, Observed, Platform, Prepared
from tare.platforms.parts.common import left_open, root_rights
from tare.platforms.parts.common.pipes import TOOL
from tare.platforms.parts.libvirt import domain, libvirtd, virsh
from tare.platforms.parts.libvirt.virsh import Creation, DomainStream, LibvirtStream
from tare.platforms.parts.machines import vm
from tare.platforms.parts.machines.channel import GuestChannel
from tare.platforms.parts.machines.disks import disk_io, overlay
from tare.platforms.watchers.marks import EchoPing, FirstByte

INSTALL = ("libvirt-daemon-system", "libvirt-clients")
#: Asking QEMU what it can do, once a version of it, takes some seconds; on a busy host more.
PROBE_LIMIT_S = 120.0
SAVED = "`virsh save` ends the machine that it saves, and tare's snapshots are of instances that go on"


@dataclass(frozen=True, slots=True)
class PendingDomain:
    """The state of an instance while ``virsh create`` runs."""

    name: str
    started: Instant
    address: str
    stream: DomainStream
    first_byte: FirstByte


class Libvirt(Platform):
    """Domains of one of libvirt's drivers."""

    by_default = False
    daemon = "libvirtd"
    years = MappingProxyType({2022: "8", 2023: "9", 2024: "10", 2025: "11"})
    driver: str
    packages: tuple[str, ...]  # Debian's, of the driver
    needs: Sequence[str] = ()  # programs that its domains take besides

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self.title = title
        self._lock = threading.Lock()
        self._libvirtd: libvirtd.LibvirtDaemon | None = None

    def detect(self) -> Availability:
        """Start a libvirtd, and try the driver with it."""
        return self._lacking() or self._tried()

    def _lacking(self) -> Availability | None:
        lacking = [program for program in ("libvirtd", "virsh", *self.needs) if processes.find(program) is None]
        if lacking or self._program() is None:
            reason = f"{lacking[0]} is not installed" if lacking else f"libvirt's {self.driver} driver is not installed"
            return Availability(False, reason=reason, fix=distribution.install(*INSTALL, *self.packages, lean=True))
        return None

    def _tried(self) -> Availability:
        try:
            with contextlib.closing(_Closing(self)):
                return self._try(self._running_daemon())
        except (PlatformError, HostError, ImageError) as error:
            return Availability(False, reason=error.what, fix=error.fix or "see what `libvirtd` says on this host")

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Make a domain by ``virsh create``."""
        return self._launch(spec, cleanup, self._running_daemon())

    def close(self) -> None:
        """Stop the libvirtd that was started."""
        with self._lock:
            daemon, self._libvirtd = self._libvirtd, None
        if daemon is not None:
            daemon.stop()

    @abstractmethod
    def _program(self) -> Path | None:
        """Return what libvirt runs domains by, where it is installed."""

    @abstractmethod
    def _try(self, daemon: libvirtd.LibvirtDaemon) -> Availability: ...

    @abstractmethod
    def _launch(self, spec: LaunchSpec, cleanup: CleanupStack, daemon: libvirtd.LibvirtDaemon) -> Instance: ...

    def _running_daemon(self) -> libvirtd.LibvirtDaemon:
        """Return the libvirtd, started where none runs.

        Raises `PlatformError` once where it has died in the meantime.
        """
        with self._lock:
            if self._libvirtd is not None and self._libvirtd.ended() is not None:
                raise self._forget_ended(self._libvirtd)
            if self._libvirtd is None:
                self._libvirtd = self._open()
            return self._libvirtd

    def _open(self) -> libvirtd.LibvirtDaemon:
        program = self._program()
        assert program is not None  # detected
        return libvirtd.Private(self.name, self.driver, program)

    def _up(
        self, creation: Creation, spec: LaunchSpec, daemon: libvirtd.LibvirtDaemon, pending: PendingDomain
    ) -> Instance:
        """Return the instance, once its domain is made and all of it is in the instance's groups.

        Raises `PlatformError`.
        """
        try:
            complaint = creation.wait()
            if complaint is not None:
                raise self._refusal(daemon, complaint)
            daemon.settle(spec, pending.name)
        except BaseException:
            pending.first_byte.wait(0)
            pending.stream.close()
            raise
        ping = EchoPing(pending.address) if spec.measured else None
        address = Address(pending.address, spec.port, spec.port, pending.address)
        return Instance(spec, pending.stream, pending.started, address, pending.first_byte, ping, daemons=daemon.groups)

    def _forget_ended(self, daemon: libvirtd.LibvirtDaemon) -> PlatformError:
        message = f"{daemon.ended()} in the middle of its work"
        self._libvirtd = None
        with contextlib.suppress(HostError):  # what stays is noted (`host.unremoved`)
            daemon.stop()
        return PlatformError(message, fix="the next start has a new one; see the host's log for why it ended")

    def _refusal(self, daemon: libvirtd.LibvirtDaemon, stderr: bytes) -> PlatformError:
        with self._lock:
            if daemon.ended(own_daemon.DYING_S) is not None and self._libvirtd is daemon:
                return self._forget_ended(daemon)
        return PlatformError(
            f"libvirt refuses: {virsh.last_error(stderr)}", fix="see what `libvirtd` says on this host"
        )


class _Closing:
    """Lets `contextlib.closing` end a platform's daemon."""

    def __init__(self, platform: Platform) -> None:
        self.close = platform.close


class LibvirtLxc(Libvirt):
    """A container of libvirt's own; libvirt hands the agent's stream to the container's first process."""

    driver = "lxc"
    packages = ("libvirt-daemon-driver-lxc",)
    network_path = "client, bridge, veth"
    open_by_design = left_open.on_bridge("no user namespace, and no filter for these calls", *left_open.UNFILTERED)

    def prepare(self, image: Image) -> Prepared:
        """Return the image as a folder, and a libvirtd."""
        self._running_daemon()
        return Prepared("folder", forms.image_bytes(image), (image.root,), (str(self._program()),))

    def _program(self) -> Path | None:
        return libvirtd.lxc_program()

    def _try(self, daemon: libvirtd.LibvirtDaemon) -> Availability:
        version = daemon.connection.version()
        return Availability(True, version=version, details={"hidden from it": libvirtd.hidden() or "nothing"})

    def _launch(self, spec: LaunchSpec, cleanup: CleanupStack, daemon: libvirtd.LibvirtDaemon) -> Instance:
        endpoint, link = spec.network.new_endpoint(cleanup, spec.id)
        name = f"tare-{spec.id}"
        with daemon.container_root(spec, cleanup) as root:
            container = domain.Container(
                name=name,
                cpus=spec.resources.cpus,
                memory_bytes=spec.resources.memory_bytes,
                command=["/bin/sh", "-c", domain.AGENT_ON_STREAM, *spec.agent_argv()],
                mounts={"/": root, "/data": spec.space.data},
                link=domain.Link(link, endpoint.mac, BRIDGE),
                address=endpoint.address,
                prefix=spec.network.prefix,
                gateway=spec.network.host,
                emulator=daemon.entrance,
                read_only=[
                    path for path in root_rights.present(root_rights.READ_ONLY) if path.name != "sys"
                ],  # so by itself
                masked={
                    path: None if path.is_dir() else Path("/dev/null")
                    for path in root_rights.present(root_rights.MASKED)
                },
            )
            cleanup.own(removers.libvirt_domain(daemon.connection.uri, name, daemon.socket))
            ours, theirs = socket.socketpair()
            stream = DomainStream(ours, spec.group)
            with theirs, instance_console.opened(spec.space.log) as log, contextlib.ExitStack() as on_failure:
                on_failure.callback(stream.close)
                creation = Creation(spec, daemon.connection, domain.container_xml(container), (theirs.fileno(), log))
                on_failure.pop_all()
            first_byte = FirstByte(stream.fileno())
            started = creation.go()
            return self._up(creation, spec, daemon, PendingDomain(name, started, endpoint.address, stream, first_byte))


class LibvirtQemu(Libvirt):
    """A machine of QEMU's that libvirt makes; the same guest as the platform ``qemu``, or as ``qemu-tcg``."""

    driver = "qemu"
    packages = ("libvirt-daemon-driver-qemu", "qemu-system-x86", "qemu-utils")
    needs = (vm.PROGRAM, "qemu-img")
    network_path = "client, bridge, TAP, virtio-net"
    shares_data = False
    own_kernel = True
    monitor_bytes = vm.MONITOR_BYTES
    open_by_design = left_open.BY_BRIDGE
    not_honoured = (vm.OWN_VOLUME, vm.monitor_beyond_limit(vm.MONITOR_BYTES))

    def __init__(self, name: str, title: str, accel: str = "kvm", cache: str = "none") -> None:
        super().__init__(name, f"{title}, {vm.BY[accel]}{', disks written back' if cache != 'none' else ''}")
        self._accel = accel
        self._cache = cache
        self.disk_cache = vm.DIRECT_DISK_CACHE if cache == "none" else vm.DISK_CACHE
        self.no_direct_io = "" if cache == "none" else vm.NO_DIRECT_IO
        self.stand_in = vm.emulated_name(name) if accel == "kvm" else ""

    def start_fix(self, console: bytes) -> str:
        """Return the fix for a machine that hung by emulation."""
        return vm.hang_fix(console) if self._accel == "tcg" else ""

    def prepare(self, image: Image) -> Prepared:
        """Return the image as an ext4 filesystem, and a libvirtd that knows its QEMU."""
        self._learn(self._running_daemon())
        return vm.prepared(vm.root_disk(image), guest.ensure(), vm.PROGRAM)

    def _program(self) -> Path | None:
        program = processes.find(vm.PROGRAM)
        return Path(program) if program else None

    def _try(self, daemon: libvirtd.LibvirtDaemon) -> Availability:
        lacking = no_tun()
        if lacking is not None:
            raise lacking
        boot_files = guest.ensure()
        why = "as it is called" if self._accel == "tcg" else vm.need_kvm(boot_files, self.stand_in)
        self._learn(daemon)
        details = {
            "accelerator": f"{self._accel}: {why}",
            "guest kernel": boot_files.release,
            "disks": disk_io(self._cache).described(),
            "network back end": self._back_end(),
        }
        return Availability(True, version=f"{daemon.connection.version()}, {self._accel}", details=details)

    def _back_end(self) -> str:
        """Return what moves the packets: libvirt takes vhost-net for guests of KVM by itself, where it is there."""
        why = vm.vhost() if self._accel == "kvm" else "libvirt takes it for guests of KVM alone"
        return "vhost-net, in the host's kernel" if why is None else f"QEMU, without vhost-net: {why}"

    def _learn(self, daemon: libvirtd.LibvirtDaemon) -> None:
        """Let libvirt probe what QEMU can do before the first start, which would else have that in its time."""
        emulator = ["--emulatorbin", str(daemon.entrance)] if daemon.entrance else []
        words = [*emulator, "--machine", "q35", "--virttype", _kind(self._accel)]
        answer = daemon.connection.ask("domcapabilities", *words, time_limit_s=PROBE_LIMIT_S)
        if answer.code != 0:
            raise self._refusal(daemon, answer.stderr)

    def _launch(self, spec: LaunchSpec, cleanup: CleanupStack, daemon: libvirtd.LibvirtDaemon) -> Instance:
        endpoint, tap = spec.network.new_tap(cleanup, spec.id)
        machine = self._machine(spec, daemon, endpoint, tap)
        name, control = machine.name, machine.control
        instance_console.watch(spec.space.log)  # QEMU, which libvirt starts, opens it by its path
        daemon.machine(spec)
        cleanup.own(removers.libvirt_domain(daemon.connection.uri, name, daemon.socket))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(control))
            listener.listen(1)
            paused = ["--paused"] if daemon.moves else []
            creation = Creation(spec, daemon.connection, domain.machine_xml(machine), (), *paused)
            started = creation.go()
            connection = self._connected(listener, creation, daemon)
        stream = LibvirtStream(connection, spec, daemon.machine_log(name))
        first_byte = FirstByte(stream.fileno())
        pending = PendingDomain(name, started, endpoint.address, stream, first_byte)
        instance = self._up(creation, spec, daemon, pending)
        instance.guest_bytes = machine.memory_bytes
        return instance

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:
        """Return virsh's commands, and the guest channel; the guest switches itself off when it is told.

        Raises `UnsupportedError` for a libvirtd that is not tare's own.
        """
        daemon = self._running_daemon()
        if daemon.moves:
            raise UnsupportedError("tare knows the life of machines of its own libvirtd alone", fix="-p libvirt-qemu")
        endpoint, tap = spec.network.new_tap(cleanup, spec.id)
        machine = self._machine(spec, daemon, endpoint, tap)
        name, place = machine.name, spec.space.folder / "domain.xml"
        place.write_text(domain.machine_xml(machine))
        instance_console.watch(spec.space.log)
        daemon.machine(spec, "box")
        procs = spec.group.leaf(TOOL)
        cleanup.own(removers.libvirt_domain(daemon.connection.uri, name, daemon.socket))
        with contextlib.ExitStack() as on_failure:
            listener = on_failure.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(machine.control))
            listener.listen(1)
            channel = GuestChannel(listener, argv, limit_s=spec.start_limit_s)
            made = spec.made()
            on_failure.pop_all()

        def virsh_word(*words: str) -> tuple[str, ...]:
            return tuple(daemon.connection.argv(*words, name))

        def start(_: Sequence[str]) -> bytes:
            done = processes.run(virsh_word("start"), time_limit_s=virsh.CREATE_LIMIT_S, cgroup_procs=procs)
            if done.code != 0:
                raise self._refusal(daemon, done.stderr)
            return channel.open()

        return Life(
            create=tuple(daemon.connection.argv("define", str(place))),
            start=virsh_word("start"),
            execute=(),
            stop=(),
            kill=virsh_word("destroy"),
            remove=virsh_word("undefine"),
            pause=virsh_word("suspend"),
            resume=virsh_word("resume"),
            lacks=dict.fromkeys(("snapshot", "restore"), SAVED),
            made_ns=made,
            daemons=daemon.groups,
            acts={"start": start, "execute": channel.run, "stop": lambda _: channel.switch_off()},
            close=channel.close,
        )

    def _machine(
        self, spec: LaunchSpec, daemon: libvirtd.LibvirtDaemon, endpoint: Endpoint, tap: str
    ) -> domain.DomainMachine:
        """Return the instance's machine, on a new overlay of the image's disk."""
        boot_files = guest.ensure()
        words = [*vm.KERNEL_WORDS, *vm.clock_words(self._accel)]
        words += [f"tare.ip={endpoint.address}/{spec.network.prefix}"]
        return domain.DomainMachine(
            kind=_kind(self._accel),
            name=f"tare-{spec.id}",
            cpus=spec.resources.cpus,
            memory_bytes=spec.resources.memory_bytes,
            kernel=boot_files.kernel,
            initramfs=boot_files.initramfs,
            command_line=" ".join([*words, f"tare.gw={spec.network.host}", "--", *spec.agent_argv()[1:]]),
            root=overlay(vm.root_disk(spec.image), spec.space.folder),
            root_format="qcow2",
            data=vm.data_volume(spec.space.data),
            disks=disk_io(self._cache),
            console=spec.space.log,
            link=domain.Link(tap, endpoint.mac, None),
            control=spec.space.folder / "control",
            emulator=daemon.entrance,
            security=daemon.security,
        )

    def observed(self, instance: Instance, read: Callable[[str], str]) -> Observed:
        """Return what is declared, and which back ends the machine's monitor has open."""
        return replace(super().observed(instance, read), facts=vm.back_ends(instance))

    def _connected(self, listener: socket.socket, creation: Creation, daemon: libvirtd.LibvirtDaemon) -> socket.socket:
        try:
            return vm.accept(listener, creation.failed)
        except PlatformError as error:
            if not creation.failed():
                creation.kill()
                raise
            raise self._refusal(daemon, creation.wait() or b"") from error


def _kind(accel: str) -> str:
    return "kvm" if accel == "kvm" else "qemu"


PLATFORMS = (
    LibvirtQemu("libvirt-qemu", "libvirt: a machine of QEMU's"),
    LibvirtQemu("libvirt-qemu-tcg", "libvirt: a machine of QEMU's", "tcg"),
    LibvirtQemu("libvirt-qemu-writeback", "libvirt: a machine of QEMU's", "kvm", "writeback"),
    LibvirtQemu("libvirt-qemu-writeback-tcg", "libvirt: a machine of QEMU's", "tcg", "writeback"),
    LibvirtLxc("libvirt-lxc", "libvirt: a container of its own (lxc:///)"),
)
