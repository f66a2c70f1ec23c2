"""Builds of the kubelet, of crictl, and of all else of a Kubernetes cluster, from Go modules at one version.

No registry with verification has them as packages. Each folder below ``modules`` is a Go module that requires
what is built and fixes all versions; its go.sum has the checksums of all sources, and Go refuses others.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from tare.host import processes, state
from tare.model import Progress
from tare.setup import gvisor_build

#: The newest line whose defaults accept cgroup v1 and the containerd of Debian 12.
VERSION = "v1.34.4"
#: The folder in TARE_HOME of a cluster's programs that no platform starts.
CLUSTER = "cluster"
LIMIT_S = 3600.0
_VERSIONS = "k8s.io/component-base/version"
_KUBERNETES = (
    "-X",
    f"{_VERSIONS}.gitVersion={VERSION}",
    "-X",
    f"{_VERSIONS}.gitMajor=1",
    "-X",
    f"{_VERSIONS}.gitMinor=34",
)
_CNI = "github.com/containernetworking/plugins/plugins"
_CONTAINERD = "github.com/containerd/containerd/v2"


@dataclass(frozen=True, slots=True)
class ClusterProgram:
    """One program: its place below TARE_HOME, the folder of its module, and its package.

    ``marks``: linker flags, such as a version that the program prints. ``tags``: of the build.
    """

    place: str
    module: str
    package: str
    marks: tuple[str, ...] = ()
    tags: str = ""


KUBELET = ClusterProgram("bin/kubelet", "kubernetes", "k8s.io/kubernetes/cmd/kubelet", _KUBERNETES)
CRICTL = ClusterProgram(
    "bin/crictl",
    "crictl",
    "sigs.k8s.io/cri-tools/cmd/crictl",
    ("-X", "sigs.k8s.io/cri-tools/pkg/version.Version=v1.34.0"),
)
_CONTROL = ("kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
PROGRAMS = (
    KUBELET,
    *(
        ClusterProgram(f"{CLUSTER}/{name}", "kubernetes", f"k8s.io/kubernetes/cmd/{name}", _KUBERNETES)
        for name in _CONTROL
    ),
    ClusterProgram(f"{CLUSTER}/etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    *(
        ClusterProgram(f"{CLUSTER}/cni/{name.rpartition('/')[2]}", "cni", f"{_CNI}/{name}")
        for name in ("main/bridge", "main/loopback", "ipam/host-local")
    ),
    *(
        ClusterProgram(
            f"{CLUSTER}/{name}",
            "containerd",
            f"{_CONTAINERD}/cmd/{name}",
            ("-X", f"{_CONTAINERD}/version.Version=v2.2.9"),
            "no_btrfs no_devmapper no_zfs",
        )
        for name in ("containerd", "containerd-shim-runc-v2", "ctr")
    ),
)


def build(tell: Progress) -> None:
    """Build the kubelet if this version is missing. Raises `HostError`."""
    _build([KUBELET], tell)


def build_crictl(tell: Progress) -> None:
    """Build crictl if this version is missing. Raises `HostError`."""
    _build([CRICTL], tell)


def build_cluster(tell: Progress) -> None:
    """Build every program of a cluster that is missing. Raises `HostError`."""
    _build(PROGRAMS, tell)


def _build(programs: Sequence[ClusterProgram], tell: Progress) -> None:
    missing = [program for program in programs if not _is_there(program)]
    for program in programs:
        if program not in missing:
            tell(f"{program.place} is there")
    if not missing:
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        go = gvisor_build.toolchain(folder, tell)
        for program in missing:
            tell(f"building {program.place} (some minutes)")
            _install(program, go, folder, tell)


def _install(program: ClusterProgram, go: str, folder: Path, tell: Progress) -> None:
    module = folder / program.module
    module.mkdir(exist_ok=True)
    for name in ("go.mod", "go.sum"):
        (module / name).write_bytes(_source(program.module, name))
    built = folder / "built"
    # `-s -w` omits debug data from the program, so they need not be generated at all.
    argv = [go, "build", "-o", str(built), "-gcflags=all=-dwarf=false", " ".join(["-ldflags=-s", "-w", *program.marks])]
    argv += ["-tags", program.tags] if program.tags else []
    done = processes.run(
        [*argv, program.package], cwd=module, time_limit_s=LIMIT_S, env=gvisor_build.build_environment()
    )
    done.require(fix="see that Go's module proxy can be reached (GOPROXY names another)")
    place = state.home() / program.place
    place.parent.mkdir(parents=True, exist_ok=True)
    gvisor_build.into_place(built, place)
    _stamp(place).write_bytes(_digest(program))
    built.unlink()
    tell(f"built {program.place}")


def _is_there(program: ClusterProgram) -> bool:
    """Return True if the program was built from this module in this way."""
    place = state.home_if_any() / program.place
    return place.is_file() and _stamp(place).is_file() and _stamp(place).read_bytes() == _digest(program)


def _stamp(place: Path) -> Path:
    """Return the file beside a program that tells what it was built from: not all programs print a version."""
    return place.with_name(f".{place.name}.built")


def _digest(program: ClusterProgram) -> bytes:
    described = repr(program).encode() + _source(program.module, "go.mod") + _source(program.module, "go.sum")
    return hashlib.sha256(described).hexdigest().encode()


def _source(module: str, name: str) -> bytes:
    return resources.files("tare.setup").joinpath("modules", module, name).read_bytes()
