"""H4, M6, M8, M9, M10 from inside of real instances, as root there; M5 from a program of the client's."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from bait import BEHIND, Bait
from findings import Finding

from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.instances.client import LoadClient
from tare.campaign.instances.launcher import InstanceLauncher, RunningInstance
from tare.errors import TareError
from tare.model import Arm, Resources
from tare.platforms import platform_registry
from tare.platforms.base import Platform
from tare.session.requests import Pending

PROGRAM = Path(__file__).with_name("guest.pl").read_text()
MEMORY = 2 << 30
#: More than any instance may have, fewer than the host has ids.
MOST_PROCESSES = 6_000
#: Fewer show no limit: the attempt was too slow.
LEAST_PROCESSES = 3_500
#: The guest ends by itself well before.
FORK_LIMIT_S = 240.0
#: Where a fork takes milliseconds (gVisor), an instance that may have fewer is tried to the end.
FEWER = 500
#: By then an instance that was told to end has ended, also one that is frozen.
END_LIMIT_S = 45.0
VSOCK_PORT = 47_777
#: By then a guest's processes are frozen, if they can be.
FREEZE_LIMIT_S = 15.0
#: Ways of a guest's root to a hierarchy of control groups of version 1.
FREEZE = """
mkdir -p /tmp/m && mount -t cgroup -o freezer none /tmp/m && mkdir -p /tmp/m/x || exit 0
sleep 1
for p in /proc/[0-9]*; do echo ${p#/proc/} >/tmp/m/x/cgroup.procs; done 2>/dev/null
echo FROZEN >/tmp/m/x/freezer.state
"""
NAMESPACES = ("", "unshare -UrmC", "unshare -Urm", "unshare -mC")
Opened = dict[str, list[tuple[str, str]]]


@contextlib.contextmanager
def session(progress: Callable[[str], object]) -> Iterator[tuple[InstanceLauncher, LoadClient, HostSession]]:
    """A host on which instances are started, with what is a secret in the environment that tare has."""
    with HostSession(progress) as host:
        launcher, client = host.prepare(host.image(), Resources(default_cpus(), MEMORY))
        yield launcher, client, host


def opened(output: bytes) -> tuple[Opened, set[str]]:
    """The ways that were open, by kind; and the kinds that were tried to the end."""
    ways: Opened = {}
    tried = set()
    for line in output.decode(errors="replace").splitlines():
        kind, _, rest = line.partition("\t")
        place, _, words = rest.partition("\t")
        if (place, words) == ("", "tried"):
            tried.add(kind)
        else:
            ways.setdefault(kind, []).append((place, words))
    return ways, tried


def orders_of(arguments: Mapping[str, str], kinds: Iterable[str]) -> bytes:
    """What `guest.pl` is told to try."""
    return "".join(f"{kind} {arguments[kind]}\n" for kind in kinds).encode()


def as_root(orders: bytes, *within: str) -> Opened:
    """What is open to the host's root; ``within``: a command that enters other namespaces."""
    done = subprocess.run([*within, "perl", "-e", PROGRAM], input=orders, capture_output=True, check=False)
    ways, tried = opened(done.stdout)
    if not tried:
        raise TareError(f"perl does not run here: {done.stderr.decode(errors='replace')[-200:]}")
    return ways


def shown(ways: Sequence[tuple[str, str]]) -> str:
    """The first ways, in words."""
    return ", ".join(f"{place} {words}" for place, words in ways[:4]) + (" ..." if len(ways) > 4 else "")


class Guests:
    """The attacks from inside of instances, and what became of them."""

    def __init__(self, bait: Bait, token: str, findings: Mapping[str, Finding]) -> None:
        self.bait, self.token, self.findings = bait, token, findings
        self.froze = False  # whether a group was frozen on some platform

    def control(self, launcher: InstanceLauncher) -> str:
        """Why the attacks show nothing: the baseline, which has no isolation, must be open to them. "": they do."""
        native = platform_registry.choose(["native"])[0]
        with started(native, launcher) as running:
            ways, _ = self._orders(running, ["reach", "datagram", "environment"])
        lacking = {"reach", "environment"} - ways.keys()
        reached = {place for place, _ in ways.get("reach", [])}
        if f"{BEHIND}:80" not in reached:
            lacking.add("the machine behind the host")
        if not self.arrived("native"):
            lacking.add("datagram")
        return f"native is closed to: {', '.join(sorted(lacking))}" if lacking else ""

    def attack_from(self, platform: Platform, running: RunningInstance) -> None:
        """Try what leaves an instance as it is."""
        ways, tried = self._orders(running, ["reach", "datagram", "environment", "vsock"])
        by_datagram = self.arrived(platform.name)
        if "reach" in tried:
            reached = [*ways.get("reach", []), *((place, "got a datagram") for place in by_datagram)]
            self._judge("H4", platform, reached, ("host-ports", "metadata"))
        if "environment" in tried:
            self._judge("M8", platform, ways.get("environment", []), ("environment",))
        if "vsock" in tried:
            self._judge("M10", platform, ways.get("vsock", []), ("vsock",))
        if platform.own_kernel and freezer_root() is not None:  # another instance would show no more
            frozen = freeze(running)
            if self.froze or frozen:
                self._judge("M6", platform, [("the host's group", group) for group in frozen], ())
            else:
                self.findings["M6"].untried.append(f"{platform.name}: nothing can be frozen from inside")

    def attack_by_forks(self, platform: Platform, launcher: InstanceLauncher) -> None:
        """M9: fork in an instance until no more can be."""
        finding, name = self.findings["M9"], platform.name
        if platform.own_kernel and not name.startswith("gvisor"):
            finding.attempt(f"{name} (ids of its own kernel)", "")
            return
        slow = name.startswith("gvisor")
        given = replace(launcher.resources, pids=FEWER) if slow else launcher.resources
        count, least = (4 * FEWER, FEWER - 50) if slow else (MOST_PROCESSES, LEAST_PROCESSES)
        limit = FEWER + platform.helper_pids if slow else MOST_PROCESSES - 1
        most, said, why = self._fork_out(platform, replace(launcher, resources=given), count)
        if most > limit:
            finding.attempt(name, f"{most} processes and threads on the host")
        elif said or (most > least and "all process ids" in why):
            of = f" of {FEWER} and its engine's" if slow else ""
            finding.attempt(f"{name} (at most {most} at once{of})", said)
        else:
            finding.untried.append(
                f"{name}: only {most} processes were seen at once, and it was told {why or 'nothing'}"
            )

    def _fork_out(self, platform: Platform, launcher: InstanceLauncher, count: int) -> tuple[int, str, str]:
        """The most tasks of a guest that forks so often, what went wrong at its end, and what it was told."""
        most, said, why = 0, "", ""
        try:
            with started(platform, launcher) as running, ThreadPoolExecutor(1) as pool:
                told = pool.submit(self._orders, running, ["fork"], FORK_LIMIT_S, str(count))
                began = time.monotonic()
                while not told.done():  # the host's count: a guest may end itself by this, and say nothing
                    most = max(most, tasks(running))
                    time.sleep(0.1)
                if time.monotonic() - began >= FORK_LIMIT_S:
                    said = f"its trial waited for its time limit: {told.exception()}"
                why = running.killed()
                ids = running.instance.host_processes()
            ids = [pid for pid in ids if Path(f"/proc/{pid}").exists()]
            said = said or (f"{len(ids)} of its processes are left" if ids else "")
        except TareError as error:
            said = f"its end failed: {error.what}"
        return most, said, why

    def _judge(self, finding: str, platform: Platform, ways: list[tuple[str, str]], doors: tuple[str, ...]) -> None:
        declared = [door for door in ("*", *doors) if door in platform.open_by_design]
        if ways and declared:
            self.findings[finding].declared.append(platform.name)
            self.findings[finding].tried.append(platform.name)
        else:
            self.findings[finding].attempt(platform.name, shown(ways))

    def _orders(
        self, running: RunningInstance, kinds: list[str], time_limit_s: float = 120, count: str = str(MOST_PROCESSES)
    ) -> tuple[Opened, set[str]]:
        arguments = self.arguments(running.arm.platform) | {"fork": count}
        done = running.session.execute(
            ["perl", "-e", PROGRAM], stdin=orders_of(arguments, kinds), time_limit_s=time_limit_s
        )
        return opened(done.stdout)

    def arguments(self, word: str) -> dict[str, str]:
        """The arguments of each kind of attempt; ``word``: what the datagrams say."""
        return {
            "reach": " ".join(self.bait.targets([])),
            "datagram": " ".join([word, *self.bait.datagram_targets([])]),
            "environment": self.token,
            "vsock": str(VSOCK_PORT),
            "fork": str(MOST_PROCESSES),
            "rights": "",
        }

    def arrived(self, word: str) -> list[str]:
        time.sleep(0.3)  # the last datagram is on its way
        return sorted({words.split(" ")[1] for words in self.bait.came if words.split(" ")[0] == word})

    def attack_by_freezing(self, platform: Platform, launcher: InstanceLauncher) -> None:
        """M6: freeze all of an instance from inside, and see that it ends all the same."""
        finding, name = self.findings["M6"], platform.name
        running = launcher.start(platform, Arm(name), measured=False)
        frozen = freeze(running)
        pids = running.instance.host_processes()
        began = time.monotonic()
        said = ""
        try:
            running.stop()
        except TareError as error:
            said = f"its end failed: {error.what}"
        late = time.monotonic() + END_LIMIT_S
        while (left := [pid for pid in pids if Path(f"/proc/{pid}").exists()]) and time.monotonic() < late:
            time.sleep(0.2)
        if left:
            said = f"{len(left)} of its processes live after {time.monotonic() - began:.0f} s"
        self.froze |= bool(frozen)
        if self.froze or said:  # where it came through once, it is known to work
            finding.attempt(f"{name} ({len(frozen)} groups frozen)", said)
        else:
            finding.untried.append(f"{name}: nothing can be frozen from inside")
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def freeze(running: RunningInstance) -> list[str]:
    """The host's control groups that an instance's root freezes from inside."""
    tries: list[Pending] = []
    for prefix in NAMESPACES:
        with contextlib.suppress(TareError):  # the agent may be frozen by then; what goes on is not waited for
            argv = [*shlex.split(prefix), "sh", "-c", FREEZE]
            tries.append(running.session.start(argv, time_limit_s=120))
    late = time.monotonic() + FREEZE_LIMIT_S
    while not (frozen := frozen_groups()) and time.monotonic() < late:
        if len(tries) == len(NAMESPACES) and all(each.over for each in tries):
            break  # nothing can be frozen any more
        time.sleep(0.5)
        with contextlib.suppress(TareError):
            running.session.execute(["true"], time_limit_s=5)  # hears of the others' ends meanwhile
    return frozen


def tasks(running: RunningInstance) -> int:
    """How many processes and threads the kernel counts of an instance; 0 where it counts none."""
    for line in Path("/proc/self/mounts").read_text(errors="replace").splitlines():
        _, place, kind, options, *_ = line.split(" ")
        if kind == "cgroup2" or (kind == "cgroup" and "pids" in options.split(",")):
            with contextlib.suppress(OSError):
                return int((Path(place) / running.instance.spec.group.path / "pids.current").read_text())
    return 0


def freezer_root() -> Path | None:
    """Where the host has the freezer's hierarchy of version 1; None: it has none."""
    for line in Path("/proc/self/mounts").read_text(errors="replace").splitlines():
        _, place, kind, options, *_ = line.split(" ")
        if kind == "cgroup" and "freezer" in options.split(","):
            return Path(place)
    return None


def frozen_groups() -> list[str]:
    """The control groups of instances that are frozen now, or about to be."""
    found = []
    for file in (freezer_root() or Path("/nowhere")).glob("tare/**/freezer.state"):
        with contextlib.suppress(OSError):
            if file.read_text().strip() != "THAWED":
                found.append(str(file.parent))
    return found


@contextlib.contextmanager
def started(platform: Platform, launcher: InstanceLauncher) -> Iterator[RunningInstance]:
    """An instance as in a campaign, ended when the context is left."""
    running = launcher.start(platform, Arm(platform.name), measured=False)
    try:
        yield running
    finally:
        running.stop()


def attack_from_client(guests: Guests, client: LoadClient, launcher: InstanceLauncher) -> None:
    """M5: what a server can do that has taken over a program of the client's, also one that may send pings."""
    finding = guests.findings["M5"]
    arguments = guests.arguments("client")
    arguments["reach"] += f" {launcher.network.host}:22 {launcher.network.host}:{guests.bait.loopback}"
    orders = orders_of(arguments, ("rights", "reach", "datagram", "environment"))
    copied = client.run(["cp", "/usr/bin/perl", "/data/ping"], time_limit_s=30)
    programs = {"a program": "perl"} | ({"ping": "/data/ping"} if copied.code == 0 else {})
    for called, program in programs.items():
        done = client.run([program, "-e", PROGRAM], stdin=orders, time_limit_s=120)
        ways, tried = opened(done.stdout)
        if not tried >= {"rights", "reach", "environment"}:
            finding.untried.append(f"{called}: {done.message}")
            continue
        for kind in ("rights", "reach", "environment"):
            finding.attempt(f"{called}: {kind}", shown(ways.get(kind, [])))
    finding.attempt("datagrams", ", ".join(guests.arrived("client")))
    own = as_root(orders_of(arguments, ("rights", "reach")))
    if {"rights", "reach"} - own.keys():
        finding.untried.append("the same as the host's root comes through nowhere, so this shows nothing")


def attack_through_user_network(guests: Guests, launcher: InstanceLauncher, box: Platform) -> None:
    """H4 for a box on QEMU's own network: its guest reaches what its monitor reaches, and so that is tried."""
    finding, answer = guests.findings["H4"], box.detect()
    if not answer.available:
        finding.untried.append(f"a box on QEMU's own network: {answer.reason}")
        return
    try:
        box.prepare(launcher.image)
        with started(box, launcher) as running:
            monitors = [pid for pid in running.instance.host_processes() if is_monitor(pid)]
            for pid in monitors[:1]:
                orders = orders_of(guests.arguments(""), ("reach",))
                ways = as_root(orders, "nsenter", f"--net=/proc/{pid}/ns/net")
                shown_ways = shown(ways.get("reach", []))
                finding.attempt(f"{box.name.partition(':')[0]}, from its monitor's network", shown_ways)
            if not monitors:
                finding.untried.append(f"{box.name}: no monitor is seen")
    except TareError as error:
        finding.untried.append(f"a box on QEMU's own network: {error.what[-150:]}")


def is_monitor(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"qemu" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
    return False


def word() -> str:
    """What nobody knows who has not read it."""
    return secrets.token_hex(12)
