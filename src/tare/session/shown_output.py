"""Display of a sandbox's output without the control characters that a terminal would act on."""

from __future__ import annotations

#: Limit of characters of foreign text in one message.
SHOWN_LIMIT = 200


def shown(foreign: bytes | str, limit: int = SHOWN_LIMIT) -> str:
    """Return the end of ``foreign`` in quotes, at most ``limit`` characters, with all but printable ASCII escaped."""
    raw = foreign if isinstance(foreign, bytes) else foreign.encode("utf-8", "backslashreplace")
    text = raw[-limit:].decode("ascii", "backslashreplace")
    safe = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    cut = "..." if len(raw) > limit or len(safe) > limit else ""
    return f'"{cut}{safe[-limit:]}"'
