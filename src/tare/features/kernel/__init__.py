"""The host's kernel as platforms use it: footprints, surfaces, instructions, and the lab in which these are counted."""

from __future__ import annotations

from pathlib import Path

from tare.extensions import CommandEntry, ReportOption

_COMMANDS = "tare.features.kernel.commands"

COMMANDS = (
    CommandEntry(
        "footprint",
        "Count what platforms make the host's kernel do.",
        f"{_COMMANDS}.footprint_command:footprint",
        panel="Measure",
    ),
    CommandEntry(
        "surface",
        "Read what platforms may ask of the host's kernel.",
        f"{_COMMANDS}.surface_command:surface",
        panel="Measure",
    ),
    CommandEntry(
        "lab",
        "A throwaway virtual machine that is a host of its own.",
        f"{_COMMANDS}.lab_command:app",
        panel="Add to tare",
    ),
)

REPORT_OPTIONS = (
    ReportOption(
        "weights",
        "Densities of bugs for the attack profile of footprints: TOML, or CSV with name,density.",
        takes=Path,
        is_input=True,
    ),
    ReportOption(
        "functions",
        "Source files of kernel functions for footprints: CSV with name,file.",
        takes=Path,
        is_input=True,
    ),
    ReportOption(
        "sources",
        "The kernel's source tree: the page shows hits beside the lines of footprints.",
        takes=Path,
    ),
)
