"""A check of a runtime's program against its name: some distributions and daemons call crun "runc"."""

from __future__ import annotations

from tare.host import distribution, processes
from tare.platforms.base import Availability


def other(program: str, name: str) -> Availability | None:
    """Return why ``program`` is not the real ``name`` (for example crun installed as runc), or None.

    ``program``: a name or path; one that is not on this host is its daemon's affair.
    """
    path = processes.find(program)
    if path is None:
        return None
    shown = (processes.run([path, "--version"], time_limit_s=10).text.splitlines() or [""])[0]
    says, separator, _ = shown.partition(" version ")
    if not separator or says == name:
        return None
    fix = f"take the platform that it is, or {distribution.install(name)} and see that `{program}` is that"
    return Availability(False, reason=f"the program {path} says that it is {says[:40]}, and not {name}", fix=fix)
