"""containerd as on a Kubernetes node: a pod of one container by the CRI. Variants are the runtime handlers.

A kubelet asks for a sandbox, then for a container in it, then for its start; so does this. To a container's stdin it
would attach by a second protocol, of another server of the daemon's: here the agent connects to the host instead.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Sequence
from typing import Any

from tare.errors import PlatformError, UnsupportedError
from tare.host.daemons import containerd_access
from tare.host.daemons.cri import LABEL, CriRuntime, fields, labelled, message
from tare.host.kernel import host_text, process_table
from tare.host.network import callers
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.image.forms import image_bytes
from tare.image.image_build import Image
from tare.platforms.base import NO_NETWORK, Address, Availability, Instance, LaunchSpec, Life, Prepared
from tare.platforms.containerd import Containerd, path_of
from tare.platforms.parts.common import adopt, left_open, root_rights
from tare.platforms.parts.engines import containerd_server
from tare.platforms.parts.engines.containerd_server import OWN, SHARED, ContainerdServer, SharedServer
from tare.platforms.watchers.marks import FirstByte
from tare.session.byte_streams import SocketStream
from tare.timeouts import stretched, until

#: The error of crictl with containerd 1.6. A kubelet restores from an image of the checkpoint.
NO_CHECKPOINT = "`crictl checkpoint` ends with `method CheckpointContainer not implemented`, and the CRI has no restore"
#: Of a namespace (`NamespaceMode`): the container's own; the node's. 0 is the pod's.
_CONTAINER, _NODE = 1, 2
_NAMESPACES = message({1: _NODE, 2: _CONTAINER})
_NAMESPACES_JSON = {"network": _NODE, "pid": _CONTAINER}
#: Commands as a user types them. $0 is crictl, and $1 the folder with its files and the ids of pod and container.
_BEGIN = 'in=$1; shift; crictl() { "$0" --config "$in/crictl.yaml" "$@"; };'
_IDS = f'{_BEGIN} read -r pod <"$in/pod"; read -r container <"$in/container";'
_CREATE = (
    f'{_BEGIN} crictl runp "$@" "$in/pod.json" >"$in/pod"; read -r pod <"$in/pod"; '
    'crictl create "$pod" "$in/container.json" "$in/pod.json" >"$in/container"'
)
_START = f'{_IDS} exec "$0" --config "$in/crictl.yaml" start "$container"'
_EXECUTE = f'{_IDS} exec "$0" --config "$in/crictl.yaml" exec "$container" "$@"'
_STOP = f'{_IDS} crictl stop --timeout "$1" "$container"; crictl stopp "$pod"'
_REMOVE = f'{_IDS} crictl rm "$container"; crictl rmp "$pod"'
WITH_NODES_NETWORK = (
    "the pod has the node's network (hostNetwork): no CNI plugin is part of its start or of its packets' way"
)
#: Handlers whose pods cannot have it, and why; most nodes give them a network by CNI.
WITHOUT_NODES_NETWORK = {
    # runsc/sandbox/sandbox.go: where the bundle names no network namespace, as a hostNetwork pod's, it makes one.
    "runsc": "gVisor's sandbox is in an empty network namespace then",
    # Its Limitations.md: it may take the node's own links over.
    "kata": "Kata's machines do not support it, and may break the node's",
}


class ContainerdCri(Containerd):
    """A pod with one container, on the node's network, as a kubelet makes one that asks for no seccomp profile."""

    def __init__(self, name: str, runtime: str, title: str) -> None:
        super().__init__(name, runtime, title)
        self._chosen: SharedServer | None = None  # while it is in use: a kubelet may come and go
        self.network_path = NO_NETWORK if runtime in WITHOUT_NODES_NETWORK else "client, bridge, host stack"
        self.not_honoured = (*self.not_honoured, WITH_NODES_NETWORK)
        self.open_by_design = left_open.BY_NETWORK["none" if runtime in WITHOUT_NODES_NETWORK else "host"]
        if runtime in {"runc", "crun"}:
            why = "no seccomp filter, as a pod has none that asks for none (SeccompDefault is off by default)"
            self.open_by_design = {**self.open_by_design, **left_open.doors(why, *left_open.UNFILTERED)}

    @property
    def shared(self) -> SharedServer:
        """The host's daemon; one of tare's own where a kubelet runs, which would end pods that it does not know."""
        if self._chosen is None:
            self._chosen = OWN if process_table.named({"kubelet"}) else SHARED
        return self._chosen

    def close(self) -> None:
        """Give the daemon back, and look for a kubelet anew the next time."""
        super().close()
        self._chosen = None

    def detect(self) -> Availability:
        """As containerd; but handlers whose pods cannot have the node's network are refused."""
        why = WITHOUT_NODES_NETWORK.get(self.runtime)
        if why is not None:
            reason = f"tare's pods have the node's network (hostNetwork), and {why}"
            return Availability(False, reason=reason, fix=f"-p {self.name.replace('-cri', '')}")
        return super().detect()

    def prepare(self, image: Image) -> Prepared:
        """Import the image where the CRI looks, and unpack it; in a daemon of the host's it stays."""
        self.shared.taken(self.name).import_image(image, containerd_access.CRI_NAMESPACE)
        shim = containerd_server.shim_program(self.runtime)
        return Prepared(f"image {containerd_server.image_tag(image)}", image_bytes(image), (), (shim, self.runtime))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Ask for the sandbox, the container and its start; then wait until the agent connects."""
        server = self.shared.taken(self.name)
        resource = removers.pod(server.address, f"tare-{spec.id}")
        cleanup.own(resource)
        # A kubelet is connected all the time.
        with spec.network.listener() as listener, contextlib.closing(CriRuntime(server.address)) as runtime:
            argv = spec.agent_argv("--host", f"tcp:{spec.network.host}:{listener.getsockname()[1]}")
            pod = pod_config(spec)
            started = spec.begin()
            sandbox = _id(runtime.call("RunPodSandbox", message({1: pod, 2: handler(self.runtime)})))
            request = message({1: sandbox, 2: container_config(spec, argv), 3: pod})
            container = _id(runtime.call("CreateContainer", request))
            runtime.call("StartContainer", message({1: container}))
            connection = _accepted(listener, spec)
        stream = SocketStream(connection)
        group = server.group()

        def settle() -> None:
            cleanup.learn(resource, {"ids": [container, sandbox]})
            adopt.adopt(
                spec.group,
                lambda words: any(containerd_server.helps(words, its_id) for its_id in (sandbox, container)),
            )

        daemons = () if group is None else (group,)
        address = Address.on_host(spec)
        return Instance(spec, stream, started, address, FirstByte(stream.fileno()), daemons=daemons, settle=settle)

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:
        """Return the commands of crictl, by which a node's users do what a kubelet asks for.

        Raises `UnsupportedError` where it is not installed.
        """
        program = path_of("crictl")
        if program is None:
            raise UnsupportedError("crictl is not installed", fix="tare setup --with containerd-cri")
        server = self.shared.taken(self.name)
        resource, folder = removers.pod(server.address, f"tare-{spec.id}"), spec.space.folder / "crictl"
        cleanup.own(resource)
        folder.mkdir()
        endpoint = f"unix://{server.address}"
        settings = {"runtime-endpoint": endpoint, "image-endpoint": endpoint, "timeout": 60}
        pod, container = pod_settings(spec), container_settings(spec, argv)
        for name, written in (("crictl.yaml", settings), ("pod.json", pod), ("container.json", container)):
            (folder / name).write_text(json.dumps(written))
        group = server.group()

        named = [f"--runtime={handler(self.runtime)}"] if handler(self.runtime) else []
        here = (program, str(folder))

        def settle() -> None:
            ids = [host_text.read(folder / name).strip() for name in ("container", "pod")]
            cleanup.learn(resource, {"ids": ids})

        return Life(
            create=("sh", "-ec", _CREATE, *here, *named),
            start=("sh", "-ec", _START, *here),
            execute=("sh", "-ec", _EXECUTE, *here),
            stop=("sh", "-ec", _STOP, *here, "30"),
            kill=("sh", "-ec", _STOP, *here, "0"),
            remove=("sh", "-ec", _REMOVE, *here),
            lacks={
                **dict.fromkeys(("pause", "resume"), "crictl has no command for it"),
                **dict.fromkeys(("snapshot", "restore"), NO_CHECKPOINT),
            },
            made_ns=spec.made(),
            daemons=() if group is None else (group,),
            settle=settle,
        )

    def _require(self, server: ContainerdServer) -> None:
        """Raise `HostError` where the daemon's CRI does not answer: dockerd's own containerd has none."""
        with contextlib.closing(CriRuntime(server.address)) as runtime:
            runtime.version()


def handler(runtime: str) -> str:
    """Return the name of a runtime class's handler; runc is the default, which has none."""
    return "" if runtime == "runc" else runtime


def pod_config(spec: LaunchSpec) -> bytes:
    """Return a ``PodSandboxConfig``: its control group is the instance's, its network the node's."""
    name = f"tare-{spec.id}"
    return message(
        {
            1: message({1: name, 2: name, 3: "tare", 4: 0}),
            6: labelled(name),
            8: message({1: f"/{spec.group.inner}", 2: message({1: _NAMESPACES})}),
        }
    )


def container_config(spec: LaunchSpec, argv: Sequence[str]) -> bytes:
    """Return a ``ContainerConfig``: the limits of the instance, /data, and the paths that a kubelet closes."""
    resources = message({4: spec.resources.memory_bytes, 6: ",".join(map(str, spec.resources.cpus))})
    security = message({3: _NAMESPACES, 13: list(root_rights.MASKED), 14: list(root_rights.READ_ONLY)})
    return message(
        {
            1: message({1: "agent", 2: 0}),
            2: message({1: containerd_server.image_tag(spec.image)}),
            3: list(argv),
            7: message({1: "/data", 2: str(spec.space.data)}),
            15: message({1: resources, 2: security}),
        }
    )


def pod_settings(spec: LaunchSpec) -> dict[str, Any]:
    """Return `pod_config` as crictl reads it."""
    name = f"tare-{spec.id}"
    return {
        "metadata": {"name": name, "uid": name, "namespace": "tare", "attempt": 0},
        "labels": {LABEL: name},
        "linux": {"cgroup_parent": f"/{spec.group.inner}", "security_context": {"namespace_options": _NAMESPACES_JSON}},
    }


def container_settings(spec: LaunchSpec, argv: Sequence[str]) -> dict[str, Any]:
    """Return `container_config` as crictl reads it."""
    security = {
        "namespace_options": _NAMESPACES_JSON,
        "masked_paths": list(root_rights.MASKED),
        "readonly_paths": list(root_rights.READ_ONLY),
    }
    limits = {
        "memory_limit_in_bytes": spec.resources.memory_bytes,
        "cpuset_cpus": ",".join(map(str, spec.resources.cpus)),
    }
    return {
        "metadata": {"name": "agent", "attempt": 0},
        "image": {"image": containerd_server.image_tag(spec.image)},
        "command": list(argv),
        "mounts": [{"container_path": "/data", "host_path": str(spec.space.data)}],
        "linux": {"resources": limits, "security_context": security},
    }


def _id(answer: bytes) -> str:
    return fields(answer)[1][0].decode()


def _accepted(listener: socket.socket, spec: LaunchSpec) -> socket.socket:
    deadline = until(spec.start_limit_s)

    def turn() -> None:
        if time.monotonic() > deadline:
            late = f"the pod's agent did not connect within {stretched(spec.start_limit_s):.0f} s"
            raise PlatformError(late, fix="see containerd's log")

    return callers.accepted(listener, callers.is_hosts_root, turn)


PLATFORMS = (
    ContainerdCri("containerd-cri", "runc", "containerd with runc, a pod by the CRI"),
    ContainerdCri("containerd-cri-crun", "crun", "containerd with crun, a pod by the CRI"),
    ContainerdCri(
        "containerd-cri-gvisor", "runsc", "containerd with gVisor's own shim (runsc, systrap), a pod by the CRI"
    ),
    ContainerdCri("containerd-cri-kata", "kata", "containerd with Kata's shim, a pod in a virtual machine by the CRI"),
)
