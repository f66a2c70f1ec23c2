"""The words of the page with their meanings; docs/glossary.md has these, in the same words, and the other ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

MEANINGS: Mapping[str, str] = {
    "platform": "a way to isolate a program (an engine, a sandbox, a virtual machine), with its options",
    "baseline": "the platform that others are compared with: native, unless asked otherwise",
    "instance": "one running sandbox of a platform",
    "arm": "one treatment of a block: a platform, or one of the baseline's two replicas, of which #2 is the second",
    "block": "one pass over all arms with fresh instances, in random order: one observation, so that n is blocks",
    "overhead": "what a platform costs against the baseline, in per cent, as a ratio or in units; + is worse",
    "95 % interval": "where the true figure of this host lies, in 95 of 100 such campaigns",
    "margin": "how much is too little to matter, set before the data: equivalence is judged against it",
    "A/A": "the baseline against itself: the noise of this campaign",
    "CPU cost": "CPU time of the whole platform (monitor, sentry, shim, daemon) for one unit of work",
    "contaminated": "of a trial: the host was disturbed meanwhile. It is marked so, and kept",
    "exposed kernel": "the system calls of the host's kernel that a tenant may make",
    "PSS": "memory of processes, with what they share split between them",
}


def meanings(baseline: str) -> Iterator[tuple[str, str]]:
    """Each word with its meaning; ``baseline``: the campaign's."""
    for word, meaning in MEANINGS.items():
        yield word, f"{meaning}; here {baseline}" if word == "baseline" else meaning
