"""The contract of a platform. One file a platform; variants are data in it.

A module below ``tare/platforms/`` names its platforms in ``PLATFORMS``; the registry finds them by that. Third
parties register theirs under the entry point group ``tare.platforms``.

The campaign calls, in this order:

1. `Platform.detect`, once: by really trying, within seconds. Nothing stays on the host. It starts no service by
   a request to its socket, and loads no module merely to look. `tare doctor` then starts an
   instance too, on a root with little more in it than the agent (`tare.campaign.platform_check`).
2. `Platform.prepare`, once: makes the form of the image that the platform runs. It may be cached across campaigns.
3. `Platform.launch`, once an instance: returns when the platform's own start command has done its part; the agent
   may still be starting. All that is made is owned by the `CleanupStack` given, whose owner (not the platform)
   releases it, also when `launch` raises: nothing half-made stays.
4. `Platform.close`, once.

A platform runs everything that belongs to an instance inside ``spec.group`` (a leaf of that control group, or groups
that it makes below), except shared daemons, which it names in ``Instance.daemons`` so that they are accounted apart.
``Instance.settle`` moves what such a daemon starts for one instance alone into the instance's group, once the start
has been measured.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Self

from tare.errors import TareError, UnsupportedError
from tare.host import instance_limits
from tare.host.cgroup import Group
from tare.host.filesystems.roots import Workspace
from tare.host.network.bridge import Network
from tare.host.resources.journal import CleanupStack
from tare.host.resources.resource import HostResource
from tare.image.image_build import Image
from tare.model import EVERYWHERE, Resources
from tare.model import Family as WorkloadFamily
from tare.platforms.watchers.guest_service import FirstAnswer
from tare.platforms.watchers.marks import EchoPing, FirstByte
from tare.session.byte_streams import ByteStream

AGENT = "/usr/local/bin/tare-agent"
NO_NETWORK = "it has no network"
#: In a command of a `Life` that stays: the id of the process that its start is.
STARTED = "{started}"
#: The same of its innermost process, which is the program that the instance is.
LEADER = "{leader}"
#: In `Platform.open_by_design`: every door.
EVERY_DOOR = "*"
#: Room for shims, proxies and clients of an engine beside one guest: each has some ten threads (`helper_pids`).
HELPER_PIDS = 256


@dataclass(frozen=True, slots=True)
class Availability:
    """The availability of a platform here: its version and details, or the reason why not and the fix."""

    available: bool
    version: str = ""
    reason: str = ""
    fix: str = ""
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The form of the image that a platform runs, and the disk space that it really takes."""

    form: str
    disk_bytes: int
    #: files and folders on this host that hold it, with what boots it; empty where they are not known
    files: tuple[Path, ...] = ()
    programs: tuple[str, ...] = ()  # the host's programs that each start runs: names or full paths


@dataclass(frozen=True, slots=True)
class Instant:
    """One moment on both of the host's clocks, in ns."""

    monotonic_ns: int
    realtime_ns: int
    #: of a start: how long it took to make what is there by then (root, network, a container's record); None: not known
    made_ns: int | None = None

    @classmethod
    def now(cls, made_ns: int | None = None) -> Instant:
        """Return the present moment; the two readings are well below a microsecond apart."""
        return cls(time.monotonic_ns(), time.time_ns(), made_ns)


@dataclass(frozen=True, slots=True)
class Beacon:
    """The receiver of the agent's one datagram at its start. Its text is also in the agent's `hello`."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """The specification of one instance for its platform. ``id``: at most 11 lower-case letters and digits."""

    id: str
    image: Image
    resources: Resources
    group: Group
    space: Workspace
    network: Network
    port: int  # free on the host, and to be reachable from the client
    beacon: Beacon | None = None
    start_limit_s: float = 60.0  # a sandbox that has sent no byte by then has failed to start
    gate: Callable[[], None] | None = None  # blocks until the instant at which several instances start together
    published: bool = True  # whether a client will call: a platform that publishes ports does so only then
    making_ns: Callable[[], int] | None = None  # how long what the start needs has been in the making, in ns

    def made(self) -> int | None:
        """Return the time to make everything that needs no process of the sandbox, in ns; None: not timed.

        Called when that is done, where tare has more to do of its own before `begin`.
        """
        return None if self.making_ns is None else self.making_ns()

    def begin(self, made_ns: int | None = None) -> Instant:
        """Return the start instant: called just before the platform's own start command. Waits at the ``gate`` first.

        ``made_ns``: what `made` gave, where it was called before.
        """
        if made_ns is None:
            made_ns = self.made()
        if self.gate is not None:
            self.gate()
        return Instant.now(made_ns)

    @property
    def timed(self) -> bool:
        """True if the duration of this start is measured, as a trial of its own or together with others."""
        return self.measured or self.gate is not None

    @property
    def measured(self) -> bool:
        """True if this start is itself a trial."""
        return self.beacon is not None

    def agent_argv(self, *extra: str) -> list[str]:
        """Return the command that the sandbox runs."""
        argv = [AGENT, "serve", "--limits", instance_limits.for_agent(self.resources), *extra]
        if self.beacon is not None:
            argv += ["--beacon", f"{self.beacon.host}:{self.beacon.port}"]
        return argv


@dataclass(frozen=True, slots=True)
class Address:
    """The addresses by which the client and the host reach an instance."""

    host: str | None  # for the client's TCP and UDP; None: no network
    port: int
    instance_port: int  # the same port as seen inside
    ping: str | None  # the address that answers echo requests once the instance is up; None: it has none of its own
    no_ping: str = ""  # the reason, when ping is None
    #: where the host's own network is the way, and not the client's namespace: this host as the instance knows it
    client: str | None = None
    #: ports on which a program of its own answers, by service (`answers`); what has an agent is asked to serve instead
    services: Mapping[str, int] = field(default_factory=dict)
    #: why it does not answer by itself, by service, where no agent can be asked to
    lacks: Mapping[str, str] = field(default_factory=dict)
    http_path: str = "/"  # of the page that it serves by itself
    #: where ``ping`` is None: the address of its network that answers echo requests before the start too; None: nothing
    early_ping: str | None = None
    #: where a server in it listens: on the host's network not where all that reach the host reach it
    listen: str = EVERYWHERE
    #: why the client's echo requests do not reach it, where they do not though the host's do; "": they do
    unpinged: str = ""

    @property
    def echo(self) -> str | None:
        """The address at which its network answers echo requests once it is up; None: nothing of it does."""
        return self.ping if self.ping is not None else self.early_ping

    @property
    def among(self) -> str | None:
        """The address by which other instances of its platform reach it, or None without an address of its own."""
        return self.echo

    @classmethod
    def on_host(cls, spec: LaunchSpec) -> Self:
        """Return the address of an instance that shares the host's network."""
        why = "it shares the host's address, which answers before the start"
        host = spec.network.front
        return cls(host, spec.port, spec.port, None, why, early_ping=host, listen=host)

    @classmethod
    def on_veth(cls, spec: LaunchSpec, address: str) -> Self:
        """Return the address of an instance in a network namespace that is there before it."""
        why = "its network namespace answers before the sandbox starts"
        return cls(address, spec.port, spec.port, None, why, early_ping=address)

    @classmethod
    def nowhere(cls, spec: LaunchSpec) -> Self:
        """Return the address of an instance without a network."""
        return cls(None, spec.port, spec.port, None, NO_NETWORK)


@dataclass(slots=True)
class Instance:
    """One running sandbox."""

    spec: LaunchSpec
    stream: ByteStream
    started: Instant  # just before the platform's own start command
    address: Address
    first_byte: FirstByte  # watches the stream since before the agent can send anything
    ping: EchoPing | None = None  # pings the address, when the start is measured and the address can be pinged
    daemons: Sequence[Group] = ()  # groups of shared daemons; read only
    #: the leaf of the instance's group in which a client waits that only hands the agent's streams on: who starts
    #: instances detached has none. "": nothing of the kind is there
    client: str = ""
    accounted: bool = True  # whether the instance's group has all of its work: not so on another machine
    guest_bytes: int = 0  # the guest's memory, which is one mapping of its monitor's; 0: there is no such thing
    answer: FirstAnswer | None = None  # watches the services of an instance that has no agent
    #: called once, when the start has been measured: moves processes that a daemon started for this instance alone into
    #: the instance's group (`helpers`), and finds out what of the ``address`` only shows once it is up
    settle: Callable[[], None] | None = None

    def host_processes(self) -> list[int]:
        """Process ids on the host of all that belongs to this instance, shared daemons left out."""
        return self.spec.group.pids()

    def abandon(self) -> None:
        """Give up an instance that did not come up: end its watchers and close its stream."""
        self.first_byte.wait(0)
        for watcher in (self.ping, self.answer):
            if watcher is not None:
                watcher.wait(0)
        self.stream.close()


@dataclass(frozen=True, slots=True)
class GuestFiles:
    """The files in an instance's /data by its guest channel, where /data is not a folder of the host's."""

    wait_for: Callable[[str], object]  # until the file with this name has something in it
    answer: Callable[[str, str], str]  # makes the first file; what is in the second one then, which is removed
    stood_ns: Callable[[], int]  # how long the guest stood while its last snapshot was made, in ns


@dataclass(frozen=True, slots=True)
class Life:
    """The life of one instance by the platform's own commands, as its users type them (`Platform.life`).

    Each is a command on this host; an empty one: there is none, and ``lacks`` says why where that is not its nature.
    Nothing of the instance runs before ``start``, and what was made for it before is the platform's cleanup's.
    """

    start: tuple[str, ...]
    execute: tuple[str, ...]  # a command to run inside follows it
    stop: tuple[str, ...]  # as its users end it, whose program is told to end (SIGTERM)
    kill: tuple[str, ...]
    create: tuple[str, ...] = ()  # without: ``start`` does it too
    remove: tuple[str, ...] = ()  # without: nothing of the platform's is left of what has stopped
    pause: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    snapshot: tuple[str, ...] = ()  # writes what it is to ``snapshot_at``, and it goes on
    restore: tuple[str, ...] = ()  # starts what has been killed and removed from there
    snapshot_at: Path | None = None
    #: called before ``restore``: makes again what its first start took for itself
    remake: Callable[[], None] | None = None
    lacks: Mapping[str, str] = field(default_factory=dict)  # operation -> why there is no command for it
    within: tuple[str, ...] = ()  # the command prefix that enters the surroundings of each of them, untimed
    start_within: tuple[str, ...] = ()  # the same of ``start`` alone
    stays: bool = False  # whether ``start`` goes on for as long as the instance lives, with its output
    made_ns: int | None = None  # how long it took to make what ``create`` finds made: root, network, bundle
    daemons: Sequence[Group] = ()  # groups of shared daemons; read only
    #: operations that its users' programs ask for over a socket or a guest channel, and no command: each returns what
    #: it has to say; of ``start`` it waits until what was begun is up, of ``execute`` it is given the command
    acts: Mapping[str, Callable[[Sequence[str]], bytes]] = field(default_factory=dict)
    files: GuestFiles | None = None  # None: /data is the host's folder
    close: Callable[[], None] | None = None  # called first at its end: closes what ``acts`` have open
    #: called once it has started: restricts what it reaches, and notes for the cleanup what is only known then
    settle: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """Facts of the fairness manifest that a running instance shows."""

    disk_cache: str
    network_path: str
    #: what its figures are to be read with, by the family of workloads that it is about
    remarks: Mapping[str, str] = field(default_factory=dict)
    #: what else the manifest says of it, by name
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlatformFamily:
    """Makes platforms from the argument in ``FAMILY:ARGUMENT``."""

    make: Callable[[str], Platform]
    argument: str  # what it is called, such as HOST
    summary: str
    asks: str  # what the user has to do, for `tare doctor` and `tare list`

    def __call__(self, argument: str) -> Platform:
        """Return the platform. Raises `UsageError` for an argument that cannot be."""
        return self.make(argument)


class Platform(ABC):
    """One way to isolate, with its options."""

    name: str
    title: str
    network_path: str  # the way of a packet from the client to the instance
    #: which of the conditions that are the same for all platforms it does not keep, as half sentences
    not_honoured: tuple[str, ...] = ()
    #: doors to the host (`contract.doors`) that it leaves open by its nature or by its own defaults: name, and why;
    #: `EVERY_DOOR` for all. Any other that is open is a broken promise.
    open_by_design: Mapping[str, str] = MappingProxyType({})
    baseline: ClassVar[bool] = False
    #: whether /data is the workspace's folder on the host; a machine's own disk is a file in that folder
    shares_data: bool = True
    disk_cache: str = "the host's page cache"  # what stands between the data volume and the disk
    #: why direct I/O on the data volume goes through the host's page cache, which sees only a disk's file; "": it does
    #: not, or its files are the host's own, where it shows (`caches.require_uncached`)
    no_direct_io: str = ""
    #: what a monitor may take of the host's memory beside its guest, which has all of the memory limit
    monitor_bytes: int = 0
    #: how many processes and threads an engine's helpers may have beside its guest (`HELPER_PIDS`), which has all of
    #: its own limit: a shim that is refused a thread ends, and its guest with it. The guest is in a group of its own
    #: below the instance's, whose limit the engine sets, or tare (`Group.bound`)
    helper_pids: int = 0
    elsewhere: bool = False  # whether it is on another machine: its figures are that machine's
    same_bits: bool = True  # whether it runs the image; figures of other bits are not compared
    keeps_quota: bool = True  # whether a CPU quota of the instance's control group holds for all of its work
    #: whether a kernel is booted for each instance: the agent sees its uptime, and its console says what it killed
    own_kernel: bool = False
    #: whether its start goes on from a snapshot: its kernel was booted before, and has been up for longer than it took
    from_snapshot: bool = False
    alone: str = ""  # why only one instance of it can run at a time; "": several can
    #: why `tare doctor` starts no instance of it, as one whose start needs more of the image than a tryout's root has
    #: (`image.tryout`); "": it does
    untried: str = ""
    has_agent: bool = True  # else the stream has no bytes, and ends when the instance does
    #: why `-p all` does not mean it, as one whose preparation takes minutes; "": it does. By its name it takes part
    only_named: str = ""
    start_limit_factor: float = 1.0  # how many times longer than others' its start may take before it is given up
    #: whether it runs by a user's own rights: as root of a user namespace (`own_namespaces`)
    without_root: bool = False
    #: whether only root, or a daemon of root's, can do what it does: not so where tare alone needs root around it
    needs_root: bool = True
    daemon: str = ""  # the program on this host that its instances share, and do not start without; "": there is none
    publishes: bool = False  # whether clients reach it by a port that it publishes, where `LaunchSpec.published`
    by_default: bool = True  # whether it takes part when the user names no platforms
    #: families of workloads with which it takes part then too: there the baseline has costs that others have as well
    second_baseline: tuple[WorkloadFamily, ...] = ()
    #: the lines of its program's versions, as a version begins, by the year in which they first came out
    years: Mapping[int, str] = MappingProxyType({})
    stand_in: str = ""  # the platform that a profile takes in its place where it does not run; "": none

    @property
    def boots(self) -> bool:
        """True if a kernel is booted by the start of each instance."""
        return self.own_kernel and not self.from_snapshot

    @abstractmethod
    def detect(self) -> Availability:
        """Find out whether the platform runs here."""

    @abstractmethod
    def prepare(self, image: Image) -> Prepared:
        """Make the form of the image that the platform runs; cached. Raises `PlatformError`."""

    @abstractmethod
    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Start an instance whose agent speaks on ``Instance.stream``. Raises `PlatformError`."""

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:  # noqa: ARG002
        """Make what a user has before an instance is created, and return the commands of its life.

        ``argv``: the program that is the instance, in place of the agent; it needs no stdin. All that the commands make
        is owned by ``cleanup``, as in `launch`. Raises `UnsupportedError` with the reason where the platform's own
        commands are not known to tare, and what `launch` raises.
        """
        raise UnsupportedError(f"tare does not know the commands by which users of {self.name} enter and end it")

    def copy(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str], snapshot: Path) -> Life:  # noqa: ARG002
        """Make what a copy of an instance needs, and return its life, as `life` does; its ``start`` restores it.

        ``argv``: the program of that instance; ``snapshot``: where its own life's ``snapshot`` left what it is. Raises
        `UnsupportedError`.
        """
        raise UnsupportedError(f"tare does not know how users of {self.name} copy a running instance")

    def restart_engine(self) -> None:
        """End the daemon that its instances share, where that is tare's own, and start it again.

        Raises `UnsupportedError` where it has none, or that is the user's.
        """
        if not self.daemon:
            raise UnsupportedError("it has no daemon")
        raise UnsupportedError(f"its {self.daemon} is not one of tare's own, and others' are never restarted")

    def observed(self, instance: Instance, read: Callable[[str], str]) -> Observed:  # noqa: ARG002
        """Return what an instance that runs shows; called once a campaign. By default what the platform declares.

        ``read``: the contents of a text file inside, "unknown" where there is none or no agent.
        """
        return Observed(self.disk_cache, self.network_path)

    def kept(self, image: Image) -> Sequence[HostResource]:  # noqa: ARG002
        """Return what `prepare` keeps of this image outside of ``TARE_HOME``.

        Removed where it is for a tryout alone.
        """
        return ()

    def daemon_failure(self) -> TareError | None:
        """Return the failure of a shared daemon, which ends all instances at once.

        Called when one was lost; None: unknown.
        """
        return None

    def start_fix(self, console: bytes) -> str:  # noqa: ARG002
        """Return what to do about a start that failed with this on the console; "" where it does not say."""
        return ""

    def released(self, version: str) -> int | None:
        """Return the year in which the line of this version first came out (`years`); None: it is not known."""
        number = re.search(r"\d+(?:\.\d+)*", version)
        parts = number[0].split(".") if number else []
        lines = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
        return next((year for year, known in self.years.items() if lines & set(known.split())), None)

    def close(self) -> None:  # noqa: B027 (most platforms hold nothing)
        """Close connections to daemons. May be called twice."""
