"""The host while tare starts instances on it: its lock, settings, network, client and launcher of instances."""

from __future__ import annotations

import contextlib
import secrets
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

from tare.campaign.instances import far_client
from tare.campaign.instances.client import HostClient, LoadClient
from tare.campaign.instances.disk_watch import DiskWatch
from tare.campaign.instances.far_client import FarClient
from tare.campaign.instances.launcher import PARENT_GROUP, HostCpus, InstanceLauncher
from tare.errors import HostError, ImageError
from tare.host import cgroup, lock, own_limits, own_namespaces, session_rights, state
from tare.host.facts import machine_facts, siblings, topology
from tare.host.filesystems import roots
from tare.host.kernel import pinning
from tare.host.network import bridge, bridge_filter, outside, subnets
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack, Journal, clear_the_way, remove_rest
from tare.host.tuning import tune
from tare.host.tuning.tune import Tuned
from tare.image import image_build, own, work
from tare.image.image_build import Image
from tare.model import Progress, Resources
from tare.platforms.watchers.marks import Datagram
from tare.workloads.base import Workload

T = TypeVar("T")
P = ParamSpec("P")


class HostSession:
    """Exclusive use of the host for as long as the context lasts; what killed runs left on it is removed first.

        with HostSession(progress) as host:
            image = host.image(workloads)
            tuned = host.tune(resources.cpus)
            launcher, client = host.prepare(image, resources)

    Each part is set up when its method is called. At the end all parts are undone in reverse order, with what the
    caller added to them (`enter_context`, `callback`), even where undoing one of them fails: the first error is raised,
    or an interrupt in place of it, and the other errors are attached to it as notes.
    """

    def __init__(self, progress: Progress = lambda _: None) -> None:
        """``progress`` is called with a line for each step that takes a while."""
        self.progress = progress
        self._parts: list[AbstractContextManager[object]] = []

    def __enter__(self) -> Self:
        """Raise `HostError` where another session has the host, and where rights or limits are too few."""
        own_limits.require(own_limits.THREADS_OF_SESSION)
        own_limits.require_time()
        session_rights.require()
        self.enter_context(lock.held())
        try:
            # Otherwise `tune` would record a setting that a killed run left as the host's own.
            self._journal = Journal(state.journal())
            clear_the_way(self._journal)
            self.callback(remove_rest, self._journal, self._journal.entries())
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raised = error
        while self._parts:
            try:
                _leave(self._parts.pop(), raised)
            except BaseException as further:  # noqa: BLE001 (raised once the other parts are undone)
                raised = _first(raised, further)
        if raised is not None and raised is not error:
            raise raised

    def enter_context(self, part: AbstractContextManager[T]) -> T:
        """Enter a context; it is left at the end, before everything that was entered earlier."""
        entered = part.__enter__()
        self._parts.append(part)
        return entered

    def callback(self, call: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Register a call for the end, before everything that was entered earlier is undone."""
        called = contextlib.ExitStack()
        called.callback(call, *args, **kwargs)
        self._parts.append(called)

    def image(self, workloads: Iterable[Workload] = (), *, bare: bool = False) -> Image:
        """Return the one image for all instances (`image_for`)."""
        return image_for(workloads, self.progress, bare=bare)

    def tune(self, measured: Collection[int]) -> list[Tuned]:
        """Set the host's settings as a campaign on these CPUs needs them; they are restored at the end.

        Call it before `prepare`: a control group inherits the host's swappiness when it is made.
        """
        outcomes = self.enter_context(tune.tuned(self._journal, measured))
        for line in tune.described(outcomes):
            self.progress(f"not tuned: {line}")
        return outcomes

    def prepare(
        self,
        image: Image,
        resources: Resources,
        subnet: str | None = None,
        *,
        prefix: int = 24,
        client: str | None = None,
    ) -> tuple[InstanceLauncher, LoadClient]:
        """Make the network, the client and the control group of all instances, and keep tare off the measured CPUs.

        ``prefix``: the length of the bridge's prefix where no subnet was asked for. ``client``: the machine that the
        load comes from, as `far_client.check` takes it; None: this host.

        Raises `HostError` where one of them cannot be made.
        """
        if client is not None and own_namespaces.inside():
            problem = "without root, tare has a network of its own, which no client on another machine reaches"
            raise HostError(problem, fix="run tare as root (sudo), or leave --client out")
        own_namespaces.leave_hosts_network()
        free, not_reached = subnets.choose(subnet, prefix=prefix)
        if not_reached:
            self.progress(not_reached)
        net = bridge.Network(free)
        label, work = secrets.token_hex(3)[:5], state.work()
        self.enter_context(pinning.widened(resources.cpus))
        cpus = host_cpus(resources.cpus)
        self.enter_context(pinning.kept_off(pinning.usable() - set(cpus.harness)))
        cleanup = self.enter_context(CleanupStack(self._journal))
        cleanup.own(removers.control_group(cgroup.path_of(PARENT_GROUP)))
        unfenced = net.create(cleanup)
        net.let_ping(roots.client_user())
        if kept_on := bridge_filter.switch_off(cleanup):
            self.progress(kept_on)
        self.callback(net.close)
        datagram = self.enter_context(contextlib.closing(Datagram(net.host)))
        if unfenced is not None:
            self.progress(f"not fenced: {unfenced}")
        with roots.translated("the client", work):
            peer = _client(cleanup, image, Resources(cpus.client, resources.memory_bytes), work / f"{label}client")
        disk = DiskWatch()
        self.enter_context(disk.watching())
        launcher = InstanceLauncher(label, image, resources, net, self._journal, work, datagram, disk, cpus)
        if client is None:
            return launcher, peer
        return launcher, self._from_outside(client, launcher, peer, cleanup)

    def _from_outside(
        self, name: str, launcher: InstanceLauncher, peer: HostClient, cleanup: CleanupStack
    ) -> FarClient:
        """Return the client on another machine, and the way for its calls. Raises `HostError`."""
        self.progress(f"connecting to the client {name}")
        assert peer.group is not None, "the client on this host has one"
        far = far_client.connected(name, launcher, peer.group, cleanup)
        self.callback(far.close)
        way = outside.way_to(far.address)
        launcher.network.serve_outside(way)
        far.require_reached(way)
        launcher.client = far.record(name, way)
        return far


def image_for(workloads: Iterable[Workload], progress: Progress, *, bare: bool = False) -> Image:
    """Return the one image for all of these workloads, with the layers that they need and no others.

    ``bare``: of the agent alone, where none of them needs another program.

    Where one of them brings an image of its own, that is it, and tare's is what the client runs. Raises `ImageError`,
    also where the image lacks a package that a workload needs.
    """
    chosen = list(workloads)
    layers = {workload.layer for workload in chosen if workload.layer is not None}
    image = image_build.ensure(image_build.agent_path(), progress=progress, layers=layers)
    sources = {workload.source: workload.name for workload in chosen if workload.source is not None}
    if len(sources) > 1:
        problem = f"{' and '.join(sources.values())} bring an image each, and all instances of a campaign run one"
        raise ImageError(problem, fix="run them in a campaign each")
    for source in sources:
        if source.place:
            image = own.ensure(source, image_build.agent_path(), image, progress)
        if source.work is not None:
            image = work.ensure(image, Path(source.work), progress)
    for workload in chosen:
        runs = image.tools if workload.source is not None and image.tools is not None else image
        missing = [package for package in workload.packages if package not in runs.manifest.packages]
        if missing:
            fix = "give the workload a layer with it (docs/add-a-workload.md), or leave the workload out"
            if sources and workload.source is None:
                fix = f"run it in a campaign without {next(iter(sources.values()))}, whose image the instances run"
            raise ImageError(f"{workload.name} needs {', '.join(missing)}, which the image has not", fix=fix)
    if bare and not any(workload.packages or workload.layer or workload.source for workload in chosen):
        return own.bare(image_build.agent_path(), image, progress)
    return image


def host_cpus(measured: Collection[int]) -> HostCpus:
    """Return the CPUs for the harness and for the client on this host (`topology`)."""
    cores = siblings.cores(tuple(measured))
    return HostCpus(*topology.apart(topology.elsewhere(pinning.usable(), measured, cores), cores))


def default_cpus(count: int | None = None) -> tuple[int, ...]:
    """Return the instances' CPUs, of one kind and node: all but one of three and more, both of two; or ``count``.

    Isolated CPUs come first, unless whoever started tare has restricted it to others (taskset).
    """
    layout, usable, reachable = machine_facts.layout(), pinning.usable(), pinning.reachable()
    unrestricted = usable >= reachable - set(layout.isolated)
    return topology.choose(reachable if unrestricted else usable, layout, count)


def _client(cleanup: CleanupStack, image: Image, resources: Resources, folder: Path) -> HostClient:
    group = cgroup.named(f"{PARENT_GROUP}/client")
    cleanup.own(removers.control_group(group.path))
    group.create(resources)
    tools = _client_root(cleanup, image if image.tools is None else image.tools, folder)
    brought = None if image.tools is None else _client_root(cleanup, image, folder.with_name(f"{folder.name}own"))
    return HostClient(tools, group.leaf("tool"), group=group, own=brought, cpu_count=len(resources.cpus))


def _client_root(cleanup: CleanupStack, image: Image, folder: Path) -> Path:
    space = roots.new_workspace(cleanup, folder)
    root = roots.overlay_root(cleanup, space, image.root)
    roots.client_mounts(cleanup, root, space.data)
    return root


def _leave(part: AbstractContextManager[object], raised: BaseException | None) -> None:
    if raised is None:
        part.__exit__(None, None, None)
    else:
        part.__exit__(type(raised), raised, raised.__traceback__)


def _first(raised: BaseException | None, further: BaseException) -> BaseException:
    """Return the error to raise of two, an interrupt or else the first; the other is attached to it as a note."""
    if raised is None or further is raised:
        return further
    ending = isinstance(raised, Exception) and not isinstance(further, Exception)
    primary, noted = (further, raised) if ending else (raised, further)
    primary.add_note(f"besides: {noted}" if isinstance(noted, Exception) else f"besides: {type(noted).__name__}")
    return primary
