"""One trial of a workload alone and beside a noisy neighbour (`tare.workloads.apart.BesideWorkload`)."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tare.campaign.execution.density import ApartResult
from tare.campaign.execution.runs import Measured, Run, outputs_of, ready, serving, surroundings
from tare.campaign.execution.slices import spent
from tare.campaign.instances import inside_clock
from tare.campaign.instances.client import LoadClient
from tare.campaign.instances.launcher import RunningInstance
from tare.campaign.instances.pool import InstancePool
from tare.errors import ParseError
from tare.model import ClockFacts, Sample
from tare.platforms.base import AGENT
from tare.workloads.apart import BesideWorkload
from tare.workloads.base import Command, Params, Side

#: An idle neighbour takes less than this share of the CPU time that a noisy one takes.
IDLE_SHARE = 0.5
_LOOK_S = 30.0


@dataclass(frozen=True, slots=True)
class _Run:
    measured: Measured
    neighbour: float | None  # CPU time of the neighbour's instance, of one CPU's; None where it could not be read


def with_neighbour(workload: BesideWorkload, params: Params, pool: InstancePool, client: LoadClient) -> ApartResult:
    """Run the workload in the first of two instances, the second in turn idle and noisy."""
    first, second = pool.grow(2)
    noise = workload.noise(surroundings(second, client))
    samples: list[Sample] = []
    outputs: dict[str, bytes] = {}
    clock: ClockFacts | None = None
    with ready(workload.inner, workload.inner_params(params), first, client) as run:
        for number in range(int(params["pairs"])):
            runs: dict[bool, _Run] = {}
            for noisy in (False, True) if number % 2 == 0 else (True, False):
                runs[noisy] = _run(run, noise if noisy else (), second, client)
                clock = inside_clock.most_off((clock, runs[noisy].measured.clock))
                name = f"{number} {'beside' if noisy else 'alone'}"
                printed = outputs_of(runs[noisy].measured.results)
                outputs |= {f"{name} {output}": text for output, text in printed.items()}
                outputs[f"{name} neighbour"] = f"{_shown(runs[noisy])}\n".encode()
            _require_idle(runs[False], runs[True])
            figures = workload.figures(runs[False].measured.outcome, runs[True].measured.outcome)
            samples += [Sample(metric, value, number) for metric, value in figures.items()]
    return ApartResult(tuple(samples), outputs, clock=clock)


def _run(run: Run, noise: Sequence[Command], second: RunningInstance, client: LoadClient) -> _Run:
    with _noisy(noise, second, client):
        began_ns, cpu_ns = time.monotonic_ns(), second.cpu_ns()
        measured = run()
        used_ns = spent(cpu_ns, second.cpu_ns())
        return _Run(measured, None if used_ns is None else used_ns / (time.monotonic_ns() - began_ns))


def _shown(run: _Run) -> str:
    return "its CPU time is not read" if run.neighbour is None else f"{100 * run.neighbour:.1f} % of one CPU"


def _require_idle(alone: _Run, noisy: _Run) -> None:
    """Raise `ParseError` where the neighbour was not busier when it was to be noisy: nothing was compared then."""
    if alone.neighbour is None or noisy.neighbour is None:
        return
    if alone.neighbour > IDLE_SHARE * noisy.neighbour:
        raise ParseError(f"the neighbour was to be idle and took {_shown(alone)}, and {_shown(noisy)} when noisy")


@contextlib.contextmanager
def _noisy(noise: Sequence[Command], second: RunningInstance, client: LoadClient) -> Iterator[None]:
    """Provide the neighbour at work. Raises `ParseError` where it was not any more when the context was left."""
    inside = [command for command in noise if command.side is Side.INSTANCE]
    peer = client.towards(second.instance.address)
    with serving(inside, second) as servers, contextlib.ExitStack() as outside:
        outer = [command for command in noise if command.side is not Side.INSTANCE]
        calling = [outside.enter_context(peer.serving(command.argv)) for command in outer]
        yield
        if noise:
            second.session.execute([AGENT, "nothing"], time_limit_s=_LOOK_S)  # what ended meanwhile is known then
        ended = [shlex.join(command.argv) for command, server in zip(inside, servers, strict=True) if server.over]
        ended += [
            shlex.join(command.argv)
            for command, process in zip(outer, calling, strict=True)
            if process.poll() is not None
        ]
        if ended:
            raise ParseError(f"the neighbour ended before the run beside it: {ended[0]}")
