"""Access to a containerd: its socket, the command line of `ctr`, and its shims' files outside of its folders."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tare.host.daemons import activation

#: Sockets of the host's own daemon: Debian's, Docker's and kubeadm's, and that of k3s.
SOCKETS = ("/run/containerd/containerd.sock", "/run/k3s/containerd/containerd.sock")
#: Namespace of all that tare has in a daemon, except pods, which are in the namespace of the CRI.
NAMESPACE = "tare"
CRI_NAMESPACE = "k8s.io"
#: The folder of the state of tare's own daemon, beside its socket.
STATE = "state"
#: Shims listen here, and runtimes keep their state below, wherever the daemon has its own (containerd's defaults).
_SHIMS = Path("/run/containerd")


def ctr(address: str, namespace: str = NAMESPACE) -> list[str]:
    """Return the command line of the daemon's client, without its arguments."""
    return ["ctr", "--address", address, "--namespace", namespace]


def hosts_own() -> str | None:
    """Return the address of the host's own daemon, preferring ``CONTAINERD_ADDRESS``; None if none runs."""
    named = os.environ.get("CONTAINERD_ADDRESS", "")
    addresses = (*([named] if named in SOCKETS else []), *SOCKETS)
    return next((address for address in addresses if activation.runs(address)), None)


def bundle(address: str, container: str, namespace: str = NAMESPACE) -> Path:
    """Return the mount point of a container's root in a daemon of tare's own, whose state is beside its socket."""
    return Path(address).parent / STATE / "io.containerd.runtime.v2.task" / namespace / container


def references(listed: str, tag: str) -> list[str]:
    """Return an image's names in ``ctr images ls``: its tag, and the CRI's further names, such as its digest.

    If another tag names the same image, the digest belongs to that tag too, and is left out.
    """
    digests = {words[0]: words[2] for words in map(str.split, listed.splitlines()[1:]) if len(words) > 2}
    if tag not in digests:
        return []
    alike = [reference for reference, digest in digests.items() if digest == digests[tag]]
    names = [reference for reference in alike if not reference.startswith("sha256:")]
    return alike if names == [tag] else [tag]


def kept_outside(address: str, container: str, namespace: str = NAMESPACE) -> list[Path]:
    """Return the files of a container's shim and runtime outside of the daemon's folders, which stay after a kill.

    The shim's socket is named after a digest of the daemon's address, the namespace and the container's id.
    """
    digest = hashlib.sha256(f"{address}/{namespace}/{container}".encode()).hexdigest()
    runtimes = (_SHIMS / runtime / namespace / container for runtime in ("runc", "runsc"))
    return [_SHIMS / "s" / digest, *runtimes]
