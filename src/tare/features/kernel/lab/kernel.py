"""Kernel that counts its own lines (flavour `lines`): Debian's source, compiled with counters on every branch.

Source and compiler are in a root of their own, which is removed after the build; nothing is installed on the host. The
cache keeps the kernel, the tools that turn its counters into lines (the compiler's notes, and gcov of the compiler's
version with its libraries), all lines with code, and their sources.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import lzma
import posixpath
import re
import shutil
import tarfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import IO, cast

from tare.errors import ImageError
from tare.features.kernel.lab import gcov, lab_build, lab_recipes
from tare.host import processes
from tare.host.filesystems import archives
from tare.host.kernel import pinning
from tare.image.build_places import atomic_directory, locked
from tare.model import Progress
from tare.timeouts import stretched, until

#: The tree's path in the build root, and thus in the kernel's own names for its counters.
TOP = "/usr/src/linux"
#: Generous, because the build has the lowest priority and is slow on a busy machine.
LIMIT_S = 4 * 3600.0
CONFIGURE_LIMIT_S = 600.0
_TURN_S = 2.0
_COMPILED = re.compile(rb"^  CC  ", re.MULTILINE)
#: Only the build sees the mounts, and all of it ends with tare.
_ALONE = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child")
_ENTER = """\
root=$1; shift
mount --bind /dev "$root/dev"
mount -t proc proc "$root/proc"
exec chroot "$root" nice -n 19 sh /kernel.sh "$@"
"""
#: Above the size of the kernel's whole source.
MAX_UNPACKED_BYTES = 4 << 30


@dataclass(frozen=True, slots=True)
class Counting:
    """A kernel that counts, with the tools that read its counters."""

    place: Path

    @property
    def image(self) -> Path:
        """The file of the kernel itself (bzImage), which the lab boots."""
        return self.place / "bzImage"

    @property
    def packages(self) -> dict[str, str]:
        """The packages of the source and the compiler, with their versions."""
        return dict(json.loads((self.place / "packages.json").read_text()))

    def unpack_notes(self, folder: Path) -> list[str]:
        """Unpack the compiler's notes into a folder. Return the objects: their paths in the tree without suffix."""
        with gzip.open(self.place / "notes.tar.gz") as packed:
            return sorted(name.removesuffix(gcov.NOTES) for name in _unpack(packed, folder))

    def gcov(self) -> list[str]:
        """Return the command for gcov of the compiler's version."""
        return _gcov(self.place / "gcov")

    def lines(self) -> dict[str, list[int]]:
        """All lines with code, by path of the source."""
        return dict(json.loads(gzip.decompress((self.place / "lines.json.gz").read_bytes())))

    @property
    def config(self) -> str:
        """The text of the configuration that the kernel was built with."""
        return (self.place / "config").read_text()

    @property
    def functions(self) -> Path:
        """Functions and their sources, as CSV with the columns name and file (see `by_function`)."""
        return self.place / "functions_by_file.csv"

    def unpack_sources(self, folder: Path) -> None:
        """Unpack the sources that have lines with code into a folder, by their path in the tree."""
        with lzma.open(self.place / "sources.tar.xz") as packed:
            _unpack(packed, folder)


def _unpack(packed: gzip.GzipFile | lzma.LZMAFile, folder: Path) -> list[str]:
    """Unpack a tar into a folder, and return the files' names. tarfile of Debian 12's Python has no filters."""
    names = []
    for name, contents in archives.members(cast("IO[bytes]", packed), MAX_UNPACKED_BYTES):
        if contents is not None:
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("wb") as file:
                shutil.copyfileobj(contents, file)
            names.append(str(name))
    return names


def ensure(flavour: str, progress: Progress, *, renew: bool = False) -> Counting | None:
    """Return the kernel of a flavour that has its own, from the cache or newly built; None for other flavours.

    ``renew``: build it again if Debian has a newer source. Otherwise a kernel of an older source stays in use, so that
    new footprints can be compared with older ones by line. Raises `ImageError`.
    """
    kernel = lab_recipes.load().resolved(flavour)[1]
    if kernel is None:
        return None
    # This folder has its own lock, so that labs of other flavours need not wait for a build.
    folder = lab_build.folder() / "kernels"
    folder.mkdir(exist_ok=True)
    with locked(folder, progress, "the kernel that counts"):
        kernels = cached(kernel, lab_build.folder())
        if kernels and not renew:
            return Counting(kernels[-1])
        versions = {package: candidate_of(package) for package in (kernel.source, kernel.compiler)}
        place = folder / f"{_name(kernel)}-{hashlib.sha256(repr(sorted(versions.items())).encode()).hexdigest()[:8]}"
        if not place.is_dir():
            progress(f"building the kernel that counts its lines from {kernel.source} {versions[kernel.source]}")
            with atomic_directory(place, "the kernel that counts") as new_folder:
                _make(new_folder, kernel, versions, asked_config(), progress)
    return Counting(place)


def cached(kernel: lab_recipes.Kernel, lab: Path) -> list[Path]:
    """Return kernels of this recipe that were built in the lab's folder, newest last, for any version of the source."""
    return sorted((lab / "kernels").glob(f"{_name(kernel)}-*"), key=lambda path: path.stat().st_mtime)


def _name(kernel: lab_recipes.Kernel) -> str:
    """Return the name with a hash over everything that decides the build."""
    text = json.dumps([asked_config(), _script(), kernel.source, kernel.compiler, kernel.packages])
    return f"{kernel.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def asked_config() -> str:
    """Return the requested options of the kernel's configuration."""
    return resources.files("tare.features.kernel.lab").joinpath("gcov.config").read_text()


def missing(asked: str, got: str) -> list[str]:
    """Return the requested options that a configuration lacks, as "CONFIG_X=y" or "# CONFIG_X is not set"."""
    options = _options(got)
    return [
        f"{name}={value}" if value else f"# {name} is not set"
        for name, value in _options(asked).items()
        if options.get(name, "") != value
    ]


def _options(text: str) -> dict[str, str]:
    """Parse options and their values; "" for an option that is not set."""
    settings = re.findall(r"^(?:# (CONFIG_\w+) is not set|(CONFIG_\w+)=(.*))$", text, re.MULTILINE)
    return {unset or name: value for unset, name, value in settings}


def candidate(policy: str) -> str | None:
    """Return the version that would be installed, from the output of ``apt-cache policy`` for a package, or None."""
    match = re.search(r"^  Candidate: (\S+)$", policy, re.MULTILINE)
    return None if match is None or match[1] == "(none)" else match[1]


def candidate_of(package: str) -> str:
    """Return the version of a package that would be installed here. Raises `ImageError` if there is no candidate."""
    version = candidate(processes.run(["apt-cache", "policy", package]).text)
    if version is None:
        raise ImageError(
            f"this host's apt shows no {package}", fix="apt-get update; the kernel that counts needs a Debian 12 host"
        )
    return version


def _script() -> str:
    return resources.files("tare.features.kernel.lab").joinpath("kernel.sh").read_text()


def _make(
    new_folder: Path, kernel: lab_recipes.Kernel, versions: Mapping[str, str], wanted_config: str, progress: Progress
) -> None:
    root = new_folder / "root"
    progress("  making the root that it is built in (about a minute)")
    lab_build.bootstrap(lab_recipes.build_root(kernel, versions), root)
    (new_folder / "packages.json").write_text(json.dumps(versions, indent=1))
    (root / "wanted.config").write_text(wanted_config)
    tree = root / TOP.lstrip("/")
    log = new_folder / "build.log"
    build_in(root, log, new_folder, wanted_config, kernel.compiler, kernel.objects, progress)
    shutil.copyfile(tree / "arch/x86/boot/bzImage", new_folder / "bzImage")
    progress("  keeping the notes and the sources of its lines")
    _keep(root, tree, new_folder, kernel.compiler)
    shutil.rmtree(root)


def build_in(
    root: Path, log: Path, new_folder: Path, wanted: str, compiler: str, objects: int, progress: Progress
) -> None:
    """Build a kernel in its root, which has ``/wanted.config``, and may have a ``/base.config``.

    ``wanted``: the text of ``/wanted.config``; ``objects``: the approximate number of files to compile. Raises
    `ImageError`, also if the result lacks a requested option.
    """
    (root / "kernel.sh").write_text(_script())
    progress("  unpacking and configuring the source")
    _step(root, log, ["configure", compiler], limit_s=CONFIGURE_LIMIT_S)
    _check(wanted, root / TOP.lstrip("/"), new_folder)
    _step(root, log, ["compile", compiler, str(_jobs())], limit_s=LIMIT_S, share=_Share(objects, progress))


def _check(wanted_config: str, tree: Path, new_folder: Path) -> None:
    got_config = (tree / ".config").read_text()
    (new_folder / "config").write_text(got_config)
    if lost := missing(wanted_config, got_config):
        raise ImageError(
            f"the kernel's configuration lacks requested options: {', '.join(lost)}",
            fix="change its .config in src/tare/features/kernel/lab: another name, or what the option depends on",
        )


class _Share:
    """Parser of make's output, which reports each tenth of the compilation."""

    def __init__(self, objects: int, progress: Progress) -> None:
        self._objects, self._progress = objects, progress
        self._began = time.monotonic()
        self._next = 10

    def __call__(self, printed: bytes) -> None:
        done = len(_COMPILED.findall(printed))
        share = min(99, 100 * done // self._objects)
        if share >= self._next:
            minutes = (time.monotonic() - self._began) / 60
            self._progress(f"  {done} of about {self._objects} files compiled ({share} %) after {minutes:.0f} min")
            self._next = share // 10 * 10 + 10


def _step(root: Path, log: Path, arguments: list[str], limit_s: float, share: _Share | None = None) -> None:
    """Run a step of the script in the root, with its output in the log. Raises `ImageError` with the cause from it."""
    argv = [*processes.WITH_TARE, *_ALONE, "sh", "-ec", _ENTER, "sh", str(root), *arguments]
    end = until(limit_s)
    with log.open("wb") as file:
        process = processes.start(argv, stdout=file, stderr=file)
        try:
            while process.poll() is None and time.monotonic() < end:
                time.sleep(_TURN_S)
                if share is not None:
                    share(log.read_bytes())
        finally:
            ended = process.poll()
            if ended is None:
                processes.kill_group(process)
                process.wait()
    if ended != 0:
        raise _failed(log.read_text(errors="replace"), arguments[0], ended, limit_s=limit_s)


def _failed(log: str, step: str, code: int | None, limit_s: float) -> ImageError:
    if code is None:
        return ImageError(
            f"the kernel's {step} was not done in {stretched(limit_s) / 60:.0f} minutes", fix="on a less busy machine"
        )
    if "No space left" in log:
        return ImageError("no space is left to build the kernel", fix="free some space, or set TARE_HOME")
    lines = [line.strip() for line in log.splitlines() if line.strip()] or ["no message"]
    # The first error is the cause. Later errors only say that each caller failed too.
    cause = next((line for line in lines if re.search(r"\berror\b|\*\*\*", line, re.IGNORECASE)), lines[-1])
    return ImageError(
        f"the kernel's {step} failed with {code}: {cause}", fix="see src/tare/features/kernel/lab/kernel.sh"
    )


def _jobs() -> int:
    return max(1, len(pinning.usable()))


def linked(vmlinux: bytes) -> list[str]:
    """Return the objects of a kernel that count, by path in the tree without suffix, from their counters' names.

    KVM is compiled in arch/x86/kvm by a path with dots; the kernel's folder of counters omits the dots too.
    """
    names = re.findall(rb"%s/([\w./+-]+)\%s\0" % (TOP.encode(), gcov.COUNTERS.encode()), vmlinux)
    return sorted({posixpath.normpath(name.decode()) for name in names})


def _keep(root: Path, tree: Path, new_folder: Path, compiler: str) -> None:
    """Copy the tools that read the kernel's counters out of the build."""
    objects = linked((tree / "vmlinux").read_bytes())
    if not objects:
        raise ImageError(
            "the kernel was built, but nothing in it counts", fix="see src/tare/features/kernel/lab/gcov.config"
        )
    _copy_gcov(root, new_folder / "gcov", compiler)
    with tarfile.open(new_folder / "notes.tar.gz", "w:gz") as tar:
        for name in objects:
            tar.add(tree / f"{name}{gcov.NOTES}", f"{name}{gcov.NOTES}")
    everything = gcov.cover(_gcov(new_folder / "gcov"), tree, objects, TOP, fresh=True)
    lines = {path: sorted(numbers) for path, numbers in sorted(everything.lines.items()) if numbers}
    (new_folder / "lines.json.gz").write_bytes(gzip.compress(json.dumps(lines).encode(), mtime=0))
    with Counting(new_folder).functions.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("name", "file"), *by_function(everything.functions).items()])
    with tarfile.open(new_folder / "sources.tar.xz", "w:xz", preset=1) as tar:
        for path in lines:
            if (tree / path).is_file():
                tar.add(tree / path, path)


def by_function(by_path: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return each function's source, from the functions of each source, without functions that several sources have.

    Several sources may have a static function of the same name. If a header also has a function, it belongs to the
    source: headers hold functions that are compiled into their callers.
    """
    sources_of: dict[str, set[str]] = {}
    for path, names in by_path.items():
        for name in names:
            sources_of.setdefault(name, set()).add(path)
    chosen = {name: {path for path in paths if path.endswith(".c")} or paths for name, paths in sources_of.items()}
    return {name: next(iter(paths)) for name, paths in sorted(chosen.items()) if len(paths) == 1}


def _copy_gcov(root: Path, folder: Path, compiler: str) -> None:
    """Copy gcov and its shared libraries, because the host may have other versions or none."""
    folder.mkdir()
    program = f"/usr/bin/{compiler.replace('gcc', 'gcov')}"
    listed = processes.run(["chroot", str(root), "/sbin/ldconfig", "-p"]).require().text
    libraries = dict(re.findall(r"^\s*(\S+) \(libc6,x86-64[^)]*\) => (\S+)$", listed, re.MULTILINE))
    for name in ("libc.so.6", "libm.so.6", "libz.so.1", "libzstd.so.1"):
        if name in libraries:
            _copy_within(root, libraries[name], folder / name)
    _copy_within(root, "/lib64/ld-linux-x86-64.so.2", folder / "ld.so")
    _copy_within(root, program, folder / "gcov")
    processes.run([*_gcov(folder), "--version"]).require(
        fix="see src/tare/features/kernel/lab/kernel.py: gcov's libraries"
    )


def _copy_within(root: Path, path: str, target: Path) -> None:
    """Copy a file of the root. Links are resolved within the root."""
    resolved = processes.run(["chroot", str(root), "readlink", "-f", path]).require().text.strip()
    shutil.copy(root / resolved.lstrip("/"), target)


def _gcov(folder: Path) -> list[str]:
    return [str(folder / "ld.so"), "--library-path", str(folder), str(folder / "gcov")]
