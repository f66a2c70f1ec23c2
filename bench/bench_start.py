"""Start to first byte by tare, next to the raw command of the same platform, in turn within one run.

Goals: at most 10 ms more than the raw command on runc, crun, LXC, bubblewrap and nspawn, at most 30 ms on Docker and
Podman, at most 5 % on virtual machines. "raw" is what a user types, on the same CPU, from its start to the first byte
of an `echo` inside (for a machine on its console, out of an initramfs that has its drivers alone); "tare" is the mark
that campaigns record, from prepared, and where the raw command makes its container itself (`docker run`, `podman run`)
from nothing; "whole" is all that tare does for a start, folders, control groups and network included, until a first
command has run. For a machine the CPU time of both is printed too.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.plan.campaign_request import DEFAULT_MEMORY
from tare.errors import TareError
from tare.host import cgroup, processes
from tare.host.cgroup import Group
from tare.host.filesystems import roots
from tare.host.network.bridge import BRIDGE, namespace_path
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.image import guest, image_build
from tare.model import Arm, Resources
from tare.platforms import platform_registry
from tare.platforms.base import LaunchSpec
from tare.platforms.crun import surroundings
from tare.platforms.parts.machines import disks, vm

ECHO = ["/bin/echo", "x"]
#: CPU time of machines' starts in ms: the raw command's until its mark, tare's until the first command.
RAW_CPU, OUR_CPU = [], []
#: Those of instances; during a campaign tare itself runs on the others.
CPUS = ",".join(map(str, default_cpus()))
TIMES = 20
MACHINE_TIMES = 5
GOALS = {"qemu-tcg": "5 %", "docker": "30 ms", "podman": "30 ms"}


def main() -> None:
    """Print a row a platform."""
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    if sys.argv[1:] == ["machine"]:
        with HostSession() as host:
            machine_parts(host.prepare(image, Resources(default_cpus(), DEFAULT_MEMORY))[0])
        return
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
    if RAW_CPU and OUR_CPU:
        print(f"CPU time of a machine's start: raw {statistics.median(RAW_CPU):.0f} ms", end=", ")
        print(f"tare, with a first command, {statistics.median(OUR_CPU):.0f} ms; load {os.getloadavg()[0]:.0f}")


def row(launcher, name) -> str:
    """Measure one platform, raw and by tare in turn."""
    platform = platform_registry.choose([name])[0]
    answer = platform.detect()
    if not answer.available:
        return f"| {name} | not here: {answer.reason} | | | | |"
    platform.prepare(launcher.image)
    raws, ours, wholes = [], [], []
    try:
        for turn in range(1 + (MACHINE_TIMES if name == "qemu-tcg" else TIMES)):
            # Whichever comes second finds warm caches: so each is second in every other turn.
            measures = [
                lambda: raws.append(raw_ms(launcher, name)),
                lambda: ours.append(started(launcher, platform, wholes)),
            ]
            for measure in measures[:: 1 if turn % 2 else -1]:
                measure()
        for figures in (raws, ours, wholes):
            del figures[0]  # the first warms the caches
    finally:
        platform.close()
    raw, our, whole = map(statistics.median, (raws, ours, wholes))
    difference = f"{(our / raw - 1) * 100:+.1f} %" if name == "qemu-tcg" else f"{our - raw:+.1f} ms"
    return f"| {name} | {raw:.1f} ms | {our:.1f} ms | {difference} | {GOALS.get(name, '10 ms')} | {whole:.1f} ms |"


def started(launcher, platform, wholes) -> float:
    """One start by tare, in ms to the first byte; how long all of it took goes to ``wholes``."""
    began = time.perf_counter()
    running = launcher.start(platform, Arm(platform.name), measured=True)
    wholes.append((time.perf_counter() - began) * 1e3)
    if platform.own_kernel:
        OUR_CPU.append(running.cpu_ns() / 1e6)
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


#: What a user's initramfs does until something of the image runs: modules, root, and the first program of it.
USERS_INIT = """\
#!/bin/busybox sh
export PATH=/bin
mount -t devtmpfs devtmpfs /dev
while read -r module; do insmod "/modules/$module.ko"; done </modules/order
mount -t ext4 /dev/vda /root
{more}exec switch_root /root /bin/echo TARE-BENCH-UP >/dev/console
"""
#: What tare's does besides.
NETWORK = """\
mount -t sysfs sysfs /sys
until [ -d /sys/class/net/eth0 ]; do :; done
ip link set lo up
ip addr add {address} dev eth0
ip link set eth0 up
ip route add default via {gateway}
"""
VOLUME = "mount -t ext4 /dev/vdb /root/data\n"


@dataclass(frozen=True, slots=True)
class Typed:
    """A machine that is typed, and what it has of tare's own: each is that and all before it."""

    bare: bool = False  # no default devices, a bounded buffer for translated code, the counter's speed told
    network: bool = False  # brought up before the first program
    volume: bool = False  # a second disk, mounted
    port: bool = False  # a virtio-serial port


LADDER = {
    "typed": Typed(),
    "no default devices": Typed(bare=True),
    "network brought up": Typed(bare=True, network=True),
    "data volume": Typed(bare=True, network=True, volume=True),
    "port": Typed(bare=True, network=True, volume=True, port=True),
}


def users_initramfs(made, typed, endpoint, network) -> Path:
    """An initramfs as a user would make it for Debian's kernel, with the drivers of the disk and the card."""
    place = made.kernel.parent.parent
    files = {file.stem: file for file in (place / "lib" / "modules" / made.release).rglob("*.ko")}
    named = [name for name in guest.MODULES["virtio"] if typed.port or name != "virtio_console"]
    network_lines = (
        NETWORK.format(address=f"{endpoint.address}/{network.prefix}", gateway=network.host) if typed.network else ""
    )
    init = USERS_INIT.format(more=network_lines + (VOLUME if typed.volume else "")).encode()
    packed = Path(tempfile.gettempdir(), f"tare-bench-initramfs-{os.getpid()}")
    packed.write_bytes(guest.pack(init, guest.busybox_path(), [files[name] for name in named if name in files]))
    return packed


def typed_argv(spec, cleanup, after, typed) -> list[str]:
    """QEMU's command line of a machine that is typed."""
    guest_files = guest.ensure()
    endpoint, tap = spec.network.new_tap(cleanup, spec.id)
    initramfs = users_initramfs(guest_files, typed, endpoint, spec.network)
    after.callback(initramfs.unlink)
    cache = f"cache=none,aio={disks.engine()}"
    disk = f"file={disks.overlay(vm.root_disk(spec.image), spec.space.folder)},if=virtio,{cache}"
    nic = f"tap,ifname={tap},script=no,downscript=no,model=virtio-net-pci,mac={endpoint.mac}"
    words = "console=ttyS0 quiet panic=-1"
    argv = ["qemu-system-x86_64", "-M", "q35", "-m", f"{DEFAULT_MEMORY >> 20}M", "-smp", str(len(default_cpus()))]
    argv += ["-no-reboot", "-drive", disk, "-nic", nic, "-kernel", str(guest_files.kernel), "-initrd", str(initramfs)]
    if typed.bare:
        argv += [*vm.accelerator("tcg"), "-nodefaults", "-display", "none", "-serial", "stdio"]
        words = " ".join([words, *vm.clock_words("tcg")])
    else:
        argv += ["-accel", "tcg", "-cpu", "max", "-nographic"]
    if typed.volume:
        argv += ["-drive", f"file={vm.data_volume(spec.space.folder)},if=virtio,format=raw,{cache}"]
    if typed.port:
        argv += ["-chardev", "null,id=agent", "-device", "virtio-serial-pci"]
        argv += ["-device", "virtserialport,chardev=agent,name=tare.0"]
    return [*argv, "-append", words]


def qemu_machine(spec, cleanup, after, typed=LADDER["typed"]) -> float:
    """What QEMU's manual has for a kernel, a disk and a TAP, typed; until a program of the image speaks."""
    argv = typed_argv(spec, cleanup, after, typed)
    # In a group of its own, as what a user starts is in one of the session's: on a busy host a group has one share.
    group = cgroup.named(f"tare/{spec.id}")
    cleanup.own(removers.control_group(group.path))
    group.create(Resources(default_cpus(), 2 * DEFAULT_MEMORY))
    began = time.perf_counter()
    process = processes.start(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cgroup_procs=group.leaf("tool"),
    )
    printed = b""
    try:
        while b"TARE-BENCH-UP" not in printed:
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                raise SystemExit(f"{argv} ended: {printed.decode(errors='replace')[-500:]}")
            printed += chunk
        took = (time.perf_counter() - began) * 1e3
        RAW_CPU.append(group.cpu_ns() / 1e6)
        return took
    finally:
        process.kill()
        process.wait()
        group.close()


def machine_ms(launcher, platform) -> float:
    """One start of tare's machine, in ms to the first byte; its CPU time until then goes to ``OUR_CPU``."""
    label = f"{launcher.campaign}our{secrets.token_hex(1)}"[:11]
    with CleanupStack(launcher.journal) as cleanup:
        space = roots.new_workspace(cleanup, launcher.work / label)
        group = cgroup.named(f"tare/{label}")
        cleanup.own(removers.control_group(group.path))
        group.create(Resources(default_cpus(), 2 * DEFAULT_MEMORY))
        spec = LaunchSpec(label, launcher.image, launcher.resources, group, space, launcher.network, 20099)
        before_ns = group.cpu_ns()
        instance = platform.launch(spec, cleanup)
        at_ns = instance.first_byte.wait(120)
        OUR_CPU.append((group.cpu_ns() - before_ns) / 1e6)
        instance.stream.close()
        group.close()
        return (at_ns - instance.started.monotonic_ns) / 1e6


def machine_parts(launcher) -> None:
    """Print what each part of tare's machine adds, all in turn."""
    platform = platform_registry.choose(["qemu-tcg"])[0]
    platform.prepare(launcher.image)
    walls, cpus = {}, {}
    for _ in range(MACHINE_TIMES):
        for name, typed in LADDER.items():
            with CleanupStack(launcher.journal) as cleanup, contextlib.ExitStack() as after:
                label = f"{launcher.campaign}raw{secrets.token_hex(1)}"[:11]
                space = roots.new_workspace(cleanup, launcher.work / label)
                common = (launcher.image, launcher.resources, Group("none"), space, launcher.network)
                spec = LaunchSpec(label, *common, 20099)
                walls.setdefault(name, []).append(qemu_machine(spec, cleanup, after, typed))
                cpus.setdefault(name, []).append(RAW_CPU[-1])
        walls.setdefault("tare", []).append(machine_ms(launcher, platform))
        cpus.setdefault("tare", []).append(OUR_CPU[-1])
    print(f"load {os.getloadavg()[0]:.0f}")
    print("| machine, with all before it | CPU time until the mark | wall |")
    print("| --- | --- | --- |")
    for name, figures in cpus.items():
        middle, wall_s = statistics.median(figures), statistics.median(walls[name]) / 1e3
        print(f"| {name} | {middle:.0f} ms ({min(figures):.0f} to {max(figures):.0f}) | {wall_s:.1f} s |")


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
