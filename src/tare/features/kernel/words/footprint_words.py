"""Texts of the report on footprints, the same in the terminal and on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.features.kernel.analysis.footprint_sets import View
from tare.features.kernel.models.footprint_models import (
    AmountReport,
    FootprintsReport,
    FrequencyReport,
    InstructionsReport,
    LevelReport,
    Phases,
    SetReport,
    SharesReport,
    StacksReport,
)
from tare.footprint_model import SAMPLES_A_SECOND, Phase
from tare.model import Level
from tare.report.sentences.numbers import EMPTY, scaled

LEVELS: Mapping[Level, str] = {
    Level.SYSCALLS: "System calls",
    Level.FUNCTIONS: "Kernel functions",
    Level.LINES: "Kernel lines",
    Level.STACKS: "Stacks",
    Level.INSTRUCTIONS: "Instructions",
}
PHASES: Mapping[Phases, str] = {Phase.START: "start", Phase.STEADY: "work", "both": "both"}
VIEWS: Mapping[View, str] = {View.HOST: "whole host", View.BEYOND_IDLE: "beyond idle", View.INSTANCE: "instance"}
MEANINGS: Mapping[View, str] = {
    View.HOST: "everything that ran on the host meanwhile, the background too",
    View.BEYOND_IDLE: "of that, what ran more often a second than on the idle host (Anjali 2020, section 3.3)",
    View.INSTANCE: "what ran for processes in the instance's control groups; work that the kernel does for them"
    " elsewhere (interrupts, kernel threads) is not in it",
}

#: What instructions are, and what they are not.
INSTRUCTIONS = (
    "Work, and not time: what a whole machine under QEMU's emulator executed, to the instruction, without tare's own"
    " commands. The same machine with the same seed executes the same, whatever else its host does; the range is over"
    " seeds. It cannot tell how long an instruction takes (caches, memory, mispredicted branches), what leaving a guest"
    " costs, or what runs at the same time on several processors; and the processor's defences are switched off there."
)


#: What the table of instructions shows.
INSTRUCTIONS_TABLE = (
    "Instance's: of tasks in its control groups; the others' are daemons and kernel threads. Strings: iterations of"
    " repeated string instructions, apart. Calls: system calls. Below a row: who executed them, and which code it was:"
    " files, and functions() of the kernel."
)
UNITS = "Instructions for one unit of work"
#: The page's download of stacks.
FOLDED = "stacks with their samples, folded: platform;workload;process;functions"
#: What the table of sampled stacks shows.
STACKS = (
    f"Samples of the processes in the instance's control groups, {SAMPLES_A_SECOND} a second and CPU; percentages"
    " are of the samples. Lost: ticks of the clock that did not come, everybody's. Flame graphs: tare report FILE"
    " --html; folded stacks: tare export FILE --table stacks --format folded."
)


def hits_table(level: Level) -> str:
    """The name of the page's download that has the hits of a level."""
    return f"{LEVELS[level].lower()}: hits a second by platform, scope and phase"


def on_host_alone(row: AmountReport) -> str:
    """Return how much of a machine in a machine the outer one executed."""
    return f"on the host alone: {amount(row)}, the rest in its guest"


def count(value: float | None) -> str:
    """A whole number with thousands separators."""
    return EMPTY if value is None else f"{value:,.0f}"


def share(value: float | None) -> str:
    """Per cent, with two decimals as table 2 of the paper."""
    return "" if value is None else f"{value:.2f} %"


def rate(value: float | None) -> str:
    """Hits a second in three digits."""
    if value is None:
        return EMPTY
    return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.3g}"


def ratio(row: FrequencyReport, platform: str, baseline: str) -> str:
    """A platform's rate over the baseline's, marked as higher, lower or not sure; "" where neither ran it."""
    ratio_report = row.ratios.get(platform)
    if ratio_report is None:
        return ""
    if not row.rates.get(platform) and not row.rates.get(baseline):
        return ""
    mark = ("▲" if ratio_report.point > 1 else "▼") if ratio_report.sure else "?"
    if row.rates.get(platform) == 0:
        return f"{mark} never here"
    if row.rates.get(baseline) == 0:
        return f"{mark} never on {baseline}"
    return f"{mark} × {_three(ratio_report.point)}"


def ratio_span(row: FrequencyReport, platform: str, baseline: str) -> str:
    """The interval of that ratio; "" where there is none, or one of the two never ran it."""
    ratio_report = row.ratios.get(platform)
    if ratio_report is None or ratio_report.low is None or ratio_report.high is None:
        return ""
    if not row.rates.get(platform) or not row.rates.get(baseline):
        return ""
    return f"{_three(ratio_report.low)} … {_three(ratio_report.high)}"


def score(value: float) -> str:
    """A score of an attack profile: a count, or a sum in four digits."""
    return f"{value:,.0f}" if value >= 1_000 or value == round(value) else f"{value:.4g}"


def times(value: float | None) -> str:
    """A factor of the baseline's figure, such as "× 1.25"."""
    return EMPTY if value is None else f"× {value:.2f}"


def caches(row: InstructionsReport) -> str:
    """Return what share of the lines that each modelled cache was asked for it had."""
    used = [(cache.name, cache.asked.median, cache.missed.median) for cache in row.caches if cache.asked.median > 0]
    return ", ".join(f"{name} {100 * (1 - missed / asked):.1f} % of {scaled(asked)}" for name, asked, missed in used)


def stability(row: SetReport) -> str:
    """The mean Jaccard index of repeats, in per cent."""
    if row.jaccard_mean is None or row.jaccard_least is None:
        return EMPTY
    return f"{100 * row.jaccard_mean:.1f} %"


def unseen(row: SetReport) -> str:
    """The estimate (Chao 2) of how many there are at least, with its interval where it has one."""
    if row.estimate is None or row.estimate_low is None or row.estimate_high is None:
        return EMPTY
    if round(row.estimate_high) == round(row.estimate_low):
        return f"≥ {count(row.estimate)}"
    return f"≥ {count(row.estimate)} ({count(row.estimate_low)} … {count(row.estimate_high)})"


def facts(level: LevelReport) -> str:
    """Facts on a level: how many the kernel has, the idle host, an empty reading, and the view that is shown."""
    sentences = []
    if level.known is not None:
        sentences.append(f"This kernel has {count(level.known)} of them.")
    if level.idle_seconds is not None:
        sentences.append(
            f"The idle host was watched for {count(level.idle_seconds)} s and ran {count(level.idle_things)}."
        )
    if level.reading_things is not None:
        sentences.append(
            f"What a reading leaves by itself, {count(level.reading_things)} of them, is taken off by hits."
        )
    if level.view is not None:
        sentences.append(f"Where one set of a platform is shown, it is “{VIEWS[level.view]}”.")
    return " ".join(sentences)


def files(level: LevelReport) -> str:
    """A sentence on which files are listed."""
    shown = len(level.files)
    if shown == level.n_files:
        return "The files in which platforms differ."
    which = f"{count(shown)} of the {count(level.n_files)} files in which platforms differ"
    return f"{which}: those with most lines that one alone runs."


def densities(report: FootprintsReport) -> str:
    """A sentence on the weights of the attack profile."""
    if report.uniform:
        return "No densities were given (--weights): each thing counts as one, and the profile is the size of the set."
    return f"Densities: {report.weights}."


def samples(row: StacksReport) -> str:
    """Return how many samples there are, and how many were lost."""
    text = f"{count(row.samples)} samples in {row.seconds:,.1f} s"
    if row.n_repeats > 1:
        text += f" of {row.n_repeats} repeats"
    return f"{text}; {count(row.lost)} of everybody's were lost" if row.lost else f"{text}; none were lost"


def part(value: float | None) -> str:
    """A share of samples in per cent, with one decimal."""
    return EMPTY if value is None else f"{value:.1f} %"


def shares(rows: Sequence[SharesReport], most: int) -> str:
    """The first ``most`` shares by name, or a dash without any."""
    return ", ".join(f"{row.name} {row.percent:.1f} %" for row in rows[:most]) or EMPTY


def notes(level: LevelReport) -> list[str]:
    """Cautions on a level's figures: what was not counted, lost, or could not be estimated."""
    texts = []
    best = [row for row in level.sets if row.view == level.view and row.workload is None]
    whole = [row for row in best if row.phase == level.phases[-1]] if level.phases else []
    texts += [
        f"{row.platform} was not counted in {', '.join(row.lacking)}: its union is of less"
        for row in whole
        if row.lacking
    ]
    missing = [name for name in level.platforms if name not in {row.platform for row in whole}]
    if missing and level.view is not None:
        texts.append(f"No figure “{VIEWS[level.view]}” of {', '.join(missing)}: it was not counted there")
    lost = {row.platform: row.lost for row in whole if row.lost}
    texts += [f"{name}: {count(number)} events were lost and are in no figure" for name, number in lost.items()]
    if level.idle_seconds is None:
        texts.append("The idle host was not counted: what it does by itself cannot be taken off")
    if level.level is Level.LINES and level.reading_things is None:
        texts.append("No empty reading was counted: what readings leave by themselves is in all figures")
    if any(row.why_no_estimate for row in whole):
        reasons = sorted({row.why_no_estimate for row in whole if row.why_no_estimate})
        texts.append(f"No estimate of what was not seen: {'; '.join(reasons)}")
    return texts


def _three(value: float) -> str:
    if 0 < value < 0.01:
        return f"1/{_three(1 / value)}"
    if value >= 1e6:
        return f"{value:.0e}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def amount(value: AmountReport | None) -> str:
    """A number with its range over repeats in per cent of it, where there is one."""
    if value is None:
        return EMPTY
    half = 50 * (value.most - value.least) / value.median if value.median else 0.0
    return scaled(value.median) if half == 0 else f"{scaled(value.median)} ±{half:.2g} %"


def legend(report: FootprintsReport) -> str:
    """Return what the table in a terminal shows."""
    views = list(dict.fromkeys(view for level in report.levels for view in level.views))
    meanings = "; ".join(f"{VIEWS[view]}: {MEANINGS[view]}" for view in views)
    return (
        f"Different things that ran at least once, all repeats together, as the union over workloads. {meanings}."
        " Repeats share: of two repeats, what both have of what either has. There are at least: what no repeat saw"
        " included (Chao 2, 95 % interval). What they share, where, and what differs most: --html or --json."
    )


def regions(n_platforms: int, hidden: int, hidden_things: int, *, circles: bool) -> str:
    """Return how to read the figures of regions, and what they leave out."""
    sentences = ["A bar is a region: what exactly the platforms with a filled dot below it ran, and no other."]
    if hidden:
        sentences.append(f"{hidden:,} smaller regions with {hidden_things:,} things in all are not drawn.")
    if circles:
        caveat = "; that of what all three share is not always" if n_platforms > 2 else ""
        sentences.append(f"In the circles, areas of sets and of what two of them share are in proportion{caveat}.")
    return " ".join(sentences)


def stack_names(entered: str, own: str) -> str:
    """Return what instances were in the kernel for, and in which functions."""
    return f"entered the kernel for {entered}; its functions by own time: {own}"


def taken_off(number: int) -> str:
    """Return how many things a reading itself leaves."""
    return f"taken off by hits: what a reading leaves by itself, {count(number)} of them"


def not_in_tree(file: str) -> str:
    """Return why a source file is not shown."""
    return f"{file} is not in the source tree that was given"


def other_source(file: str) -> str:
    """Return why a source file that is there is not shown."""
    return f"{file} has fewer lines than were counted: another version's source"
