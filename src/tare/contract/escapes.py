"""The promise that nothing escapes: every door is tried inside a real instance (`doors`), with bait on the host."""

from __future__ import annotations

import contextlib
import dataclasses
import select
import socket
import time
from collections.abc import Iterator, Mapping, Sequence

from tare.campaign.instances.launcher import RunningInstance
from tare.contract import bait
from tare.contract.bench import Bench, promise
from tare.contract.doors import (
    DOORS,
    DOORS_TO_OTHERS,
    AttemptState,
    Door,
    DoorAnswers,
    DoorOutcome,
    HostSecrets,
    judge,
    order,
)
from tare.errors import SessionError
from tare.host.network import fence
from tare.platforms.base import AGENT, EVERY_DOOR, Platform
from tare.session.session import Session
from tare.timeouts import until

#: For all doors together, on an emulated machine.
LIMIT_S = 240.0
OUTPUT_CAP = 1 << 20
SERVE = (
    "$s = IO::Socket::INET->new(LocalPort => $ARGV[0], Listen => 8, ReuseAddr => 1) or die $@;"
    'syswrite STDOUT, "listening\\n"; while ($c = $s->accept) { $c->syswrite($ARGV[1]); close $c }'
)
#: Sends a text to an address, again and again, for longer than the sniffing takes.
SEND = (
    "$s = IO::Socket::INET->new(Proto => 'udp', PeerAddr => $ARGV[0], PeerPort => $ARGV[1]) or die $@;"
    "for (1..100) { $s->send($ARGV[2]); select(undef, undef, undef, 0.1) }"
)
#: Time limit for the last process of an instance that has ended.
END_LIMIT_S = 10.0
#: In place of a result, where the attempt ended the whole instance.
ENDED = "the whole instance ended"
#: Time within which a packet arrives.
ARRIVAL_LIMIT_S = 1.0


def escape(bench: Bench) -> str:
    """No door out of it is open but those that the platform declares, with the reason (`open_by_design`)."""
    return _held(bench.platform, try_doors(bench))


def escape_to_others(bench: Bench) -> str:
    """An instance neither reaches nor hears another, nor speaks in its name, but by what the platform declares."""
    return _held(bench.platform, try_doors_to_others(bench))


def try_doors(bench: Bench) -> list[DoorOutcome]:
    """Try each door in the shared instance. Raises `BrokenPromiseError` where not all were tried."""
    running = bench.running
    with bait.laid(bench.launcher, running) as laid:
        began = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        own_kernel = {"own_kernel": "1"} if bench.platform.own_kernel else {}
        harmless = [door for door in DOORS if not door.may_end_it]
        answers = _answers(running.session, harmless, laid.given | own_kernel)
        host = dataclasses.replace(laid.host, while_tried_ns=(began, time.clock_gettime_ns(time.CLOCK_BOOTTIME)))
        places = bait.places(running, laid.setuid)
        outside = [(f"on the host, {path}", "OK") for path in bait.runnable_by_nobody(places)[:1]]
        files = [f"{folder}/{laid.setuid}" for folder in ("/data", "/tmp", "", "/dev/shm")]  # noqa: S108 (its, inside)
        running.session.execute(["rm", "-f", *files])
        answers = _more(answers, "setuid", outside)
        for door in DOORS:
            if door.may_end_it:
                answers = _more(answers, door.name, _ways_to_an_end(running, door, laid.given | own_kernel))
    return _judged(DOORS, answers, _host_of(bench.platform, host))


def try_doors_to_others(bench: Bench) -> list[DoorOutcome]:
    """Try each door to another instance of the platform, which is started for this; absent without a network.

    Raises `BrokenPromiseError` where not all were tried.
    """
    running = bench.running
    address = running.instance.address
    if address.host is None:
        return [DoorOutcome(door, AttemptState.ABSENT, address.no_ping) for door in DOORS_TO_OTHERS]
    with bait.laid(bench.launcher, running) as laid, bench.fresh() as victim, _listener(bench, running) as listener:
        secret = laid.host.secret
        victim_address = victim.instance.address
        victim_ping = victim_address.ping or victim_address.early_ping
        reachable = {
            f"{victim_address.host}:{victim_address.port}",
            *([f"{victim_ping}:{victim_address.instance_port}"] if victim_ping else []),
        }
        own_host, port = listener.getsockname()
        values = {"other": ",".join(sorted(reachable)), "sniffed": laid.setuid, "spoof": secret}
        if victim_ping is not None and victim_ping not in {address.ping, address.early_ping}:
            values |= {"spoofed": victim_ping, "told": own_host, "port": str(port)}
        serve = ["perl", "-MIO::Socket::INET", "-e", SERVE, str(victim_address.instance_port), secret]
        victim.session.start(serve, time_limit_s=LIMIT_S).wait_output(b"listening", 60)
        client = bench.client.towards(victim_address)
        send = [
            "perl",
            "-MIO::Socket::INET",
            "-e",
            SEND,
            str(victim_address.host),
            str(victim_address.port),
            laid.setuid + secret,
        ]
        with client.serving(send):
            answers = _answers(running.session, DOORS_TO_OTHERS, values)
        spoofed = [("on the host", "OK")] if victim_ping is not None and _came(listener, secret, victim_ping) else []
    return _judged(DOORS_TO_OTHERS, _more(answers, "spoof", spoofed), laid.host)


def _answers(session: Session, doors: Sequence[Door], values: Mapping[str, str]) -> DoorAnswers:
    lines = order(doors, values).encode()
    done = session.execute([AGENT, "doors"], stdin=lines, time_limit_s=LIMIT_S, output_cap=OUTPUT_CAP)
    answers = DoorAnswers.parse(done.stdout.decode(errors="replace"))
    words = done.stderr.decode(errors="replace").strip()[-300:]
    promise(answers.whole, f"the doors were not all tried: exit code {done.code}, signal {done.signal}: {words}")
    return answers


def _ways_to_an_end(running: RunningInstance, door: Door, values: Mapping[str, str]) -> Sequence[tuple[str, str]]:
    """Return the results of the attempts at a door. If they ended the whole instance, the door counts as shut.

    gVisor's sentry fails if the kernel refuses it a thread, at the limit that the guest's processes reached.
    """
    try:
        return _answers(running.session, [door], values).ways.get(door.name, ())
    except SessionError:
        deadline = until(END_LIMIT_S)
        while running.instance.spec.group.pids():
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        return [("here", ENDED)]


def _more(answers: DoorAnswers, name: str, ways: Sequence[tuple[str, str]]) -> DoorAnswers:
    """The answers with more ways through one door, which were observed on the host."""
    return dataclasses.replace(answers, ways={**answers.ways, name: [*answers.ways.get(name, ()), *ways]})


def _judged(doors: Sequence[Door], answers: DoorAnswers, host: HostSecrets) -> list[DoorOutcome]:
    return [judge(door, answers, host) for door in doors]


def _host_of(platform: Platform, host: HostSecrets) -> HostSecrets:
    """The host's facts for a platform on another machine: the kernel is that machine's, or the instance's own."""
    return dataclasses.replace(host, shared_kernel=not platform.own_kernel) if platform.elsewhere else host


@contextlib.contextmanager
def _listener(bench: Bench, running: RunningInstance) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        fence.bind_allowed(listener, running.instance.address.client or bench.launcher.network.host)
        yield listener


def _came(listener: socket.socket, text: str, sender: str) -> bool:
    """Return True if a datagram with this text arrived that seems to come from this sender."""
    deadline = until(ARRIVAL_LIMIT_S)
    while select.select([listener], [], [], max(0.0, deadline - time.monotonic()))[0]:
        with contextlib.suppress(BlockingIOError):  # a datagram whose checksum is wrong is dropped when it is read
            data, (host, _) = listener.recvfrom(2048, socket.MSG_DONTWAIT)
            if data == text.encode() and host == sender:
                return True
    return False


def declared(platform: Platform, door: str) -> str | None:
    """The reason for which a platform leaves a door open by design; None: it does not."""
    return platform.open_by_design.get(door, platform.open_by_design.get(EVERY_DOOR))


def _held(platform: Platform, outcomes: Sequence[DoorOutcome]) -> str:
    """The remark on a kept promise. Raises `BrokenPromiseError` for a door that is open and not declared."""
    opened = [outcome for outcome in outcomes if outcome.state is AttemptState.OPEN]
    undeclared = [outcome for outcome in opened if declared(platform, outcome.door.name) is None]
    promise(
        not undeclared,
        "open: " + "; ".join(f"{outcome.door.name} ({outcome.door.gain}), {outcome.how}" for outcome in undeclared),
    )
    names = {outcome.door.name for outcome in outcomes} & set(platform.open_by_design)
    return "; ".join(
        f"{remark}: {', '.join(doors)}"
        for remark, doors in (
            ("open by design", [outcome.door.name for outcome in opened]),
            ("declared open, and not so on this host", sorted(names - {outcome.door.name for outcome in opened})),
            (
                "cannot be tried",
                [
                    f"{outcome.door.name} ({outcome.how})"
                    for outcome in outcomes
                    if outcome.state is AttemptState.UNTRIED
                ],
            ),
        )
        if doors
    )
