"""gVisor's runsc and its shim for containerd at one version, built from their Go module into ``TARE_HOME/bin``.

Debian 12's own is of 2022 and does not know systrap, gVisor's default of today; no package registry that checks what it
gives has a newer program, but Go's module proxy has the source, and a checksum database for it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from tare.errors import HostError
from tare.host import processes, state
from tare.model import Progress

#: Newer than the releases whose network stack crashed under TCP load when built with Go 1.26.
VERSION = "v0.0.0-20260905035102-160fafc42237"
#: The Go that this version asks for, and the first that can fetch another by itself.
GO = "1.26.3"
_FETCHES = (1, 21)
_MODULE = "gvisor.dev/gvisor"
#: By the name that containerd looks for.
SHIM = "containerd-shim-runsc-v1"
#: Of both the toolchain and the build, which fetches modules.
LIMIT_S = 3600.0
_REACH = "see that Go's module proxy can be reached (GOPROXY names another)"


def build(tell: Progress) -> None:
    """Build runsc where it is not there in this version. Raises `HostError`."""
    place = state.home_if_any() / "bin" / "runsc"
    if place.is_file() and processes.run([str(place), "--version"]).text.startswith(f"runsc version {VERSION}\n"):
        tell(f"runsc {VERSION} is there")
        return
    _install("runsc", place, tell)


def build_shim(tell: Progress) -> None:
    """Build the shim, and runsc for it, where they are not there in this version. Raises `HostError`."""
    build(tell)
    place = state.home_if_any() / "bin" / SHIM
    # It tells no version of its own, but Go notes in a program which module it was built from.
    if place.is_file() and VERSION in processes.run([_go(), "version", "-m", str(place)]).text:
        tell(f"{SHIM} {VERSION} is there")
        return
    _install("shim", place, tell)


def _install(package: str, place: Path, tell: Progress) -> None:
    go = _go()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if _version(go, folder) < _FETCHES:
            tell(f"fetching Go {GO}, for gVisor's build")
            go = _newer(go, folder)
        tell(f"building {place.name} {VERSION} (some minutes)")
        named = f"-ldflags=-s -w -X {_MODULE}/runsc/version.version={VERSION}"
        environment = {"GOBIN": scratch, "GOROOT": "", "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "auto"}
        # What debuggers read, `-s -w` leaves out of the program: it need not be made at all.
        argv = [go, "install", "-gcflags=all=-dwarf=false", named, f"{_MODULE}/{package}@{VERSION}"]
        processes.run(argv, cwd=folder, time_limit_s=LIMIT_S, env={**os.environ, **environment}).require(fix=_REACH)
        into_place(folder / package, place)


def into_place(built: Path, place: Path) -> None:
    """A program that was built, where tare looks for it; one that runs now is not written to, but replaced."""
    state.home()
    place.parent.mkdir(exist_ok=True)
    beside = place.with_name(f"{place.name}.new")
    shutil.copyfile(built, beside)
    beside.chmod(0o755)
    beside.replace(place)


def _go() -> str:
    """The host's Go; its own installer puts it where PATH does not look."""
    beside = Path("/usr/local/go/bin/go")
    go = processes.find("go") or (str(beside) if beside.is_file() else None)
    if go is None:
        raise HostError("Go is not installed, which builds gVisor", fix="tare setup --with gvisor, as root")
    return go


def _version(go: str, folder: Path) -> tuple[int, ...]:
    done = processes.run([go, "env", "GOVERSION"], cwd=folder, env={**os.environ, "GOTOOLCHAIN": "local"})
    return parse_version(done.require(fix="reinstall Go").text)


def parse_version(printed: str) -> tuple[int, ...]:
    """(1, 19, 8) of what ``go env GOVERSION`` prints: ``go1.19.8``."""
    numbers = re.match(r"go(\d+(?:\.\d+)*)", printed)
    return tuple(int(part) for part in numbers[1].split(".")) if numbers else ()


def _newer(go: str, folder: Path) -> str:
    """A newer toolchain by an old Go, which cannot change its own, but can fetch one: toolchains are modules.

    Go checks them against its checksum database. A module's files are not executable, and its go.mod goes by another
    name.
    """
    [system, machine, cache] = _env(go, folder, "GOOS", "GOARCH", "GOMODCACHE")
    module = f"golang.org/toolchain@v0.0.1-go{GO}.{system}-{machine}"
    argv = [go, "mod", "download", module]
    done = processes.run(argv, cwd=folder, time_limit_s=LIMIT_S, env={**os.environ, "GOFLAGS": ""})
    done.require(fix=_REACH)
    toolchain = Path(cache) / module
    for below in (toolchain / "bin", toolchain / "pkg" / "tool"):
        for file in below.rglob("*"):
            if file.is_file():
                file.chmod(file.stat().st_mode | 0o111)
    source = toolchain / "src"
    if not (source / "go.mod").exists():
        source.chmod(source.stat().st_mode | 0o200)
        shutil.copyfile(source / "_go.mod", source / "go.mod")
    return str(toolchain / "bin" / "go")


def _env(go: str, folder: Path, *names: str) -> list[str]:
    return processes.run([go, "env", *names], cwd=folder).require(fix="reinstall Go").text.splitlines()
