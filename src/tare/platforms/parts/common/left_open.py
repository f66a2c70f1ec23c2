"""Doors to the host that platforms leave open by design, as `Platform.open_by_design` has them: name, and why."""

from __future__ import annotations

from collections.abc import Mapping

from tare.platforms.base import EVERY_DOOR

#: What needs no capability: only a seccomp filter keeps it from a sandbox. With a user namespace comes the freezer of
#: control groups v1, which its root may mount; sockets of AF_VSOCK know no network namespaces.
UNFILTERED = ("user-namespace", "keys", "vsock", "freezer")
#: What is open to all that have the host's network.
SHARED_NETWORK = ("abstract-sockets", "other-arm", "sniff", "spoof", "host-ports", "metadata")


def every_door(why: str) -> Mapping[str, str]:
    """Every door, for one reason."""
    return {EVERY_DOOR: why}


def doors(why: str, *names: str) -> Mapping[str, str]:
    """Return the named doors, for one reason."""
    return dict.fromkeys(names, why)


#: Of platforms that have raw sockets on tare's bridge.
BY_BRIDGE = doors(
    "where the kernel has no xt_bpf, tare's bridge pins an instance's MAC, and raw sockets may lie about its address",
    "spoof",
)


def on_bridge(why: str, *names: str) -> Mapping[str, str]:
    """Return these doors, and what is open to all that have raw sockets on tare's bridge."""
    return {**doors(why, *names), **BY_BRIDGE}


#: Of nspawn's without ``-U``: systemd 257 leaves it /proc/sysrq-trigger, and systemd 252 a /proc of its own, unless the
#: host hides a part of its /proc.
BY_NSPAWNS_PROC = doors(
    "without -U its root is the host's, and by systemd's version some of /proc stays writable or can be mounted anew",
    *("core-pattern", "modprobe-path", "sysctl-vm", "sysrq", "irq-affinity"),
)
UNPRIVILEGED_LXC = on_bridge(
    "LXD's and Incus's own filter lets these calls pass, and they hand a container groups of its own",
    *("user-namespace", "vsock", "freezer"),
)
PRIVILEGED_LXC = on_bridge("a privileged container without a filter for these calls", *UNFILTERED)

#: Podman's filter is not Docker's.
BY_PODMANS_FILTER = doors("Podman's own seccomp filter lets these calls pass", *UNFILTERED)
#: Its rule against such sockets came with version 23.0.
BY_DOCKERS_FILTER = doors("Docker's own seccomp filter lets them pass before version 23.0", "vsock")
#: Netstack makes no raw sockets, and Podman's containers may not.
BY_DOCKERS_BRIDGE = doors("Docker's own bridge pins no address, and CAP_NET_RAW is among its default rights", "spoof")
#: By `docker run --network`, or what is like it. Bridge: the host forwards a port of its own address to the instance.
BY_NETWORK = {
    "bridge": doors(
        "containers on its engine's bridge reach each other, those of the host's user too; its port is published at an "
        "address of the host's, which all that reach the host reach",
        "other-arm",
    ),
    "host": doors("it has the host's network", *SHARED_NETWORK),
    "none": {},
}
