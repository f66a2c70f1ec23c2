"""What a fleet is on a Kubernetes cluster: plain objects, a Job for each node, and an account that may start pods.

A Job's pod is privileged and enters the node's own namespaces, so that tare measures the node, and not a container of
it. The node's tare does the work: an image that could bring its own would still need the node's engines.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from tare.errors import UsageError
from tare.fleet.job import SCRIPT
from tare.host.daemons import kubectl

LABEL = "tare.fleet"
#: Where a node keeps the results until they are fetched, and where a Job's pod sees this folder.
FOLDER, SEEN_AT = "/var/lib/tare-fleet", "/results"
#: What each pod of the fleet has in common with tare's own installation on a node.
TARE = "tare"
_NODE = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9_.+@-]+)+")


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """What is run on which nodes.

    ``image``: of the Jobs' pods; it needs `sh`, `nsenter` and `sha256sum`, and nothing of tare's. ``tare``: the program
    on the nodes; ``words``: options of `tare run`.
    """

    nodes: tuple[str, ...]
    image: str
    words: tuple[str, ...]
    namespace: str = TARE
    tare: str = TARE
    folder: str = FOLDER

    def __post_init__(self) -> None:
        """Raise `UsageError` for a name that Kubernetes would not take."""
        for node in self.nodes:
            if not _NODE.fullmatch(node):
                raise UsageError(f"{node!r} is no name of a node", fix="kubectl get nodes lists them")
        if not _NAMESPACE.fullmatch(self.namespace):
            raise UsageError(f"{self.namespace!r} is no name of a namespace", fix="small letters, digits and dashes")
        if self.namespace in {"default", "kube-system", "kube-public", "kube-node-lease"}:
            raise UsageError(f"the namespace {self.namespace} is not the fleet's alone", fix="name a new one")
        if not _PATH.fullmatch(self.folder):
            raise UsageError(f"{self.folder!r} is no whole path of a folder", fix=f"such as {FOLDER}")
        if self.tare != TARE and not _PATH.fullmatch(self.tare):
            raise UsageError(f"{self.tare!r} is no whole path of a program", fix="such as /usr/local/bin/tare")
        if not self.image or self.image.strip() != self.image or self.image.startswith("-"):
            raise UsageError(f"{self.image!r} is no image", fix="any with a shell and nsenter, such as debian:12")


def classes(words: Sequence[str]) -> list[str]:
    """Return the platforms of runtime classes, which may stand with commas between. Raises `UsageError`."""
    names = [name for word in words for name in word.split(",") if name]
    for name in names:
        kubectl.require_class(name)
    return [word for name in dict.fromkeys(names) for word in ("-p", f"kubernetes:{name}")]


def text(plan: ClusterPlan) -> str:
    """Return the fleet's objects as YAML: `kubectl apply -f` starts it, `kubectl delete -f` removes all of it."""
    written: str = yaml.dump_all(objects(plan), Dumper=_Plain, sort_keys=False, width=120)
    return written


class _Plain(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    """Writes what stands in two places twice."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        """Return True: no anchors."""
        return True


def objects(plan: ClusterPlan) -> list[dict[str, Any]]:
    """Return the fleet's objects in the order in which they are made."""
    space = {"namespace": plan.namespace, "labels": {LABEL: plan.namespace}}
    whole = {"name": f"tare-fleet-{plan.namespace}", "labels": {LABEL: plan.namespace}}
    subject = [{"kind": "ServiceAccount", "name": TARE, "namespace": plan.namespace}]
    rights = "rbac.authorization.k8s.io"
    reads = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]},
        {"apiGroups": ["node.k8s.io"], "resources": ["runtimeclasses"], "verbs": ["get", "list"]},
    ]
    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "create", "patch", "delete"]}
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            # Where the cluster enforces pod security, privileged pods need this label.
            "metadata": {
                "name": plan.namespace,
                "labels": {LABEL: plan.namespace, "pod-security.kubernetes.io/enforce": "privileged"},
            },
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": TARE, **space}},
        {"apiVersion": f"{rights}/v1", "kind": "ClusterRole", "metadata": whole, "rules": reads},
        {
            "apiVersion": f"{rights}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": whole,
            "roleRef": {"apiGroup": rights, "kind": "ClusterRole", "name": whole["name"]},
            "subjects": subject,
        },
        {"apiVersion": f"{rights}/v1", "kind": "Role", "metadata": {"name": TARE, **space}, "rules": [pods]},
        {
            "apiVersion": f"{rights}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": TARE, **space},
            "roleRef": {"apiGroup": rights, "kind": "Role", "name": TARE},
            "subjects": subject,
        },
        *(_job(plan, node) for node in plan.nodes),
    ]


def job_name(node: str) -> str:
    """Return the name of a node's Job: at most 63 characters, and another one for each node."""
    plain = re.sub(r"[^a-z0-9-]", "-", node).strip("-")[:45]
    return f"tare-{plain}-{zlib.crc32(node.encode()):08x}"


def file_name(plan: ClusterPlan, node: str) -> str:
    """Return the name of a node's result in the folder: of this fleet's namespace alone."""
    return f"{plan.namespace}.{job_name(node)}.tare"


def fetching_pod(plan: ClusterPlan, node: str) -> dict[str, Any]:
    """Return a pod that sees a node's results, and only waits, for at most ten minutes."""
    name = job_name(node).replace("tare-", "fetch-", 1)
    container = {
        "name": "fetch",
        "image": plan.image,
        "command": ["sleep", "600"],
        "volumeMounts": [{"name": "results", "mountPath": SEEN_AT}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": plan.namespace, "labels": {LABEL: plan.namespace}},
        "spec": {
            **_placed(plan, node),
            "automountServiceAccountToken": False,
            "activeDeadlineSeconds": 600,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        },
    }


def _placed(plan: ClusterPlan, node: str) -> dict[str, Any]:
    """Return the part of a pod's specification that binds it to a node and its results."""
    return {
        "nodeName": node,
        "restartPolicy": "Never",
        # A node that takes no other pods is measured all the same.
        "tolerations": [{"operator": "Exists"}],
        "volumes": [{"name": "results", "hostPath": {"path": plan.folder, "type": "DirectoryOrCreate"}}],
    }


def _literally(*words: str) -> list[str]:
    """Return a container's command that is these words: Kubernetes replaces $(NAME), and makes $ of $$."""
    return [word.replace("$", "$$") for word in words]


def _job(plan: ClusterPlan, node: str) -> dict[str, Any]:
    labels = {LABEL: plan.namespace, f"{LABEL}/job": job_name(node)}
    name = file_name(plan, node)
    placed = _placed(plan, node)
    mounts = [{"name": "results", "mountPath": SEEN_AT}, {"name": "scratch", "mountPath": "/scratch"}]
    container = {
        "name": TARE,
        "image": plan.image,
        "command": _literally("sh", "-c", SCRIPT, "job", plan.tare, f"{SEEN_AT}/{name}", f"{plan.folder}/{name}")
        + _literally(*plan.words),
        "env": [{"name": "TARE_NAMESPACE", "value": plan.namespace}],
        "securityContext": {"privileged": True},
        "volumeMounts": mounts,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job_name(node), "namespace": plan.namespace, "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    **placed,
                    "hostPID": True,
                    "serviceAccountName": TARE,
                    "volumes": [*placed["volumes"], {"name": "scratch", "emptyDir": {}}],
                    "containers": [container],
                },
            },
        },
    }
