"""Pods of an existing Kubernetes cluster, by runtime class, on the node that tare runs on: what its users get.

kubectl applies a pod that is bound to this node, so that API server, kubelet, CRI, CNI and the runtime are in its
start, and its work is accounted by the control group that the kubelet made. kubectl and not a client library, because
a cluster's users have it: with their kubeconfig and every way to log in, and its own time is part of what they wait
for.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tare.errors import HostError, PlatformError, TareError, UnsupportedError
from tare.host import cgroup
from tare.host.daemons import containerd_access, kubectl
from tare.host.kernel.owner import boot_id
from tare.host.network import callers
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.host.resources.resource import HostResource
from tare.image.forms import image_bytes
from tare.image.image_build import Image
from tare.platforms.base import Address, Availability, Instance, LaunchSpec, Life, Platform, PlatformFamily, Prepared
from tare.platforms.parts.common import adopt, left_open
from tare.platforms.parts.common.pipes import TOOL
from tare.platforms.parts.engines import containerd_server, pods
from tare.platforms.parts.engines.containerd_server import SHARED
from tare.platforms.watchers.marks import FirstByte
from tare.session.byte_streams import SocketStream
from tare.timeouts import stretched, until

#: The argument that stands for pods without a runtime class.
DEFAULT = "default"
_ON_A_NODE = "run tare on a node: tare fleet manifest writes a Job for each"
_DAEMONS = ("kubelet", "containerd")
_LATE_PINNED = "its start is on all CPUs of the node: a pod is restricted to the instances' CPUs once it runs"
_ADDRESS_LIMIT_S, _TURN_S = 10.0, 0.2


class Kubernetes(Platform):
    """Pods of one runtime class."""

    by_default = False
    daemon = "kubelet"
    network_path = "client, bridge, the host's routing, the pod's network by the cluster's CNI plug-in"
    not_honoured = (_LATE_PINNED, pods.BELOW_KUBEPODS)
    open_by_design = left_open.every_door(
        "what its runtime class and the cluster's policies leave open is the cluster's"
    )

    def __init__(self, runtime_class: str) -> None:
        kubectl.require_class(runtime_class)
        self.name = f"kubernetes:{runtime_class}"
        self.title = f"a pod of this host's Kubernetes cluster, runtime class {runtime_class}, by kubectl"
        self._class = "" if runtime_class == DEFAULT else runtime_class
        self._node = ""
        self._namespace = DEFAULT

    def detect(self) -> Availability:
        """Ask the cluster for the runtime class, and for the node that this host is."""
        if kubectl.program() is None:
            return Availability(
                False, reason="kubectl is not installed", fix="install kubectl of the cluster's version"
            )
        try:
            return self._found()
        except TareError as error:
            return Availability(False, reason=error.what, fix=error.fix or "")

    def prepare(self, image: Image) -> Prepared:
        """Import the image where the node's kubelet looks."""
        SHARED.taken(self.name).import_image(image, containerd_access.CRI_NAMESPACE)
        return Prepared(f"image {containerd_server.image_tag(image)}", image_bytes(image), (), ("kubectl",))

    def kept(self, image: Image) -> list[HostResource]:
        """Return the imported image."""
        return SHARED.taken(self.name).kept(image)

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """``kubectl apply``; then wait until the agent connects."""
        name = f"tare-{spec.id}"
        resource = removers.pod(SHARED.taken(self.name).address, name)
        # It is deleted first, and the deletion waits for the kubelet, which would go on to make what is removed here.
        cleanup.own(resource, removers.cluster_pod(self._namespace, name, spec.group.inner))
        with spec.network.listener() as listener:
            pod = pods.manifest(
                name,
                containerd_server.image_tag(spec.image),
                spec.agent_argv("--host", f"tcp:{spec.network.host}:{listener.getsockname()[1]}"),
                memory_bytes=spec.resources.memory_bytes,
                cpu_quota=spec.resources.cpu_quota,
                data=spec.space.data,
                namespace=self._namespace,
                node=self._node,
                runtime_class=self._class,
            )
            written, tool = json.dumps(pod).encode(), spec.group.leaf(TOOL)
            daemons = tuple(cgroup.usage_of_all(_DAEMONS))
            started = spec.begin()
            made = kubectl.ask("apply", "-f", "-", stdin=written, cgroup_procs=tool)
            deadline = until(spec.start_limit_s)

            def turn() -> None:
                if time.monotonic() > deadline:
                    raise self._late(name, spec)

            connection = callers.accepted(listener, partial(_may_be_a_pod, spec.network.subnet), turn)
        stream = SocketStream(connection)
        first_byte = FirstByte(stream.fileno())
        group = pods.group_of(str(made["metadata"]["uid"]))
        why = "its address answers when the pod's network is there, before its container"
        # By which it came; kubectl is asked once the start has been measured.
        address = Address(connection.getpeername()[0], spec.port, spec.port, None, why)
        instance = Instance(
            replace(spec, group=group),
            stream,
            started,
            address,
            first_byte,
            daemons=daemons,
        )

        def settle() -> None:
            own_address = self._address(name)
            if own_address != address.host:
                raise PlatformError(
                    f"{address.host} called in the place of the pod {name}", fix="see whose address it is"
                )
            spec.network.reach(own_address)
            instance.address = replace(address, host=own_address, early_ping=own_address)
            ids = containerd_server.started_ids(SHARED.taken(self.name).address, name)
            cleanup.learn(resource, {"ids": ids})
            adopt.adopt(group, lambda words: any(containerd_server.helps(words, its_id) for its_id in ids))
            pods.pin(group, spec.resources.cpus)
            pods.end_with(connection, group)

        instance.settle = settle
        return instance

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:  # noqa: ARG002
        """Raise `UnsupportedError`."""
        raise UnsupportedError("tare does not know a pod's life by kubectl yet", fix="-p containerd has those of ctr")

    def daemon_failure(self) -> TareError | None:
        """Return the error if the node's containerd does not answer anymore, else None."""
        server = SHARED.held()
        return None if server is None else server.ended()

    def close(self) -> None:
        """Give the connection to containerd back."""
        SHARED.given_back(self.name)

    def _found(self) -> Availability:
        nodes = kubectl.items("nodes")
        here = boot_id()
        shown = next((node for node in nodes.values() if _info(node).get("bootID") == here), None)
        if shown is None:
            reason = f"none of the cluster's {len(nodes)} nodes is this host"
            return Availability(False, reason=reason, fix=_ON_A_NODE)
        handler = "the node's default"
        if self._class:
            found = kubectl.ask("get", "runtimeclass", self._class)
            if found is None:
                reason = f"the cluster has no runtime class {self._class}"
                return Availability(False, reason=reason, fix="kubectl get runtimeclass lists them")
            handler = str(kubectl.part(found).get("handler", ""))
        if containerd_access.hosts_own() is None:
            sockets = " and ".join(containerd_access.SOCKETS)
            reason = f"this node's containerd does not answer at {sockets}"
            return Availability(False, reason=reason, fix="take a node whose container runtime is containerd")
        if cgroup.hierarchies().none:
            return Availability(False, reason="pods are accounted by control groups", fix="run tare as root")
        self._node = str(shown["metadata"]["name"])
        self._namespace = _namespace()
        return Availability(True, version=_version(shown), details=_details(shown, handler, self._namespace))

    def _address(self, name: str) -> str:
        """Return a running pod's address. Raises `PlatformError`."""
        deadline = until(_ADDRESS_LIMIT_S)
        while True:
            pod = kubectl.ask("get", "pod", name, f"--namespace={self._namespace}")
            address = kubectl.part(pod, "status").get("podIP")
            if address:
                return str(address)
            if time.monotonic() > deadline:
                raise PlatformError(f"the pod {name} has no address", fix="see the cluster's CNI plug-in")
            time.sleep(_TURN_S)

    def _late(self, name: str, spec: LaunchSpec) -> PlatformError:
        """Return the error for a pod whose agent did not connect, with what the cluster says of it."""
        limit = f"within {stretched(spec.start_limit_s):.0f} s"
        try:
            pod = kubectl.ask("get", "pod", name, f"--namespace={self._namespace}")
        except HostError as error:
            return PlatformError(f"the pod's agent did not connect {limit}: {error.what}", fix=error.fix)
        status = kubectl.part(pod, "status")
        containers = status.get("containerStatuses")
        waiting = [
            f"{state['reason']}: {state.get('message', '')}"
            for container in (containers if isinstance(containers, list) else ())
            for state in kubectl.part(container, "state").values()
            if isinstance(state, dict) and "reason" in state
        ]
        why = "; ".join(waiting)[:400] or f"it is {status.get('phase', 'unknown')}"
        return PlatformError(f"the pod's agent did not connect {limit}: {why}", fix=f"kubectl describe pod {name}")


def _may_be_a_pod(subnet: ipaddress.IPv4Network, connection: socket.socket) -> bool:
    """Whether neither a process on the host's network called nor another instance."""
    caller = ipaddress.ip_address(connection.getpeername()[0])
    return caller not in subnet and callers.user_of(connection) is None


def _info(node: object) -> dict[str, Any]:
    return kubectl.part(node, "status", "nodeInfo")


def _version(node: Mapping[str, Any]) -> str:
    return str(_info(node).get("kubeletVersion", "")).removeprefix("v")


def _details(node: Mapping[str, Any], handler: str, namespace: str) -> dict[str, str]:
    info = _info(node)
    return {
        "node": str(node["metadata"]["name"]),
        "container runtime": str(info.get("containerRuntimeVersion", "")),
        "handler": handler,
        "namespace": namespace,
    }


def _namespace() -> str:
    """Return the namespace of kubectl's context, or the default one."""
    shown = kubectl.run("config", "view", "--minify", "-o", "jsonpath={..namespace}")
    words = shown.text.split()
    return words[0] if shown.code == 0 and words else DEFAULT


PLATFORMS = ()
FAMILIES = {
    "kubernetes": PlatformFamily(
        Kubernetes,
        "RUNTIMECLASS",
        "pods of the cluster whose node this host is, by kubectl",
        "name a runtime class: -p kubernetes:gvisor; kubernetes:default has none",
    )
}
