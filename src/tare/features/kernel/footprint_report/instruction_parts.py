"""Builds the report's part on instructions that were counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tare.analysis import instructions
from tare.analysis.instructions import OWN_COMMAND, InstructionAmount
from tare.features.kernel.analysis.footprint_sets import Exposure
from tare.features.kernel.models.footprint_models import (
    AmountReport,
    CacheReport,
    CodeReport,
    CommandReport,
    InstructionsReport,
)
from tare.footprint_model import Footprint, Phase, Scope

#: Number of commands that are named.
TOP = 8
#: Number of files and functions that are named.
TOP_CODE = 24


def instructions_report(exposure: Exposure) -> list[InstructionsReport]:
    """A row per platform for its start, then for each workload."""
    return list(_rows(exposure))


def _rows(exposure: Exposure) -> Iterator[InstructionsReport]:
    phases: list[tuple[Phase, str | None]] = [(Phase.STEADY, name) for name in exposure.workloads]
    for phase, workload in [(Phase.START, None), *phases]:
        for platform in exposure.platforms:
            whole = exposure.parts(platform, Scope.HOST, phase, workload)
            if whole:
                instance = exposure.parts(platform, Scope.INSTANCE, phase, workload)
                yield _row(platform, phase, workload, whole, instance)


def _row(
    platform: str, phase: Phase, workload: str | None, whole: Sequence[Footprint], instance: Sequence[Footprint]
) -> InstructionsReport:
    commands = instructions.shares(whole)
    return InstructionsReport(
        platform=platform,
        phase=phase,
        workload=workload,
        n_repeats=len(whole),
        total=_amount(instructions.work(whole)),
        user=_amount(instructions.beside_tare(whole, "user")),
        kernel=_amount(instructions.beside_tare(whole, "kernel")),
        instance_user=_amount(instructions.part(instance, "user")) if instance else None,
        instance_kernel=_amount(instructions.part(instance, "kernel")) if instance else None,
        outside_guest=_amount(instructions.outside_guest(whole)),
        until_ready=_amount(instructions.until_ready(whole)),
        repeated=_amount(instructions.beside_tare(whole, "repeated")),
        loads=_amount(instructions.beside_tare(whole, "loads")),
        stores=_amount(instructions.beside_tare(whole, "stores")),
        calls=_amount(instructions.beside_tare(whole, "calls")),
        switches=_amount(instructions.part(whole, "switches")),
        faults=_amount(instructions.beside_tare(whole, "faults")),
        interrupts=_amount(instructions.part(whole, "interrupts")),
        unit=_amount(instructions.unit(whole)),
        in_pieces=instructions.in_pieces(whole),
        unit_user=_amount(instructions.per_unit(whole, "user")),
        unit_kernel=_amount(instructions.per_unit(whole, "kernel")),
        commands=[
            CommandReport(command=share.command, instance=share.instance, instructions=_known(share.amount))
            for share in commands
            if share.amount.median > 0 and not (share.command == OWN_COMMAND and not share.instance)
        ][:TOP],
        code=[
            CodeReport(side=part.side, place=part.place, instructions=_known(part.amount))
            for part in instructions.code(whole)[:TOP_CODE]
            if part.amount.median > 0
        ],
        caches=[
            CacheReport(name=cache.name, asked=_known(cache.asked), missed=_known(cache.missed))
            for cache in instructions.caches(whole)
        ],
    )


def _amount(amount: InstructionAmount | None) -> AmountReport | None:
    return None if amount is None else _known(amount)


def _known(amount: InstructionAmount) -> AmountReport:
    return AmountReport(median=amount.median, least=amount.least, most=amount.most)
