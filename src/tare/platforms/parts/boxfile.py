"""The file that describes a black box: a kernel or disk image to boot, and what it answers. Every field is checked."""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from tare.errors import UsageError

#: What a monitor lets the file choose, by field; Firecracker has one machine, and a disk is a disk to it and to Xen.
MACHINES = {"qemu": ("q35", "pc", "microvm"), "firecracker": (), "xen": ("pv", "pvh")}
ONLY_QEMU = ("disk_device", "network", "link")
#: What a command line may name, in braces; other braces are the guest's own.
PLACES = ("ip", "prefix", "gateway", "mac")
FIX = "docs/platforms.md, blackbox, has an example"
#: Bytes of a box's file.
LONGEST = 1 << 20
Port = Field(default=None, ge=1, le=65535)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Answers(_Strict):
    """The ports on which the guest answers; at least one."""

    udp: int | None = Port  # echoes datagrams
    tcp: int | None = Port  # echoes what a connection brings
    http: int | None = Port
    path: str = Field(default="/", pattern=r"^/[!-~]*$")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.udp is None and self.tcp is None and self.http is None:
            raise ValueError("name at least one port: udp, tcp or http")
        return self


class Box(_Strict):
    """What to boot, and how."""

    vmm: Literal["qemu", "firecracker", "xen"] = "qemu"
    machine: Literal["q35", "pc", "microvm", "pv", "pvh"] | None = None  # None: the first of its monitor's
    kernel: Path | None = None
    initrd: Path | None = None
    disk: Path | None = None  # raw or qcow2; what the guest writes is thrown away
    disk_device: Literal["virtio-blk-pci", "virtio-blk-device", "ide-hd"] = "virtio-blk-pci"
    cmdline: str = ""
    memory: int = Field(default=256, ge=8, le=1 << 30)  # MiB
    cpus: int = Field(default=1, ge=1, le=1 << 16)
    network: Literal["virtio-net-pci", "virtio-net-device", "e1000", "e1000e", "rtl8139"] = "virtio-net-pci"
    link: Literal["tap", "user"] = "tap"  # user: QEMU's own stack, which has a DHCP server
    console: str | None = None  # a regular expression that the console must show as well
    answers: Answers

    @field_validator("kernel", "initrd", "disk", mode="before")
    @classmethod
    def _path(cls, value: object) -> object:
        return Path(value) if isinstance(value, str) else value

    @field_validator("console")
    @classmethod
    def _expression(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        return value

    @model_validator(mode="after")
    def _whole(self) -> Self:
        known = MACHINES[self.vmm]
        if self.machine is not None and self.machine not in known:
            raise ValueError(f"{self.vmm} has no machine {self.machine}{': ' if known else ''}{', '.join(known)}")
        if self.vmm != "qemu" and (qemu_fields := sorted(self.model_fields_set.intersection(ONLY_QEMU))):
            raise ValueError(f"{qemu_fields[0]} is a choice of QEMU's, and the box is {self.vmm}'s")
        if self.vmm != "qemu" and self.kernel is None:
            raise ValueError(f"{self.vmm} boots a kernel: name one")
        if self.kernel is None and self.disk is None:
            raise ValueError("name a kernel or a disk to boot")
        if self.kernel is None and (self.initrd is not None or self.cmdline):
            raise ValueError("initrd and cmdline go with a kernel")
        if self.link == "tap" and "{ip}" not in self.cmdline:
            raise ValueError('cmdline must hand on {ip}, or link be "user": there is no DHCP server on a TAP')
        return self

    @property
    def board(self) -> str:
        """The machine; "" where the monitor has only one."""
        return self.machine or next(iter(MACHINES[self.vmm]), "")

    def command_line(self, **places: str) -> str:
        """The guest's command line with ``{ip}``, ``{prefix}``, ``{gateway}`` and ``{mac}`` filled in."""
        text = self.cmdline
        for name in PLACES:
            text = text.replace(f"{{{name}}}", places[name])
        return text


def parse(text: str, name: str) -> Box:
    """A box from TOML text; ``name`` is for the error. Raises `UsageError` with one line."""
    try:
        return Box.model_validate(tomllib.loads(text))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        why = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{name}: {f'{field}: ' if field else ''}{why}", fix=FIX) from error
    except (ValueError, RecursionError) as error:  # tomllib raises more than its own, for long numbers and deep lists
        raise UsageError(f"{name} is not TOML: {error}", fix=FIX) from error


def load(file: Path) -> Box:
    """Read a box's file; paths in it are relative to it. Raises `UsageError` that names the field."""
    try:
        seen = file.stat()
        # A pipe or a device may never end.
        short = stat.S_ISREG(seen.st_mode) and seen.st_size <= LONGEST
        text = file.read_text(encoding="utf-8") if short else None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", fix="name the TOML file of a black box") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not TOML: {error}", fix=FIX) from error
    if text is None:
        raise UsageError(f"{file} is no file, or not a short one", fix="name the TOML file of a black box")
    box = parse(text, str(file))
    paths = {name: file.parent / path for name in ("kernel", "initrd", "disk") if (path := getattr(box, name))}
    for name, path in paths.items():
        if not path.is_file():
            raise UsageError(
                f"{file}: {name}: there is no file {path}", fix="correct the path; it is relative to the file"
            )
    return box.model_copy(update=paths)
