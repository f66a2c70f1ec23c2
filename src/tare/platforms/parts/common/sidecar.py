"""A program that runs beside one machine, for it alone: what shares a folder with it, or is its network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Arguments: descriptors that are the machine's alone, and the helper's alone; how many words the helper has; its words
#: and the machine's. What one keeps open of the other's would hide the other's end from it.
_BOTH = """\
machines=$1 helpers=$2 count=$3; shift 3
( for each in $machines; do exec {each}>&-; done; exec "${@:1:count}" ) &
shift "$count"
for each in $helpers; do exec {each}>&-; done
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class Helper:
    """A process beside a machine: its command line, its end of what connects them, and the machine's if it has one."""

    argv: Sequence[str]
    own: int
    machines: int | None = None

    def descriptors(self) -> list[int]:
        """Return the file descriptors that the helper and the machine inherit from the process that starts them."""
        return [self.own, *([] if self.machines is None else [self.machines])]


def with_helper(helper: Helper, machine: Sequence[str]) -> list[str]:
    """Return the command that starts the helper and becomes the machine, as a user's script does."""
    machines = "" if helper.machines is None else str(helper.machines)
    return ["bash", "-c", _BOTH, "bash", machines, str(helper.own), str(len(helper.argv)), *helper.argv, *machine]
