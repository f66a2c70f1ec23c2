"""CRIU, by which OCI runtimes write what a container is to the disk: whether it works here, in its own words."""

from __future__ import annotations

import functools
import re

from tare.host import distribution, processes

LIMIT_S = 20.0


@functools.cache
def why_not() -> str:
    """Return why it does not work on this host; "" where it does."""
    program = processes.find("criu")
    if program is None:
        return f"CRIU is not installed ({distribution.install('criu')})"
    done = processes.run([program, "check"], time_limit_s=LIMIT_S)
    return "" if done.code == 0 else f"CRIU does not work here: {first_error(done.stderr.decode(errors='replace'))}"


def first_error(printed: str) -> str:
    """Return the first error in what ``criu check`` prints, without its place in CRIU's source."""
    errors = re.findall(r"^Error \([^)]*\): (.+)$", printed, re.MULTILINE)
    return str(errors[0]) if errors else (printed.strip().splitlines() or ["it says nothing"])[-1]
