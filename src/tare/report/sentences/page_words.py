"""The page's words around a campaign's tables and drawings; their markup goes in as it is, values are escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from tare.report.model import Report, ResultReport
from tare.report.model.fact_models import Contamination
from tare.report.sentences.host import (
    age_note,
    client_text,
    cpus_note,
    cpus_text,
    daemons_note,
    layout_note,
    priorities_note,
    tracking_note,
    versions_text,
)
from tare.report.sentences.numbers import percent, size, some
from tare.report.sentences.signs import noise

MOTTO = "the weight of the empty container"
#: Links to parts of the page.

# --- the answer --------------------------------------------------------------------------------------------

WHICH_FITS = "Which platform fits? It has"
NEEDS = "a daemon that its instances share; root, where a user without rights cannot do what it does"
ISOLATES_NOTHING = "isolates nothing: to compare with"
SORTED_BY = Markup("A click on a column&rsquo;s head sorts by it.")
PLANES = Markup(
    "Lower left is best: little cost, little of the host&rsquo;s kernel in reach. A filled sign is sure, a diamond is"
    " open."
)


def not_told_apart(platforms: Sequence[str]) -> str:
    """The platforms that may be as good as the best."""
    return f"not told apart: {some(platforms, 3)}"


def exposure_unread(platforms: Sequence[str], file: str) -> Markup:
    """Say that no surface was read, and which command reads it."""
    return Markup(
        "What the host&rsquo;s kernel is exposed to was not read: <code>tare surface {} -o {}</code> adds it in some"
        " seconds."
    ).format(" ".join(platforms), file)


# --- headline figures --------------------------------------------------------------------------------------


def metric_title(result: ResultReport) -> str:
    """The title of a row of the first table."""
    return result.metric_title if result.headline else "CPU of the whole platform"


def headline_note(report: Report, prefix: str) -> Markup:
    """Return what the figures of the first table are; ``prefix``: of the campaign's anchors."""
    return Markup(
        "Percentages are overheads against {baseline}: positive is worse, whichever way the metric is better (↑ higher,"
        " ↓ lower); “3.3&nbsp;×” is 3.3 times worse. Short times and memory say first what they add. Below each, its"
        " 95&nbsp;% interval over blocks, or the one that decides, with its level; then the value that it makes of"
        " {baseline}&rsquo;s mean. <b>A/A</b> is {baseline} against itself: the 95&nbsp;% interval of what its two"
        " identical arms differed by. It is not the smallest difference that can be found:"
        ' <a href="#{prefix}-noise">that is greater</a>.'
    ).format(baseline=report.baseline, prefix=prefix)


def dependence(report: Report) -> Markup:
    """A caution on blocks that are not independent; empty without one."""
    if report.dependence is None or not report.dependence.note:
        return Markup()
    return Markup("<b>Take care:</b> {}.").format(report.dependence.note)


# --- noise -------------------------------------------------------------------------------------------------

MEANWHILE = "What the host did meanwhile"
TELEMETRY = Markup(
    "Twice a second, from the host&rsquo;s counters; pauses are left out. A trial above a dashed line is marked as"
    " contaminated. Beneath: when which workload ran."
)


def noise_floor(baseline: str) -> Markup:
    """Return what the A/A intervals are."""
    return Markup(
        "In every block {} ran twice, as two arms that differ in nothing: what they seem to differ by is noise. A"
        " platform&rsquo;s own interval says how well its difference is known. An interval (95&nbsp;%) should hold zero"
        " and stay well inside the margin, which is drawn as a grey bar. The picture ends at ±20&nbsp;%; what is wider"
        " runs out of it. Half of an interval is not the smallest difference that can be found: of differences just so"
        " large, every second campaign misses one. Those that nine of ten find are about 1.6 times as large, and stand"
        " beside each metric below (“finds 0.3&nbsp;% in 9 of 10”)."
    ).format(baseline)


def no_floor(baseline: str) -> str:
    """Return why there is no A/A figure."""
    return f"This campaign has no A/A figure: it has one {baseline} arm, or fewer than two blocks."


def contaminated(marked: Contamination) -> str:
    """Return how many trials are marked, why, and what that means."""
    why = f" ({'; '.join(marked.told)})" if marked.told else ""
    text = (
        f"{marked.n_trials} of {marked.n_all_trials} trials are marked as contaminated{why}. They are kept; where there"
        " are any, a note beside the verdict tells what leaving them out would change."
    )
    if marked.n_ticks:
        return text
    return f"{text} This campaign has no telemetry: only time that the hypervisor below took could be seen."


# --- workloads ---------------------------------------------------------------------------------------------

CROWD = Markup("Means over blocks; the band is their 95&nbsp;% interval.")
EVERY_SAMPLE = "Every sample by start and round"
#: The metrics that are parts of a start, in their order, and what each is.
START_PARTS: Mapping[str, str] = {
    "runtime": "the platform's own work",
    "kernel": "the guest's kernel",
    "userspace": "the guest's userspace before the agent",
    "agent": "the agent",
}


def metric_facts(result: ResultReport) -> str:
    """Unit, direction, margin and noise of a metric."""
    margin = percent(result.margin_percent / 100)
    text = f"{result.unit}, {result.direction} is better, margin {margin}, {noise(result)}"
    floor = result.noise_floor
    if floor is None or floor.detectable_percent is None:
        return text
    return f"{text}, finds {percent(floor.detectable_percent / 100)} in 9 of 10"


def start_note(baseline: str) -> str:
    """Return how to read the drawings of a start."""
    return (
        "Means over blocks, on one axis from zero. Distributions: how many of the starts (up) were done after how long"
        f" (right); {baseline}'s two arms together."
    )


# --- failures, host, files ---------------------------------------------------------------------------------

NO_FAILURE = "No trial failed."
BY_DESIGN = "open to the host by design"
AS_SET_UP = "the platform, as it is set up here"
TUNED_BY = Markup("By <code>tare run --tune</code>, and given back after it.")
NO_FAIRNESS = "The campaign recorded none."
DOWNLOADS: Mapping[str, str] = {
    "samples": "every sample of the trials that ended ok",
    "trials": "every trial, with what the host saw of it",
    "report": "this report as data (docs/report-schema.md)",
}


def title(report: Report, *, timed: bool) -> str:
    """The page's heading; ``timed``: the campaign has trials."""
    return f"What isolation {'costs' if timed else 'exposes'} on {report.host_title()}"


def failures_title(*, timed: bool) -> str:
    """The heading of what failed or was left out."""
    return "Failures" if timed else "What was left out"


def open_doors(doors: Mapping[str, str]) -> str:
    """Return what a platform declares to be open by design, and why."""
    declared = "; ".join(f"{'every door' if door == '*' else door}: {why}" for door, why in doors.items())
    return declared or "nothing is declared"


def versions(report: Report) -> str:
    """The kernel, the version of control groups, and the engines."""
    return versions_text(report.host, report.platforms, report.baseline)


def client(report: Report) -> str:
    """Which machine loaded which; "" for a host that loaded itself."""
    return client_text(report.host_title(), report.client)


def instances(report: Report) -> Markup:
    """Return what every instance had, what ran beside them, and the agent."""
    notes = [
        tracking_note(report.host, report.fairness, report.baseline, report.results),
        cpus_note(report.resources, outside=report.client is not None),
        layout_note(report.host, report.resources),
        daemons_note(report.fairness),
        priorities_note(report.fairness, report.baseline),
        age_note(report.platforms, report.created),
    ]
    had = f"Every instance had {cpus_text(report.resources)}, and {size(report.resources['memory_bytes'])} of memory."
    text = " ".join([had, *(f"{note[0].upper()}{note[1:]}." for note in notes if note)])
    return Markup("{}\nAgent <code>{}</code>.").format(text, report.agent_hash)


NO_CAMPAIGN = Markup("There is no campaign file (<code>*.tare</code>) here.")


def first_files(number: int) -> str:
    """Say that an index lists so many files only, and not all."""
    return f"The first {number} files are listed."
