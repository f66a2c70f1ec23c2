"""The file that describes a black box: a kernel or disk image to boot, and what it answers. Every field is checked.

Such a file may be a stranger's, and is data: its files are regular ones in its own folder, its disk is raw (qcow2 can
name other files), its options are from closed lists, and no text of it can be more than the one word that it is.
"""

from __future__ import annotations

import ipaddress
import os
import shlex
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, PrivateAttr, field_validator, model_validator

from tare import expressions
from tare.errors import UsageError
from tare.host.kernel import beneath
from tare.inputs import parse_toml, read_text
from tare.records import Strict, of_a_file

#: What a monitor lets the file choose, by field; Firecracker has one machine, and a disk is a disk to it and to Xen.
MACHINES = {"qemu": ("q35", "pc", "microvm"), "firecracker": (), "xen": ("pv", "pvh"), "hvt": (), "spt": ()}
#: Solo5's tenders: hvt takes KVM, spt a seccomp filter.
TENDERS = ("hvt", "spt")
ONLY_QEMU = ("disk_device", "network", "machine_options", "cpu", "devices", "modern_virtio")
#: Options of QEMU's machines that name no file, no program and no accelerator.
MACHINE_OPTIONS = (
    "acpi", "auto-kernel-cmdline", "graphics", "hpet", "i8042", "ioapic2", "isa-serial", "kernel-irqchip", "pcie",
    "pic", "pit", "rtc", "sata", "smbus", "smm", "usb", "vmport", "x-option-roms",
)  # fmt: skip
OPTION_VALUES = ("on", "off", "auto", "split")
ONLY_TENDERS = ("net_name", "disk_name")
#: What a command line may name, in braces; other braces are the guest's own.
PLACES = ("ip", "prefix", "netmask", "gateway", "mac")
#: MiB of memory without a word of the file's; and the least that is taken, which Solo5's own tests need.
USUAL_MEMORY, MIN_MEMORY, MIN_TENDER_MEMORY = 256, 8, 2
FIX = "docs/platforms.md, blackbox, has an example"
#: Largest box file in bytes, and longest command line in characters.
MAX_FILE_BYTES, MAX_WORDS = 1 << 20, 16_384
#: Additional devices, by QEMU's names: none opens a file, a socket or a device of the host.
Device = Literal[
    "VGA", "isa-debug-exit", "pvpanic", "pvpanic-pci", "virtio-balloon-device", "virtio-balloon-pci",
    "virtio-rng-device", "virtio-rng-pci",
]  # fmt: skip
#: First bytes of a qcow2 file.
QCOW2 = b"QFI\xfb"
PLACE_FIX = "put the file itself there, or below it, and name it relative to that: links are not followed"
RAW_FIX = (
    "see that `qemu-img info` shows no backing file and no data file; then qemu-img convert -f qcow2 -O raw OLD NEW"
)
Port = Field(default=None, ge=1, le=65535)


def _printable(value: str) -> str:
    if any(ord(sign) < 32 or ord(sign) == 127 for sign in value):
        raise ValueError("it has a control character, such as a line feed")
    return value


Text = Annotated[str, AfterValidator(_printable)]


def expression(value: str | None) -> str | None:
    """Return a regular expression as it was. Raises `ValueError` when it is none."""
    expressions.compiled(value or "")
    return value


class GuestAnswers(Strict):
    """The answers of a guest, in at least one way: the ports of its services, pings, or a line on its console."""

    udp: int | None = Port  # echoes datagrams
    tcp: int | None = Port  # echoes what a connection brings
    http: int | None = Port
    path: str = Field(default="/", pattern=r"^/[!-~]*$")
    ping: bool = False  # it answers echo requests
    console: str | None = None  # a regular expression that its console shows

    @field_validator("console")
    @classmethod
    def _expression(cls, value: str | None) -> str | None:
        return expression(value)

    @property
    def by_network(self) -> bool:
        """True if any of it comes over the network."""
        return self.ping or not (self.udp is None and self.tcp is None and self.http is None)

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        if not self.by_network and self.console is None:
            raise ValueError("name at least one port (udp, tcp or http), ping = true, or a line of the console")
        return self


class Box(Strict):
    """A machine to boot. Its files are named relative to their folder (`placed`)."""

    vmm: Literal["qemu", "firecracker", "xen", "hvt", "spt"] = "qemu"
    machine: Literal["q35", "pc", "microvm", "pv", "pvh"] | None = None  # None: the first of its monitor's
    kernel: Path | None = None
    initrd: Path | None = None
    disk: Path | None = None  # raw; what the guest writes is thrown away
    disk_device: Literal["virtio-blk-pci", "virtio-blk-device", "ide-hd"] | None = None  # None: virtio of its machine
    cmdline: Text = Field(default="", max_length=MAX_WORDS)
    memory: int = Field(default=USUAL_MEMORY, ge=MIN_TENDER_MEMORY, le=1 << 30)  # MiB
    cpus: int = Field(default=1, ge=1, le=1 << 16)
    network: Literal["virtio-net-pci", "virtio-net-device", "e1000", "e1000e", "rtl8139"] | None = None  # as the disk's
    link: Literal["tap", "user", "none"] = "tap"  # user: QEMU's own stack, which has a DHCP server; none: no card
    ip: str | None = None  # the address that the guest has by itself
    dhcp: bool = False  # a DHCP server on tare's bridge gives the guest its address
    machine_options: str = ""  # `MACHINE_OPTIONS` such as rtc=on,acpi=off
    cpu: str | None = Field(
        default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.,=+-]*$", max_length=1000
    )  # model and flags
    devices: tuple[Device, ...] = Field(default=(), strict=False, max_length=16)  # besides card and disk
    modern_virtio: bool = False  # of a microvm: its virtio devices speak version 1, and not the version before
    net_name: str = Field(default="service", pattern=r"^[A-Za-z0-9]{1,67}$")  # the names of a unikernel's devices
    disk_name: str = Field(default="storage", pattern=r"^[A-Za-z0-9]{1,67}$")
    console: str | None = None  # a regular expression that the console must show as well
    answers: GuestAnswers
    _folder: Path | None = PrivateAttr(None)  # None: of no file, but tare's own guest, by absolute paths

    @field_validator("kernel", "initrd", "disk", mode="before")
    @classmethod
    def _path(cls, value: object) -> object:
        return Path(_printable(value)) if isinstance(value, str) else value

    @field_validator("machine_options")
    @classmethod
    def _options(cls, value: str) -> str:
        for option in filter(None, value.split(",")):
            name, _, setting = option.partition("=")
            if name not in MACHINE_OPTIONS or setting not in OPTION_VALUES:
                names, settings = ", ".join(MACHINE_OPTIONS), ", ".join(OPTION_VALUES)
                raise ValueError(f"{option!r} is not NAME=VALUE with one of {names} and one of {settings}")
        return value

    @field_validator("console")
    @classmethod
    def _expression(cls, value: str | None) -> str | None:
        return expression(value)

    @field_validator("ip")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        address = ipaddress.IPv4Address(value)
        usable = address.is_private and not (address.is_loopback or address.is_link_local or address.is_reserved)
        if not usable or address.is_unspecified:
            raise ValueError(
                f"{address} is no private address, such as 10.0.0.2: this host reaches the guest alone by it"
            )
        return str(address)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        machines = MACHINES[self.vmm]
        if self.machine is not None and self.machine not in machines:
            raise ValueError(f"{self.vmm} has no machine {self.machine}{': ' if machines else ''}{', '.join(machines)}")
        if self.vmm != "qemu" and (qemu_fields := sorted(self.model_fields_set.intersection(ONLY_QEMU))):
            raise ValueError(f"{qemu_fields[0]} is a choice of QEMU's, and the box is {self.vmm}'s")
        if self.vmm != "qemu" and self.link == "user":
            raise ValueError(f"link is a choice of QEMU's, and the box is {self.vmm}'s")
        if self.vmm not in TENDERS and (of_tenders := sorted(self.model_fields_set.intersection(ONLY_TENDERS))):
            raise ValueError(f"{of_tenders[0]} is a choice of Solo5's tenders (hvt, spt), and the box is {self.vmm}'s")
        if self.vmm in TENDERS and (self.cpus > 1 or self.initrd is not None):
            raise ValueError(f"{'initrd' if self.initrd is not None else 'cpus'}: {self.vmm} runs one file on one CPU")
        if self.vmm not in TENDERS and self.memory < MIN_MEMORY:
            raise ValueError(f"memory: {self.vmm} takes {MIN_MEMORY} MiB or more")
        if self.vmm != "qemu" and self.kernel is None:
            raise ValueError(f"{self.vmm} boots a kernel: name one")
        if self.kernel is None and self.disk is None:
            raise ValueError("name a kernel or a disk to boot")
        if self.kernel is None and (self.initrd is not None or self.cmdline):
            raise ValueError("initrd and cmdline go with a kernel")
        self._check_words()
        self._check_address()
        return self

    def _check_words(self) -> None:
        if self.modern_virtio and self.board != "microvm":
            raise ValueError('modern_virtio goes with machine = "microvm": other machines have both versions')
        if self.vmm in TENDERS:
            try:
                shlex.split(self.cmdline)
            except ValueError as error:
                raise ValueError(f"cmdline: {error}; {self.vmm} takes words, split as a shell does") from error

    def _check_address(self) -> None:
        ways = [self.ip is not None, self.dhcp, "{ip}" in self.cmdline]
        if self.link == "tap" and not any(ways):
            raise ValueError(
                'how does the guest get its address? {ip} in cmdline, dhcp = true, its own by ip = "ADDRESS",'
                ' or link = "user"'
            )
        if self.ip is not None and self.dhcp:
            raise ValueError("ip is the guest's own address, and dhcp gives it one: name one of the two")
        if self.link != "tap" and (self.ip is not None or self.dhcp):
            raise ValueError('ip and dhcp go with link = "tap"')
        if self.link == "none" and self.answers.by_network:
            raise ValueError('link = "none" leaves console as its only answer')
        if self.link == "user" and self.answers.ping:
            raise ValueError("answers.ping: QEMU's own network answers no pings from outside")

    @property
    def board(self) -> str:
        """The machine; "" where the monitor has only one."""
        return self.machine or next(iter(MACHINES[self.vmm]), "")

    @property
    def card(self) -> str:
        """QEMU's network card: without a word of the file's, the virtio card of the machine's bus."""
        return self.network or f"virtio-net-{self._bus}"

    @property
    def controller(self) -> str:
        """QEMU's device for the disk: without a word of the file's, the virtio disk of the machine's bus."""
        return self.disk_device or f"virtio-blk-{self._bus}"

    @property
    def _bus(self) -> str:
        return "device" if self.board == "microvm" else "pci"

    def placed(self, folder: Path) -> Self:
        """Return the box with its files in this folder."""
        box = self.model_copy()
        box._folder = folder
        return box

    @property
    def files(self) -> dict[str, Path]:
        """The files that it names, by field."""
        named = {"kernel": self.kernel, "initrd": self.initrd, "disk": self.disk}
        return {name: (self._folder or Path("/")) / path for name, path in named.items() if path is not None}

    def opened(self, name: str) -> int | None:
        """Return a descriptor to read one of `files` by; None unless it is a regular file in the box's folder.

        No link is followed on the way, and no mount crossed: whoever wrote the box may have made the folder too.
        Raises `OSError` for one that nobody may read.
        """
        if self._folder is None:
            return os.open(self.files[name], os.O_RDONLY | os.O_CLOEXEC)
        folder = os.open(self._folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return beneath.regular(folder, os.path.normpath(getattr(self, name)))
        finally:
            os.close(folder)

    def command_line(self, **places: str) -> str:
        """Return the guest's command line with the `PLACES` filled in, each in braces."""
        text = self.cmdline
        for name in PLACES:
            text = text.replace(f"{{{name}}}", places[name])
        return text


def parse(text: str, name: str) -> Box:
    """Return a box from TOML text; ``name`` is for the error. Raises `UsageError` with one line."""
    return of_a_file(Box, parse_toml(text, name, FIX), name, FIX)


def load(file: Path) -> Box:
    """Read a box's file; what it names is in its folder. Raises `UsageError` that names the field."""
    box = parse(read_text(file, FIX, largest=MAX_FILE_BYTES), str(file)).placed(file.absolute().parent)
    for name in box.files:
        _check_file(box, name, f"{file}: {name}")
    return box


def _check_file(box: Box, name: str, field: str) -> None:
    """Raise `UsageError` for a file that a box may not name; ``field``: what the message begins with."""
    place = box.files[name]
    try:
        descriptor = box.opened(name)
    except OSError as error:
        raise UsageError(f"{field}: {place} cannot be read: {error.strerror}", fix=PLACE_FIX) from error
    if descriptor is None:
        raise UsageError(f"{field}: there is no file {place} in the folder of the box's file", fix=PLACE_FIX)
    try:
        if name == "disk" and os.pread(descriptor, len(QCOW2), 0) == QCOW2:
            raise UsageError(f"{field}: {place} is qcow2, which can name other files of this host", fix=RAW_FIX)
    finally:
        os.close(descriptor)
