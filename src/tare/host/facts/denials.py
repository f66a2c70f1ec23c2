"""Denials by a security module during an attempt, because many tools only report "Permission denied".

The kernel writes them to its log; if an audit daemon runs, they are in its file instead.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

#: Logs of the kernel, and of auditd(8).
LOGS = (Path("/dev/kmsg"), Path("/var/log/audit/audit.log"))
#: Limits for each log; the kernel returns one line for each read.
_PIECE, _MAX_BYTES = 1 << 16, 1 << 20
_WORD = r'(?:"([^"]*)"|(\S+))'


def parse(line: str) -> str | None:
    """Return a denial in words, with the fix, or None if the line is no denial."""
    if 'apparmor="DENIED"' in line:
        profile, operation = _value(line, "profile") or "unknown", _value(line, "operation") or "an operation"
        if operation == "userns_create":
            remedy = "give it a profile with `userns,`, or sysctl kernel.apparmor_restrict_unprivileged_userns=0"
            return f"AppArmor denies {_value(line, 'comm')} a user namespace without root: {remedy}"
        info, name = _value(line, "info"), _value(line, "name")
        on, why = f" on {name}" if name else "", f" ({info})" if info else ""
        remedy = f"let the profile allow it, or aa-complain {profile} for as long"
        return f"AppArmor's profile {profile} denies {operation}{on}{why}: {remedy}"
    denied = re.search(r"avc:\s+denied\s+\{ ([^}]+) \}", line)
    if denied is None:
        return None
    name = _value(line, "path") or _value(line, "name")
    kind, source, target = (_value(line, word) or "unknown" for word in ("tclass", "scontext", "tcontext"))
    on = f" on {name}" if name else ""
    remedy = "see `ausearch -m avc -ts recent`; a rule by audit2allow, or setenforce 0 for as long"
    return f"SELinux denies {denied[1]} of a {kind}{on} (type {_type(target)}) to type {_type(source)}: {remedy}"


@contextlib.contextmanager
def watched(logs: Sequence[Path] = LOGS) -> Iterator[Callable[[], str | None]]:
    """Yield a function that returns the first denial in the logs since then, as from `parse`, or None.

    It may be a denial of another program at the same time. Without the right to read the logs there is never a denial.
    """
    opened: list[int] = []
    try:
        for log in logs:
            with contextlib.suppress(OSError):
                opened.append(os.open(log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
                os.lseek(opened[-1], 0, os.SEEK_END)
        yield lambda: next(filter(None, map(parse, _lines(opened))), None)
    finally:
        for log_file in opened:
            os.close(log_file)


def _lines(opened: Sequence[int]) -> Iterator[str]:
    for log_file in opened:
        text, size = b"", 0
        while size < _MAX_BYTES:
            try:
                piece = os.read(log_file, _PIECE)
            except BrokenPipeError:  # Lines were overwritten meanwhile; the next read continues behind them.
                continue
            except OSError:  # There are no more lines.
                break
            if not piece:
                break
            text, size = text + piece, size + len(piece)
        yield from text.decode(errors="replace").splitlines()


def _value(line: str, name: str) -> str | None:
    pair = re.search(rf"(?<!\w){name}={_WORD}", line)
    return (pair[1] or pair[2]) if pair else None


def _type(context: str) -> str:
    parts = context.split(":")
    return parts[2] if len(parts) > 2 else context  # user:role:type:level
