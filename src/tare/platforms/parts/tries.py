"""What a try of KVM showed, kept for other commands: where /dev/kvm opens and runs no guest, each would wait for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import BaseModel, ValidationError

from tare.host import state

#: How long it is believed that something does not run here, in seconds.
DOUBTED_S = 3600.0


#: By name of what is tried.
_locks: dict[str, threading.Lock] = {}


def why_not(name: str, of: Sequence[str | int], attempt: Callable[[], str], *, keep_good: bool = False) -> str:
    """Why what is called ``name`` does not run here, "" where it does: by the attempt, or by one that is remembered.

    One that failed is remembered for `DOUBTED_S`: the host may have been too busy for it, or a module's setting has
    been changed since. One that went well is with ``keep_good``. Both only until the host is rebooted, or ``of``
    changes: what else the answer depends on, such as a program's time.
    """
    file = state.tries() / name
    key = [Path("/proc/sys/kernel/random/boot_id").read_text().strip(), *of]
    with _locks.setdefault(name, threading.Lock()):  # platforms that are detected at once ask at once: one tries
        now = time.time()
        last = _read(file)
        if last is not None and last.key == key and (now <= last.tried + DOUBTED_S if last.why else keep_good):
            at = time.strftime("%H:%M", time.localtime(last.tried))
            return f"{last.why} (tried at {at}; for another try: rm TARE_HOME/tries/{name})" if last.why else ""
        why = attempt()
        file.write_text(_Try(key=key, why=why, tried=now).model_dump_json())
    return why


class _Try(BaseModel):
    key: list[str | int]
    why: str
    tried: float  # UNIX seconds


def _read(file: Path) -> _Try | None:
    """The last try; None, where there was none or its file is broken."""
    try:
        return _Try.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None
