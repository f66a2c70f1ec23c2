"""Surfaces for tests: small ones that can be added up by hand, and some with the filters of real sandboxes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import fake_campaign
from tare.features.kernel.surface.surface import FilterReach, Reader
from tare.footprint_model import Abi, Call, Surface, Tasks, WritableMount
from tare.store import create_store, open_store

CALLS = {"read": Call.ALLOWED, "clone": Call.CONDITIONAL, "mount": Call.ERRNO, "bpf": Call.TRAP}
KERNEL = "Linux 6.1.0-fake, x86_64"
_CAPTURED = Path(__file__).parent / "footprint" / "captured"
_FEW = ("cap_chown", "cap_kill")


def tasks(role: str = "sandboxed", calls: Mapping[str, Call] | None = CALLS, **values: object) -> Tasks:
    """Two threads of an agent that has a filter of four calls."""
    fields = {
        "pid": 7,
        "program": "agent",
        "role": role,
        "counted": role != "outside",
        "threads": {"agent": 2},
        "seccomp": "filter",
        "filters": 1,
        "calls": calls,
        "outcomes": {"clone": ("allow", "errno 38"), "mount": ("errno 1",), "bpf": ("trap",)},
        "unread": None if calls else "another process (exe) traces it",
        "abis": {"i386": Abi(reachable=3, of=9, in_kernel=True), "x32": Abi(reachable=2, of=9, in_kernel=False)},
        "effective": _FEW,
        "bounding": _FEW,
        "namespaces": ("mnt", "pid"),
        "no_new_privs": False,
        "label": None,
        "uid": 0,
        "gid": 0,
        "writable": (WritableMount(path="/data", host="/srv/data", kind="ext4"),),
        "devices": ("/dev/kvm",),
    }
    return Tasks.model_validate(fields | values)


def surface(
    platform: str = "docker",
    *every: Tasks,
    calls: Mapping[str, Call] | None = CALLS,
    unread: tuple[str, ...] = (),
    at: float = 1763712000.0,
) -> Surface:
    """An agent, and a shim that does not count."""
    every = every or (tasks(calls=calls), tasks("outside", program="shim", pid=8))
    return Surface(
        platform=platform, at=at, kernel=KERNEL, of=4, calls=calls, unread=unread, tasks=every, abis=every[0].abis
    )


def captured() -> list[Surface]:
    """native, runc, docker and gvisor, with the filters that real ones had installed."""
    reader = Reader()
    docker, sentry, gofer = (_reach(reader, name) for name in ("docker", "runsc-sentry", "runsc-gofer"))
    everything = reader.evaluated([])
    own_namespaces = ("ipc", "mnt", "net", "pid", "uts")
    here = ("ipc", "mnt", "net", "pid", "user", "uts")
    shim = _tasks("outside", "containerd-shim", everything, pid=8)
    sides = {
        "gvisor": [
            _tasks("sentry", "exe", sentry, namespaces=here, no_new_privs=True, uid=65534),
            _tasks("gofer", "exe", gofer, namespaces=here, no_new_privs=True, pid=9),
        ],
        "native": [_tasks("sandboxed", "tare-agent", everything)],
        "docker": [_tasks("sandboxed", "tare-agent", docker, namespaces=own_namespaces, label="docker-default"), shim],
        "runc": [_tasks("sandboxed", "tare-agent", everything, namespaces=own_namespaces), shim],
    }
    return [_whole(name, every) for name, every in sides.items()]


def write(path: Path, surfaces: Iterable[Surface], *, trials: bool = False) -> Path:
    """A file with these surfaces; without trials as `tare surface -o` makes it, of no workload and no block."""
    shape = fake_campaign.Shape(blocks=3, rounds=2, workloads=("sysbench-cpu",))
    if trials:
        fake_campaign.write(path, shape)
    else:
        alone = {"workloads": [], "blocks": 0}
        create_store(path, fake_campaign.record(shape).model_copy(update=alone)).close()
    with open_store(path) as store:
        for surface in surfaces:
            store.add_surface(surface)
        store.set_status("complete")
    return path


def _reach(reader: Reader, name: str) -> FilterReach:
    return reader.evaluated([(_CAPTURED / f"{name}.bpf").read_bytes()])


def _tasks(role: str, program: str, reach: FilterReach, **values: object) -> Tasks:
    facts = {"program": program, "calls": reach.calls, "outcomes": reach.outcomes, "abis": reach.abis, "unread": None}
    seccomp = {"filters": reach.filters, "seccomp": "filter" if reach.filters else "none"}
    return tasks(role, **facts | seccomp | {"writable": (), "devices": ()} | values)


def _whole(platform: str, every: list[Tasks]) -> Surface:
    """What the most permissive of the counted ones gets, which here is the milder of two."""
    counted = [kind for kind in every if kind.counted]
    order = list(Call)
    together = {name: min((kind.calls[name] for kind in counted), key=order.index) for name in counted[0].calls}
    facts = {"at": 1763712000.0, "kernel": KERNEL, "unread": (), "abis": every[0].abis}
    return Surface(platform=platform, of=len(together), calls=together, tasks=tuple(every), **facts)
