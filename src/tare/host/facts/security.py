"""Security module of the host's kernel, and the labels of processes: read, never changed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tare.host.kernel import host_text

#: Location of ``proc`` and ``sys``; tests set a folder with the files of another machine.
ROOT = Path("/")


def apparmor(root: Path | None = None) -> bool:
    """Return True if AppArmor is on."""
    return _text(root, "sys/module/apparmor/parameters/enabled") == "Y"


def selinux(root: Path | None = None) -> str | None:
    """Return SELinux's mode, as getenforce(8) prints it, in lower case; None if it is off."""
    return {"1": "enforcing", "0": "permissive"}.get(_text(root, "sys/fs/selinux/enforce"))


def userns_by_profile(root: Path | None = None) -> bool:
    """Return True if AppArmor restricts user namespaces without root to programs with a profile (Ubuntu 24.04)."""
    return _text(root, "proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1"


def module(root: Path | None = None) -> str:
    """Describe the security module that labels processes: AppArmor, SELinux with its mode, or none."""
    mode = selinux(root)
    if mode is not None:
        return f"SELinux, {mode}"
    if not apparmor(root):
        return "none"
    return "AppArmor, user namespaces without root by profile only" if userns_by_profile(root) else "AppArmor"


def writable_bind(root: Path | None = None) -> str:
    """Return the options of docker and podman for a writable folder that only one container gets.

    With SELinux, the folder gets the container's label (``Z``): with its own label no container may use it.
    """
    return "rw" if selinux(root) is None else "rw,Z"


def binds_of_hosts_own(root: Path | None = None) -> list[str]:
    """Return podman's options for a container that uses the host's own folders, which must keep their labels."""
    return [] if selinux(root) is None else ["--security-opt=label=disable"]


def label(pid: int, thread: int | None = None, root: Path | None = None) -> str | None:
    """Return the label of a process or of one of its threads; None without a label, or if it has ended."""
    return _text(root, f"proc/{pid}/task/{pid if thread is None else thread}/attr/current").strip("\0\n ") or None


def labels(pids: Iterable[int], root: Path | None = None) -> str:
    """Return the labels of some processes, each once, by name; "none" if no module labels them."""
    return ", ".join(sorted({text for pid in pids if (text := label(pid, root=root))})) or "none"


def _text(root: Path | None, path: str) -> str:
    return host_text.said(Path(root or ROOT, path))
