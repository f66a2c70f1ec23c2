"""Names of the kernel's functions by addresses, from its own list (``/proc/kallsyms``), modules' and BPF's included."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tare.errors import HostError

KALLSYMS = Path("/proc/kallsyms")
#: What is at an address that no function is at.
UNKNOWN = "[unknown]"
#: Between these two symbols is the code by which the kernel is entered.
_ENTRY = ("__entry_text_start", "__entry_text_end")
#: Where paths begin that did not enter the kernel: those of kernel threads, and of a CPU since it was started.
_BEGINNINGS = ("ret_from_fork", "secondary_startup", "common_startup", "x86_64_start", "start_kernel", "rewind_stack")
#: Functions are shorter: beyond is code that the list does not have.
_MAX_FUNCTION_BYTES = 1 << 20

Addresses = npt.NDArray[np.uint64]


class Symbols:
    """The functions of a running kernel."""

    def __init__(self, lines: Iterable[str]) -> None:
        """``lines`` as in ``/proc/kallsyms``. Raises `HostError` where they have no addresses."""
        best: dict[int, tuple[str, bool]] = {}
        entry = dict.fromkeys(_ENTRY, 0)
        for line in lines:
            address, kind, name = line.split(maxsplit=2)
            if name.rstrip() in entry:
                entry[name.rstrip()] = int(address, 16)
            if kind not in "tTwW" or name.startswith("__pfx_"):  # what pads a function in front of it
                continue
            place, former = int(address, 16), best.get(int(address, 16))
            if former is None or _plainness(name, kind == "T") > _plainness(*former):
                best[place] = (name, kind == "T")
        if not any(best):
            raise _hidden()
        places = sorted(best)
        self._names = [" ".join(best[place][0].split()) for place in places]
        self._places = np.array(places, np.uint64)
        self._entry = tuple(entry.values())

    def names(self, addresses: Addresses) -> list[str]:
        """The function that each address is in; those of a module as "symbol [module]"."""
        at = np.searchsorted(self._places, addresses, side="right").astype(np.int64) - 1
        far = (at < 0) | (addresses - self._places[np.maximum(at, 0)] > _MAX_FUNCTION_BYTES)
        return [UNKNOWN if beyond else self._names[index] for index, beyond in zip(at, far, strict=True)]

    def begins(self, address: int, name: str) -> bool:
        """Whether a path through the kernel may begin at this address; where not, its real beginning is not known."""
        return self._entry[0] <= address < self._entry[1] or name.startswith(_BEGINNINGS)


def read() -> Symbols:
    """The symbols of the running kernel, as they are now. Raises `HostError`."""
    with _listed() as lines:
        return Symbols(lines)


def require_addresses() -> None:
    """Raises `HostError` where the running kernel hides its functions' addresses; reads no more of them than that."""
    with _listed() as lines:
        if not any(int(line.partition(" ")[0], 16) for line in lines):
            raise _hidden()


@contextlib.contextmanager
def _listed() -> Iterator[Iterable[str]]:
    """The kernel's list of its symbols, a line each. Raises `HostError` where there is none, as in a part of /proc."""
    try:
        listed = KALLSYMS.open(encoding="ascii", errors="replace")
    except OSError as error:
        fix = "run tare where all of /proc can be seen: mounted without subset=pid"
        raise HostError(f"{KALLSYMS} cannot be read: {error.strerror}", fix=fix) from error
    with listed:
        yield listed


def _hidden() -> HostError:
    return HostError(
        "the kernel hides the addresses of its functions", fix="run tare as root, with sysctl kernel.kptr_restrict=1"
    )


def _plainness(name: str, public: bool) -> tuple[bool, int, int]:
    """Sort key of the names of one address: the last is the usual one."""
    return public, len(name.lstrip("_")) - len(name), -len(name)
