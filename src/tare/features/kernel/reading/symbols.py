"""Names of the kernel's functions by address, from ``/proc/kallsyms``, including modules and BPF programs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tare.errors import HostError

KALLSYMS = Path("/proc/kallsyms")
#: Name for an address outside any function.
UNKNOWN = "[unknown]"
#: The code that enters the kernel lies between these two symbols.
_ENTRY = ("__entry_text_start", "__entry_text_end")
#: Starts of paths that did not enter the kernel: those of kernel threads, and of a CPU since its start.
_BEGINNINGS = ("ret_from_fork", "secondary_startup", "common_startup", "x86_64_start", "start_kernel", "rewind_stack")
#: No function is longer. Beyond it lies code that is missing from the list.
_MAX_FUNCTION_BYTES = 1 << 20

Addresses = npt.NDArray[np.uint64]


class Symbols:
    """The functions of a running kernel."""

    def __init__(self, lines: Iterable[str]) -> None:
        """Parse ``lines`` in the format of ``/proc/kallsyms``. Raises `HostError` if they have no addresses."""
        best: dict[int, tuple[str, bool]] = {}
        entry = dict.fromkeys(_ENTRY, 0)
        for line in lines:
            address, kind, name = line.split(maxsplit=2)
            if name.rstrip() in entry:
                entry[name.rstrip()] = int(address, 16)
            if kind not in "tTwW" or name.startswith("__pfx_"):  # Padding in front of a function.
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
        """Return the function at each address; a module's as "symbol [module]"."""
        at = np.searchsorted(self._places, addresses, side="right").astype(np.int64) - 1
        far = (at < 0) | (addresses - self._places[np.maximum(at, 0)] > _MAX_FUNCTION_BYTES)
        return [UNKNOWN if beyond else self._names[index] for index, beyond in zip(at, far, strict=True)]

    def begins(self, address: int, name: str) -> bool:
        """Return True if a path through the kernel may start here. Otherwise its real start is unknown."""
        return self._entry[0] <= address < self._entry[1] or name.startswith(_BEGINNINGS)


def read() -> Symbols:
    """Read the current symbols of the running kernel. Raises `HostError`."""
    with _listed() as lines:
        return Symbols(lines)


def require_addresses() -> None:
    """Check that the running kernel shows its functions' addresses; read no more than that. Raises `HostError`."""
    with _listed() as lines:
        if not any(int(line.partition(" ")[0], 16) for line in lines):
            raise _hidden()


@contextlib.contextmanager
def _listed() -> Iterator[Iterable[str]]:
    """Yield the lines of the kernel's list of symbols. Raises `HostError` if it is missing, as in a partial /proc."""
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
    """Sort key of the names of one address: the usual name comes last."""
    return public, len(name.lstrip("_")) - len(name), -len(name)
