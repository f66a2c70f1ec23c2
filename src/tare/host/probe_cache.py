"""Results of tries, kept for other commands, which would otherwise wait or keep processors busy again."""

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

#: How long a negative result is believed, in seconds.
DOUBTED_S = 3600.0

Answer = TypeVar("Answer")

#: By name of the try.
_locks: dict[str, threading.Lock] = {}


class Try(BaseModel, Generic[Answer]):
    """The result of one try, its time (UNIX seconds), and the facts that it depends on."""

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
    """Return the attempt's answer; or an earlier answer, with its time in UNIX seconds.

    An answer is remembered for ``worth_s`` seconds, until the host is rebooted, or until ``of`` changes: the other
    facts that it depends on, such as a program's time.
    """
    file = state.tries() / name
    key = [boot_id(), *of]
    # Platforms that are detected at the same time ask at the same time, so only the first tries.
    with _locks.setdefault(name, threading.Lock()):
        now = time.time()
        last = _read(file, kind)
        if last is not None and last.key == key and now - last.tried <= worth_s(last.answer):
            return last.answer, last.tried
        answer = attempt()
        file.write_text(kind(key=key, answer=answer, tried=now).model_dump_json())
    return answer, None


def why_not(name: str, of: Sequence[str | int], attempt: Callable[[], str], *, keep_good: bool = False) -> str:
    """Return why something does not run here ("": it runs), from the attempt or a remembered one.

    A failure is remembered for `DOUBTED_S`: the host may have been too busy, or a module's setting may have changed
    since. A success is remembered with ``keep_good``.
    """
    worth_good_s = math.inf if keep_good else -1.0
    why, tried = remembered(name, Try[str], of, attempt, lambda why: DOUBTED_S if why else worth_good_s)
    if not why or tried is None:
        return why
    at = time.strftime("%H:%M", time.localtime(tried))
    return f"{why} (tried at {at}; for another try: rm {state.tries() / name})"


def _read(file: Path, kind: type[Try[Answer]]) -> Try[Answer] | None:
    """Return the last try; None if there was none or its file is broken."""
    try:
        return kind.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None
