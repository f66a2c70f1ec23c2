"""A kubelet without an API server on a containerd of tare's own: it runs the pods whose files are in one folder."""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tare.errors import HostError, PlatformError
from tare.host import cgroup, own_daemon, processes, state
from tare.host.cgroup import Group
from tare.host.daemons import containerd_access
from tare.host.kernel import cpulist, pinning
from tare.host.network import callers
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.host.resources.resource import HostResource
from tare.image.image_build import Image
from tare.model import PIDS, Resources
from tare.platforms.parts.engines import pods
from tare.platforms.parts.engines.containerd_server import PAUSE, PAUSE_TAG, ContainerdServer, pods_ids
from tare.timeouts import stretched, until

#: Settings of the kernel that a kubelet writes, with its values (`setupKernelTunables` of its container manager).
SETTINGS = MappingProxyType(
    {
        "vm.overcommit_memory": "1",
        "vm.panic_on_oom": "0",
        "kernel.panic": "10",
        "kernel.panic_on_oops": "1",
        "kernel.keys.root_maxkeys": "1000000",
        "kernel.keys.root_maxbytes": "25000000",
    }
)
#: The group of a kubelet's pods is a sibling of the instances' parent.
PREFIX = "tare-pods"
NAMESPACE = "tare"
START_LIMIT_S, FIRST_POD_LIMIT_S = 60.0, 60.0
_MAX_PODS = 10_000


def program() -> str | None:
    """Return the kubelet that `tare setup --with kubelet` built, else the one on PATH, or None."""
    built = state.home_if_any() / "bin" / "kubelet"
    return str(built) if os.access(built, os.X_OK) else processes.find("kubelet")


def version(kubelet: str) -> str:
    """Return a kubelet's version without the leading v. Raises `HostError`."""
    done = processes.run([kubelet, "--version"], time_limit_s=30).require(fix="tare setup --with kubelet")
    return done.text.strip().removeprefix("Kubernetes ").removeprefix("v")


class KubeletNode:
    """A running kubelet with its containerd, which `close` stops."""

    def __init__(self, runtime: str = "runc") -> None:
        """Start both, and wait until the kubelet has made the groups of its pods. Raises `HostError`.

        ``runtime``: of all pods. A kubelet alone knows no runtime classes, so it is containerd's default.
        """
        kubelet = program()
        if kubelet is None:
            raise HostError("kubelet is not installed", fix="tare setup --with kubelet")
        name = f"{os.getpid()}{secrets.token_hex(3)}"
        self._cleanup = CleanupStack()
        self._folder = state.work() / f"tare-{name}"
        self._lock = threading.Lock()
        self._kubelet: own_daemon.Daemon | None = None
        self._images: set[str] = set()
        self._parent = cgroup.named(f"{PREFIX}-{name}")
        self.server = ContainerdServer(only_own=True, runtime=runtime)
        try:
            self._start(kubelet)
        except BaseException:
            self.close()
            raise

    @property
    def manifests(self) -> Path:
        """The folder whose files are the kubelet's pods."""
        return self._folder / "manifests"

    @property
    def daemons(self) -> tuple[Group, ...]:
        """The control groups of the kubelet and of containerd, for reading."""
        assert self._kubelet is not None, "it was started"
        group = self.server.group()
        return (Group(self._kubelet.group.path), *([] if group is None else [group]))

    def pod_group(self, uid: str) -> Group:
        """Return the control group that the kubelet makes for a pod that has limits, and requests below them."""
        return Group(f"{self._burstable}/pod{uid}")

    def prepare(self, image: Image) -> None:
        """Import the image, and run a first pod, by which the kubelet is known to be in service.

        Raises `PlatformError`.
        """
        self.server.import_image(image, containerd_access.CRI_NAMESPACE)
        with self._lock:
            if image.hash in self._images:
                return
            with CleanupStack() as cleanup:
                uid, name = str(uuid.uuid4()), f"tare-first{secrets.token_hex(3)}"
                cleanup.own(*self.made(name, uid))
                self.start(self.write(name, pod_of(name, uid, PAUSE_TAG, PAUSE, memory_bytes=64 << 20)))
                self._wait_for(lambda: bool(self.running(name)), name, time_limit_s=FIRST_POD_LIMIT_S)
            self._images.add(image.hash)

    def made(self, name: str, uid: str) -> tuple[HostResource, HostResource, HostResource]:
        """Return what a pod is on the host, in the order of its making: group, pod, and its file."""
        return (
            removers.control_group(self.pod_group(uid).path),
            removers.pod(self.server.address, name),
            removers.file(self._file(name)),
        )

    def write(self, name: str, pod: Mapping[str, Any]) -> Path:
        """Write a pod's file beside the folder; `start` moves it there."""
        file = self._folder / "written" / f"{name}.json"
        file.write_text(json.dumps(pod))
        return file

    def start(self, file: Path) -> None:
        """Give a written pod to the kubelet."""
        file.rename(self._file(file.stem))

    def pin(self, cpus: Sequence[int]) -> None:
        """Restrict the pods that start from now on to these CPUs, whatever their runtime.

        A kubelet's own CPU manager pins the groups of containers, and not a pod's, in which gVisor's sandbox is.
        Raises `PlatformError`.
        """
        words = cpulist.written(cpus)
        for path in (self._burstable, f"{self._pods}/kubepods"):
            file = Group(path).file("cpuset", "cpuset.cpus")
            try:
                file.write_text(words)
            except OSError as error:
                what = f"the kubelet's pods cannot be restricted to CPUs {words}: {error.strerror}"
                raise PlatformError(what, fix="give all instances of a campaign the same CPUs") from error

    def running(self, name: str) -> list[str]:
        """Return the ids of the running containers of a pod, after that of its sandbox."""
        return pods_ids(self.server.address, name)

    def accepted(self, listener: socket.socket, name: str, *, time_limit_s: float) -> socket.socket:
        """Return the connection of a pod's agent. Raises `PlatformError` with the kubelet's words if none comes."""
        deadline = until(time_limit_s)
        return callers.accepted(
            listener, callers.is_hosts_root, lambda: self._go_on(deadline, name, time_limit_s=time_limit_s)
        )

    def ended(self) -> PlatformError | None:
        """Return how kubelet or containerd ended, or None while both run."""
        if self._kubelet is not None and (how := self._kubelet.ended()) is not None:
            return PlatformError(f"the kubelet {how}: {self._last_words('')}", fix="run the campaign again")
        return self.server.ended(0)  # a wait here would be part of a start

    def close(self) -> None:
        """Stop the kubelet, then containerd, and remove all that they have."""
        if self._kubelet is not None:
            self._kubelet.stop()
        self._cleanup.release()
        self.server.close()

    @property
    def _pods(self) -> str:
        return f"{self._parent.inner}/pods"

    @property
    def _burstable(self) -> str:
        return f"{self._pods}/kubepods/burstable"

    @property
    def _log(self) -> Path:
        return self._folder / "kubelet.log"

    def _file(self, name: str) -> Path:
        return self.manifests / f"{name}.json"

    def _start(self, kubelet: str) -> None:
        self._cleanup.own(removers.folder(self._folder), removers.control_group(self._parent.path))
        self._folder.mkdir(parents=True, mode=0o711)
        for folder in ("manifests", "written", "root", "logs", "settings", "plugins"):
            (self._folder / folder).mkdir(mode=0o711)
        for setting, value in SETTINGS.items():
            (self._folder / "settings" / setting).write_text(f"{value}\n")
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self._parent.create(Resources(tuple(sorted(pinning.usable())), memory, pids=None))
        self._parent.leaf("pods")
        config = self._folder / "kubelet.json"
        config.write_text(json.dumps(configuration(self._folder, self.server.address, f"/{self._pods}")))
        script = self._folder / "kubelet.sh"
        script.write_bytes(resources.files("tare.platforms.parts.engines").joinpath("kubelet.sh").read_bytes())
        within = ["unshare", "--mount", "--propagation", "slave", "sh", str(script), str(state.home())]
        root = str(self._folder / "root")
        argv = [kubelet, f"--config={config}", f"--root-dir={root}", f"--cert-dir={root}/pki"]
        argv += ["--hostname-override=tare", "--node-ip=127.0.0.1"]
        self._kubelet = own_daemon.start(
            self._cleanup,
            "kubelet",
            [*within, str(self._folder / "settings"), *argv],
            ready=self._has_groups,
            log=self._log,
            time_limit_s=START_LIMIT_S,
        )

    def _has_groups(self) -> bool:
        return Group(self._burstable).file("cpuset", "cpuset.cpus").exists()

    def _wait_for(self, done: Callable[[], bool], pod: str, *, time_limit_s: float) -> None:
        deadline = until(time_limit_s)
        while not done():
            self._go_on(deadline, pod, time_limit_s=time_limit_s)
            time.sleep(0.005)

    def _go_on(self, deadline: float, pod: str, *, time_limit_s: float) -> None:
        """Raise `PlatformError` where a pod is not worth waiting for any more."""
        if (failure := self.ended()) is not None:
            raise failure
        if time.monotonic() > deadline:
            late = f"the kubelet has no pod {pod} that works after {stretched(time_limit_s):.0f} s"
            raise PlatformError(f"{late}: {self._last_words(pod)}", fix=f"see {self._log}, while the campaign runs")

    def _last_words(self, about: str) -> str:
        """Return the end of the last error in the kubelet's log that names this; else of its last line."""
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        errors = [line for line in lines if about in line and line.startswith("E")]
        last = (errors or lines or ["it says nothing"])[-1]
        return last.partition("] ")[2][:400] or last[:400]


def configuration(folder: Path, containerd_address: str, group: str) -> dict[str, Any]:
    """Return a ``KubeletConfiguration``: a kubelet's own defaults, but for its places and what would harm the host.

    ``folder``: its own; ``group``: the control group below which its pods are.
    """
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "staticPodPath": str(folder / "manifests"),
        "podLogsDir": str(folder / "logs"),
        "volumePluginDir": str(folder / "plugins"),
        "containerRuntimeEndpoint": f"unix://{containerd_address}",
        "cgroupRoot": group,
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        # Without an API server nobody could be authorized; and whoever reaches its server would be root.
        "enableServer": False,
        "healthzPort": 0,
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        # It would add chains to the host's packet filter.
        "makeIPTablesUtilChains": False,
        # A fuller disk or a smaller memory than a node's must neither end instances nor remove their image.
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "maxPods": _MAX_PODS,
        "podPidsLimit": PIDS,
    }


def pod_of(name: str, uid: str, image: str, argv: Sequence[str], **limits: Any) -> dict[str, Any]:
    """Return a pod on the node's network, which needs no plug-in for networks: `pods.manifest`."""
    return pods.manifest(name, image, argv, uid=uid, namespace=NAMESPACE, host_network=True, **limits)
