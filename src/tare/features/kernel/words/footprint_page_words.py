"""The page's words around footprints and flame graphs; their markup goes in as it is, values are escaped."""

from __future__ import annotations

from markupsafe import Markup

from tare.features.kernel.models.footprint_models import FootprintsReport, LevelReport
from tare.features.kernel.words.footprint_words import densities, files
from tare.footprint_model import IDLE, SAMPLES_A_SECOND
from tare.model import Level

TITLE = "What ran of the host's kernel"
#: In links of the page.
LINK, FLAMES_LINK = "What ran of the kernel", "Flame graphs"
INTRODUCTION = (
    "Each platform was started, and then did the same work; meanwhile it was counted what the host's kernel was asked"
    " for, or ran. A thing (a system call, a function, a line) is in a platform's set if it ran once. More is not worse"
    " by itself: a set says how much of the kernel a tenant's work passes through, not whether a bug is in it."
)
COUNTS = Markup(
    "Different things that ran at least once: each workload by itself, then the union. <b>They share</b>: of two"
    " repeats, what both have of what either has (Jaccard), on average. <b>There are at least</b>: with what no repeat"
    " has seen, from what just one and just two have seen (Chao&nbsp;2, 95&nbsp;% interval); a lower bound."
)
ONLY_IDLE = "Only the idle host was counted."
BY_WORKLOAD = "The start together with this workload alone."
IN_COMMON = "What they have in common"
BY_DIRECTORY = "By directory of the source"
PAPER_DIAGRAMS = (
    "The paper's diagrams of these directories (figures 4, 6, 13 and 18) are pictures; the numbers that its text gives"
    " of them stand beside ours below."
)
FREQUENCIES_TITLE = "What differs most in how often it ran"
#: Things by whether all platforms ran them.
GROUPS = {True: "Run by all, the greatest ratio first", False: "Not run by one at all, the most frequent first"}
PAPER = (
    "Anjali, Caraza-Harter and Swift, 2020: Linux 5.4.13 with 806,318 lines built in, ten minutes a workload. Another"
    " kernel, with other parts built in, has other lines; what can agree is the order and what is shared. Their Venn"
    " diagrams are pictures, whose numbers the text that was read has not: every number that it gives of them in words"
    " is here."
)


def directories(level: LevelReport) -> str:
    """Return what the table of directories has, and where functions are."""
    text = (
        "The first part of every path, the directories that the paper tells apart, and of the others those that differ"
        " most; all are in the JSON. A directory's things are also those of the directories below it."
    )
    if level.level is not Level.FUNCTIONS:
        return text
    return f"{text} Functions are where the list given with --functions says; of the others the file is unknown."


def frequencies(baseline: str) -> Markup:
    """Return how to read the table of hits a second."""
    return Markup(
        "Hits a second while the workload ran; below, the ratio to {0}'s with its 95&nbsp;% interval over repeats. ▲"
        " more often and ▼ less often than on {0}, beyond the interval; ? is not sure, or there are no repeats for an"
        " interval. The first of a list is the more extreme for being the first. Things that no platform hit 100 times"
        " are left out."
    ).format(baseline)


def listed_files(level: LevelReport, *, with_lines: bool) -> str:
    """Which files are listed, and how to have their lines."""
    if with_lines:
        return files(level)
    return f"{files(level)} With --sources and the source tree of the kernel that was counted, the lines are here too."


def source_lines(level: LevelReport, *, cut: bool) -> str:
    """Return what stands beside the lines of a file; ``cut``: it is not whole."""
    without = "" if level.reading_things is None else ", without what readings leave"
    end = " The end of the file is cut off." if cut else ""
    return f"Hits in all that was counted{without}. In brackets: the idle host runs the line as often by itself.{end}"


def attack_profile(report: FootprintsReport) -> str:
    """Return what the profile is, and is not."""
    return (
        "J. Bottomley's idea (2018): what a tenant makes the shared kernel run, each thing by the density of bugs in"
        f" its code, added up. {densities(report)} It is no measure of security: it knows nothing of what a bug is"
        " worth, of the checks before it, nor of code that an attacker would run and these workloads do not."
    )


# --- flame graphs and instructions -------------------------------------------------------------------------

FLAMES_TITLE = "Where the CPUs are: flame graphs"
FLAMES = Markup(
    "While a platform worked, each CPU was looked at {} times a second, and it was noted for which process it ran, and"
    " by which path it had come through the host's kernel. A graph stands on its processes; above each is what it"
    " called. <b>Width is the share of the samples</b>, and so of the time that CPUs worked; sides have no meaning."
    " Time in a process's own code is one frame, <code>[user]</code>; time in the guest of a virtual machine is"
    " <code>[guest]</code>. The same name has the same colour everywhere: functions of modules are green. Click a frame"
    " to widen it, and the row below it to go back."
).format(SAMPLES_A_SECOND)
CLOCK = Markup(
    "The clock is a timer, which waits while interrupts are off: what runs then is found where they come on again"
    " (<code>finish_task_switch</code>, <code>_raw_spin_unlock_irqrestore</code>, <code>do_syscall_64</code>)."
    " <code>[no path]</code>: the kernel could not tell how it had come there. Lost are ticks that did not come: the"
    " hypervisor had taken the CPU away, or interrupts were off for longer."
)
ONLY_ABOVE = Markup(
    "only what is above the frames that match: <code>^ksys_write$</code> gives that call's path on each platform"
)
EVERYBODYS = "Everybody meanwhile: what the kernel does elsewhere on an instance's behalf, and the rest of the host"
OWN_TIME = "functions by their own time"
BY_CODE = "by code: files, and functions() of the kernel"
CACHES = "modelled caches: had, of lines asked for"


def sampled(platform: str) -> str:
    """The name of a platform whose stacks were sampled, or of the idle host."""
    return "idle host" if platform == IDLE else platform
