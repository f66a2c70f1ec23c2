"""Reaching a containerd: its socket, the command line of `ctr`, and what its shims keep outside of its own folders."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tare.host.daemons import activation

#: Where the host's own daemon listens: Debian's, Docker's and kubeadm's, and that of k3s.
SOCKETS = ("/run/containerd/containerd.sock", "/run/k3s/containerd/containerd.sock")
#: Of all that is tare's in a daemon, but for pods: those are in the namespace of the CRI.
NAMESPACE = "tare"
CRI_NAMESPACE = "k8s.io"
#: The folder of the state of tare's own daemon, beside its socket.
STATE = "state"
#: Wherever a daemon has its state, its shims listen here, and runtimes keep theirs below it (containerd's defaults).
_SHIMS = Path("/run/containerd")


def ctr(address: str, namespace: str = NAMESPACE) -> list[str]:
    """The command line of the daemon's client, to be followed by its words."""
    return ["ctr", "--address", address, "--namespace", namespace]


def hosts_own() -> str | None:
    """The address of the host's own daemon, the one of ``CONTAINERD_ADDRESS`` before others; None: none runs."""
    named = os.environ.get("CONTAINERD_ADDRESS", "")
    addresses = (*([named] if named in SOCKETS else []), *SOCKETS)
    return next((address for address in addresses if activation.runs(address)), None)


def bundle(address: str, container: str, namespace: str = NAMESPACE) -> Path:
    """Where a daemon of tare's own, whose state is beside its socket, mounts the root of a container."""
    return Path(address).parent / STATE / "io.containerd.runtime.v2.task" / namespace / container


def references(listed: str, tag: str) -> list[str]:
    """What names an image in ``ctr images ls``: its tag, and what the CRI calls it by besides, its digest.

    Where another tag names the same image, the digest is that one's too, and is left.
    """
    digests = {words[0]: words[2] for words in map(str.split, listed.splitlines()[1:]) if len(words) > 2}
    if tag not in digests:
        return []
    alike = [reference for reference, digest in digests.items() if digest == digests[tag]]
    names = [reference for reference in alike if not reference.startswith("sha256:")]
    return alike if names == [tag] else [tag]


def kept_outside(address: str, container: str, namespace: str = NAMESPACE) -> list[Path]:
    """What shim and runtime of a container keep outside of the daemon's folders, and leave there when both are killed.

    The shim's socket is called after a digest of the daemon's address, the namespace and the container's id.
    """
    digest = hashlib.sha256(f"{address}/{namespace}/{container}".encode()).hexdigest()
    runtimes = (_SHIMS / runtime / namespace / container for runtime in ("runc", "runsc"))
    return [_SHIMS / "s" / digest, *runtimes]
