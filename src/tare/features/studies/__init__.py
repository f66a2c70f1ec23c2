"""Published studies: their figures, campaigns that repeat them, their workloads, and scores as they sum up."""

from __future__ import annotations

from tare.extensions import CommandEntry, ReportOption

_COMMANDS = "tare.features.studies.commands"

COMMANDS = (
    CommandEntry(
        "score",
        "Score platforms as the studies sum up.",
        f"{_COMMANDS}.score_command:score",
        panel="Read and decide",
    ),
    CommandEntry(
        "literature",
        "Show the published studies.",
        f"{_COMMANDS}.literature_command:literature",
        panel="Read and decide",
    ),
)

REPORT_OPTIONS = (
    ReportOption(
        "beside",
        "Set the results beside a study's published figures. Default: the profile's study.",
        choices="tare.features.studies.literature:names",
    ),
)
