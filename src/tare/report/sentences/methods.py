"""The methods paragraph of a paper, of a campaign's own facts: what was run, where, in which order, how judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tare.model import Design
from tare.report.model import Report
from tare.report.sentences.numbers import number_of, span

_DESIGNS: Mapping[Design, str] = {
    Design.BLOCKS: "each block started every platform afresh, in an order drawn anew from the seed {seed}",
    Design.DUET: "in each block sliced work of a platform and of the baseline ran at once on two CPUs, in orders "
    "drawn from the seed {seed}",
    Design.SEQUENTIAL: "one platform ran after the other with all of its repetitions (seed {seed})",
}


def methods(report: Report) -> Iterator[str]:
    """The paragraph's sentences, as plain text."""
    others = [platform.name for platform in report.platforms if platform.name != report.baseline]
    day = datetime.fromtimestamp(report.created, UTC).strftime("%d %B %Y").lstrip("0")
    yield (
        f"We measured {_listed(others)} against {report.baseline} with tare {report.tare_version} on {day} "
        f"(campaign {report.id})."
    )
    yield f"The host was {_host(report.host)}."
    versions = [f"{facts.name} {facts.version}" for facts in report.platforms if facts.version and facts.name in others]
    if versions:
        yield f"Versions: {_listed(versions)}."
    yield (
        f"Every instance had the same root filesystem{_suite(report.image)}, the host's CPUs {_cpus(report.resources)} "
        f"and a memory limit of {_mib(report.resources.get('memory_bytes'))}."
    )
    for platform in report.platforms:
        if platform.not_honoured:
            yield f"Not so of {platform.name}: {_listed(platform.not_honoured)}."
    workloads = list(dict.fromkeys(result.workload for result in report.results))
    if workloads:
        yield f"Workloads were {_listed(workloads)}."
    if programs := list(_programs(workloads, report.image)):
        yield f"The image had {_listed(programs)}."
    how = _DESIGNS[report.design].format(seed=report.seed)
    yield f"The campaign has {number_of(report.blocks_done, 'block')} in {span(report.active_s)} of work: {how}."
    if report.design is Design.SEQUENTIAL:
        yield "Overheads are ratios of two samples side by side, of logarithms, with 95 % intervals by Welch."
    else:
        yield (
            f"A block is the unit of inference: overheads are means over blocks of the logarithm of the ratio to "
            f"{report.baseline} in the same block, with 95 % intervals."
        )
    yield from _judged(report)


def _judged(report: Report) -> Iterator[str]:
    margins = sorted({result.margin_percent for result in report.results})
    if margins:
        shown = _listed([f"{margin:g} %" for margin in margins])
        yield f"Margins of equivalence were set before the data, by workload: {shown}."
    if report.multiplicity is not None and report.multiplicity.n_rows:
        yield f"Verdicts on {report.multiplicity.n_rows} figures were corrected together by Holm's method."
    marked = report.contaminated
    if marked.n_trials:
        yield (
            f"Of {marked.n_all_trials:,} trials, {marked.n_trials:,} were disturbed by the host; "
            "they are marked and kept."
        )


def _host(host: Mapping[str, Any]) -> str:
    cpu = host.get("cpu")
    cpu = cpu if isinstance(cpu, dict) else {}
    parts = [str(cpu.get("model") or "a machine of unknown processor")]
    if cpu.get("cores"):
        parts.append(f"{cpu['cores']} cores")
    if host.get("memory_bytes"):
        parts.append(f"{_mib(host['memory_bytes'])} of memory")
    if host.get("virtualised"):
        parts.append(f"itself virtualised by {host['virtualised']}")
    kernel = f"Linux {host.get('kernel', 'of unknown version')}"
    distribution = f", {host['distribution']}" if host.get("distribution") else ""
    return f"{', '.join(parts)}, with {kernel}{distribution}"


def _programs(workloads: Sequence[str], image: Mapping[str, Any]) -> Iterator[str]:
    """The packages with the programs that workloads are named for, with their upstream versions."""
    packages = image.get("packages")
    versions = packages if isinstance(packages, dict) else {}
    for program in dict.fromkeys(name.partition("-")[0] for name in workloads):
        for package in (program, f"{program}-server", f"{program}-light"):
            if version := versions.get(package):
                yield f"{package} {_upstream(str(version))}"
                break


def _upstream(version: str) -> str:
    """A Debian version without its epoch and revision."""
    without_epoch = version.rpartition(":")[2]
    return without_epoch.rpartition("-")[0] or without_epoch


def _suite(image: Mapping[str, Any]) -> str:
    return f" (Debian {image['suite']})" if image.get("suite") else ""


def _cpus(resources: Mapping[str, Any]) -> str:
    cpus = resources.get("cpus")
    return _listed([str(cpu) for cpu in cpus]) if isinstance(cpus, list) and cpus else "as they were"


def _mib(number: object) -> str:
    return f"{number / (1 << 20):,.0f} MiB" if isinstance(number, int | float) else "unknown size"


def _listed(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names) or "nothing else"
    return f"{', '.join(names[:-1])} and {names[-1]}"
