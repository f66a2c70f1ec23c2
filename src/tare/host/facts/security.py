"""Which security module the host's kernel has on, and under which label a process runs: read, never changed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tare.host.kernel import text

#: Where ``proc`` and ``sys`` are; tests give a folder with the files of another machine.
ROOT = Path("/")


def apparmor(root: Path | None = None) -> bool:
    """Whether AppArmor is on."""
    return _text(root, "sys/module/apparmor/parameters/enabled") == "Y"


def selinux(root: Path | None = None) -> str | None:
    """SELinux's mode, as getenforce(8) has it, in lower case; None where it is off."""
    return {"1": "enforcing", "0": "permissive"}.get(_text(root, "sys/fs/selinux/enforce"))


def userns_by_profile(root: Path | None = None) -> bool:
    """Whether AppArmor lets only programs whose profile allows it make a user namespace without root (Ubuntu 24.04)."""
    return _text(root, "proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1"


def module(root: Path | None = None) -> str:
    """The security module that labels processes, in words: AppArmor, SELinux with its mode, or none."""
    mode = selinux(root)
    if mode is not None:
        return f"SELinux, {mode}"
    if not apparmor(root):
        return "none"
    return "AppArmor, user namespaces without root by profile only" if userns_by_profile(root) else "AppArmor"


def writable_bind(root: Path | None = None) -> str:
    """The options of docker's and podman's for a folder that one container alone gets, writable.

    Where SELinux is on, the folder gets the container's label (``Z``): with its own label no container may use it.
    """
    return "rw" if selinux(root) is None else "rw,Z"


def binds_of_hosts_own(root: Path | None = None) -> list[str]:
    """The options of podman's for a container that uses the host's own folders: they must keep their labels."""
    return [] if selinux(root) is None else ["--security-opt=label=disable"]


def label(pid: int, thread: int | None = None, root: Path | None = None) -> str | None:
    """The label of a process or of one of its threads; None where there is none, or it has ended."""
    return _text(root, f"proc/{pid}/task/{pid if thread is None else thread}/attr/current").strip("\0\n ") or None


def labels(pids: Iterable[int], root: Path | None = None) -> str:
    """The labels of some processes, each once, by name; "none" where no module labels them."""
    return ", ".join(sorted({text for pid in pids if (text := label(pid, root=root))})) or "none"


def _text(root: Path | None, path: str) -> str:
    return text.said(Path(root or ROOT, path))
