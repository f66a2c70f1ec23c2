"""Docker: containers of the daemon, by its API. Variants are the runtimes and networks."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tare import lazily
from tare.errors import HostError, PlatformError, SessionError, TareError, UnsupportedError
from tare.host import cgroup, distribution, instance_limits, own_dockerd, processes
from tare.host.daemons import activation, dockerd
from tare.host.facts import security
from tare.host.network import passage
from tare.host.network.bridge import CLIENT_NAMESPACE
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.host.resources.resource import HostResource
from tare.image.forms import oci_tar
from tare.image.image_build import Image
from tare.platforms import crun, gvisor
from tare.platforms.base import (
    HELPER_PIDS,
    NO_NETWORK,
    Address,
    Availability,
    Instance,
    LaunchSpec,
    Life,
    Observed,
    Platform,
    Prepared,
)
from tare.platforms.gvisor import HOST_SOCKETS, NETSTACK
from tare.platforms.parts.bundles import genuine
from tare.platforms.parts.common import adopt, left_open
from tare.platforms.parts.engines import engine
from tare.platforms.parts.engines.layers import stored
from tare.platforms.watchers.marks import ECHO, EchoPing, FirstByte, first_reply
from tare.session.byte_streams import SocketStream
from tare.timeouts import until

if TYPE_CHECKING:
    import docker
    import docker.errors
    import requests.exceptions
else:
    docker, requests = lazily.LazyModule("docker"), lazily.LazyModule("requests")

LABEL = "tare"
#: Limit of the daemon's log of a container's output, which is the agent's stream; in Docker's notation.
LOG_SIZE = "1m"
_PATHS = {
    "bridge": "client, bridge, published port (NAT), docker0, veth",
    "host": "client, bridge, host stack",
    "none": NO_NETWORK,
}
#: In which a container that runs has answered one of the client's pings, unless something drops them.
PING_LIMIT_S = 5.0
#: What to do where the daemon's refusal has these words.
_FIXES = {
    "no space left on device": "free disk space where Docker keeps its data (docker info: Docker Root Dir)",
    "could not find bridge": "restart the Docker daemon, which makes its bridge again",
    "client version": "pip install --upgrade docker (in tare's environment), or another Docker engine",
}
_HEAD = struct.Struct(">BxxxL")
_STDOUT, _LAST_KIND = 1, 3

#: What the daemon says to `docker checkpoint create` unless it was started with ``--experimental``.
NO_CHECKPOINT = "only supported on a Docker daemon with experimental features enabled"


class Docker(Platform):
    """A container with Docker's own defaults: bridge with NAT, a published port where a client calls, seccomp filter.

    ``program``: the runtime, with ``options`` of runsc's (`engine.RUNSC_DEFAULTS`), whatever the daemon calls it.
    ``network``: ``bridge``, ``host`` or ``none``, as ``docker run --network`` has it.
    """

    daemon = "dockerd"
    helper_pids = HELPER_PIDS
    years = MappingProxyType({2019: "19.03", 2020: "20.10", 2023: "23 24", 2024: "25 26 27", 2025: "28 29"})

    def __init__(
        self, name: str, program: str, title: str, network: str = "bridge", options: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.title = title
        gvisors = program == "runsc"
        self.network_path = _PATHS[network]
        if gvisors:
            self.network_path += HOST_SOCKETS if (options or {}).get("network") == "host" else NETSTACK
        self.by_default = (program, network) == ("runc", "bridge")
        self.publishes = network == "bridge"
        self.open_by_design = left_open.BY_NETWORK[network]
        if not gvisors:
            by_bridge = left_open.BY_DOCKERS_BRIDGE if network == "bridge" else {}
            self.open_by_design = {**self.open_by_design, **by_bridge, **left_open.BY_DOCKERS_FILTER}
        if program == "crun":
            self.not_honoured = (crun.WRAPPED,)
        self._program = program
        self._options = dict(options or {})
        self._network = network
        self._info: Mapping[str, Any] | None = None  # what the daemon says of itself, while the connection lasts
        self._connection: docker.DockerClient | None = None
        self._is_pinged: bool | None = None  # whether the client's pings reach a container; None: not tried yet

    def detect(self) -> Availability:
        """Ask the daemon for its version and whether it has the runtime."""
        self._info = self._is_pinged = None
        if activation.only_init_listens(dockerd.named().removeprefix("unix://") or dockerd.SOCKET):
            reason = "the Docker daemon does not run: a request would start its service"
            return Availability(False, reason=reason, fix="systemctl start docker")
        try:
            info = self._facts()
            with _sdk_errors():
                versions = engine.versions(self._client.version(), self._client.api.api_version)
            runtime = engine.runtime(info, self._program, self._options, gvisor.default_trap)
        except (PlatformError, HostError) as error:
            return Availability(False, reason=error.what, fix=error.fix or "")
        if runtime is None:
            words = " ".join([self._program, *(f"--{name}={value}" for name, value in self._options.items())])
            settings = "/etc/docker/daemon.json"
            others = [other for other in engine.runtimes(info) if other.program == self._program == "runsc"]
            has = ", ".join(f"{other}, which traps system calls by {_trap(other)}" for other in others)
            return Availability(
                False,
                reason=f"the Docker daemon has no runtime that is {words}{f'; it has {has}' if has else ''}",
                fix=f"add {words} to the runtimes in {settings}, or in a clone run by scripts/with-dockerd",
            )
        another = genuine.other(runtime.path, self._program) if runtime.path else None
        another = another or unfit(info)
        if another is not None:
            return another
        details = {
            **engine.details(info),
            **versions,
            "runtime": str(runtime),
            "docker network": self._network,
            "daemons' cpu": "accounted" if daemon_groups() else "not accounted: they have no control group",
        }
        return Availability(True, version=str(info.get("ServerVersion", "unknown")), details=details)

    def prepare(self, image: Image) -> Prepared:
        """Import the image once; it stays in the daemon's store as ``tare:HASH``."""
        with _sdk_errors():
            try:
                imported = self._client.images.get(_tag(image))
            except docker.errors.ImageNotFound:
                source = str(oci_tar(image))
                self._client.api.import_image(
                    src=source, repository=LABEL, tag=image.hash[:12], changes=[f"LABEL {LABEL}={image.hash}"]
                )
                imported = self._client.images.get(_tag(image))
            shown = engine.image(imported.attrs, self._client.api.images(_tag(image)))
        runtime = self._runtime()
        shim = "containerd-shim-runc-v2" if runtime.path else f"containerd-shim-{self._program}-v1"
        return stored(_tag(image), shown, (shim, runtime.path or self._program))

    def kept(self, image: Image) -> list[HostResource]:
        """Return the imported image."""
        return [removers.docker_image(_tag(image))]

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Create; then attach and start, from the start instant on: together what ``docker run`` does."""
        api = self._client_api()
        container = removers.docker_container(f"tare-{spec.id}")
        # The rules are there for as long as the container is.
        cleanup.own(removers.packet_rules(f"tare-{spec.id}"), container)
        config = self._host_config(spec, api)
        mapped = engine.remapped(self._facts())
        if mapped is not None:
            os.chown(spec.space.data, *mapped)
        with _sdk_errors():
            response = api.create_container(
                _tag(spec.image),
                spec.agent_argv(),
                name=f"tare-{spec.id}",
                stdin_open=True,
                labels={LABEL: spec.id},
                ports=[(spec.port, "tcp"), (spec.port, "udp")] if self.publishes and spec.published else None,
                host_config=config,
                use_config_proxy=False,  # a proxy of the user's is not for sandboxes
            )
            started = spec.begin()
            stream = AttachedStream(api.attach_socket(response["Id"], {"stdin": 1, "stdout": 1, "stream": 1}))
            first_byte = FirstByte(stream.fileno())
            with contextlib.ExitStack() as on_failure:
                on_failure.callback(stream.close)
                on_failure.callback(first_byte.wait, 0)
                api.start(response["Id"])
                facts = api.inspect_container(response["Id"])
                on_failure.pop_all()
        address = self._address(spec, engine.address(facts))
        ping = EchoPing(address.ping) if spec.measured and address.ping else None
        instance = Instance(spec, stream, started, address, first_byte, ping, daemons=daemon_groups())

        def settle() -> None:
            if self.publishes:
                spec.network.enclose(spec.id, int(facts["State"]["Pid"]), engine.address(facts))
            cleanup.learn(container, removers.of_docker(response["Id"], *engine.leftovers(facts)))
            adopt.adopt(spec.group, lambda argv: helps(argv, response["Id"], address.port))
            if address.ping is not None:
                instance.address = replace(address, unpinged=self._unpinged(address.ping))

        instance.settle = settle
        return instance

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:
        """Return the commands of Docker's own client. Raises `UnsupportedError` where that is not installed."""
        if processes.find("docker") is None:
            raise UnsupportedError("Docker's client is not installed", fix=distribution.install("docker.io"))
        self._client_api()
        name = f"tare-{spec.id}"
        container = removers.docker_container(name)
        cleanup.own(removers.packet_rules(name), container)
        mapped = engine.remapped(self._facts())
        if mapped is not None:
            os.chown(spec.space.data, *mapped)
        # A folder for settings that are nobody's: the user's own may name another daemon, or a proxy.
        host = dockerd.named()
        client = ("docker", "--config", str(spec.space.folder / "client"), *(("--host", host) if host else ()))

        def settle() -> None:
            with _sdk_errors():
                facts = self._client.api.inspect_container(name)
            if self._network == "bridge":
                spec.network.enclose(spec.id, int(facts["State"]["Pid"]), engine.address(facts))
            cleanup.learn(container, removers.of_docker(facts["Id"], *engine.leftovers(facts)))

        return Life(
            create=(*client, "create", *self._create_options(spec, name), _tag(spec.image), *argv),
            start=(*client, "start", name),
            execute=(*client, "exec", name),
            stop=(*client, "stop", name),
            kill=(*client, "kill", name),
            remove=(*client, "rm", name),
            pause=(*client, "pause", name),
            resume=(*client, "unpause", name),
            lacks=dict.fromkeys(("snapshot", "restore"), NO_CHECKPOINT),
            made_ns=spec.made(),
            daemons=daemon_groups(),
            settle=settle,
        )

    def restart_engine(self) -> None:
        """End the daemon and start it again, where this process has started it; it ends its containers with it."""
        if not own_dockerd.restart():
            super().restart_engine()

    def _create_options(self, spec: LaunchSpec, name: str) -> list[str]:
        """Return the options of ``docker create`` for the settings of `_host_config`."""
        resources, log = spec.resources, self._log_config
        return [
            f"--name={name}",
            f"--label={LABEL}={spec.id}",
            f"--runtime={self._runtime().name}",
            f"--cgroup-parent={spec.group.parent_for(self._cgroup_driver)}",
            f"--cpuset-cpus={','.join(map(str, resources.cpus))}",
            *([] if resources.cpu_quota is None else [f"--cpus={resources.cpu_quota}"]),
            f"--memory={resources.memory_bytes}",
            f"--memory-swap={resources.memory_bytes}",
            *([] if resources.pids is None else [f"--pids-limit={resources.pids}"]),
            *(f"--ulimit={limit}={value}:{value}" for limit, value in instance_limits.for_engines().items()),
            f"--volume={spec.space.data}:/data:{security.writable_bind()}",
            f"--network={self._network}",
            f"--log-driver={log['type']}",
            *(f"--log-opt={option}={value}" for option, value in log["config"].items()),
        ]

    def daemon_failure(self) -> TareError | None:
        """Return the error where the daemon no longer answers; None where it does."""
        try:
            with _sdk_errors():
                self._client.ping()
        except (PlatformError, HostError) as error:
            return error
        return None

    def _client_api(self) -> Any:
        """Return the daemon's API, once it has answered: else the journal would name containers that cannot exist."""
        with _sdk_errors():
            self._client.ping()
            return self._client.api

    def observed(self, instance: Instance, read: Callable[[str], str]) -> Observed:
        """Return what a sandbox of gVisor's shows of itself; of other runtimes what is declared."""
        if self._program != "runsc":
            return super().observed(instance, read)
        observation = gvisor.seen(self, instance, read)
        # What traps by ptrace by default has no word of it in its command lines.
        return replace(observation, remarks={}) if "platform" in self._options else observation

    def _address(self, spec: LaunchSpec, ip: str) -> Address:
        if self._network == "none":
            return Address.nowhere(spec)
        return (
            Address.on_host(spec) if self._network == "host" else Address(spec.network.front, spec.port, spec.port, ip)
        )

    def _unpinged(self, ip: str) -> str:
        """Return why the client's pings of a container's own address get no answer; "" where they do. Tried once."""
        if self._is_pinged is None:
            deadline = until(PING_LIMIT_S)
            with passage.socket_in(CLIENT_NAMESPACE, *ECHO) as echo:
                self._is_pinged = first_reply(echo, ip, lambda: time.monotonic() > deadline)
        return "" if self._is_pinged else engine.unpinged(self._facts())

    def close(self) -> None:
        """Close the connection to the daemon."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._info = None

    def _host_config(self, spec: LaunchSpec, api: Any) -> Any:
        where = (spec.network.front, spec.port)
        published: dict[int | str, Any] = {f"{spec.port}/tcp": where, f"{spec.port}/udp": where}
        return api.create_host_config(
            runtime=self._runtime().name,
            cgroup_parent=spec.group.parent_for(self._cgroup_driver),
            cpuset_cpus=",".join(map(str, spec.resources.cpus)),
            nano_cpus=round(spec.resources.cpu_quota * 1e9) if spec.resources.cpu_quota is not None else None,
            mem_limit=spec.resources.memory_bytes,
            memswap_limit=spec.resources.memory_bytes,
            pids_limit=spec.resources.pids,
            ulimits=[
                {"Name": name, "Soft": value, "Hard": value} for name, value in instance_limits.for_engines().items()
            ],
            binds=[f"{spec.space.data}:/data:{security.writable_bind()}"],
            network_mode=self._network,
            port_bindings=published if self.publishes and spec.published else {},
            log_config=self._log_config,
        )

    @functools.cached_property
    def _cgroup_driver(self) -> str:
        """Return the maker of the containers' groups: ``systemd`` or ``cgroupfs``."""
        return str(self._facts()["CgroupDriver"])

    def _facts(self) -> Mapping[str, Any]:
        """Return what the daemon says of itself. Raises `PlatformError`, `HostError`."""
        if self._info is None:
            with _sdk_errors():
                self._info = self._client.info()
        return self._info

    def _runtime(self) -> engine.EngineRuntime:
        runtime = engine.runtime(self._facts(), self._program, self._options, gvisor.default_trap)
        if runtime is None:
            raise PlatformError(f"the Docker daemon has no {self._program} any more", fix="see what tare doctor says")
        return runtime

    @property
    def _log_config(self) -> dict[str, Any]:
        """The daemon's own logging driver, with a size limit where it writes files that have none."""
        driver = self._facts()["LoggingDriver"]
        return {"type": driver, "config": {"max-size": LOG_SIZE} if driver in {"json-file", "local"} else {}}

    @property
    def _client(self) -> docker.DockerClient:
        if not dockerd.listens(dockerd.named()):
            raise docker.errors.DockerException("nobody listens")
        if self._connection is None:
            self._connection = dockerd.connect(dockerd.named(), 60)
        return self._connection


class AttachedStream(SocketStream):
    """A container's stdin and stdout over the daemon's attach connection, which frames what comes out.

    A frame: its kind (0 stdin, 1 stdout, 2 stderr, 3 an error of the daemon's), three zeros, its length in 4 bytes,
    big-endian (Docker's Engine API, ContainerAttach).
    """

    def __init__(self, attached: Any) -> None:
        # The SDK hands out a reader around the socket; sending needs the socket itself.
        self._keep = attached
        super().__init__(getattr(attached, "_sock", attached))
        self._head = b""
        self._frame_bytes_left = 0  # bytes of the present frame that are still to come
        self._is_stdout = True  # whether the present frame is stdout's

    def receive(self, limit: int) -> bytes | None:
        """Return some bytes of the container's stdout; b"" at its end, None when the bytes read are not stdout's."""
        if self._frame_bytes_left == 0:
            head = super().receive(_HEAD.size - len(self._head))
            if not head:
                return head
            self._begin(head)
            if self._frame_bytes_left == 0:  # half a head, or an empty frame
                return None
        part = super().receive(min(limit, self._frame_bytes_left))
        if not part:
            return part
        self._frame_bytes_left -= len(part)
        return part if self._is_stdout else None

    def close(self) -> None:
        """Close the connection."""
        # The answer that the socket came with first: it would be closed later, without its socket, and complain aloud.
        response = getattr(self._keep, "_response", None)
        if response is not None:
            response.close()
        self._keep.close()
        super().close()

    def _begin(self, head: bytes) -> None:
        self._head += head
        if len(self._head) < _HEAD.size:
            return
        kind, self._frame_bytes_left = _HEAD.unpack(self._head)
        if kind > _LAST_KIND:
            raise SessionError(f"the Docker daemon sends a frame of unknown kind {kind}")
        self._is_stdout = kind == _STDOUT
        self._head = b""


def _trap(runsc: engine.EngineRuntime) -> str:
    """Return how a runtime that is runsc traps system calls."""
    return runsc.options.get("platform") or gvisor.default_trap(runsc.path)


def unfit(info: Mapping[str, Any]) -> Availability | None:
    """Return why containers of this daemon cannot be in tare's control groups; None where they can."""
    if engine.rootless(info):
        reason = "the Docker daemon is a rootless one, whose containers are in none of tare's control groups"
        return Availability(False, reason=reason, fix="take podman-rootless, or the daemon of the host's root")
    if info["CgroupDriver"] == "systemd" and not cgroup.kept_by_systemd():
        return Availability(False, reason=cgroup.NOT_SYSTEMDS, fix=cgroup.NOT_SYSTEMDS_FIX)
    return None


def daemon_groups() -> list[cgroup.Group]:
    """Return the control groups of the daemons, where they have any of their own."""
    return cgroup.usage_of_all({"dockerd", "containerd"})


def helps(argv: Sequence[str], container: str, port: int) -> bool:
    """Return True if a command line is that of a container's own shim, or of the proxy of its published port."""
    program = argv[0].rpartition("/")[2]
    pairs = set(itertools.pairwise(argv))
    if program == "docker-proxy":
        return ("-host-port", str(port)) in pairs and ("-container-port", str(port)) in pairs
    return program.startswith("containerd-shim") and ("-id", container) in pairs


def _tag(image: Image) -> str:
    return f"{LABEL}:{image.hash[:12]}"


@contextlib.contextmanager
def _sdk_errors() -> Iterator[None]:
    """Turn what the SDK raises into `PlatformError`."""
    try:
        yield
    except docker.errors.APIError as error:
        message = str(error.explanation or error)
        fix = next((fix for words, fix in _FIXES.items() if words in message), None)
        raise PlatformError(f"the Docker daemon refuses: {message}", fix=fix) from error
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        fix = f"start dockerd ({distribution.install('docker.io')}), or in a clone run by scripts/with-dockerd"
        raise PlatformError("the Docker daemon does not answer", fix=fix) from error


PLATFORMS = (
    Docker("docker", "runc", "Docker with runc"),
    Docker("docker-crun", "crun", "Docker with crun"),
    Docker("docker-host", "runc", "Docker with runc on the host network", "host"),
    Docker("docker-none", "runc", "Docker with runc, without a network", "none"),
    Docker("docker-gvisor", "runsc", "Docker with gVisor's runsc (systrap)"),
    Docker("docker-gvisor-ptrace", "runsc", "Docker with gVisor's runsc (ptrace)", options={"platform": "ptrace"}),
    Docker(
        "docker-gvisor-host", "runsc", "Docker with gVisor's runsc (systrap, no netstack)", options={"network": "host"}
    ),
)
