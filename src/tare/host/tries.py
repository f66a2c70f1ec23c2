"""What a try showed, kept for other commands: each would wait for it, or keep processors busy with it, again."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from tare.host import state
from tare.host.kernel.owner import boot_id

#: How long it is believed that something does not run here, in seconds.
DOUBTED_S = 3600.0

Answer = TypeVar("Answer")

#: By name of what is tried.
_locks: dict[str, threading.Lock] = {}


class Try(BaseModel, Generic[Answer]):
    """The result of one try, when it was made (UNIX seconds), and what the result depends on."""

    key: list[str | int]
    answer: Answer
    tried: float


def remembered(
    name: str,
    kind: type[Try[Answer]],
    of: Sequence[str | int],
    attempt: Callable[[], Answer],
    worth_s: Callable[[Answer], float],
) -> tuple[Answer, float | None]:
    """The attempt's answer; or an earlier one's, and when that was, in UNIX seconds.

    An answer is remembered for ``worth_s`` seconds of it, until the host is rebooted, or ``of`` changes: what else the
    answer depends on, such as a program's time.
    """
    file = state.tries() / name
    key = [boot_id(), *of]
    with _locks.setdefault(name, threading.Lock()):  # platforms that are detected at once ask at once: one tries
        now = time.time()
        last = _read(file, kind)
        if last is not None and last.key == key and now - last.tried <= worth_s(last.answer):
            return last.answer, last.tried
        answer = attempt()
        file.write_text(kind(key=key, answer=answer, tried=now).model_dump_json())
    return answer, None


def why_not(name: str, of: Sequence[str | int], attempt: Callable[[], str], *, keep_good: bool = False) -> str:
    """Why what is called ``name`` does not run here, "" where it does: by the attempt, or by one that is remembered.

    One that failed is remembered for `DOUBTED_S`: the host may have been too busy for it, or a module's setting has
    been changed since. One that went well is with ``keep_good``.
    """
    worth_good_s = math.inf if keep_good else -1.0
    why, tried = remembered(name, Try[str], of, attempt, lambda why: DOUBTED_S if why else worth_good_s)
    if not why or tried is None:
        return why
    at = time.strftime("%H:%M", time.localtime(tried))
    return f"{why} (tried at {at}; for another try: rm {state.tries() / name})"


def _read(file: Path, kind: type[Try[Answer]]) -> Try[Answer] | None:
    """The last try; None, where there was none or its file is broken."""
    try:
        return kind.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None
