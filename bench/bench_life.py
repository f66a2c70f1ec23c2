"""Operations on instances by tare, next to the raw command in a shell, in turn on instances that are made alike.

Goal: within 3 % or 2 ms. "raw" is the platform's own command as a user types it: bash forks, executes it and waits, in
the instance's control group and surroundings, and reads the clock before and after; where an operation ends with
something to be seen (no process is left), the same look follows. "fork": how much of that bash took before it executed
the command. "tare" is what campaigns record, whose commands have been forked before their time begins: "more" is beyond
raw without its fork: the median over turns, with its 95 % interval. Arguments: platforms, and `--times N`.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from scipy import stats

from tare.campaign.execution.living import BY_HAND, LOOK_S, MOVES_NS, Living
from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.instances.launcher import InstanceLauncher
from tare.campaign.plan.campaign_request import DEFAULT_MEMORY
from tare.errors import TareError, UnsupportedError
from tare.host import instance_console, processes
from tare.host.kernel import parentage
from tare.image import image_build
from tare.model import Resources
from tare.platforms import platform_contract, platform_registry
from tare.platforms.base import Platform
from tare.platforms.parts.common.pipes import TOOL
from tare.workloads.apart import Operation
from tare.workloads.life.programs import WAITS, WORKS

NAMES = (
    *("native", "runc", "crun", "gvisor", "docker", "podman", "lxc", "lxd", "nspawn", "bubblewrap", "charliecloud"),
    *("containerd", "containerd-cri", "libvirt-qemu-tcg"),
)
#: What is done, by the program that is the instance: one that works without end shows that it goes on.
LIVES = {
    WAITS: tuple(map(Operation, ("create", "start", "execute", "stop", "remove"))),
    WORKS: tuple(map(Operation, ("create", "start", "pause", "resume", "stop"))),
}
SHOWN = {WAITS: ("create", "start", "execute", "stop", "remove"), WORKS: ("pause", "resume")}
TIMES = 20
#: Why an operation differs by more, where that is meant.
REASONS = {"resume": "no: tare's ends when the instance works again, which is before its command returns"}
#: Runs a command and prints how long it took with and without its fork, in us.
TYPED = """\
exec 9>&1; rest=$1; shift; sleep "$rest"; a=$EPOCHREALTIME
(b=$EPOCHREALTIME; echo $((${b/./} - ${a/./})) >&9; exec "$@" >&2 9>&-)
c=$?; b=$EPOCHREALTIME; echo $((${b/./} - ${a/./})) >&9; exit $c
"""


def main() -> None:
    """Print a row a platform and operation."""
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    names = sys.argv[1:]
    times = int(names.pop()) if names[-2:-1] == ["--times"] else TIMES
    print("| platform | operation | raw, ms | fork, ms | tare, ms | more, ms | within 3 % or 2 ms |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with HostSession() as host, parentage.adopting():
        launcher, _ = host.prepare(image, Resources(default_cpus(), DEFAULT_MEMORY))
        for name in [name for name in names if name != "--times"] or NAMES:
            [platform] = platform_registry.choose([name])
            available = platform_contract.detected(platform)
            if not available.available:
                print(f"| {name} | | | | | | {available.reason} |")
                continue
            platform_contract.prepared(platform, launcher.image)
            with contextlib.closing(platform):
                for row in rows(platform, launcher, times):
                    print(row, flush=True)


def rows(platform: Platform, launcher: InstanceLauncher, times: int) -> Iterator[str]:
    """The medians of both, by operation."""
    for argv, operations in LIVES.items():
        raw: dict[Operation, list[tuple[float, float]]] = {}
        ours: dict[Operation, list[float]] = {}
        for turn in range(2 * times):
            instance = Living.placed(platform, launcher, argv)
            try:
                for operation in operations:
                    with contextlib.suppress(UnsupportedError):
                        if turn % 2:
                            ours.setdefault(operation, []).append(by_tare(instance, operation))
                        elif (took := typed(instance, operation)) is not None:
                            raw.setdefault(operation, []).append(took)
            finally:
                instance.end()
        for operation in (operation for operation in operations if operation in SHOWN[argv] and operation in raw):
            yield f"| {platform.name} | {operation} | {compared(operation, raw[operation], ours[operation])} |"


def compared(operation: Operation, raw: Sequence[tuple[float, float]], ours: Sequence[float]) -> str:
    """Return the cells of an operation: ``raw`` with its fork and ``ours`` by turn, in ms."""
    theirs, fork = (statistics.median(column) for column in zip(*raw, strict=True))
    more = [mine - (took - forked) for mine, (took, forked) in zip(ours, raw, strict=True)]
    low, high = stats.quantile_test(more, q=0, p=0.5).confidence_interval(confidence_level=0.95)
    limit = max(2.0, 0.03 * (theirs - fork))
    if max(-low, high) <= limit:
        fits = "yes"
    elif low > limit or high < -limit:
        fits = REASONS.get(operation.value, "no")
    else:
        fits = "not known: more turns"
    shown = f"{statistics.median(more):+.1f} ({low:+.1f} to {high:+.1f})"
    return f"{theirs:.1f} | {fork:.1f} | {statistics.median(ours):.1f} | {shown} | {fits}"


def by_tare(instance: Living, operation: Operation) -> float:
    """How long an operation took by tare, in ms, without what users make and remove by hand."""
    wall_ns = instance.do(operation).wall_ns
    if operation is Operation.CREATE:
        wall_ns -= instance.life.made_ns or 0
    elif operation is Operation.REMOVE:
        wall_ns -= sum(instance.cleanup.removing_ns[kind] for kind in BY_HAND)
    return wall_ns / 1e6


def typed(instance: Living, operation: Operation) -> tuple[float, float] | None:
    """Return how long an operation takes as a user types it, and its fork, in ms; None where it is no command."""
    argv = instance.words(operation)
    if not argv or (operation is Operation.START and instance.life.stays):
        instance.do(operation)
        return None
    stood = instance.own_cpu_ns()
    instance.note_processes()
    with instance_console.opened(instance.spec.space.log) as log:
        shell = processes.start(
            [*instance.life.within, "bash", "-c", TYPED, "bash", f"{processes.REST_S}", *instance.named(argv)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cgroup_procs=instance.spec.group.leaf(TOOL),
        )
    printed = shell.communicate()[0]
    if shell.returncode != 0:
        raise TareError(f"{' '.join(argv)} ended with {shell.returncode}", fix="see what it says")
    fork_ms, took_ms = (int(line) / 1e3 for line in printed.split())
    returned = time.monotonic_ns()
    come = {
        Operation.STOP: instance.is_gone,
        Operation.RESUME: lambda: instance.own_cpu_ns() > stood + MOVES_NS,
    }.get(operation)
    if come is not None:
        while not come():
            time.sleep(LOOK_S)
        took_ms += (time.monotonic_ns() - returned) / 1e6
    elif operation is Operation.START and instance.life.settle is not None:
        instance.life.settle()
    return took_ms, fork_ms


if __name__ == "__main__":
    main()
