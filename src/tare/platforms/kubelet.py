"""A Kubernetes node's own way: a pod by a kubelet, the CRI and containerd, without a control plane.

The kubelet runs the pods whose files are in one folder (static pods), so that a start is what users of a cluster get on
the node, after the scheduler. An API server, a scheduler and their database would take four times as much of an idle
host's CPU time as the kubelet does.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

from tare.errors import TareError, UnsupportedError
from tare.host import cgroup, distribution
from tare.host.resources.journal import CleanupStack
from tare.image.forms import image_bytes
from tare.image.image_build import Image
from tare.platforms import containerd, gvisor
from tare.platforms.base import Address, Availability, Instance, LaunchSpec, Life, Observed, Platform, Prepared
from tare.platforms.containerd_cri import WITH_NODES_NETWORK
from tare.platforms.gvisor import HOST_SOCKETS
from tare.platforms.parts.common import adopt, left_open
from tare.platforms.parts.engines import containerd_server, kubelet_node, pods
from tare.platforms.parts.engines.kubelet_node import KubeletNode
from tare.platforms.watchers.marks import FirstByte
from tare.session.byte_streams import SocketStream

_SANDBOX_HAS_HOSTS_SOCKETS = (
    "gVisor's own network stack: runsc has network = \"host\", without which a pod on the node's network has none"
)
_FILTERLESS = "no seccomp filter, as a pod has none that asks for none (SeccompDefault is off by default)"


class Kubelet(Platform):
    """A static pod with one container, on the node's network."""

    by_default = False
    daemon = "kubelet"
    network_path = "client, bridge, host stack"

    def __init__(self, name: str, runtime: str, title: str) -> None:
        self.name, self.runtime, self.title = name, runtime, title
        self.not_honoured = (WITH_NODES_NETWORK, pods.BELOW_KUBEPODS)
        self.open_by_design = left_open.BY_NETWORK["host"]
        if runtime == "runsc":
            self.network_path += HOST_SOCKETS
            self.not_honoured = (*self.not_honoured, _SANDBOX_HAS_HOSTS_SOCKETS)
        else:
            self.open_by_design = {**self.open_by_design, **left_open.doors(_FILTERLESS, *left_open.UNFILTERED)}
        self._node: KubeletNode | None = None
        self._lock = threading.Lock()  # several instances may start at once

    def detect(self) -> Availability:
        """Start a kubelet with its containerd, until it has made the control groups of its pods."""
        program = kubelet_node.program()
        if program is None:
            return Availability(False, reason="kubelet is not installed", fix="tare setup --with kubelet")
        missing = next((needed for needed in self._programs() if containerd.path_of(needed) is None), None)
        if missing is not None:
            return Availability(False, reason=f"{missing} is not installed", fix=self._fix(missing))
        if cgroup.hierarchies().none:
            return Availability(False, reason="a kubelet needs control groups", fix="run tare as root")
        try:
            return self._started(program)
        except TareError as error:
            return Availability(False, reason=error.what, fix=error.fix or "")

    def prepare(self, image: Image) -> Prepared:
        """Import the image where the kubelet's containerd looks, and run a first pod."""
        self._taken().prepare(image)
        shim = containerd_server.shim_program(self.runtime)
        form = f"image {containerd_server.image_tag(image)}"
        return Prepared(form, image_bytes(image), (), (kubelet_node.program() or "kubelet", shim, self.runtime))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Move the pod's file to the kubelet's folder; then wait until the agent connects."""
        node = self._taken()
        node.prepare(spec.image)
        name, uid = f"tare-{spec.id}", str(uuid.uuid4())
        resources = node.made(name, uid)
        cleanup.own(*resources)
        node.pin(spec.resources.cpus)
        with spec.network.listener() as listener:
            argv = spec.agent_argv("--host", f"tcp:{spec.network.host}:{listener.getsockname()[1]}")
            pod = kubelet_node.pod_of(
                name,
                uid,
                containerd_server.image_tag(spec.image),
                argv,
                memory_bytes=spec.resources.memory_bytes,
                cpu_quota=spec.resources.cpu_quota,
                data=spec.space.data,
            )
            file = node.write(name, pod)
            started = spec.begin()
            node.start(file)
            connection = node.accepted(listener, name, time_limit_s=spec.start_limit_s)
        stream = SocketStream(connection)
        group = node.pod_group(uid)

        def settle() -> None:
            ids = containerd_server.started_ids(node.server.address, name)
            cleanup.learn(resources[1], {"ids": ids})
            adopt.adopt(group, lambda words: any(containerd_server.helps(words, its_id) for its_id in ids))

        return Instance(
            replace(spec, group=group),
            stream,
            started,
            Address.on_host(spec),
            FirstByte(stream.fileno()),
            daemons=node.daemons,
            settle=settle,
        )

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:  # noqa: ARG002
        """Raise `UnsupportedError`: a kubelet alone is given files, and no commands."""
        raise UnsupportedError(
            "a kubelet without an API server takes files, and no commands of users",
            fix="-p containerd has those of ctr",
        )

    def daemon_failure(self) -> TareError | None:
        """Return the error if kubelet or containerd has died, else None."""
        return None if self._node is None else self._node.ended()

    def observed(self, instance: Instance, read: Callable[[str], str]) -> Observed:
        """Return what a sandbox of gVisor's shows of itself; of runc what is declared."""
        return gvisor.seen(self, instance, read) if self.runtime == "runsc" else super().observed(instance, read)

    def close(self) -> None:
        """Stop the kubelet and its containerd."""
        with self._lock:
            node, self._node = self._node, None
        if node is not None:
            node.close()

    def _taken(self) -> KubeletNode:
        with self._lock:
            if self._node is not None and self._node.ended() is not None:
                self._node.close()
                self._node = None
            if self._node is None:
                self._node = KubeletNode(self.runtime)
            return self._node

    def _started(self, program: str) -> Availability:
        """Start it on trial, unless it runs already. Raises `TareError`."""
        version = kubelet_node.version(program)
        if self._node is not None:
            return Availability(True, version=version)
        node = KubeletNode(self.runtime)
        try:
            details = {"containerd": node.server.version(), "program": program}
        finally:
            node.close()
        lacking = containerd.too_old(self.runtime, details["containerd"])
        if lacking is not None:
            return replace(lacking, fix="a newer containerd")
        return Availability(True, version=version, details=details)

    def _programs(self) -> tuple[str, ...]:
        """Return the programs that it needs besides the kubelet."""
        return ("containerd", "ctr", containerd_server.shim_program(self.runtime), self.runtime)

    def _fix(self, missing: str) -> str:
        """Return what brings a missing program."""
        if self.runtime == "runsc" and missing not in {"containerd", "ctr"}:
            return "tare setup --with containerd-gvisor"
        return distribution.install("runc" if missing == "runc" else "containerd")


PLATFORMS = (
    Kubelet("kubelet", "runc", "a Kubernetes pod by a kubelet (containerd, runc), without a control plane"),
    Kubelet(
        "kubelet-gvisor",
        "runsc",
        "a Kubernetes pod by a kubelet (containerd, gVisor's own shim, systrap), without a control plane",
    ),
)
