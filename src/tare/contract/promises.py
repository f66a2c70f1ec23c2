"""The promises, each checked on real sandboxes. They raise `BrokenPromiseError` with what was observed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import signal
import time
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tare.campaign.instances.launcher import RunningInstance
from tare.contract.bench import Bench, BrokenPromiseError, PromiseCheck, promise
from tare.contract.escapes import escape, escape_to_others
from tare.contract.hostile import floods_are_stopped, streams_have_limits
from tare.contract.leftovers import left_on_host, named_after, notes, packet_rules
from tare.contract.lives import lives_by_its_commands, restored_remembers
from tare.contract.manifest import manifest_holds
from tare.errors import SessionError
from tare.host.filesystems import shared_files
from tare.host.kernel import process_table
from tare.timeouts import stretched, until

#: A program whose bits must be the same on every platform; any program of the image would do.
WITNESS = "usr/bin/sysbench"
#: A server that greets its first client; and a client, which tries again until there is a server.
SERVE = (
    "$s = IO::Socket::INET->new(LocalPort => $ARGV[0], Listen => 1, ReuseAddr => 1) or die $@;"
    'syswrite STDOUT, "listening\\n"; $s->accept->syswrite("hello")'
)
ASK = (
    "for (1..50) { $s = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => $ARGV[1]) and last;"
    "select(undef, undef, undef, 0.1) } defined $s or die $@; print <$s>"
)
#: Time after which short-lived processes of a start have ended.
HELPERS_LIMIT_S = 5.0
#: A guest that is in service answers a second time within this.
AGAIN_LIMIT_S = 10.0
#: A busy loop without end; `timeout` ends it after the same time on every platform, emulated or not.
ENDLESS = "while :; do :; done"
#: As many at once as its argument says.
LOOPS = 'for n in $(seq "$1"); do timeout 0.5 sh -c "$0" & done; wait'
ONCE_S, MIN_COST_NS = 0.3, 20_000_000
#: On a busy host one loop may get next to nothing of the processor.
BUSY_ATTEMPTS = 4
#: Connects to the client, and tries again until it serves; its arguments are the client's address and port.
CALL_BACK = 'for n in 1 2 3 4 5; do iperf3 -c "$1" -p "$2" -n 1M && exit; sleep 0.2; done; exit 1'
#: Allocates as many bytes as its argument says, and writes to all of them.
HOG = '$held = "x" x shift; print length $held'


def start_is_seen(bench: Bench) -> None:
    """The marks of a start come from outside, in a sensible order, or with the reason why they cannot be seen."""
    marks = bench.running.marks
    assert marks is not None, "the shared instance's start is measured"
    limit_ns = stretched(bench.running.instance.spec.start_limit_s) * 1e9
    if bench.platform.has_agent:  # else the group may be tare's own, which gives the machine an address
        shares = bool(bench.running.instance.daemons)
        promise(not shares or bench.platform.daemon, "its instances share a daemon that it does not name")
    if not bench.platform.has_agent:
        promise(marks.answer_ns is not None and 0 < marks.answer_ns < limit_ns, f"it answered at {marks.answer_ns} ns")
        promise(marks.ping_ns is not None or marks.reasons.get("ping_ns"), "ping_ns is missing without a reason")
        return
    promise(marks.first_byte_ns is not None and marks.command_ns is not None, "the stream's marks are missing")
    assert marks.first_byte_ns is not None
    assert marks.command_ns is not None
    promise(0 < marks.first_byte_ns <= marks.command_ns, "the first byte came after the first command")
    promise(marks.command_ns < limit_ns, "the first command came after the start's time limit")
    for name, mark_ns in (("datagram_ns", marks.datagram_ns), ("ping_ns", marks.ping_ns)):
        if mark_ns is None:
            promise(marks.reasons.get(name), f"{name} is missing without a reason")
        else:
            promise(0 < mark_ns < limit_ns, f"{name} is {mark_ns}")
    if bench.running.instance.address.host is not None:
        promise(marks.datagram_ns is not None, f"no datagram: {marks.reasons.get('datagram_ns')}")


def start_is_split(bench: Bench) -> None:
    """The first byte's time is split into its parts; a guest that boots a kernel shows the kernel's."""
    marks = bench.running.marks
    assert marks is not None, "the shared instance's start is measured"
    promise({"runtime", "agent"} <= set(marks.parts), f"only {sorted(marks.parts)}: {marks.reasons.get('parts')}")
    promise(("kernel" in marks.parts) == bench.platform.boots, "the guest's kernel is not told apart")
    promise(sum(marks.parts.values()) == marks.first_byte_ns, "the parts do not add up to the whole")


def same_bits(bench: Bench) -> None:
    """The image inside is the campaign's, by its mark and by a program's digest."""
    session = bench.running.session
    image = bench.launcher.image
    if bench.platform.same_bits:
        mark = session.get("/etc/tare-image", cap=200).decode(errors="replace").strip()
        promise(mark == image.hash, f"the image inside calls itself {mark!r}, not {image.hash!r}")
        words = session.execute(["sha256sum", f"/{WITNESS}"], time_limit_s=60).stdout.split()
        expected = hashlib.sha256((image.root / WITNESS).read_bytes()).hexdigest()
        promise(words and words[0].decode() == expected, f"/{WITNESS} inside is another file")
    else:
        promise(session.hello.image is None, "it declares other bits, and has the image's mark")


def stream_is_clean(bench: Bench) -> None:
    """16 MiB of random bytes go both ways over the agent's stream unharmed."""
    running = bench.running
    data = secrets.token_bytes(16 << 20)
    running.session.put("/data/blob", data, 0o644)
    promise(running.session.get("/data/blob", cap=len(data)) == data, "what came back differs")
    if bench.platform.shares_data:
        there = shared_files.read(running.instance.spec.space.data, "blob", len(data) + 1)
        promise(there == data, "/data is not the host's folder")
    promise(
        running.session.execute(["rm", "/data/blob"], time_limit_s=30).code == 0, "a file in /data cannot be removed"
    )


def codes_signals_stdin(bench: Bench) -> None:
    """Exit codes, signals and stdin reach the host and the command as they are."""
    session = bench.running.session
    promise(session.execute(["sh", "-c", "exit 7"], time_limit_s=30).code == 7, "an exit code of 7 is not 7")
    killed = session.execute(["sh", "-c", "kill -9 $$"], time_limit_s=30)
    promise((killed.code, killed.signal) == (None, 9), f"a SIGKILL arrives as {killed.code}, {killed.signal}")
    every_byte = bytes(range(256)) * 100
    echoed = session.execute(["cat"], stdin=every_byte, time_limit_s=30)
    promise(echoed.stdout == every_byte, "stdin and stdout are not 8-bit clean")


def time_limits_hold(bench: Bench) -> None:
    """A command that goes on is ended at its limit, with its children."""
    began = time.monotonic()
    done = bench.running.session.execute(["sh", "-c", "sleep 60 & wait"], time_limit_s=0.5)
    promise(done.timed_out, "it is not told as timed out")
    promise(time.monotonic() - began < 30, "it went on long after its limit")


def output_is_capped(bench: Bench) -> None:
    """Output without end is capped, and the instance lives on."""
    session = bench.running.session
    done = session.execute(["sh", "-c", "yes | head -c 20000000"], time_limit_s=120, output_cap=100_000)
    promise(done.truncated and len(done.stdout) <= 100_000, f"{len(done.stdout)} bytes came back")
    promise(session.execute(["true"], time_limit_s=30).code == 0, "no command runs after it")


def thousand_commands(bench: Bench) -> None:
    """1,000 commands in a row all succeed."""
    session = bench.running.session
    for number in range(1000):
        code = session.execute(["true"], time_limit_s=30).code
        promise(code == 0, f"command {number} ended with {code}")


def work_is_accounted(bench: Bench) -> None:
    """The instance's processes are in its control group, and so is the CPU time of its work."""
    running = bench.running
    promise(running.instance.host_processes(), "no process of the instance is in its control group")
    cost_ns = _cost_ns(running)
    for _ in range(BUSY_ATTEMPTS - 1):
        if cost_ns is None or cost_ns > MIN_COST_NS:
            break
        cost_ns = _cost_ns(running)
    if cost_ns is None:
        promise(not running.instance.accounted, "its CPU time cannot be read")
    else:
        promise(cost_ns > MIN_COST_NS, f"a busy loop cost {cost_ns / 1e6:.1f} ms")


def _cost_ns(running: RunningInstance) -> int | None:
    """The CPU time that one busy loop adds to the instance's, in ns; None where it cannot be read."""
    before = running.cpu_ns()
    running.session.execute(["timeout", str(ONCE_S), "sh", "-c", ENDLESS], time_limit_s=120)
    after = running.cpu_ns()
    return None if before is None or after is None else after - before


def helpers_are_counted(bench: Bench) -> None:
    """Each process that was started for an instance is in its control group, a shared daemon's helpers too."""
    before = process_table.pids()
    running = bench.start()
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(running.stop)
        deadline = until(HELPERS_LIMIT_S)
        while outside := _outside(running, before):  # short-lived processes end meanwhile
            promise(time.monotonic() < deadline, f"not in its control group: {outside}")
            time.sleep(0.05)
        on_failure.pop_all()
    bench.spare(running)


def _outside(running: RunningInstance, before: Collection[int]) -> list[str]:
    """New processes of an instance that are not in its control group; none of one that is not accounted.

    Its processes are: those in the group and their ancestors, those of its daemons, and those whose command line has
    its name.
    """
    if not running.instance.accounted:
        return []
    by_pid, command_lines = process_table.stats(), process_table.command_lines()
    group = running.instance.spec.group
    candidates = {pid for daemon in running.instance.daemons for pid in daemon.pids()}
    above = set(group.pids()) & set(by_pid)
    while above:
        candidates |= above
        above = {by_pid[pid].parent for pid in above} & set(by_pid)
    candidates |= {pid for pid, argv in command_lines.items() if any(running.instance.spec.id in word for word in argv)}
    strays = []
    for pid in candidates & command_lines.keys() - set(before):
        with contextlib.suppress(OSError):
            if not group.holds(pid):
                strays.append(f"{pid} {' '.join(command_lines[pid])[:200]}")
    return strays


def cpus_hold(bench: Bench) -> None:
    """All of its processes are pinned to its CPUs, and two busy loops more than those take no more than they have."""
    running = bench.running
    allowed = set(running.instance.spec.resources.cpus)
    for pid in running.instance.host_processes():
        try:
            promise(os.sched_getaffinity(pid) <= allowed, f"process {pid} may run on other CPUs")
        except ProcessLookupError:
            continue
    before, began = running.cpu_ns(), time.monotonic_ns()
    running.session.execute(["sh", "-c", LOOPS, ENDLESS, str(len(allowed) + 2)], time_limit_s=60)
    spent, took = running.cpu_ns(), time.monotonic_ns() - began
    if before is not None and spent is not None:
        # A tenth more than possible: the counter and the clock are not read at the same moment.
        promise(spent - before < took * len(allowed) * 1.1, "it used more CPU time than its CPUs have")


def memory_holds(bench: Bench) -> None:
    """700 MiB are not to be had within 512 MiB."""
    with bench.fresh() as running:
        try:
            done = running.session.execute(["perl", "-e", HOG, "734003200"], time_limit_s=180)
        except SessionError:
            return  # the whole sandbox was killed for it, as gVisor's is
        promise(done.stdout != b"734003200", "700 MiB were held within 512 MiB")


def network_both_ways(bench: Bench) -> None:
    """Client and instance reach each other by TCP, its address answers ping; one without an agent answers again."""
    running = bench.running
    address = running.instance.address
    if not bench.platform.has_agent:
        _answers_again(running)
        return
    if address.host is None:
        promise(address.no_ping, "no network, and no reason")
        links = running.session.execute(["ls", "/sys/class/net"], time_limit_s=30).stdout.split()
        reached = running.session.execute(["ping", "-c1", "-W1", bench.launcher.network.client], time_limit_s=30)
        promise(reached.code != 0, f"it has no network, and reaches the client by {links}")
        routes = running.session.execute(["cat", "/proc/net/route"], time_limit_s=30).stdout.splitlines()
        promise(len(routes) <= 1, f"it has no network, and these routes: {routes[1:]}")
        return
    if not bench.platform.same_bits:
        _tcp_by_perl(bench, running)
        return
    port = str(address.instance_port)
    client, client_address = bench.client.towards(address), address.client or bench.launcher.network.client
    server = running.session.start(["iperf3", "-s", "-1", "--forceflush", "-p", port], time_limit_s=60)
    server.wait_output(b"listening", 30)
    argv = ["iperf3", "-c", address.host, "-p", str(address.port), "-n", "1M"]
    done = client.run(argv, time_limit_s=60)
    promise(done.code == 0, f"the client does not reach it: {done.text.strip()[-200:]}")
    with client.serving(["iperf3", "-s", "-1", "-p", port]):
        back = ["sh", "-c", CALL_BACK, "call-back", client_address, port]
        answer = running.session.execute(back, time_limit_s=120)
    promise(answer.code == 0, f"it does not reach the client: {answer.stdout.decode(errors='replace').strip()[-200:]}")
    if address.echo is not None and not address.unpinged:  # an engine may drop the client's pings
        pinged = client.run(["ping", "-c", "1", "-W", "5", address.echo], time_limit_s=30)
        promise(pinged.code == 0, f"{address.echo} does not answer ping: {pinged.text.strip()[-200:]}")


def _answers_again(running: RunningInstance) -> None:
    assert running.instance.answer is not None, "one without an agent is watched for its answers"
    second = running.instance.answer.again()
    second.wait(time_limit_s=AGAIN_LIMIT_S, gone=lambda: running.session.dead is not None)
    promise(not second.silent(), f"it does not answer a second time: {', '.join(map(str, second.silent()))}")


def _tcp_by_perl(bench: Bench, running: RunningInstance) -> None:
    """Check TCP both ways with Perl, which every Debian has: other bits may lack the image's tools."""
    address = running.instance.address
    client, client_address = bench.client.towards(address), address.client or bench.launcher.network.client
    serve = ["perl", "-MIO::Socket::INET", "-e", SERVE]
    server = running.session.start([*serve, str(address.instance_port)], time_limit_s=60)
    server.wait_output(b"listening", 30)
    ask = ["perl", "-MIO::Socket::INET", "-e", ASK]
    done = client.run([*ask, str(address.host), str(address.port)], time_limit_s=60)
    promise(done.stdout == b"hello", f"the client does not reach it: {done}")
    with client.serving([*serve, str(address.port)]):
        answer = running.session.execute([*ask, client_address, str(address.port)], time_limit_s=60)
    promise(answer.stdout == b"hello", f"it does not reach the client: {answer.stderr.decode(errors='replace')[-200:]}")


def four_at_once(bench: Bench) -> None:
    """Four start in parallel, each with an address and files of its own; without an agent each answers for itself."""
    with ThreadPoolExecutor(4) as pool:
        attempts = [pool.submit(bench.start) for _ in range(4)]
    running_instances = [attempt.result() for attempt in attempts if attempt.exception() is None]
    with contextlib.ExitStack() as on_failure:
        for running in running_instances:
            on_failure.callback(running.stop)
        for attempt in attempts:
            error = attempt.exception()
            if error is not None:
                raise error
        _apart(bench, running_instances)
        on_failure.pop_all()
    bench.spare(*running_instances)


def _apart(bench: Bench, running_instances: Sequence[RunningInstance]) -> None:
    addresses = [address for running in running_instances if (address := running.instance.address.ping) is not None]
    promise(len(set(addresses)) == len(addresses), f"they share an address: {addresses}")
    if not bench.platform.has_agent:
        for running in running_instances:
            _answers_again(running)
        return
    for number, running in enumerate(running_instances):
        running.session.put("/data/who", str(number).encode(), 0o644)
    contents = [running.session.get("/data/who", cap=10) for running in running_instances]
    promise(contents == [b"0", b"1", b"2", b"3"], f"their files collide: {contents}")


def death_is_noticed(bench: Bench) -> None:
    """When its processes are killed, the host knows within a second; and what they had no time to remove goes too."""
    running = bench.running
    pids = running.instance.host_processes()
    try:
        _kill(pids)
        began = time.monotonic()
        try:
            _run_or_wait(running, has_agent=bench.platform.has_agent)
        except SessionError:
            took = time.monotonic() - began
            promise(took < stretched(1), f"it took {took:.1f} s")
        else:
            raise BrokenPromiseError("a killed instance still runs")
    finally:
        bench.close()
    leftovers = named_after(pids, notes())
    promise(not leftovers, f"left on the host: {leftovers}")


def _run_or_wait(running: RunningInstance, *, has_agent: bool) -> None:
    """Run a command, or without an agent wait a little for the session's end. Raises `SessionError`."""
    if has_agent:
        running.session.execute(["true"], time_limit_s=30)
        return
    deadline = until(2)
    while time.monotonic() < deadline:
        if running.session.dead is not None:
            raise running.session.dead
        time.sleep(0.01)


def stop_leaves_nothing(bench: Bench) -> None:
    """After a stop nothing of it is on the host: processes, mounts, links, groups, files, packet filter's rules."""
    _ = bench.running  # so that what a platform makes once for a host is there already
    rules, before = packet_rules(), notes()
    running = bench.start(measured=True)
    label, pids = running.instance.spec.id, running.instance.host_processes()
    labelled = left_on_host(label)
    running.stop()
    promise(labelled, "nothing on the host carried its label")
    leftovers = left_on_host(label)
    leftovers += named_after(pids, notes() - before)
    promise(not leftovers, f"left on the host: {leftovers}")
    new = packet_rules() - rules
    promise(not new, f"left in the packet filter: {sorted(new)}")


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


#: Held to what has no agent too.
WITHOUT_AGENT = frozenset(
    {start_is_seen, manifest_holds, network_both_ways, helpers_are_counted, four_at_once}
    | {stop_leaves_nothing, death_is_noticed}
)
LIVES = frozenset({lives_by_its_commands, restored_remembers})
CHECKS = tuple(
    PromiseCheck(
        run.__name__.replace("_", "-"),
        (run.__doc__ or "").strip(),
        run,
        needs_agent=run not in WITHOUT_AGENT,
        needs_several=run is four_at_once,
        needs_groups=run is memory_holds or run in LIVES,
    )
    for run in (
        start_is_seen, start_is_split, manifest_holds, same_bits, stream_is_clean, codes_signals_stdin,
        time_limits_hold, output_is_capped, thousand_commands, work_is_accounted, helpers_are_counted, cpus_hold,
        memory_holds, network_both_ways, four_at_once, escape, escape_to_others, streams_have_limits,
        floods_are_stopped, stop_leaves_nothing, death_is_noticed, lives_by_its_commands, restored_remembers,
    )
)  # fmt: skip
