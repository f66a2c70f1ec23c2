"""Domain XML as pure data, held against files that libvirt's own schema accepts."""

from dataclasses import replace
from pathlib import Path

import pytest

from tare.host import processes
from tare.platforms.parts.libvirt.domain import (
    AGENT_ON_STREAM,
    Container,
    DomainMachine,
    Link,
    container_xml,
    machine_xml,
)
from tare.platforms.parts.machines.disks import DiskIo

GOLDEN = Path(__file__).parent / "data"
CONTAINER = Container(
    name="tare-ab1x2",
    cpus=(1, 3),
    memory_bytes=512 << 20,
    command=("/bin/sh", "-c", AGENT_ON_STREAM, "/usr/local/bin/tare-agent", "serve"),
    mounts={"/": Path("/work/root"), "/data": Path("/work/data")},
    link=Link("tareab1x2", "02:7a:0a:4d:00:0a", "tare0"),
    address="10.77.0.10",
    prefix=24,
    gateway="10.77.0.1",
    emulator=Path("/entrance"),
    read_only=(Path("/proc/irq"),),
    masked={Path("/proc/keys"): Path("/dev/null"), Path("/sys/firmware"): None},
)
MACHINE = DomainMachine(
    kind="qemu",
    name="tare-ab1x2",
    cpus=(1, 3),
    memory_bytes=256 << 20,
    kernel=Path("/kernel"),
    initramfs=Path("/initramfs"),
    command_line="console=ttyS0 -- serve",
    root=Path("/root.qcow2"),
    root_format="qcow2",
    data=Path("/data.ext4"),
    console=Path("/console.log"),
    link=Link("tareab1x2", "02:7a:0a:4d:00:0a", None),
    control=Path("/control"),
    emulator=Path("/entrance"),
    disks=DiskIo("none", "io_uring"),
)
#: By a daemon of the user's, with hardware.
FOREIGN = replace(MACHINE, kind="kvm", emulator=None, security=("apparmor", "dac"))
XEN = replace(
    MACHINE,
    kind="xen",
    root=Path("/dev/loop1"),
    data=Path("/dev/loop2"),
    root_format="phy",
    link=Link("tareab1x2", "02:7a:0a:4d:00:0a", "tare0"),
    control=None,
    emulator=None,
    disks=None,
)
ALL = {
    "container": container_xml(CONTAINER),
    "machine": machine_xml(MACHINE),
    "foreign": machine_xml(FOREIGN),
    "xen": machine_xml(XEN),
}


@pytest.mark.parametrize("name", ALL)
def test_a_domain_is_as_the_golden_file_has_it(name):
    assert ALL[name] == (GOLDEN / f"libvirt-{name}.xml").read_text()


@pytest.mark.host
@pytest.mark.parametrize("name", ALL)
def test_libvirts_own_schema_accepts_it(name):
    checked = processes.run(["virt-xml-validate", str(GOLDEN / f"libvirt-{name}.xml"), "domain"])
    assert checked.code == 0, checked.stderr.decode()


def test_words_that_mean_something_in_xml_are_only_words():
    text = container_xml(replace(CONTAINER, command=("/bin/sh", "-c", "a <&3 && b >'c'")))
    assert "<initarg>a &lt;&amp;3 &amp;&amp; b &gt;'c'</initarg>" in text


def test_a_container_without_a_network_has_no_link():
    assert "<interface" not in container_xml(replace(CONTAINER, link=None))
