"""Regular expressions that users write or get from others, matched by RE2: in time that grows with the text alone.

Python's own ``re`` takes longer than anybody waits for one of seven characters, ``(a+)+$``, and no signal ends it.
"""

from __future__ import annotations

import functools
import re
from typing import cast

import re2

#: Most instructions of RE2 in an expression; a usual one has some dozens. The time to match grows with them too: 1,000
#: take at most 4 s for 1 MB of text.
MAX_SIZE = 1_000


@functools.cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile an expression whose ``^`` and ``$`` match at every line. Raises `ValueError` if RE2 refuses it.

    RE2 has no look-around and no references to groups; its classes of digits, white space and words are ASCII's.
    """
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)  # alone, so that a message shows the words of its writer
        expression = re2.compile(f"(?m){pattern}", options)
    except re2.error as error:
        why = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        # RE2 shows the part that it does not take, which may have ends of lines.
        shown = " ".join(why.split())[:200]
        raise ValueError(f"not a regular expression as RE2 knows them: {shown}") from error
    except UnicodeEncodeError as error:
        raise ValueError("not a regular expression: it has half a character") from error
    if expression.programsize > MAX_SIZE:
        raise ValueError("too large a regular expression: write shorter repetitions and fewer alternatives")
    return cast("re.Pattern[str]", expression)  # it has the methods of Python's own
