"""Start to first byte by tare, next to the raw command of the same platform, in turn within one run.

Goals: at most 10 ms more than the raw command on runc, crun, LXC, bubblewrap and nspawn, at most 30 ms on Docker and
Podman, at most 5 % on virtual machines. "raw" is what a user types, on the same CPU, from its start to the first byte
of an `echo` inside (of the agent's port, for a machine); "tare" is the mark that campaigns record, from prepared, and
where the raw command makes its container itself (`docker run`, `podman run`) from nothing; "whole" is all that
tare does for a start, folders, control groups and network included, until a first command has run.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import select
import socket
import statistics
import subprocess
import time
from pathlib import Path

from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.plan.request import DEFAULT_MEMORY
from tare.errors import TareError
from tare.host import cgroup, processes
from tare.host.cgroup import Group
from tare.host.filesystems import roots
from tare.host.network.bridge import BRIDGE, namespace_path
from tare.host.resources.journal import CleanupStack
from tare.image import build
from tare.model import Arm, Resources
from tare.platforms import qemu, registry
from tare.platforms.base import LaunchSpec
from tare.platforms.crun import surroundings
from tare.platforms.parts import machine

ECHO = ["/bin/echo", "x"]
#: Those of instances; during a campaign tare itself runs on the others.
CPUS = ",".join(map(str, default_cpus()))
TIMES = 20
MACHINE_TIMES = 5
GOALS = {"qemu-tcg": "5 %", "docker": "30 ms", "podman": "30 ms"}


def main() -> None:
    """Print a row a platform."""
    image = build.ensure(build.agent_path(), progress=lambda _: None)
    print("| platform | raw command | tare | more | goal | whole start |")
    print("| --- | --- | --- | --- | --- | --- |")
    resources = Resources(default_cpus(), DEFAULT_MEMORY)
    with HostSession() as host:
        launcher, _ = host.prepare(image, resources)
        for name in RAW:
            try:
                print(row(launcher, name), flush=True)
            except TareError as error:
                print(f"| {name} | {error.what} | | | | |")


def row(launcher, name) -> str:
    """Measure one platform, raw and by tare in turn."""
    platform = registry.choose([name])[0]
    answer = platform.detect()
    if not answer.available:
        return f"| {name} | not here: {answer.reason} | | | | |"
    platform.prepare(launcher.image)
    raws, ours, wholes = [], [], []
    try:
        for turn in range(1 + (MACHINE_TIMES if name == "qemu-tcg" else TIMES)):
            # Whichever comes second finds warm caches: so each is second in every other turn.
            both = [
                lambda: raws.append(raw_ms(launcher, name)),
                lambda: ours.append(started(launcher, platform, wholes)),
            ]
            for measure in both[:: 1 if turn % 2 else -1]:
                measure()
        for figures in (raws, ours, wholes):
            del figures[0]  # the first warms the caches
    finally:
        platform.close()
    raw, our, whole = map(statistics.median, (raws, ours, wholes))
    more = f"{(our / raw - 1) * 100:+.1f} %" if name == "qemu-tcg" else f"{our - raw:+.1f} ms"
    return f"| {name} | {raw:.1f} ms | {our:.1f} ms | {more} | {GOALS.get(name, '10 ms')} | {whole:.1f} ms |"


def started(launcher, platform, wholes) -> float:
    """One start by tare, in ms to the first byte; how long all of it took goes to ``wholes``."""
    began = time.perf_counter()
    running = launcher.start(platform, Arm(platform.name), measured=True)
    wholes.append((time.perf_counter() - began) * 1e3)
    running.stop()
    made_ns = running.marks.made_ns if makes_its_own(platform.name) else 0
    return (made_ns + running.marks.first_byte_ns) / 1e6


def makes_its_own(name) -> bool:
    """Whether the raw command makes the container that it starts."""
    return name in {"docker", "podman"}


def raw_ms(launcher, name) -> float:
    """One start by the raw command, in ms to the first byte."""
    label = f"{launcher.campaign}raw{secrets.token_hex(1)}"[:11]
    with CleanupStack(launcher.journal) as cleanup, contextlib.ExitStack() as after:
        space = roots.new_workspace(cleanup, launcher.work / label)
        spec = LaunchSpec(label, launcher.image, launcher.resources, Group("none"), space, launcher.network, 20099)
        return RAW[name](spec, cleanup, after)


def timed(argv, fd=None, **options) -> float:
    """Ms from the start of a process until there is something to read from it."""
    began = time.perf_counter()
    process = subprocess.Popen(
        ["taskset", "-c", CPUS, *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )
    try:
        readable, _, _ = select.select([process.stdout], [], [], 60)
        took = (time.perf_counter() - began) * 1e3
        if not readable or not process.stdout.read(1):
            raise SystemExit(f"{argv} says nothing: {process.stderr.read().decode()[-500:]}")
        return took
    finally:
        process.stdin.close()
        process.wait(60)


def bundle(runtime, within=()):
    """`runc run` of what `runc spec` writes, joined to a namespace."""

    def raw(spec, cleanup, after) -> float:
        spec.network.new_namespace(cleanup, spec.id)
        root = roots.overlay_root(cleanup, spec.space, spec.image.root)
        folder = spec.space.folder
        processes.run(["runc", "spec"], cwd=folder).require()
        config = json.loads((folder / "config.json").read_text())
        config["process"].update(terminal=False, args=ECHO, rlimits=[])
        config["root"] = {"path": str(root)}
        for namespace in config["linux"]["namespaces"]:
            if namespace["type"] == "network":
                namespace["path"] = str(namespace_path(spec.id))
        config["linux"]["namespaces"] = [
            namespace for namespace in config["linux"]["namespaces"] if namespace["type"] != "cgroup"
        ]
        (folder / "config.json").write_text(json.dumps(config))
        return timed([*within, runtime, "--root", str(folder / "state"), "run", "-b", str(folder), spec.id])

    return raw


def lxc(spec, cleanup, after) -> float:
    """`lxc-start` in the foreground."""
    _, link = spec.network.new_endpoint(cleanup, spec.id)
    root = roots.overlay_root(cleanup, spec.space, spec.image.root)
    lines = [
        "lxc.include = /usr/share/lxc/config/common.conf",
        f"lxc.rootfs.path = dir:{root}",
        "lxc.console.path = none",
        "lxc.tty.max = 0",
        "lxc.net.0.type = veth",
        f"lxc.net.0.link = {BRIDGE}",
        f"lxc.net.0.veth.pair = {link}",
        "lxc.net.0.flags = up",
    ]
    (spec.space.folder / "config").write_text("\n".join(lines) + "\n")
    after.callback(lambda: Path("/run/lxc/lock", f".{spec.id}").unlink(missing_ok=True))
    return timed(["lxc-start", "-P", "/.", "-n", spec.id, "-f", str(spec.space.folder / "config"), "-F", "--", *ECHO])


def bubblewrap(spec, cleanup, after) -> float:
    """bwrap inside a network namespace."""
    spec.network.new_namespace(cleanup, spec.id)
    root = roots.overlay_root(cleanup, spec.space, spec.image.root)
    mounts = ["--bind", str(root), "/", "--proc", "/proc", "--dev", "/dev"]
    return timed(["ip", "netns", "exec", f"tare-{spec.id}", "bwrap", *mounts, "--unshare-pid", *ECHO])


def nspawn(spec, cleanup, after) -> float:
    """systemd-nspawn on pipes."""
    spec.network.new_namespace(cleanup, spec.id)
    root = roots.overlay_root(cleanup, spec.space, spec.image.root)
    options = ["-q", "--register=no", "--keep-unit", "--console=pipe", "--resolv-conf=off", "--timezone=off"]
    joined = f"--network-namespace-path={namespace_path(spec.id)}"
    return timed(["systemd-nspawn", *options, "-M", spec.id, "-D", str(root), joined, *ECHO])


def container(*command, options=()):
    """`docker run`, `podman run`."""

    def raw(spec, cleanup, after) -> float:
        where = f"{spec.network.host}:{spec.port}:{spec.port}"
        return timed([*command, "run", "-i", "--rm", *options, "-p", where, f"tare:{spec.image.hash[:12]}", *ECHO])

    return raw


def qemu_machine(spec, cleanup, after) -> float:
    """QEMU's command line, typed; until the agent's port has a byte."""
    driver = qemu.Qemu("qemu-tcg", qemu.Kind(accel="tcg"))
    plug, _ = driver._plug(spec, cleanup)
    argv = machine.command(driver._machine(spec, qemu.guest.ensure(), plug))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(spec.space.folder / "control"))
        listener.listen(1)
        began = time.perf_counter()
        process = subprocess.Popen(["taskset", "-c", CPUS, *argv])
        connection, _ = listener.accept()
        select.select([connection], [], [], 120)
        took = (time.perf_counter() - began) * 1e3
        process.kill()
        process.wait()
    connection.close()
    return took


RAW = {
    "runc": bundle("runc"),
    "crun": bundle("crun", surroundings(cgroup.hierarchies())),
    "lxc": lxc,
    "bubblewrap": bubblewrap,
    "nspawn": nspawn,
    "docker": container("docker"),
    # What podman raises by itself takes a capability that this host may lack.
    "podman": container(
        *("podman", "--cgroup-manager=cgroupfs", "--runtime=runc"),
        options=["--ulimit=nofile=1024", "--ulimit=nproc=1024"],
    ),
    "qemu-tcg": qemu_machine,
}


if __name__ == "__main__":
    main()
