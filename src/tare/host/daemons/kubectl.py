"""Access to a Kubernetes cluster by kubectl, which its users have: with their kubeconfig and every way to log in.

tare reads no credentials: kubectl finds them by ``KUBECONFIG``, in the user's home, or in a pod by its account.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tare.errors import HostError, UsageError
from tare.host import processes, state
from tare.host.processes import Finished

LIMIT_S = 60.0
#: By then a kubelet that works has removed a pod.
_DELETE_S = 45
#: Label of tare's pods, with the instance's name as its value.
LABEL = "tare"
FIX = "see that `kubectl get nodes` works"
_NOT_FOUND = "(NotFound)"
_OUTPUT_CAP = 16 << 20
_CLASS = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


def require_class(name: str) -> None:
    """Raise `UsageError` for what cannot be the name of a runtime class."""
    if not _CLASS.fullmatch(name):
        raise UsageError(f"{name!r} is no name of a runtime class", fix="kubectl get runtimeclass lists them")


def program() -> str | None:
    """Return the kubectl on PATH, else the one that `make cluster` built, or None."""
    built = state.home_if_any() / "cluster" / "kubectl"
    return processes.find("kubectl") or (str(built) if os.access(built, os.X_OK) else None)


def environment() -> dict[str, str]:
    """Return the variables by which kubectl, and the programs that log in for it, find the cluster and the user."""
    return processes.kept("KUBECONFIG", "KUBERNETES_*", "AWS_*", "GOOGLE_*", "AZURE_*", "*_proxy", "SSL_CERT_*")


def run(*words: str, stdin: bytes = b"", time_limit_s: float = LIMIT_S, cgroup_procs: Sequence[Path] = ()) -> Finished:
    """Run kubectl with these words."""
    return processes.run(
        [program() or "kubectl", *words],
        stdin=stdin,
        env=environment(),
        time_limit_s=time_limit_s,
        output_cap=_OUTPUT_CAP,
        cgroup_procs=cgroup_procs,
    )


def ask(*words: str, stdin: bytes = b"", time_limit_s: float = LIMIT_S, cgroup_procs: Sequence[Path] = ()) -> Any:
    """Return kubectl's answer as parsed JSON; None if there is no such object. Raises `HostError`."""
    done = run(*words, "-o", "json", stdin=stdin, time_limit_s=time_limit_s, cgroup_procs=cgroup_procs)
    if done.code != 0:
        if _NOT_FOUND in done.message:
            return None
        raise refused(done)
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise HostError("kubectl's answer is no JSON", fix=FIX) from error


def items(kind: str, *words: str) -> dict[str, dict[str, Any]]:
    """Return the cluster's objects of a kind by name. Raises `HostError`, also if the answer is no list of them."""
    answer = ask("get", kind, *words)
    listed = answer.get("items") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        raise HostError(f"kubectl's answer is no list of {kind}", fix=FIX)
    found: dict[str, dict[str, Any]] = {}
    for each in listed:
        name = part(each, "metadata").get("name")
        if not isinstance(name, str):
            raise HostError(f"kubectl's answer has {kind} without a name", fix=FIX)
        found[name] = each
    return found


def part(whole: object, *names: str) -> dict[str, Any]:
    """Return the object below these names in an answer; an empty one if there is no such object."""
    for name in names:
        whole = whole.get(name) if isinstance(whole, dict) else None
    return whole if isinstance(whole, dict) else {}


def refused(done: Finished) -> HostError:
    """Return the error with kubectl's last line."""
    why = "it took too long" if done.timed_out else done.message[:400]
    return HostError(f"kubectl fails: {why}", fix=FIX)


def delete_pod(namespace: str, name: str) -> None:
    """Delete a pod, if it is there, and wait until its node has ended and removed it. Raises `HostError`.

    Without grace the API server would forget it at once, while its kubelet may be about to start it. A node that does
    not answer keeps no pod in the cluster.
    """
    words = ["delete", "pod", name, f"--namespace={namespace}", "--ignore-not-found", "--wait=true"]
    done = run(*words, "--grace-period=1", f"--timeout={_DELETE_S}s")
    if done.code != 0:
        done = run(*words, "--grace-period=0", "--force")
    if done.code != 0:
        raise refused(done)
