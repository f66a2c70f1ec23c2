"""Xen: a paravirtual guest beside the host, which is Xen's dom0, by ``xl`` from a configuration file.

The agent is the guest's PID 1 and connects to the host by TCP. Xen's console cannot carry its stream: xenconsoled
handles at most 30 events in 200 ms for each guest, and drops the middle of output that was not read in time.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tare.errors import HostError, ImageError, PlatformError
from tare.host import distribution, processes
from tare.host.kernel import host_text, pinning
from tare.host.network.fence import BRIDGE
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.image import guest
from tare.image.image_build import Image
from tare.platforms.base import Availability, Instance, Instant, LaunchSpec, Platform, Prepared
from tare.platforms.parts.common import left_open
from tare.platforms.parts.common.attempt import TrialSite, complaint
from tare.platforms.parts.common.callback import StartedMachine, come_up
from tare.platforms.parts.machines import vm

KIND = "xen"
#: Shows whether this is the domain that controls the others.
CAPABILITIES = Path("/proc/xen/capabilities")
DESTROY_LIMIT_S = 20.0
FIX = (
    f"{distribution.install('xen-system-amd64')} and boot this host by it; "
    "or tare lab run --flavour xen -- tare run -p xen-pv"
)
RUNS = "tare-guest-runs"
#: Xen's console goes through the terminal of `xl create -c`, which a pipe is not.
CONSOLE = ("xl", "create", "-F", "-c")
#: Ends with 0 when the command's output has the first argument in it.
_UNTIL = '"$@" 2>&1 </dev/null | grep "$0" || exit 1'


@dataclass(frozen=True, slots=True)
class Domain:
    """All that a guest's configuration depends on."""

    name: str
    kernel: Path
    initramfs: Path | None
    words: Sequence[str]  # the kernel's command line
    memory_bytes: int
    cpus: Sequence[int]  # those of the host that it runs on
    disks: Sequence[str] = ()  # block devices, in order
    link: str = ""  # name of its end on the bridge; "": no network
    mac: str = ""
    vcpus: int = 0  # 0: as many as CPUs
    kind: str = "pv"  # or pvh


def config(domain: Domain) -> str:
    """Return the guest's configuration (xl.cfg(5))."""
    disks = [f"format=raw,vdev=xvd{'ab'[n]},access=rw,target={device}" for n, device in enumerate(domain.disks)]
    links = [f"mac={domain.mac},bridge={BRIDGE},vifname={domain.link}"] if domain.link else []
    lines = [
        f'name = "{domain.name}"',
        f'type = "{domain.kind}"',
        f"kernel = {_quoted(str(domain.kernel))}",
        *([f"ramdisk = {_quoted(str(domain.initramfs))}"] if domain.initramfs is not None else []),
        f"cmdline = {_quoted(' '.join(domain.words))}",
        f"memory = {domain.memory_bytes >> 20}",
        f"vcpus = {domain.vcpus or len(domain.cpus)}",
        f'cpus = "{",".join(map(str, domain.cpus))}"',
        f"disk = {_listed(disks)}",
        f"vif = {_listed(links)}",
        *(f'{event} = "destroy"' for event in ("on_poweroff", "on_reboot", "on_crash")),
    ]
    return "\n".join(lines) + "\n"


def _listed(words: Sequence[str]) -> str:
    return f"[{', '.join(map(_quoted, words))}]"


def _quoted(text: str) -> str:
    """Return a string of xl.cfg(5), of a text that a stranger may have written.

    Raises `PlatformError` where none holds it.
    """
    if any(ord(sign) < 32 or ord(sign) == 127 for sign in text):
        raise PlatformError(f"Xen's configuration holds no control characters: {text[:80]!r}")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class Xen(Platform):
    """A PV guest with two block devices and a vif on the bridge; what it writes goes to raw files on the host."""

    shares_data = False
    disk_cache = vm.DISK_CACHE
    no_direct_io = "the disk is a loop device over a file on the host, which goes through the host's page cache"
    keeps_quota = False
    own_kernel = True
    daemon = "xenstored"
    by_default = False
    network_path = "client, bridge, vif (netback, netfront)"
    open_by_design = left_open.BY_BRIDGE
    not_honoured = (
        "its CPU time is not counted: Xen runs the guest beside the host, which sees the tools and back ends alone",
        "the memory limit is the guest's own size, held by Xen; what the host does for it comes on top",
        "its CPUs are Xen's, which are the host's when dom0 has all of them, in order",
        vm.OWN_VOLUME,
    )

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self.title = title

    def detect(self) -> Availability:
        """Check that this is Xen's dom0, and boot a trivial guest."""
        if not is_dom0():
            return Availability(False, reason="this host does not run under Xen as dom0", fix=FIX)
        if processes.find("xl") is None:
            return Availability(False, reason="xl is not installed", fix=distribution.install("xen-system-amd64"))
        try:
            finished = processes.run(["xl", "info", "xen_version"], time_limit_s=10).require(fix="start xenstored")
            boot_files = guest.ensure(KIND)
            why = complaint(lambda site: _trivial(site, boot_files))
        except (ImageError, HostError) as error:
            return Availability(False, reason=error.what, fix=error.fix or "")
        if why:
            return Availability(False, reason=f"a trivial guest fails: {why}", fix="see `xl dmesg` and /var/log/xen")
        return Availability(True, version=finished.text.strip(), details={"guest kernel": boot_files.release})

    def prepare(self, image: Image) -> Prepared:
        """Return the image as an ext4 filesystem; each guest gets a copy that is thrown away."""
        return vm.prepared(vm.root_disk(image), guest.ensure(KIND), "xl")

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Make the disks, listen for the agent, and create the guest."""
        endpoint, link = spec.network.new_endpoint(cleanup, spec.id)
        boot_files = guest.ensure(KIND)
        files = (root(spec), vm.data_volume(spec.space.data))
        name = f"tare-{spec.id}"
        with spec.network.listener() as listener:
            words = ["console=hvc0", "quiet", "panic=-1", "tare.channel=network", "tare.disk=xvd"]
            words += [f"tare.ip={endpoint.address}/{spec.network.prefix}", f"tare.gw={spec.network.host}", "--"]
            words += [*spec.agent_argv()[1:], "--host", f"tcp:{spec.network.host}:{listener.getsockname()[1]}"]
            domain = Domain(
                name=name,
                kernel=boot_files.kernel,
                initramfs=boot_files.initramfs,
                words=words,
                memory_bytes=spec.resources.memory_bytes,
                cpus=spec.resources.cpus,
                disks=[loop_device(cleanup, file) for file in files],
                link=link,
                mac=endpoint.mac,
            )
            begun = StartedMachine(*_create(spec, cleanup, domain), what="Xen", off=lambda: off(name))
            instance = come_up(spec, listener, begun, endpoint.address, peer=endpoint.address)
        return replace(instance, accounted=False)


def is_dom0() -> bool:
    """Return True if this host is the domain that controls Xen's others."""
    try:
        return "control_d" in host_text.read(CAPABILITIES)
    except OSError:
        return False


def loop_device(cleanup: CleanupStack, file: Path) -> str:
    """Return a block device over a file: Xen's back end takes no files."""
    cleanup.own(removers.loop(file))
    return processes.run(["losetup", "--find", "--show", str(file)]).require(fix="modprobe loop").text.strip()


def _trivial(site: TrialSite, boot_files: guest.Guest) -> list[str]:
    name = f"tare-{site.folder.name}"
    words = ["console=hvc0", "quiet", "panic=-1", "tare.probe"]
    file = site.folder / "config"
    cpus = sorted(pinning.usable())[-1:]
    file.write_text(config(Domain(name, boot_files.kernel, boot_files.initramfs, words, 256 << 20, cpus)))
    site.cleanup.own(removers.xen_domain(name))
    # The exit code of xl itself is 0 even where the guest fails.
    return ["sh", "-c", _UNTIL, RUNS, *CONSOLE, str(file)]


def _create(spec: LaunchSpec, cleanup: CleanupStack, domain: Domain) -> tuple[Instant, subprocess.Popen[bytes]]:
    file = spec.space.folder / "config"
    file.write_text(config(domain))
    cleanup.own(removers.xen_domain(domain.name))
    return vm.begin(spec, [*CONSOLE, str(file)])


def off(name: str) -> None:
    """End the guest, if it exists; what stays is left to its remover."""
    processes.run(["xl", "destroy", name], time_limit_s=DESTROY_LIMIT_S)


def root(spec: LaunchSpec) -> Path:
    """Return a copy of the root, as a file."""
    return vm.copied(vm.root_disk(spec.image), spec.space.data / "root.ext4")


PLATFORMS = (Xen("xen-pv", "Xen, a paravirtual guest by xl"),)
