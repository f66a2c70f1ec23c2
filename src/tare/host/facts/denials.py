"""What a security module has denied while something was tried: many tools say no more than "Permission denied".

The kernel says it in its log; where an audit daemon runs, that has it in its file instead.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

#: Of the kernel, and of auditd(8).
LOGS = (Path("/dev/kmsg"), Path("/var/log/audit/audit.log"))
#: Of each log at most so much is read; the kernel gives a line a read.
_PIECE, _MAX_BYTES = 1 << 16, 1 << 20
_WORD = r'(?:"([^"]*)"|(\S+))'


def parse(line: str) -> str | None:
    """A denial in words, with what to do; None where the line is none."""
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
    """Yields a function that returns the first denial in the logs since then, as `parse` has it; None: none is seen.

    It may be of another program that ran at the time. Without the right to read the logs there is never one.
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
            except BrokenPipeError:  # lines were overwritten meanwhile: the next read goes on behind them
                continue
            except OSError:  # no more lines
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
