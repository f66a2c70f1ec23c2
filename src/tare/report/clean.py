"""Text of a store made safe for a terminal."""

from __future__ import annotations

import re

#: What moves the cursor or clears the screen: a store from elsewhere may hold it in any text.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]|[\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Text of a store without what a terminal would obey."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
