"""What became of the findings of an audit: closed, open with the evidence, or not tried with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field

#: In the order in which they are printed, which is that of the audit.
FINDINGS = {
    "H1": "a rollback journal beside a campaign's file removes files of the host",
    "H2": "Python files of the current folder are run as root",
    "H3": "a box's file runs commands, reads the host's files or hangs",
    "H4": "guests reach the host's services, its networks and the metadata service",
    "M5": "the client's programs have rights, or a way to the host",
    "M6": "a guest freezes itself and cannot be ended",
    "M7": "idle connections to --metrics end a campaign",
    "M8": "the environment of tare is in guests",
    "M9": "a guest takes the host's process ids",
    "M10": "a guest reaches the hypervisor by AF_VSOCK",
    "M11": "a bundle takes the host's memory, disk and time",
    "M12": "text of a campaign is a command to a CI",
    "L13": "a compose file writes keys and secrets, an application's file runs unasked",
    "L14": "a file's name that is not UTF-8 ends commands by a traceback",
    "L15": "a query without an end takes no signal",
    "L16": "another user reaches a daemon of tare's",
    "L17": "another user reaches an instance's root",
    "L18": "another user's file or link takes an output",
    "L19": "a guest's sparse file stalls the harness",
    "L20": "another user sends a start's mark, holds its port, or is taken for an agent",
    "D": "builds and packages that are not what was locked",
    "F": "a fleet's folder or settings of another user's are obeyed",
}


@dataclass(slots=True)
class Finding:
    """One finding of the audit, and all that was tried of it."""

    name: str
    tried: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)  # of ways that are open
    declared: list[str] = field(default_factory=list)  # open, by what a platform says of itself
    untried: list[str] = field(default_factory=list)

    def attempt(self, where: str, evidence: str) -> None:
        """Note one attempt; ``evidence``: how the attack came through, "" where it did not."""
        self.tried.append(where)
        if evidence:
            self.evidence.append(f"{where}: {evidence}")

    @property
    def state(self) -> str:
        """`open` with evidence; `not tried` where nothing was tried, or where the attack is not known to work.

        `declared`: it came through where a platform says so of itself, in the manifest and on the page, and nowhere
        else.
        """
        if self.evidence:
            return "open"
        if self.declared:
            return "declared"
        return "closed" if self.tried else "not tried"

    def line(self) -> str:
        """All of it in one line."""
        parts = [f"{len(self.tried)} attempts ({', '.join(dict.fromkeys(self.tried))})"] if self.tried else []
        parts += ["; ".join(self.evidence)] if self.evidence else []
        closed = [where for where in dict.fromkeys(self.tried) if where not in self.declared]
        parts += [f"open by design, as declared: {', '.join(self.declared)}"] if self.declared else []
        parts += [f"closed: {', '.join(closed)}"] if self.declared and closed else []
        parts += [f"not tried: {'; '.join(self.untried)}"] if self.untried else []
        return f"{self.state:9}  {self.name:3}  {FINDINGS[self.name]}: {'. '.join(parts)}"


def exit_code(findings: list[Finding]) -> int:
    """1: one is open; 3: one could not be tried; 0: all are closed, or open by design as it is declared."""
    states = {finding.state for finding in findings}
    if "open" in states:
        return 1
    return 3 if "not tried" in states else 0
