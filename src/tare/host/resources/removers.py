"""The one place that knows how each kind of resource is removed from the host.

Every remover may be called for a resource that was never made, is half made, or is already gone: it then does
nothing. One that cannot be removed raises `HostError` and stays in the journal.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tare import lazily
from tare.errors import HostError
from tare.host import cgroup, processes, state
from tare.host.daemons import activation, containerd_access, cri, dockerd, kubectl, lxd_access, runtimes
from tare.host.daemons.dockerd_traces import Traces
from tare.host.kernel import mounts, process_table, removal, settings
from tare.host.kernel.links import links
from tare.host.kernel.owner import boot_id
from tare.host.resources import kinds
from tare.host.resources.resource import Fact, HostResource, is_shared
from tare.timeouts import until

if TYPE_CHECKING:
    import docker
    import docker.errors
    import requests.exceptions
else:
    docker, requests = lazily.LazyModule("docker"), lazily.LazyModule("requests")

#: Longest time that dockerd is given to finish a container of which it is not known whether it was made.
DOCKER_MAKES_S = 2.0
#: For how long a removal that dockerd refuses is tried again.
DOCKER_LEARNS_S = 10.0
_FILTERS = ("iptables", "ip6tables")
#: In the folder of an instance of podman's: what its OCI runtime notes of the container.
PODMAN_STATE = "state"


def mount(path: Path) -> HostResource:
    """Return a mount point of tare's."""
    return HostResource("mount", {"path": str(path)})


def folder(path: Path, below: Path | None = None) -> HostResource:
    """Return a folder of tare's with all in it. ``below``: the folders between that one and this go too, once empty."""
    return HostResource("folder", {"path": str(path)} | ({"below": str(below)} if below else {}))


def file(path: Path) -> HostResource:
    """Return a single file outside tare's folders."""
    return HostResource("file", {"path": str(path)})


def control_group(path: str) -> HostResource:
    """Return a control group (path below each hierarchy's root) and the processes in it."""
    return HostResource("cgroup", {"path": path})


def network_namespace(name: str) -> HostResource:
    """Return a named network namespace."""
    return HostResource("netns", {"name": name})


def link(name: str) -> HostResource:
    """Return a network link: a bridge, one end of a veth pair, a TAP."""
    return HostResource("link", {"name": name})


def iptables_rule(chain: str, *rule: str) -> HostResource:
    """Return a rule of the host's packet filter, by chain and specification."""
    return HostResource("iptables", {"rule": [chain, *rule]})


def packet_rules(name: str) -> HostResource:
    """Return the rules of the host's packet filter, of IPv4 and IPv6, that have this name as their comment."""
    return HostResource("packet-rules", {"name": name})


def packet_chain(name: str) -> HostResource:
    """Return a chain of the host's packet filter, of IPv4 and IPv6, with its rules and those that lead to it."""
    return HostResource("packet-chain", {"name": name})


def oci_container(runtime: str, root: Path, name: str, *, without_v2: bool = False) -> HostResource:
    """Return a container of an OCI runtime that is used without a daemon.

    ``runtime``: one of `claims.OCI_RUNTIMES`, or its path. ``without_v2``: it is started in `runtimes.surroundings`.
    """
    within = runtimes.WITHOUT_V2 if without_v2 else ""
    return HostResource("oci", {"runtime": Path(runtime).name, "root": str(root), "name": name, "within": within})


def docker_container(name: str) -> HostResource:
    """Return a container, by name, of the Docker daemon that the environment names."""
    return HostResource("container", {"name": name, "host": dockerd.named()})


def of_docker(container: str, record: Path, mounts: Sequence[str]) -> Mapping[str, Fact]:
    """Return what is to be known of a Docker container to remove what is on the host when its daemon is gone.

    ``container``: its id; ``record``: the folder by which a daemon that comes back would know it.
    """
    return {"id": container, "record": str(record), "mounts": list(mounts)}


def docker_image(tag: str) -> HostResource:
    """Return an image of tare's, by tag, in the Docker daemon that the environment names."""
    return HostResource("docker-image", {"tag": tag, "host": dockerd.named()})


def dockerd_traces(before: Traces) -> HostResource:
    """Return what a dockerd of tare's own leaves; ``before``: what there was without it."""
    return HostResource("dockerd", {**before.facts(), "boot": boot_id()})


def containerd_container(address: str, name: str) -> HostResource:
    """Return a container of a containerd's, with its task and its snapshot, in tare's namespace there."""
    return HostResource("containerd", {"socket": address, "name": name})


def pod(address: str, name: str) -> HostResource:
    """Return a pod of a containerd's CRI with its containers, by its label.

    ``ids`` of both are learned once it is made.
    """
    return HostResource("pod", {"socket": address, "name": name})


def cluster_pod(namespace: str, name: str, group: str) -> HostResource:
    """Return a pod of the Kubernetes cluster that kubectl reaches; what it is on this host is a `pod` besides.

    ``group``: the control group whose leaf ``tool`` has the kubectl that makes it.
    """
    return HostResource("cluster-pod", {"namespace": namespace, "name": name, "group": group})


def containerd_image(address: str, tag: str) -> HostResource:
    """Return an image of tare's, by tag, in a containerd."""
    return HostResource("containerd-image", {"socket": address, "tag": tag})


def podman_image(tag: str) -> HostResource:
    """Return an image of tare's, by tag, in podman's storage."""
    return HostResource("podman-image", {"tag": tag})


def podman_container(name: str, group: str) -> HostResource:
    """Return a podman container, by name, and the control group whose leaf ``tool`` has the podman that makes it."""
    return HostResource("podman", {"name": name, "group": group})


def of_lxd(
    reach: lxd_access.LxdAccess, what: Literal["container", "storage", "image"], name: str, group: str = ""
) -> HostResource:
    """Something in a daemon of LXD's, by kind and name. Where the daemon is tare's own, all in it goes with it anyway.

    ``group``: the control group whose leaf ``tool`` has the client that makes it.
    """
    own = reach.socket is None
    place = {"folder": str(reach.folder) if own else "", "socket": "" if own else str(reach.socket)}
    facts = {"client": reach.client, **place, "settings": str(reach.settings), "what": what, "name": name}
    return HostResource("lxd", {**facts, "own": int(own), "group": group})


def libvirt_domain(uri: str, name: str, socket: str) -> HostResource:
    """Return a domain of the libvirtd that a URI names.

    ``socket``: without this file that daemon is no more ("": ask it).
    """
    return HostResource("domain", {"uri": uri, "name": name, "socket": socket})


def loop(file: Path) -> HostResource:
    """Return the loop devices over a file."""
    return HostResource("loop", {"file": str(file)})


def xen_domain(name: str) -> HostResource:
    """Return a guest of Xen's that `xl` made, by name."""
    return HostResource("xen", {"name": name})


def kernel_module(name: str) -> HostResource:
    """Return a kernel module of tare's."""
    return HostResource("module", {"name": name})


def setting(file: Path, former: str, written: str) -> HostResource:
    """Return a setting of the kernel's that is about to be changed; removing it gives the former value back."""
    return HostResource("setting", {"path": str(file), "former": former, "written": written, "boot": boot_id()})


def let_go(resources: Iterable[HostResource]) -> None:
    """End what root in a sandbox holds back, before the removers of engines meet it: they wait for it in vain.

    Where that fails, the removers say what stays.
    """
    for resource in resources:
        if resource.kind == "cgroup" and not is_shared(resource):
            with contextlib.suppress(HostError, OSError):
                cgroup.let_go(str(resource.facts["path"]))


def remove(resource: HostResource) -> None:
    """Remove a resource if it is there. Raises `HostError`, whatever error its remover meets."""
    try:
        remover = _plugged(resource) if ":" in resource.kind else _REMOVERS[resource.kind]
        if resource.kind in _IN_PLACES:
            kinds.require_in_place(Path(str(resource.facts["path"])))
        remover(resource.facts)
    except HostError:
        raise
    except Exception as error:  # the resources after it are to be removed too
        raise HostError(f"{resource} cannot be removed: {error!r}") from error


def _plugged(resource: HostResource) -> Callable[[Mapping[str, Fact]], None]:
    """Return the remover of a plug-in's kind of resource, after a check that no link leads out of its folders."""
    kind = kinds.registered().get(resource.kind)
    if kind is None:
        raise HostError(f"no plug-in that is installed here knows how to remove a {resource.kind}")
    for name, rule in {**kind.must, **kind.may}.items():
        if rule is kinds.FactRule.PLACE and name in resource.facts:
            kinds.require_in_place(Path(str(resource.facts[name])))
    return kind.remove


def _remove_by(
    argv: Sequence[str], stays: Callable[[], bool], *, time_limit_s: float = 60.0, fix: str | None = None
) -> None:
    """Run a command that removes something. It has failed where what it was to remove ``stays``.

    Others may remove the same at the same moment: the kernel in the background, with the process that had made it,
    or a command of a killed run that goes on. Raises `HostError` with ``fix``.
    """
    removed = processes.run(argv, time_limit_s=time_limit_s)
    if removed.code != 0 and stays():
        removed.require(fix=fix)


def _remove_mount(facts: Mapping[str, Fact]) -> None:
    path = str(facts["path"])
    while path in mounts.points():
        try:
            mounts.unmount(path)
        except HostError:
            if path in mounts.points():  # nobody else has unmounted it meanwhile
                raise


def _remove_folder(facts: Mapping[str, Fact]) -> None:
    path = Path(str(facts["path"]))
    mounts.clear(path)
    removal.remove(path)
    between = path.parent
    while "below" in facts and between.is_relative_to(str(facts["below"])) and between != Path(str(facts["below"])):
        with contextlib.suppress(OSError):  # not empty, or not there
            between.rmdir()
        between = between.parent


def _remove_file(facts: Mapping[str, Fact]) -> None:
    path = Path(str(facts["path"]))
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise HostError(f"{path} cannot be removed: {error.strerror}") from error


def _remove_cgroup(facts: Mapping[str, Fact]) -> None:
    cgroup.destroy(str(facts["path"]))


def _remove_netns(facts: Mapping[str, Fact]) -> None:
    name = str(facts["name"])
    if (path := Path("/run/netns", name)).exists():
        _remove_by(["ip", "netns", "del", name], path.exists)


def _remove_link(facts: Mapping[str, Fact]) -> None:
    name = str(facts["name"])
    if name in links():
        # A veth pair goes when its peer's namespace goes, which the kernel does in the background.
        _remove_by(["ip", "link", "del", name], lambda: name in links())


def _remove_iptables(facts: Mapping[str, Fact]) -> None:
    rule = facts["rule"]
    assert isinstance(rule, list)
    if processes.find("iptables") is None:
        return
    while _has_rule("iptables", rule):
        _remove_by(["iptables", "-w", "-D", *rule], partial(_has_rule, "iptables", rule))


def _has_rule(program: str, rule: Sequence[str]) -> bool:
    return processes.run([program, "-w", "-C", *rule]).code == 0


def _remove_packet_rules(facts: Mapping[str, Fact]) -> None:
    for program in filter(processes.find, _FILTERS):
        _remove_rules_with(program, "--comment", str(facts["name"]))


def _remove_packet_chain(facts: Mapping[str, Fact]) -> None:
    name = str(facts["name"])

    def stays(program: str) -> bool:
        return processes.run([program, "-w", "-L", name, "-n"]).code == 0

    for program in filter(processes.find, _FILTERS):
        if stays(program):
            _remove_rules_with(program, "-j", name)
            processes.run([program, "-w", "-F", name])
            _remove_by([program, "-w", "-X", name], partial(stays, program))


def _remove_rules_with(program: str, option: str, value: str) -> None:
    rules = [shlex.split(line)[1:] for line in processes.run([program, "-w", "-S"]).text.splitlines()]
    for rule in rules:
        if (option, value) in itertools.pairwise(rule):
            _remove_by([program, "-w", "-D", *rule], partial(_has_rule, program, rule))


def _remove_oci(facts: Mapping[str, Fact]) -> None:
    runtime, root, name = str(facts["runtime"]), str(facts["root"]), str(facts["name"])
    program = runtimes.find(runtime)
    state = Path(root)

    def stays() -> bool:
        return state.is_dir() and any(name in entry.name for entry in state.iterdir())

    if program is None or not stays():
        return
    within = runtimes.surroundings(cgroup.hierarchies()) if facts["within"] == runtimes.WITHOUT_V2 else []
    _remove_by([*within, program, "--root", root, "delete", "--force", name], stays, time_limit_s=20)


def _remove_container(facts: Mapping[str, Fact]) -> None:
    name = str(facts["name"])
    host = str(facts.get("host", ""))
    try:
        if not dockerd.listens(host):
            raise docker.errors.DockerException("nobody listens")
        with contextlib.closing(dockerd.connect(host, 30)) as client:
            _remove_from_docker(client, name, known="id" in facts)
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        _remove_from_gone_docker(facts)
        if "record" in facts and not Path(str(facts["record"])).exists():
            return
        raise HostError(
            f"container {name} cannot be removed: the Docker daemon does not answer",
            fix="start the dockerd that has it, then `tare clean`",
        ) from error


def _remove_from_docker(client: docker.DockerClient, name: str, *, known: bool) -> None:
    # A daemon goes on making a container whose maker was killed, and does not know of it until it is made.
    made_until = until(0 if known else DOCKER_MAKES_S)
    refused_until: float | None = None
    while True:
        try:
            client.containers.get(name).remove(force=True, v=True)
        except docker.errors.NotFound:
            if refused_until is not None or time.monotonic() > made_until:
                return
            time.sleep(0.05)
        except docker.errors.APIError as error:
            # Another removal is under way, or the container ended just now, of which its daemon does not know yet.
            refused_until = until(DOCKER_LEARNS_S) if refused_until is None else refused_until
            if time.monotonic() > refused_until:
                raise HostError(f"container {name} cannot be removed: {error.explanation}") from error
            time.sleep(0.1)
        else:
            return


def _remove_from_gone_docker(facts: Mapping[str, Fact]) -> None:
    """Remove what a daemon that is gone left of a container: shim and mounts. Processes go with the control group."""
    mounts = facts.get("mounts", [])
    assert isinstance(mounts, list)
    if "id" in facts:
        _end_shims(str(facts["id"]))
    for point in mounts:
        _remove_mount({"path": point})


def _end_shims(container: str) -> None:
    """Kill containerd's shims of a container, whose id is among their words."""
    for pid, argv in process_table.command_lines().items():
        if "containerd-shim" in argv[0] and container in argv:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _remove_podman(facts: Mapping[str, Fact]) -> None:
    if processes.find("podman") is None:
        return
    name, tool = str(facts["name"]), f"{facts['group']}/tool"
    state_folder = state.work() / name.removeprefix("tare-") / PODMAN_STATE
    argv = [*runtimes.podman(), f"--runtime-flag=root={state_folder}"]
    argv += ["rm", "--force", "--ignore", "--time=0", name]
    deadline = until(10)
    while time.monotonic() < deadline:
        # A podman that is still making the container is let finish: a killed one leaves parts unknown to podman.
        making = bool(cgroup.Group(tool).pids())
        removed = processes.run(argv, time_limit_s=20)
        if removed.code == 0 and not making:
            return
        # Of a container that was killed, podman first learns that it is dead, fails for it, and then can remove it.
        time.sleep(0.02)
    cgroup.destroy(tool)
    processes.run(argv, time_limit_s=20).require()


def _remove_docker_image(facts: Mapping[str, Fact]) -> None:
    tag, host = str(facts["tag"]), str(facts["host"])
    try:
        if not dockerd.listens(host):
            raise docker.errors.DockerException("nobody listens")
        with contextlib.closing(dockerd.connect(host, 30)) as client, contextlib.suppress(docker.errors.ImageNotFound):
            client.images.remove(tag, force=True)
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        fix = "start the dockerd that has it, then `tare clean`"
        raise HostError(f"image {tag} cannot be removed: the Docker daemon does not do it", fix=fix) from error


def _remove_dockerds_traces(facts: Mapping[str, Fact]) -> None:
    if facts["boot"] == boot_id() and not dockerd.listens(""):  # another one that runs now has them
        Traces.of(facts).restore()


def _remove_containerd(facts: Mapping[str, Fact]) -> None:
    address, name = str(facts["socket"]), str(facts["name"])
    if processes.find("ctr") is None:
        return
    if not activation.runs(address):
        if not Path(address).is_relative_to(state.work()):
            raise HostError(
                f"container {name} cannot be removed: the containerd at {address} does not answer",
                fix="start the containerd that has it, then `tare clean`",
            )
        _remove_from_gone_containerd(address, name)
        return
    ctr = containerd_access.ctr(address)
    deadline, by_itself = until(10), until(2)
    while True:
        # Of a task that is just being made or has just died, the daemon first has to learn.
        processes.run([*ctr, "tasks", "rm", "--force", name], time_limit_s=20)
        processes.run([*ctr, "containers", "rm", name], time_limit_s=20)
        processes.run([*ctr, "snapshots", "rm", name], time_limit_s=20)
        lists = {
            kind: processes.run([*ctr, kind, "ls"], time_limit_s=20) for kind in ("tasks", "containers", "snapshots")
        }
        stays = [kind for kind, listed in lists.items() if listed.code != 0 or name in _first_words(listed.text)]
        if not stays:
            break
        if time.monotonic() > deadline:
            fix = f"see `{' '.join(ctr)} {stays[0]} ls`"
            raise HostError(f"containerd keeps {name} among its {', '.join(stays)}", fix=fix)
        if time.monotonic() > by_itself:
            # A shim may wait for ever for a killed client to read what its task prints. The daemon tidies up after it.
            _end_shims(name)
        time.sleep(0.05)


def _remove_pod(facts: Mapping[str, Fact]) -> None:
    address, name = str(facts["socket"]), str(facts["name"])
    if not activation.runs(address):
        if not Path(address).is_relative_to(state.work()):
            fix = "start the containerd that has it, then `tare clean`"
            raise HostError(f"pod {name} cannot be removed: the containerd at {address} does not answer", fix=fix)
        ids = facts.get("ids", [])
        assert isinstance(ids, list)
        for container in ids:
            _remove_from_gone_containerd(address, container, containerd_access.CRI_NAMESPACE)
        return
    deadline = until(10)
    with contextlib.closing(cri.CriRuntime(address)) as runtime:
        # One that is just being made is listed once it is.
        while pods := runtime.pods(name):
            for pod_id in pods:
                try:
                    runtime.remove_pod(pod_id)
                except HostError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)


def _remove_cluster_pod(facts: Mapping[str, Fact]) -> None:
    namespace, name = str(facts["namespace"]), str(facts["name"])
    deadline = until(10)
    while cgroup.Group(f"{facts['group']}/tool").pids() and time.monotonic() < deadline:
        time.sleep(0.02)  # a kubectl that still asks for it is let finish, or it would be made after it was deleted
    try:
        kubectl.delete_pod(namespace, name)
    except HostError as error:
        fix = "let kubectl reach the cluster (KUBECONFIG), then `tare clean`"
        raise HostError(f"pod {name} cannot be deleted: {error.what}", fix=fix) from error


def _first_words(table: str) -> list[str]:
    return [words[0] for words in map(str.split, table.splitlines()) if words]


def _remove_from_gone_containerd(address: str, name: str, namespace: str = containerd_access.NAMESPACE) -> None:
    """Remove what a killed daemon of tare's left of a container: shim, mounts, files outside of its folder."""
    _end_shims(name)
    mounts.clear(containerd_access.bundle(address, name, namespace))
    for path in containerd_access.kept_outside(address, name, namespace):
        removal.remove(path)


def _remove_containerd_image(facts: Mapping[str, Fact]) -> None:
    address, tag = str(facts["socket"]), str(facts["tag"])
    if processes.find("ctr") is None:
        return
    if not activation.runs(address):
        fix = "start the containerd that has it, then `tare clean`"
        raise HostError(f"image {tag} cannot be removed: the containerd at {address} does not answer", fix=fix)
    for namespace in (containerd_access.NAMESPACE, containerd_access.CRI_NAMESPACE):
        images = [*containerd_access.ctr(address, namespace), "images"]

        def references(images: Sequence[str] = images) -> list[str]:
            return containerd_access.references(processes.run([*images, "ls"], time_limit_s=20).text, tag)

        for reference in references():
            _remove_by([*images, "rm", "--sync", reference], lambda: bool(references()), time_limit_s=30)


def _remove_podman_image(facts: Mapping[str, Fact]) -> None:
    if processes.find("podman") is None:
        return
    podman = ["podman", "--cgroup-manager=cgroupfs", "--log-level=error", "image"]
    tag = str(facts["tag"])

    def stays() -> bool:
        return processes.run([*podman, "exists", tag], time_limit_s=20).code == 0

    if stays():
        _remove_by([*podman, "rm", "--force", tag], stays, time_limit_s=30)


def _remove_lxd(facts: Mapping[str, Fact]) -> None:
    socket, name, group = str(facts["socket"]), str(facts["name"]), str(facts["group"])
    folder, settings = Path(str(facts["folder"])), Path(str(facts["settings"]))
    reach = lxd_access.LxdAccess(str(facts["client"]), folder, Path(socket) if socket else None, settings)
    words = ["delete", "--force", name] if facts["what"] == "container" else [str(facts["what"]), "delete", name]
    deadline = until(10)
    while True:
        # A client that is still making the container is let finish, or the daemon makes it after it was removed.
        making = bool(group and cgroup.Group(group).child("tool").pids())
        removed = processes.run([*reach.argv, *words], time_limit_s=20)
        message = removed.stderr.decode(errors="replace")
        if (removed.code == 0 or "not found" in message) and not making:
            return
        if facts["own"] and not ("busy" in message or making):
            return
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    if not facts["own"]:
        removed.require(fix="start the daemon that has it, then `tare clean`")


def _remove_domain(facts: Mapping[str, Fact]) -> None:
    uri, name, socket = str(facts["uri"]), str(facts["name"]), str(facts["socket"])
    if processes.find("virsh") is None or (socket and not Path(socket).exists()):
        return
    virsh = ["virsh", "-q", "-c", uri]
    deadline = until(10)
    while True:
        # Of a domain that is just being made, this waits until it is.
        ended = processes.run([*virsh, "destroy", name], time_limit_s=30)
        state = processes.run([*virsh, "domstate", name], time_limit_s=30)
        if b"failed to get domain" in state.stderr or (socket and not Path(socket).exists()):
            return
        # A machine that is defined is still known after its end.
        processes.run([*virsh, "undefine", name], time_limit_s=30)
        if time.monotonic() > deadline:
            ended.require(fix=f"virsh -c {uri} destroy {name}")
            return
        time.sleep(0.02)


def _remove_loop(facts: Mapping[str, Fact]) -> None:
    file = str(facts["file"])

    def devices() -> list[str]:
        return processes.run(["losetup", "--associated", file, "--noheadings", "--output", "NAME"]).text.split()

    for device in devices():
        _remove_by(["losetup", "--detach", device], lambda: bool(devices()))


def _remove_xen(facts: Mapping[str, Fact]) -> None:
    name = str(facts["name"])

    def stays() -> bool:
        return processes.run(["xl", "domid", name]).code == 0

    if processes.find("xl") is not None and stays():
        _remove_by(["xl", "destroy", name], stays, time_limit_s=30, fix=f"xl destroy {name}")


def _remove_module(facts: Mapping[str, Fact]) -> None:
    name = str(facts["name"])
    deadline = until(10)
    while Path("/sys/module", name).exists():
        # What a killed user of it had open may take the kernel a while to close.
        removed = processes.run(["rmmod", name], time_limit_s=60)
        if removed.code != 0 and Path("/sys/module", name).exists() and time.monotonic() > deadline:
            removed.require(fix=f"end what uses it, then rmmod {name}")
        time.sleep(0.02)


def _give_back(facts: Mapping[str, Fact]) -> None:
    path, former, written, boot = (str(facts[name]) for name in ("path", "former", "written", "boot"))
    settings.give_back(Path(path), former, written, boot)


#: Kinds that are in a namespace of mounts or of the network, and end with it where that is tare's own.
OF_NAMESPACES = frozenset({"mount", "netns", "link", "setting", "iptables", "packet-rules", "packet-chain"})
#: Kinds that are identified by the path at which something is made.
_IN_PLACES = frozenset({"mount", "folder", "file"})
_REMOVERS: Mapping[str, Callable[[Mapping[str, Fact]], None]] = {
    "mount": _remove_mount,
    "folder": _remove_folder,
    "file": _remove_file,
    "cgroup": _remove_cgroup,
    "netns": _remove_netns,
    "link": _remove_link,
    "iptables": _remove_iptables,
    "packet-rules": _remove_packet_rules,
    "packet-chain": _remove_packet_chain,
    "oci": _remove_oci,
    "container": _remove_container,
    "podman": _remove_podman,
    "docker-image": _remove_docker_image,
    "dockerd": _remove_dockerds_traces,
    "podman-image": _remove_podman_image,
    "containerd": _remove_containerd,
    "containerd-image": _remove_containerd_image,
    "pod": _remove_pod,
    "cluster-pod": _remove_cluster_pod,
    "domain": _remove_domain,
    "loop": _remove_loop,
    "xen": _remove_xen,
    "lxd": _remove_lxd,
    "module": _remove_module,
    "setting": _give_back,
}
