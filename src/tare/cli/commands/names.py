"""Names as people type them: several with commas between, in any case, and by the programs that platforms are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tare.campaign.plan.campaign_request import ALL
from tare.errors import UsageError

#: Platforms by what else they are called; of a word with several, the user says which.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "bare-metal": ("native",),
    "baremetal": ("native",),
    "bwrap": ("bubblewrap",),
    "host": ("native",),
    "kata": ("containerd-kata", "containerd-cri-kata"),
    "kata-containers": ("containerd-kata", "containerd-cri-kata"),
    "kubernetes": ("kubelet", "kubelet-gvisor", "containerd-cri", "containerd-cri-gvisor", "containerd-cri-kata"),
    "k8s": ("kubelet", "kubelet-gvisor", "containerd-cri", "containerd-cri-gvisor", "containerd-cri-kata"),
    "kvm": ("qemu", "gvisor-kvm", "firecracker", "cloud-hypervisor"),
    "libvirt": ("libvirt-qemu", "libvirt-lxc"),
    "rootless-podman": ("podman-rootless",),
    "runsc": ("gvisor",),
    "systemd-nspawn": ("nspawn",),
    "user-mode-linux": ("uml",),
    "xen": ("xen-pv", "libvirt-xen"),
}


def platforms(values: Sequence[str] | None) -> list[str]:
    """The names in the values of an option for platforms. Raises `UsageError` for a word with several readings."""
    from tare.platforms import platform_registry

    words = _words(values)
    return _resolved(words, [*platform_registry.all_platforms(), ALL], ALIASES) if words else []


def workloads(values: Sequence[str] | None) -> list[str]:
    """The names in the values of an option for workloads and families of them."""
    from tare.model import Family
    from tare.workloads import workload_registry

    words = _words(values)
    return (
        _resolved(words, [*workload_registry.all_workloads(), *(family.value for family in Family)], {})
        if words
        else []
    )


def _words(values: Sequence[str] | None) -> list[str]:
    """Each word; what has an argument or is a file's path stays as it is, commas and all.

    Raises `UsageError` for a value without a word, such as that of a shell's variable that is not set: it is not the
    default.
    """
    if any(not value.strip(" ,\t\n") for value in values or ()):
        raise UsageError("an option for names has an empty value", fix="name something, or leave the option out")
    return [
        word.strip()
        for value in values or ()
        for word in ([value] if ":" in value or "/" in value else value.split(","))
        if word.strip()
    ]


def _resolved(words: Sequence[str], known: Collection[str], aliases: Mapping[str, tuple[str, ...]]) -> list[str]:
    by_fold = {name.casefold(): name for name in known}
    names = []
    for word in words:
        folded = word.casefold()
        meant = aliases.get(folded, ()) if folded not in by_fold else (by_fold[folded],)
        if len(meant) > 1:
            raise UsageError(f"{word} may be several platforms", fix=f"name one: {', '.join(meant)}")
        names.append(meant[0] if meant else word)
    return names
