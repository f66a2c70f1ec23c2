"""Parts of a virtual machine besides the image: a guest kernel, and an initramfs that mounts the image.

The kernel is Debian's cloud kernel, unpacked below TARE_HOME and never installed on the host. Both parts are cached:
the kernel by its version, the initramfs by the hash of its contents.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import lzma
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from tare.errors import ImageError
from tare.host import distribution, processes, state
from tare.image import vmlinux

METAPACKAGE = "linux-image-cloud-amd64"
#: Modules by kind of guest, in the order of their dependencies. ext4 is built into this kernel.
_VIRTIO = (
    "virtio_ring", "virtio", "virtio_mmio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci",
    "virtio_blk", "failover", "net_failover", "virtio_net", "virtio_console",
)  # fmt: skip
MODULES: Mapping[str, Sequence[str]] = {
    "virtio": _VIRTIO,
    "virtiofs": (*_VIRTIO, "fuse", "virtiofs"),
    "firecracker": (
        "virtio_ring", "virtio", "virtio_mmio", "virtio_blk", "failover", "net_failover", "virtio_net",
        "vsock", "vmw_vsock_virtio_transport_common", "vmw_vsock_virtio_transport",
    ),
    "cloud-hypervisor": (
        "virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci",
        "virtio_blk", "failover", "net_failover", "virtio_net",
        "vsock", "vmw_vsock_virtio_transport_common", "vmw_vsock_virtio_transport",
    ),
    "xen": ("xen-blkfront", "xen-netfront"),
    "network": (
        "virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci",
        "failover", "net_failover", "virtio_net",
    ),
    "network-firecracker": ("virtio_ring", "virtio", "virtio_mmio", "failover", "net_failover", "virtio_net"),
    "network-xen": ("xen-netfront",),
}  # fmt: skip
#: Programs that the boot script needs beside its shell; busybox acts by the name it is called by.
APPLETS = ("insmod", "ip", "mkfifo", "mount", "poweroff", "reboot", "switch_root", "usleep")
DOWNLOAD_LIMIT_S = 300.0
UNPACKED_CAP = 256 << 20


#: Files in the folder of the kernel that boots without an initramfs (`direct_folder`).
PACKED, RELEASE = "vmlinuz", "release"


@dataclass(frozen=True, slots=True)
class Guest:
    """A kernel and its initramfs."""

    release: str  # From ``uname`` inside.
    kernel: Path
    initramfs: Path


@dataclass(frozen=True, slots=True)
class Direct:
    """A kernel that boots from its disk by itself."""

    release: str
    kernel: Path


def ensure(kind: str = "virtio", program: bytes | None = None) -> Guest:
    """Return the kernel and initramfs of a kind of guest, from the cache or newly made. Raises `ImageError`.

    ``program``: a static program for the guest to run in place of the image. It loads the modules itself.
    """
    folder = state.home() / "guest"
    folder.mkdir(exist_ok=True)
    place = _kernel(folder)
    kernel = next((place / "boot").glob("vmlinuz-*"))
    release = kernel.name.removeprefix("vmlinuz-")
    if kind.endswith(("firecracker", "cloud-hypervisor")):
        kernel = vmlinux.ensure(kernel)
    return Guest(release, kernel, _initramfs(folder, place, release, MODULES[kind], program))


def direct_folder() -> Path:
    """Return the folder of the kernel with all microVM drivers built in, which boots without an initramfs."""
    return state.home() / "guest" / "direct"


def direct(*, plain: bool = False) -> Direct:
    """Return the kernel that boots without an initramfs. Raises `ImageError` if it was not built.

    ``plain``: as an ELF file, for Firecracker.
    """
    kernel, release = direct_folder() / PACKED, direct_folder() / RELEASE
    if not kernel.exists() or not release.exists():
        raise ImageError(
            f"there is no kernel in {direct_folder()} that boots without an initramfs",
            fix="make direct-kernel, in a clone on a Debian host: half an hour of two processors",
        )
    return Direct(release.read_text().strip(), vmlinux.ensure(kernel) if plain else kernel)


def config() -> Path:
    """Return the configuration of the guest's kernel, Debian's cloud kernel. Raises `ImageError`."""
    return next((_kernel(state.home() / "guest") / "boot").glob("config-*"))


def _kernel(folder: Path) -> Path:
    cached = [path for path in folder.glob("linux-image-*") if path.is_dir()]
    if cached:
        return max(cached, key=lambda path: [int(number) for number in re.findall(r"\d+", path.name)])
    if processes.find("apt-get") is None:
        raise ImageError(
            "the guest's kernel is Debian's, and this host has no apt-get, which fetches it",
            fix=f"run a machine with tare on a Debian host, and copy its TARE_HOME's guest/linux-image-* to {folder}",
        )
    package = depends(processes.run(["apt-cache", "show", "--no-all-versions", METAPACKAGE]).text)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        fetch, env = ["apt-get", "download", package], processes.kept(*processes.DOWNLOADS)
        fetched = processes.run(fetch, cwd=Path(scratch), env=env, time_limit_s=DOWNLOAD_LIMIT_S)
        files = list(Path(scratch).glob("*.deb"))
        if fetched.code != 0 or len(files) != 1:
            raise ImageError(f"the guest's kernel {package} cannot be fetched: {fetched.message}", fix="apt-get update")
        unpacked = Path(scratch, "unpacked")
        processes.run(["dpkg-deb", "-x", str(files[0]), str(unpacked)], time_limit_s=120).require()
        place = folder / package
        unpacked.rename(place)
    return place


def depends(shown: str) -> str:
    """Return the kernel's package, from the metapackage's ``apt-cache show`` output. Raises `ImageError`."""
    for line in shown.splitlines():
        if line.startswith("Depends: linux-image-"):
            return line.removeprefix("Depends: ").split()[0]
    raise ImageError(
        f"Debian's archive shows no {METAPACKAGE}", fix="apt-get update; tare needs a Debian host for guests"
    )


def _initramfs(folder: Path, place: Path, release: str, modules: Sequence[str], program: bytes | None) -> Path:
    shell = busybox_path()  # This raises if cpio is missing.
    busybox = shell if program is None else None
    init = program or resources.files("tare.image").joinpath("init.sh").read_bytes()
    files = _module_files(place / "lib" / "modules" / release)
    # A module without a file is built in.
    as_files = [files[name.replace("-", "_")] for name in modules if name.replace("-", "_") in files]
    named = " ".join((release, *(file.name for file in as_files), *(APPLETS if busybox else ()))).encode()
    digest = hashlib.sha256(init + (busybox.read_bytes() if busybox else b"") + named).hexdigest()[:16]
    initramfs = folder / f"initramfs-{digest}.gz"
    if not initramfs.exists():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            packed = Path(scratch, "packed")
            packed.write_bytes(pack(init, busybox, as_files))
            packed.rename(initramfs)
    return initramfs


def with_needed(modules: Sequence[str]) -> list[Path]:
    """Return the files of the modules, each after the modules that it needs. Raises `ImageError`."""
    place = _kernel(state.home() / "guest")
    files = _module_files(place / "lib" / "modules")
    in_order: dict[str, Path] = {}

    def add(name: str) -> None:
        file = files.get(name.replace("-", "_"))
        if file is None or name in in_order:  # A module without a file is built in.
            return
        for needed in needs(module_bytes(file)):
            add(needed)
        in_order[name] = file

    for name in modules:
        add(name)
    return list(in_order.values())


@functools.cache
def _module_files(folder: Path) -> Mapping[str, Path]:
    """Return the modules below a folder by name. The kernel treats dash and underscore in a name as equal."""
    return {module_name(file).replace("-", "_"): file for file in folder.rglob("*.ko*")}


def module_name(file: Path) -> str:
    """Return a module's name from its file: ``virtio_blk.ko``, in Debian 13 ``virtio_blk.ko.xz``."""
    return file.name.partition(".ko")[0]


def module_bytes(file: Path) -> bytes:
    """Return a module uncompressed, because not every kernel unpacks modules, and busybox's insmod never does."""
    contents = file.read_bytes()
    return lzma.decompress(contents) if file.suffix == ".xz" else contents


def put_modules(files: Sequence[Path], folder: Path) -> None:
    """Write modules to a folder, with their load order in the file ``order``, for a boot script."""
    for file in files:
        Path(folder, f"{module_name(file)}.ko").write_bytes(module_bytes(file))
    Path(folder, "order").write_text("".join(f"{module_name(file)}\n" for file in files))


def needs(module: bytes) -> list[str]:
    """Return the names of the modules that a module needs, from its ``.modinfo``."""
    _, separator, rest = module.partition(b"\0depends=")
    return [name for name in rest.partition(b"\0")[0].decode().split(",") if name] if separator else []


def busybox_path() -> Path:
    """Return the host's static busybox, and check that cpio exists too. Raises `ImageError`."""
    busybox = processes.find("busybox")
    if busybox is None or processes.find("cpio") is None:
        raise ImageError(
            "busybox and cpio are needed for the guest", fix=distribution.install("busybox-static", "cpio")
        )
    return Path(busybox)


def pack(init: bytes, busybox: Path | None, modules: Sequence[Path]) -> bytes:
    """Return a compressed initramfs with busybox, its init, and modules; their order is in ``/modules/order``."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch)
        for name in ("bin", "dev", "proc", "sys", "root", "modules"):
            (tree / name).mkdir(parents=True)
        if busybox is not None:
            shutil.copy(busybox, tree / "bin" / "busybox")
            for name in APPLETS:
                (tree / "bin" / name).symlink_to("busybox")
        (tree / "init").write_bytes(init)
        (tree / "init").chmod(0o755)
        put_modules(modules, tree / "modules")
        for path in (tree, *tree.rglob("*")):  # Makes the bytes independent of the time of packing.
            os.utime(path, (0, 0), follow_symlinks=False)
        return gzip.compress(_cpio(tree), mtime=0)


def _cpio(tree: Path) -> bytes:
    names = "\n".join(sorted(str(path.relative_to(tree)) for path in tree.rglob("*")))
    argv = ["cpio", "--quiet", "--reproducible", "-o", "-H", "newc"]
    return processes.run(argv, stdin=names.encode(), output_cap=UNPACKED_CAP, cwd=tree).require().stdout
