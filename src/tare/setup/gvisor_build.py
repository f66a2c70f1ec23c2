"""Build of gVisor's runsc and its containerd shim, at one version, from their Go module into ``TARE_HOME/bin``.

Debian 12's own is of 2022 and does not support systrap, gVisor's present default. No package registry with verification
has a newer program, but Go's module proxy has the source. The module and the toolchain are compared with the checksums
below, and gVisor's own go.sum covers all other modules. So nothing depends on a checksum database, which the
environment or ``go env -w`` could switch off.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tare.errors import HostError
from tare.host import processes, state
from tare.model import Progress

#: Newer than the releases whose network stack crashed under TCP load when built with Go 1.26.
VERSION = "v0.0.0-20260905035102-160fafc42237"
#: Checksums of its files and of its go.mod, as in ``go mod download -json`` and go.sum.
SUM = "h1:AU5+CtCvnBnxdZRNcZt1NfSLqgkXZVT3N/u6u1aXg44="
MOD_SUM = "h1:8aLQqUBHDH8fY5y60lzmwDpMMbQCcT3EBfoSwhfaGCY="
#: The Go version that this gVisor requires, and the checksum of its toolchain by machine.
GO = "1.26.3"
GO_SUMS = {
    "linux-amd64": "h1:LdHRR8AtYKtOQrWMnd5AbvhZMSVJ7HoO2wrqShPaLV8=",
    "linux-arm64": "h1:KRiC8jsRApkVqG+J+n5bGoaipGxrQ4yTn8B7BnFjzd0=",
}
_MODULE = "gvisor.dev/gvisor"
_TOOLCHAIN = "golang.org/toolchain"
#: The name that containerd searches for.
SHIM = "containerd-shim-runsc-v1"
#: For both the toolchain and the build, which fetches modules.
LIMIT_S = 3600.0
_REACH = "see that Go's module proxy can be reached (GOPROXY names another)"


def build(tell: Progress) -> None:
    """Build runsc if this version is missing. Raises `HostError`."""
    place = state.home_if_any() / "bin" / "runsc"
    if place.is_file() and processes.run([str(place), "--version"]).text.startswith(f"runsc version {VERSION}\n"):
        tell(f"runsc {VERSION} is there")
        return
    _install("runsc", place, tell)


def build_shim(tell: Progress) -> None:
    """Build the shim, and its runsc, if this version is missing. Raises `HostError`."""
    build(tell)
    place = state.home_if_any() / "bin" / SHIM
    # The shim does not report its version, but Go records the source module in a program.
    if place.is_file() and VERSION in processes.run([_go(), "version", "-m", str(place)]).text:
        tell(f"{SHIM} {VERSION} is there")
        return
    _install("shim", place, tell)


def toolchain(folder: Path, tell: Progress) -> str:
    """Return a Go that is new enough for what tare builds, fetched if the host's is too old. Raises `HostError`.

    ``folder``: an empty one for the work.
    """
    go = _go()
    (folder / "go.mod").write_text("module tare.build\n")  # Otherwise Go would search the folders above.
    if _version(go, folder) < tuple(map(int, GO.split("."))):
        tell(f"fetching Go {GO}")
        go = _newer(go, folder)
    return go


def _install(package: str, place: Path, tell: Progress) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        go = toolchain(folder, tell)
        tell(f"building {place.name} {VERSION} (some minutes)")
        _write_module(Path(_downloaded(go, folder, _MODULE, VERSION, SUM)["Dir"]), folder)
        named = f"-ldflags=-s -w -X {_MODULE}/runsc/version.version={VERSION}"
        # `-s -w` omits debug data from the program, so they need not be generated at all.
        argv = [go, "build", "-o", str(folder / package), "-gcflags=all=-dwarf=false", named, f"{_MODULE}/{package}"]
        processes.run(argv, cwd=folder, time_limit_s=LIMIT_S, env=build_environment()).require(fix=_REACH)
        into_place(folder / package, place)


def _write_module(source: Path, folder: Path) -> None:
    """Create a module that needs gVisor, with gVisor's own go.mod and go.sum, so that all versions are fixed."""
    needs = re.sub(r"^module .*$", "module tare.build", (source / "go.mod").read_text(), flags=re.MULTILINE)
    (folder / "go.mod").write_text(f"{needs}\nrequire {_MODULE} {VERSION}\n")
    own = f"{_MODULE} {VERSION} {SUM}\n{_MODULE} {VERSION}/go.mod {MOD_SUM}\n"
    (folder / "go.sum").write_text((source / "go.sum").read_text() + own)


def _downloaded(go: str, folder: Path, module: str, version: str, expected: str) -> dict[str, Any]:
    """Fetch a module, and return Go's description of it. Raises `HostError` if its checksum differs."""
    argv = [go, "mod", "download", "-json", f"{module}@{version}"]
    done = processes.run(argv, cwd=folder, time_limit_s=LIMIT_S, env=build_environment())
    module_facts: dict[str, Any] = json.loads(done.stdout or b"{}")
    if "Error" in module_facts:
        raise HostError(f"{module} {version} cannot be fetched: {module_facts['Error']}", fix=_REACH)
    done.require(fix=_REACH)
    if module_facts["Sum"] != expected:
        problem = f"{module} {version} does not have the checksum that tare expects ({expected}): {module_facts['Sum']}"
        raise HostError(problem, fix="go clean -modcache, and see whom GOPROXY names: it gave other files")
    return module_facts


def build_environment() -> dict[str, str]:
    """Return the user's Go settings, without those that change what is built or verified."""
    ours = {"CGO_ENABLED": "0", "GO111MODULE": "on", "GOFLAGS": "-mod=readonly", "GOROOT": "", "GOTOOLCHAIN": "local"}
    return {**processes.kept(*processes.BUILDS), **ours, "GOWORK": "off"}


def into_place(built: Path, place: Path) -> None:
    """Move a built program to its place. A running program is replaced, not overwritten."""
    state.home()
    place.parent.mkdir(exist_ok=True)
    beside = place.with_name(f"{place.name}.new")
    shutil.copyfile(built, beside)
    beside.chmod(0o755)
    beside.replace(place)


def _go() -> str:
    """Return the host's Go, which its own installer puts outside PATH."""
    beside = Path("/usr/local/go/bin/go")
    go = processes.find("go") or (str(beside) if beside.is_file() else None)
    if go is None:
        raise HostError("Go, which builds gVisor and the kubelet, is missing", fix="tare setup --with gvisor, as root")
    return go


def _version(go: str, folder: Path) -> tuple[int, ...]:
    done = processes.run([go, "env", "GOVERSION"], cwd=folder, env=build_environment())
    return parse_version(done.require(fix="reinstall Go").text)


def parse_version(printed: str) -> tuple[int, ...]:
    """Return (1, 19, 8) for ``go1.19.8``, the output of ``go env GOVERSION``."""
    numbers = re.match(r"go(\d+(?:\.\d+)*)", printed)
    return tuple(int(part) for part in numbers[1].split(".")) if numbers else ()


def _newer(go: str, folder: Path) -> str:
    """Fetch a newer toolchain by an old Go, which cannot upgrade itself. Toolchains are modules.

    A module's files are not executable, and its go.mod has another name.
    """
    shown = processes.run([go, "env", "GOOS", "GOARCH"], cwd=folder, env=build_environment()).require(
        fix="reinstall Go"
    )
    machine = "-".join(shown.text.split())
    if machine not in GO_SUMS:
        raise HostError(f"tare has no checksum of Go {GO} for {machine}", fix=f"install Go {GO} or newer")
    version = f"v0.0.1-go{GO}.{machine}"
    toolchain = Path(_downloaded(go, folder, _TOOLCHAIN, version, GO_SUMS[machine])["Dir"])
    for below in (toolchain / "bin", toolchain / "pkg" / "tool"):
        for file in below.rglob("*"):
            if file.is_file():
                file.chmod(file.stat().st_mode | 0o111)
    source = toolchain / "src"
    if not (source / "go.mod").exists():
        source.chmod(source.stat().st_mode | 0o200)
        shutil.copyfile(source / "_go.mod", source / "go.mod")
    return str(toolchain / "bin" / "go")
