"""The ground that a campaign stands on: one campaign a host at a time, its network, its client, its labels."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from tare.campaign.disk_watch import DiskWatch
from tare.campaign.instances import PARENT_GROUP, Nursery
from tare.campaign.runs import Client
from tare.errors import HostError
from tare.host import beside, cgroup, facts, janitor, network, pinning, roots, state, topology, tuning
from tare.host.journal import Belongings, Journal, clear_the_way
from tare.host.tuning import Tuned
from tare.image.build import Image
from tare.model import Resources
from tare.platforms.parts.marks import Datagram


@contextlib.contextmanager
def sole_campaign() -> Iterator[None]:
    """Hold the host for one campaign: two at once would measure each other. Raises `HostError` naming the other."""
    if os.geteuid() != 0:
        raise HostError("sandboxes and their accounting need root", fix="run tare as root (sudo)")
    lock = state.home() / "lock"
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            raise HostError(
                f"another tare (process {holder}) is measuring on this host", fix="wait for it, or end it"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def quietened(resources: Resources, progress: Callable[[str], None], *, tune: bool) -> Iterator[list[Tuned] | None]:
    """With ``tune``: the host's settings as a campaign wants them, given back at the end. None without.

    Before `prepared`: a control group's swappiness is that which the host had when it was made.
    """
    if not tune:
        yield None
        return
    journal = Journal(state.journal())
    clear_the_way(journal)  # what a killed run set is given back first, or it would be taken for the host's own
    with tuning.tuned(journal, resources.cpus) as outcomes:
        for line in tuning.described(outcomes):
            progress(f"not tuned: {line}")
        yield outcomes


@contextlib.contextmanager
def prepared(image: Image, resources: Resources, subnet: str | None) -> Iterator[tuple[Nursery, Client]]:
    """Make the campaign's network, client and control group, after removing what killed runs left."""
    journal = Journal(state.journal())
    clear_the_way(journal)
    net = network.Network(network.choose_subnet(subnet))
    label = secrets.token_hex(3)[:5]
    work = state.work()
    with (
        pinning.kept_off(pinning.usable() - set(harness_cpus(resources.cpus))),
        Belongings(journal) as things,
        contextlib.closing(Datagram(net.host)) as datagram,
    ):
        things.own(janitor.control_group(PARENT_GROUP))
        net.create(things)
        with roots.told("the client", work):
            client = _client(things, image, resources, work / f"{label}client")
        disk = DiskWatch()
        with disk.watching():
            yield Nursery(label, image, resources, net, journal, work, datagram, disk), client


def harness_cpus(measured: Collection[int]) -> tuple[int, ...]:
    """The CPUs that are left for the harness and the client, away from the measured cores where that can be."""
    return topology.elsewhere(pinning.usable(), measured, beside.cores(tuple(measured)))


def default_cpus(count: int = 1) -> tuple[int, ...]:
    """The CPUs for the instances, each of another core where there are enough."""
    return topology.choose(pinning.usable(), facts.cores_of_machine(), count)


def _client(things: Belongings, image: Image, resources: Resources, folder: Path) -> Client:
    group = cgroup.Group(f"{PARENT_GROUP}/client")
    things.own(janitor.control_group(group.path))
    group.create(Resources(harness_cpus(resources.cpus), resources.memory_bytes))
    space = roots.new_workspace(things, folder)
    root = roots.overlay_root(things, space, image.root)
    roots.chroot_mounts(things, root, space.data)
    return Client(root, group.leaf("tool"))
