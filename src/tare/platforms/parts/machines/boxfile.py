"""The file that describes a black box: a kernel or disk image to boot, and what it answers. Every field is checked."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from tare import expressions
from tare.errors import UsageError
from tare.inputs import parse_toml, read_text, refuse_writable
from tare.records import Strict, of_a_file

#: What a monitor lets the file choose, by field; Firecracker has one machine, and a disk is a disk to it and to Xen.
MACHINES = {"qemu": ("q35", "pc", "microvm"), "firecracker": (), "xen": ("pv", "pvh"), "hvt": (), "spt": ()}
#: Solo5's tenders: hvt takes KVM, spt a seccomp filter.
TENDERS = ("hvt", "spt")
ONLY_QEMU = ("disk_device", "network", "machine_options", "cpu", "arguments")
ONLY_TENDERS = ("net_name", "disk_name")
#: What a command line may name, in braces; other braces are the guest's own.
PLACES = ("ip", "prefix", "netmask", "gateway", "mac")
#: MiB of memory without a word of the file's; and the least that is taken, which Solo5's own tests need.
USUAL_MEMORY, MIN_MEMORY, MIN_TENDER_MEMORY = 256, 8, 2
FIX = "docs/platforms.md, blackbox, has an example"
#: Bytes of a box's file.
MAX_FILE_BYTES = 1 << 20
Port = Field(default=None, ge=1, le=65535)


def expression(value: str | None) -> str | None:
    """Return a regular expression as it was. Raises `ValueError` when it is none."""
    expressions.compiled(value or "")
    return value


class Answers(Strict):
    """How the guest answers, in at least one way: the ports of its services, pings, or a line on its console."""

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
        """Whether any of it comes over the network."""
        return self.ping or not (self.udp is None and self.tcp is None and self.http is None)

    @model_validator(mode="after")
    def _one(self) -> Self:
        if not self.by_network and self.console is None:
            raise ValueError("name at least one port (udp, tcp or http), ping = true, or a line of the console")
        return self


class Box(Strict):
    """What to boot, and how."""

    vmm: Literal["qemu", "firecracker", "xen", "hvt", "spt"] = "qemu"
    machine: Literal["q35", "pc", "microvm", "pv", "pvh"] | None = None  # None: the first of its monitor's
    kernel: Path | None = None
    initrd: Path | None = None
    disk: Path | None = None  # raw or qcow2; what the guest writes is thrown away
    disk_device: Literal["virtio-blk-pci", "virtio-blk-device", "ide-hd"] | None = None  # None: virtio of its machine
    cmdline: str = ""
    memory: int = Field(default=USUAL_MEMORY, ge=MIN_TENDER_MEMORY, le=1 << 30)  # MiB
    cpus: int = Field(default=1, ge=1, le=1 << 16)
    network: Literal["virtio-net-pci", "virtio-net-device", "e1000", "e1000e", "rtl8139"] | None = None  # as the disk's
    link: Literal["tap", "user", "none"] = "tap"  # user: QEMU's own stack, which has a DHCP server; none: no card
    ip: str | None = None  # the address that the guest has by itself
    dhcp: bool = False  # a DHCP server on tare's bridge gives the guest its address
    machine_options: str = Field(default="", pattern=r"^([A-Za-z0-9_.-]+=[A-Za-z0-9_.-]+(,|$))*$")  # rtc=on,acpi=off
    cpu: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.,=+-]*$")  # QEMU's name of a CPU model
    arguments: tuple[str, ...] = Field(default=(), strict=False)  # of QEMU's, handed on word by word
    net_name: str = Field(default="service", pattern=r"^[A-Za-z0-9]{1,67}$")  # the names of a unikernel's devices
    disk_name: str = Field(default="storage", pattern=r"^[A-Za-z0-9]{1,67}$")
    console: str | None = None  # a regular expression that the console must show as well
    answers: Answers

    @field_validator("kernel", "initrd", "disk", mode="before")
    @classmethod
    def _path(cls, value: object) -> object:
        return Path(value) if isinstance(value, str) else value

    @field_validator("console")
    @classmethod
    def _expression(cls, value: str | None) -> str | None:
        return expression(value)

    @field_validator("ip")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        return None if value is None else str(ipaddress.IPv4Address(value))

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
        self._check_address()
        return self

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

    def command_line(self, **places: str) -> str:
        """The guest's command line with the `PLACES` filled in, each in braces."""
        text = self.cmdline
        for name in PLACES:
            text = text.replace(f"{{{name}}}", places[name])
        return text


def parse(text: str, name: str) -> Box:
    """A box from TOML text; ``name`` is for the error. Raises `UsageError` with one line."""
    return of_a_file(Box, parse_toml(text, name, FIX), name, FIX)


def load(file: Path) -> Box:
    """Read a box's file; paths in it are relative to it. Raises `UsageError` that names the field."""
    box = parse(read_text(file, FIX, largest=MAX_FILE_BYTES), str(file))
    if box.arguments:
        refuse_writable(file, "has arguments for QEMU, which tare starts as root")
    paths = {name: file.parent / path for name in ("kernel", "initrd", "disk") if (path := getattr(box, name))}
    for name, path in paths.items():
        if not path.is_file():
            raise UsageError(
                f"{file}: {name}: there is no file {path}", fix="correct the path; it is relative to the file"
            )
    return box.model_copy(update=paths)
