"""One trial of a workload that runs as a whole: commands in the instance and at the client."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tare.campaign.execution import caches
from tare.campaign.execution.circumstances import total_ns
from tare.campaign.execution.host_cost import KernelWork
from tare.campaign.execution.slices import spent
from tare.campaign.instances import inside_clock
from tare.campaign.instances.client import OUTPUT_CAP, LoadClient
from tare.campaign.instances.launcher import RunningInstance
from tare.errors import OUTPUTS, Failed, HostError, ParseError, SessionError, TareError, UnsupportedError, attempt
from tare.host import distribution
from tare.host.filesystems import roots, volumes
from tare.model import CLIENT_BUSY, CLIENT_COST, CPU_COST, HOST_COST, NOT_SEEN, PEAK_MEMORY, ClockFacts, Sample
from tare.session import ClockOffset, Execution
from tare.workloads.base import (
    UNSUPPORTED_CODE,
    Command,
    Completed,
    IdleWorkload,
    MemoryUsage,
    MemoryWorkload,
    Outcome,
    Params,
    RunPlan,
    RunWorkload,
    Side,
    Surroundings,
)
from tare.workloads.network import exchange
from tare.workloads.output import shown
from tare.workloads.workload_contract import checked, require_work

#: Beginnings of the agent's own words among a server's, and of its words on a server that only lacked time.
_AGENT_SAYS, _IN_TIME = "tare-agent: ", "not ready within"
#: Longest time until a server that was ended has ended.
END_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Measured:
    """The results of the measured part of a trial. CPU times are None where they could not be read."""

    outcome: Outcome
    samples: tuple[Sample, ...]
    results: tuple[Completed, ...]
    cpu_ns: int | None
    daemon_cpu_ns: int | None
    starting_ns: int | None = 0  # CPU time of the programs' own start, which is in ``cpu_ns``
    client_ns: int | None = None  # CPU time of the client's commands; None where there were none
    loading_ns: int | None = None  # how long the measured commands took, where it matters how busy the client was then
    clock: ClockFacts | None = None  # None: no clock inside timed anything
    #: CPU time of the host beside ``cpu_ns``: of daemons that the platform shares, and of the host's kernel
    beside_ns: int | None = None
    peak_bytes: int | None = None  # the most memory of the whole platform meanwhile; None where it is not known
    unseen: Mapping[str, str] = field(default_factory=dict)  # metric name -> why it has no figure

    @property
    def cpu_cost(self) -> float | None:
        """The whole platform's CPU time for a unit of work, in ns; None where there is no work, or no such time."""
        if self.outcome.work <= 0 or self.cpu_ns is None or self.starting_ns is None:
            return None
        spent_ns = self.cpu_ns - self.starting_ns
        return spent_ns / self.outcome.work if spent_ns > 0 else None

    @property
    def host_cost(self) -> float | None:
        """The same with what the host does beside it: all that it does but the harness's, the client's and others'."""
        cost = self.cpu_cost
        return None if cost is None or self.beside_ns is None else cost + self.beside_ns / self.outcome.work

    @property
    def costs(self) -> tuple[Sample, ...]:
        """Known CPU costs, also of the client (CPU time: ns of a unit of work, % of one CPU), and the peak."""
        client = self.client_ns / self.outcome.work if self.client_ns and self.outcome.work > 0 else None
        busy = 100 * self.client_ns / self.loading_ns if self.client_ns and self.loading_ns else None
        peak = None if self.peak_bytes is None else self.peak_bytes / 2**20
        by_name = {
            CPU_COST: self.cpu_cost,
            HOST_COST: self.host_cost,
            CLIENT_COST: client,
            CLIENT_BUSY: busy,
            PEAK_MEMORY: peak,
        }
        return tuple(Sample(name, cost) for name, cost in by_name.items() if cost is not None)


@dataclass(frozen=True, slots=True)
class RunResults:
    """The results of the runs of one trial, with a run for each round."""

    samples: tuple[Sample, ...]
    outputs: Mapping[str, bytes]
    cpu_ns: int | None  # of all runs; None where it could not be read for one of them
    daemon_cpu_ns: int | None
    clock: ClockFacts | None


def together(runs: Sequence[Measured]) -> RunResults:
    """Join the runs of one trial as its rounds, each with its own CPU cost."""
    samples: list[Sample] = []
    outputs: dict[str, bytes] = {}
    for number, run in enumerate(runs):
        figures = (*run.samples, *run.costs)
        samples += figures if len(runs) == 1 else [dataclasses.replace(figure, round=number) for figure in figures]
        before = f"round {number}: " if len(runs) > 1 else ""
        outputs |= {before + name: printed for name, printed in outputs_of(run.results).items()}
    unseen = {metric: reason for run in runs for metric, reason in run.unseen.items()}
    if unseen:
        outputs[NOT_SEEN] = "\n".join(f"{metric}: {reason}" for metric, reason in unseen.items()).encode()
    cpu_ns, daemon_cpu_ns = [run.cpu_ns for run in runs], [run.daemon_cpu_ns for run in runs]
    clock = inside_clock.most_off([run.clock for run in runs])
    return RunResults(tuple(samples), outputs, total_ns(cpu_ns), total_ns(daemon_cpu_ns), clock)


def surroundings(running: RunningInstance, client: LoadClient | None = None) -> Surroundings:
    """Return the facts of this instance, and of the client that loads it, that a plan may depend on."""
    spec = running.instance.spec
    address = running.instance.address
    return Surroundings(
        memory_bytes=spec.resources.memory_bytes,
        cpu_count=len(spec.resources.cpus),
        disk_free_bytes=volumes.room(spec.space.data, spec.resources.data_bytes),
        address=address.host,
        port=address.port if address.host is not None else None,
        instance_port=address.instance_port,
        listen=address.listen,
        services=address.services,
        ping=None if address.unpinged else address.echo,
        no_ping=address.unpinged or address.no_ping,
        lacks=address.lacks,
        http_path=address.http_path,
        among=address.among,
        application=spec.image.application,
        client_cpus=1 if client is None else client.cpu_count,
    )


def outputs_of(results: Sequence[Completed]) -> dict[str, bytes]:
    """Return the commands' outputs by number and program.

    The name says where one was cut. stderr only if it is not empty.
    """
    printed = {}
    for number, done in enumerate(results):
        cut = f" (cut at {OUTPUT_CAP >> 20} MiB)" if done.truncated else ""
        printed[f"{number} {done.argv[0]}{cut}"] = done.stdout
        if done.stderr:
            printed[f"{number} {done.argv[0]} stderr"] = done.stderr
        if done.exit_code != 0:
            how = f"signal {done.signal}" if done.exit_code is None else str(done.exit_code)
            printed[f"{number} {done.argv[0]} exit code"] = how.encode()
    return printed


#: Runs a prepared workload once; arguments: ``gate`` and ``over`` of `run_trial`.
Run = Callable[..., Measured]


def run_trial(
    workload: RunWorkload,
    params: Params,
    running: RunningInstance,
    client: LoadClient,
    gate: Callable[[], None] | None = None,
    over: Callable[[], None] | None = None,
) -> Measured:
    """Prepare the workload in the instance and run its plan once.

    ``gate`` is called just before the measured commands, which wait until it returns; ``over`` just after them, if
    their exit codes are 0, before their outputs are parsed. Raises what `ready` and its runs raise.
    """
    with ready(workload, params, running, client) as run:
        return run(gate, over)


@contextlib.contextmanager
def ready(workload: RunWorkload, params: Params, running: RunningInstance, client: LoadClient) -> Iterator[Run]:
    """Prepare a workload in an instance; yields a function that runs it once, as often as it is called.

    Both raise `HostError` (the surroundings do not suffice), `UnsupportedError` (the platform cannot do it),
    `ParseError` (a command failed, or its output is not as expected) or `SessionError` (the instance is lost), and
    what the workload raises. Failed clean-ups are appended to ``running.dirty``, whether the runs went well or not.
    """
    with planned(workload, params, workload.plan(params, surroundings(running, client)), running, client) as run:
        yield run


@contextlib.contextmanager
def planned(
    workload: RunWorkload, params: Params, plan: RunPlan, running: RunningInstance, client: LoadClient
) -> Iterator[Run]:
    """As `ready`, by a plan that was made before: yields a function that runs it once. Raises what `ready` raises."""
    _require_tools(workload, plan, running)
    caches.require_direct(plan, running)
    try:
        looked_at = _of_a_full_volume(running)
        looked_at(_all)(plan.prepare, running, client)
        called = _past_the_hosts_filter(plan, running)
        clock = running.session.sync_clock(inside_clock.EXCHANGES) if _timed_inside(workload, plan) else None
        yield looked_at(called(partial(_beside_servers, workload, params, plan, running, client, clock)))
    finally:
        for command in plan.cleanup:
            if command.side is not Side.INSTANCE or not running.session.dead:
                _tidy(running, partial(_all, (command,), running, client))


def _timed_inside(workload: RunWorkload, plan: RunPlan) -> bool:
    """Return True if the figures rest on a clock inside."""
    memory_alone = isinstance(workload, MemoryWorkload)
    return not memory_alone and any(command.side is Side.INSTANCE for command in plan.measures)


@contextlib.contextmanager
def in_service(
    workload: RunWorkload, plan: RunPlan, running: RunningInstance, client: LoadClient
) -> Iterator[Sequence[Execution]]:
    """Prepare an instance by a plan, and have its servers run until the context is left. Nothing is measured in it."""
    _require_tools(workload, plan, running)
    with contextlib.ExitStack() as servers:
        with _of_a_full_volume(running):
            _all(plan.prepare, running, client)
            in_it = servers.enter_context(serving(plan.servers, running))
        yield in_it


@contextlib.contextmanager
def _of_a_full_volume(running: RunningInstance) -> Iterator[None]:
    """Add to an error that the data volume was full: tools often do not say so. Checked before the clean-up."""
    try:
        yield
    except TareError as error:
        if roots.full(running.instance.spec.space.data) is not None:
            error.what = f"its data volume was full: {error.what}"
        raise


@contextlib.contextmanager
def _past_the_hosts_filter(plan: RunPlan, running: RunningInstance) -> Iterator[None]:
    """Add to an error that the host's packet filter refuses the call: the client sees only that no answer comes."""
    try:
        yield
    except ParseError as error:
        called = any(command.side is not Side.INSTANCE for command in plan.measures)
        refusal = attempt(partial(_refusal, running)) if called else None
        if isinstance(refusal, HostError):
            error.what, error.fix = f"{refusal.what}: {error.what}", refusal.fix
        raise


def _refusal(running: RunningInstance) -> HostError | None:
    """Return why no call from the bridge passes the host, tried with a server of the agent's in the instance."""
    address = running.instance.address
    if address.client is not None or address.host in {None, address.listen}:  # it is not behind the host
        return None
    with serving([exchange.server(surroundings(running), "tcp", time_limit_s=60)], running):
        return running.instance.spec.network.refusal(address.host, address.port)


def _tidy(running: RunningInstance, task: Callable[[], object]) -> None:
    """Run a clean-up. Where it fails the trial keeps its result, and the instance is dirty."""
    result = attempt(task)
    if isinstance(result, Failed):
        running.dirty.append(result)


def _require_tools(workload: RunWorkload, plan: RunPlan, running: RunningInstance) -> None:
    """Raise `HostError` when the instance does not run the image, and lacks a program that the plan runs inside."""
    commands = (*plan.prepare, *plan.each, *plan.servers, *plan.measures)
    programs = dict.fromkeys(command.argv[0] for command in commands if command.side is Side.INSTANCE)
    if not programs or running.session.hello.image is not None:
        return
    for program in programs:
        lookup = running.session.execute(["sh", "-c", 'command -v "$0" >/dev/null', program], time_limit_s=30)
        if lookup.code != 0:
            fix = distribution.install(*workload.packages) if workload.packages else None
            raise HostError(f"{program} is not installed there, and what runs is not the image", fix=fix)


def _beside_servers(
    workload: RunWorkload,
    params: Params,
    plan: RunPlan,
    running: RunningInstance,
    client: LoadClient,
    began: ClockOffset | None,
    gate: Callable[[], None] | None = None,
    over: Callable[[], None] | None = None,
) -> Measured:
    _all(plan.each, running, client)
    with serving(plan.servers, running) as servers:
        starting_ns = _starting(plan, running, client)  # before the gate: it is not part of the measurement
        if gate is not None:
            gate()
        measured = _measure(workload, params, plan, running, client, partial(_await_again, plan.servers, servers), over)
        clock = _clock(began, running, measured.results)
        return dataclasses.replace(measured, starting_ns=starting_ns, clock=clock)


def _clock(began: ClockOffset | None, running: RunningInstance, results: Sequence[Completed]) -> ClockFacts | None:
    """Return the clock inside since it was first read; None where it was not."""
    if began is None:
        return None
    return inside_clock.with_commands(
        inside_clock.compared(began, running.session.sync_clock(inside_clock.EXCHANGES)), results
    )


@contextlib.contextmanager
def serving(commands: Sequence[Command], running: RunningInstance) -> Iterator[Sequence[Execution]]:
    """Servers in an instance, one after the other in service; they are ended when the context is left."""
    servers: list[Execution] = []
    try:
        for command in commands:
            servers.append(_start(command, running))
            if command.ready is not None:
                _await(servers[-1], command)
        yield servers
    finally:
        for server in servers:
            if not running.session.dead:
                _tidy(running, partial(_end, server))


def _await_again(commands: Sequence[Command], servers: Sequence[Execution], served: int) -> None:
    """Wait until servers that serve one measured command at a time are in service for the next."""
    for command, server in zip(commands, servers, strict=True):
        if command.one_at_a_time:
            _await(server, command, times=served + 1)


def _await(server: Execution, command: Command, times: int = 1) -> None:
    """Wait until a server is in service. An error says what the server has printed, which is in its outputs too."""
    assert command.ready is not None
    try:
        server.wait_output(command.ready, time_limit_s=command.ready_limit_s, times=times)
    except SessionError as error:
        printed = {f"{command.argv[0]} stdout": server.stdout, f"{command.argv[0]} stderr": server.stderr}
        setattr(error, OUTPUTS, {name: output for name, output in printed.items() if output})
        why, printed_text = _agent_line_and_rest(server)
        if why and "--" in command.argv:
            program = command.argv[command.argv.index("--") + 1]
            error.what = f"{program} is not in service: {why}; it printed {shown(printed_text)}"
        error.fix = (command.ready_fix if not why or why.startswith(_IN_TIME) else "") or error.fix
        raise


def _agent_line_and_rest(server: Execution) -> tuple[str, str]:
    """Return the last line of the agent that watches a server ("": none), and the rest of the output."""
    lines = (server.stdout + server.stderr).decode(errors="replace").splitlines()
    last = next((at for at in reversed(range(len(lines))) if lines[at].startswith(_AGENT_SAYS)), None)
    if last is None:
        return "", "\n".join(lines)
    return lines[last].removeprefix(_AGENT_SAYS), "\n".join([*lines[:last], *lines[last + 1 :]])


def _starting(plan: RunPlan, running: RunningInstance, client: LoadClient) -> int | None:
    """CPU time of the programs' starts alone, with next to no work, in ns; None where it could not be read."""
    began = running.cpu_ns()
    _all(plan.starts, running, client)
    return spent(began, running.cpu_ns()) if plan.starts else 0


def _end(server: Execution) -> None:
    server.kill()
    server.wait(time_limit_s=END_LIMIT_S)


def _measure(
    workload: RunWorkload,
    params: Params,
    plan: RunPlan,
    running: RunningInstance,
    client: LoadClient,
    await_servers: Callable[[int], None],
    over: Callable[[], None] | None,
) -> Measured:
    counts_memory = isinstance(workload, MemoryWorkload)
    peak: int | Failed | None = None
    before = running.measure_memory() if counts_memory else None
    results: list[Completed] = []
    cpu, daemon, clients, kernel = _Meter(), _Meter(), _Meter(), _Meter()
    declared = {metric.name for metric in workload.all_metrics}
    both_sides = CLIENT_COST in declared
    work = KernelWork() if HOST_COST in declared else None
    for command in plan.measures:
        await_servers(len(results))
        undropped = caches.drop(plan, running)
        kernel_began = work.so_far_ns() if work is not None else None
        cpu_began, daemon_began = running.cpu_ns(), running.daemon_cpu_ns()
        client_began = client.cpu_ns() if both_sides else None
        run = partial(_run, command, running, client)
        done, peak = _with_peak(run, running) if workload.counts_peak else (run(), None)
        results.append(done)
        cpu.add(cpu_began, running.cpu_ns())
        daemon.add(daemon_began, running.daemon_cpu_ns())
        clients.add(client_began, client.cpu_ns() if both_sides else None)
        kernel.add(kernel_began, work.so_far_ns() if work is not None else None)
        caches.require_fetched(undropped, plan, running)
    if over is not None and all(done.exit_code == 0 for done in results):
        over()
    after = running.measure_memory() if counts_memory else None
    outcome, samples = _read(workload, params, results, before, after, cpu.spent_ns)
    caches.require_uncached(plan, running, outcome.work)
    return Measured(
        outcome,
        samples,
        tuple(_kept(done, workload.kept_output) for done in results),
        cpu.spent_ns,
        daemon.spent_ns,
        client_ns=clients.spent_ns,
        loading_ns=sum(done.wall_ns for done in results) if CLIENT_BUSY in declared else None,
        beside_ns=None if work is None else _beside_ns(kernel, daemon, running),
        peak_bytes=peak if isinstance(peak, int) else None,
        unseen={**outcome.unseen, **({PEAK_MEMORY: peak.reason} if isinstance(peak, Failed) else {})},
    )


def _beside_ns(kernel: _Meter, daemon: _Meter, running: RunningInstance) -> int | None:
    """CPU time of the host's kernel and, where the platform has any, of its daemons."""
    return total_ns((kernel.spent_ns, daemon.spent_ns if running.instance.daemons else 0))


def _kept(done: Completed, most: int | None) -> Completed:
    """Return the result with the end of its outputs, of so many bytes each; None: with all of them."""
    if most is None:
        return done
    return dataclasses.replace(done, stdout=done.stdout[-most:], stderr=done.stderr[-most:])


def _with_peak(task: Callable[[], Completed], running: RunningInstance) -> tuple[Completed, int | Failed]:
    """Return a task's result, and the instance's peak of memory in bytes, or why that is unknown."""
    with contextlib.ExitStack() as watching:
        read = attempt(lambda: watching.enter_context(running.peak_watched()))
        done = task()
        return done, read if isinstance(read, Failed) else attempt(read)


@dataclass(slots=True)
class _Meter:
    """CPU time of several commands, without what ran between them; None once a reading has failed."""

    spent_ns: int | None = 0

    def add(self, before: int | None, after: int | None) -> None:
        used_ns = spent(before, after)
        self.spent_ns = None if used_ns is None or self.spent_ns is None else self.spent_ns + used_ns


def _read(
    workload: RunWorkload,
    params: Params,
    results: Sequence[Completed],
    before: MemoryUsage | None,
    after: MemoryUsage | None,
    cpu_ns: int | None,
) -> tuple[Outcome, tuple[Sample, ...]]:
    """Parse the results and check them against the workload's contract; an error carries the commands' outputs."""
    try:
        outcome = workload.parse(params, results)
        if isinstance(workload, MemoryWorkload) and before and after:
            outcome = dataclasses.replace(
                outcome, samples={**outcome.samples, **workload.measure_memory(before, after)}
            )
        if isinstance(workload, IdleWorkload):
            if cpu_ns is None:
                raise UnsupportedError("its CPU time cannot be read: it is another machine's, or in no control group")
            idle = workload.measure_idle(cpu_ns, sum(done.wall_ns for done in results))
            outcome = dataclasses.replace(outcome, samples={**outcome.samples, **idle})
        require_work(workload, outcome)
        return outcome, checked(workload, outcome.as_samples())
    except Exception as error:
        setattr(error, OUTPUTS, outputs_of(results))
        raise


def _run(command: Command, running: RunningInstance, client: LoadClient) -> Completed:
    if command.side is Side.INSTANCE:
        return _inside(command, running)
    peer = client.towards(running.instance.address)
    return _at_client(command, peer if command.side is Side.CLIENT else peer.in_own_image())


def _inside(command: Command, running: RunningInstance) -> Completed:
    began_ns = time.monotonic_ns()
    done = running.session.execute(
        list(command.argv),
        env=dict(command.env),
        cwd=command.cwd,
        stdin=command.stdin,
        time_limit_s=command.time_limit_s,
        output_cap=OUTPUT_CAP,
    )
    return Completed(
        command.argv,
        done.code,
        done.stdout,
        done.stderr,
        done.wall_ns,
        timed_out=done.timed_out,
        signal=done.signal,
        truncated=done.truncated,
        outside_ns=time.monotonic_ns() - began_ns,
        max_rss_bytes=done.max_rss_bytes,
    )


def _at_client(command: Command, client: LoadClient) -> Completed:
    began = time.monotonic_ns()
    done = client.run(
        command.argv, cwd=command.cwd, env=command.env, stdin=command.stdin, time_limit_s=command.time_limit_s
    )
    wall_ns = time.monotonic_ns() - began
    code, signal = (done.code, None) if done.code >= 0 else (None, -done.code)
    return Completed(
        command.argv,
        code,
        done.stdout,
        done.stderr,
        wall_ns,
        timed_out=done.timed_out,
        signal=signal,
        truncated=done.truncated,
    )


def _start(command: Command, running: RunningInstance) -> Execution:
    return running.session.start(
        list(command.argv), env=dict(command.env), cwd=command.cwd, time_limit_s=command.time_limit_s
    )


def _all(commands: Sequence[Command], running: RunningInstance, client: LoadClient) -> None:
    for command in commands:
        done = _run(command, running, client)
        if done.exit_code != 0 and not command.may_fail:
            lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
            if done.exit_code == UNSUPPORTED_CODE and lines:
                raise UnsupportedError(lines[-1])
            how = "took too long" if done.timed_out else f"ended with {done.exit_code}"
            raise ParseError(f"`{_named(command)}` {how}: {lines[-1] if lines else 'no output'}")


def _named(command: Command) -> str:
    """Return a command in an error's line: of one with a script the name that the script runs by."""
    words = ["..." if "\n" in word else word for word in command.argv]
    return " ".join(words)
