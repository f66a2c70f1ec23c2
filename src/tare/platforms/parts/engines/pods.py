"""Pods of one container, as a kubelet runs them, and the control groups that it makes for them."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tare.errors import PlatformError
from tare.host import cgroup
from tare.host.cgroup import Group
from tare.host.daemons.cri import LABEL
from tare.host.facts import posture
from tare.host.kernel import cpulist
from tare.platforms.base import AGENT

#: Of a pod's requests: so many pods fit on the smallest host. The limits hold, and all pods weigh the same.
_REQUESTED_CPU, _REQUESTED_MEMORY = "10m", "1Mi"
#: How deep below its hierarchy's root a pod's group is, at most: the kubelet's own root, kubepods, the class, the pod.
_DEEPEST = 6
#: What no pod honours: the kubelet makes its group, not beside the others' groups but below one beside their parent.
BELOW_KUBEPODS = "its control group is the pod's, below the kubelet's own: the CPU weight is that of all pods together"


def manifest(
    name: str,
    image: str,
    argv: Sequence[str],
    *,
    memory_bytes: int,
    cpu_quota: float | None = None,
    data: Path | None = None,
    uid: str = "",
    namespace: str = "",
    node: str = "",
    runtime_class: str = "",
    host_network: bool = False,
) -> dict[str, Any]:
    """Return a pod of one container, as one that asks for no security profile.

    ``name``: its label, by which it is removed; ``data``: the host's folder that is its /data; ``uid``: of a pod
    without an API server, which would give it one.
    """
    volume = [] if data is None else [{"name": "data", "hostPath": {"path": str(data), "type": "Directory"}}]
    mount = [] if data is None else [{"name": "data", "mountPath": "/data"}]
    limits = {"memory": str(memory_bytes)} | ({} if cpu_quota is None else {"cpu": str(cpu_quota)})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            **({"namespace": namespace} if namespace else {}),
            **({"uid": uid} if uid else {}),
            "labels": {LABEL: name},
        },
        "spec": {
            **({"nodeName": node} if node else {}),
            **({"runtimeClassName": runtime_class} if runtime_class else {}),
            "hostNetwork": host_network,
            "dnsPolicy": "Default",
            "restartPolicy": "Never",
            "enableServiceLinks": False,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "agent",
                    "image": image,
                    "imagePullPolicy": "Never",
                    "command": list(argv),
                    "resources": {
                        "limits": limits,
                        "requests": {"cpu": _REQUESTED_CPU, "memory": _REQUESTED_MEMORY},
                    },
                    "volumeMounts": mount,
                }
            ],
            "volumes": volume,
        },
    }


def group_of(uid: str) -> Group:
    """Find the control group of a running pod, by either of a kubelet's drivers. Raises `PlatformError`."""
    tree = cgroup.hierarchies()
    root = tree.v2 if tree.unified else tree.v1["cpu"]
    assert root is not None, "a platform with groups"
    names = {f"pod{uid}", f"pod{uid.replace('-', '_')}.slice"}
    for folder, below, _ in os.walk(root):
        deep = len(Path(folder).relative_to(root).parts)
        for name in below:
            if name in names or any(name.endswith(f"-{one}") for one in names):
                return Group(str(Path(folder, name).relative_to(root)))
        if deep >= _DEEPEST:
            below.clear()
    raise PlatformError(f"the pod {uid} has no control group on this host", fix="see the kubelet's cgroupRoot")


def pin(group: Group, cpus: Sequence[int]) -> None:
    """Restrict a running pod to these CPUs: first its containers' groups, then its own. Raises `PlatformError`."""
    words = cpulist.written(cpus)
    try:
        top = group.file("cpuset", "cpuset.cpus").parent
        for folder, _, files in os.walk(top, topdown=False):
            if "cpuset.cpus" in files:
                Path(folder, "cpuset.cpus").write_text(words)
    except OSError as error:
        raise PlatformError(
            f"the pod cannot be restricted to CPUs {words}: {error.strerror}", fix="see the kubelet's cpuManagerPolicy"
        ) from error


def end_with(connection: socket.socket, group: Group) -> None:
    """Break the agent's connection when its pod's programs have ended.

    gVisor's network ends with its sandbox, and says nothing to the other end of a connection.
    """
    pid = posture.foremost(group.pids(), Path(AGENT).name)
    try:
        watched = os.pidfd_open(pid) if pid is not None else None
    except ProcessLookupError:
        watched = None
    if watched is None:
        connection.shutdown(socket.SHUT_RDWR)
        return

    def watch() -> None:
        try:
            waiting = select.poll()
            waiting.register(watched, select.POLLIN)
            waiting.poll()
        finally:
            os.close(watched)
        with contextlib.suppress(OSError):  # the stream may be closed already
            connection.shutdown(socket.SHUT_RDWR)

    threading.Thread(target=watch, daemon=True).start()
