"""Units of systemd's, for hosts where it manages cgroup v2 and programs write only below delegated units.

There, a group ``tare/ab12cx3`` is the slice ``tare-ab12cx3.slice`` in ``tare.slice``, which has its limits and
accounting. Below it are the units that engines request from systemd (Docker's scopes), and a scope of the same name
that is delegated to tare (``Delegate=yes``, https://systemd.io/CGROUP_DELEGATION) for all else in the group. So every
group is a sibling of the others, with the same weight, whoever makes its contents. Both units are transient: `systemctl
daemon-reload` keeps them, and nothing of them is on the disk.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from pathlib import Path

from tare.errors import HostError
from tare.host import distribution, processes
from tare.host.kernel import host_text
from tare.model import Resources
from tare.timeouts import stretched, until

#: This folder exists if systemd is the init system (sd_booted(3)).
BOOTED = Path("/run/systemd/system")
#: Child group of the scope, with the process that keeps it: systemd removes a scope without a process.
KEEPER = "keeper"
#: Time limit for systemd to start or stop a unit, in seconds.
LIMIT_S = 20.0
NO_UNIT = 5  # Exit code of `systemctl` for a unit that is not loaded.
_MANAGER = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
_UNLIMITED = (1 << 64) - 1
_FIX = "see what the journal says: journalctl -b -u init.scope"
#: Output of `busctl` without a bus: systemd then accepts no calls of programs.
NO_BUS = "Failed to connect to bus"

#: The keepers of the scopes that this process made, by slice. Each ends with its standard input, so with tare.
_keepers: dict[str, subprocess.Popen[bytes]] = {}


def path_of(name: str) -> str:
    """Return the slice of a group, as a path below the hierarchy's root: ``tare.slice/tare-x1.slice`` for ``tare/x1``.

    A dash in a slice's name starts a new level (systemd.slice(5)), so a dash in a group's name becomes ``_``.
    """
    parts = [part.replace("-", "_") for part in name.split("/")]
    return "/".join("-".join(parts[: count + 1]) + ".slice" for count in range(len(parts)))


def slice_of(path: str) -> str | None:
    """Return the slice of a group, such as ``tare-x1.slice``, or None if it is no slice."""
    last = path.rpartition("/")[2]
    return last if last.startswith("tare") and last.endswith(".slice") else None


def scope_of(path: str) -> str:
    """Return the delegated scope of a group's slice, as a path; for a group that is no slice, the group itself."""
    unit = slice_of(path)
    return path if unit is None else f"{path}/{unit.removesuffix('.slice')}.scope"


def limits(resources: Resources) -> list[list[str]]:
    """Return the properties of a slice with these limits, for `busctl`: name, type and value of each."""
    mask = sum(1 << cpu for cpu in resources.cpus)
    octets = mask.to_bytes(mask.bit_length() // 8 + 1, "little").rstrip(b"\0")
    properties = [
        ["AllowedCPUs", "ay", str(len(octets)), *map(str, octets)],
        ["MemoryMax", "t", str(resources.memory_bytes)],
        ["MemorySwapMax", "t", "0"],
        # The default, set explicitly to enable the controller: otherwise no weights apply.
        ["CPUWeight", "t", "100"],
        ["TasksMax", "t", str(_UNLIMITED if resources.pids is None else resources.pids)],
    ]
    if resources.cpu_quota is not None:  # Of each second; systemd's period is the kernel's own, 100 ms.
        properties.append(["CPUQuotaPerSecUSec", "t", str(round(resources.cpu_quota * 1e6))])
    return properties


def delegated(unit: str, keeper: int) -> list[str]:
    """Return the five properties of a slice's scope, for `busctl`. ``keeper``: the id of its first process."""
    return [
        *("Slice", "s", unit),
        *("Delegate", "b", "true"),
        *("PIDs", "au", "1", str(keeper)),
        # Not systemd's default, which the engines' own units do not have.
        *("TasksMax", "t", str(_UNLIMITED)),
        *("CollectMode", "s", "inactive-or-failed"),
    ]


def make_slice(root: Path, path: str, resources: Resources | None = None) -> None:
    """Create a group's slice, or set the limits of an existing slice. Raises `HostError`.

    ``resources``: None for no limits.
    """
    unit = slice_of(path)
    assert unit is not None, f"{path} is no slice of tare's"
    properties = [] if resources is None else limits(resources)
    count = str(len(properties))
    words = [word for prop in properties for word in prop]
    if (root / path).is_dir():
        _call("SetUnitProperties", "sba(sv)", unit, "true", count, *words)
    else:
        _call("StartTransientUnit", "ssa(sv)a(sa(sv))", unit, "fail", count, *words, "0")
        _await(root / path, unit)


def make_scope(root: Path, path: str) -> None:
    """Create the delegated scope in a group's slice, with a keeper as its only process. Raises `HostError`."""
    unit = slice_of(path)
    assert unit is not None, f"{path} is no slice of tare's"
    place = root / scope_of(path)
    keeper = processes.start(["cat"], stdin=subprocess.PIPE)
    _keepers[path] = keeper
    _call("StartTransientUnit", "ssa(sv)a(sa(sv))", place.name, "fail", "5", *delegated(unit, keeper.pid), "0")
    _await(place, place.name, keeper.pid)
    # Only leaves may contain processes (cgroups(7)).
    (place / KEEPER).mkdir()
    (place / KEEPER / "cgroup.procs").write_text(str(keeper.pid))


def stop(path: str) -> None:
    """Stop a group's slice with all units in it, and wait until systemd has removed it. Raises `HostError`."""
    unit = slice_of(path)
    assert unit is not None, f"{path} is no slice of tare's"
    keeper = _keepers.pop(path, None)
    if keeper is not None:
        processes.end(keeper)
    stopped = processes.run(["systemctl", "stop", unit], time_limit_s=LIMIT_S)
    if stopped.code != NO_UNIT:
        stopped.require(fix=f"systemctl stop {unit}")


def _call(method: str, signature: str, *words: str) -> None:
    """Call systemd's manager on the bus. Raises `HostError` with its answer."""
    called = processes.run(["busctl", "--quiet", "call", *_MANAGER, method, signature, *words], time_limit_s=LIMIT_S)
    if called.code != 0:
        lines = called.stderr.decode(errors="replace").strip().splitlines() or ["no answer"]
        fix = f"{distribution.install('dbus')} && systemctl start dbus" if NO_BUS in lines[-1] else _FIX
        raise HostError(f"systemd does not make {words[0]}: {lines[-1]}", fix=fix)


def _await(place: Path, unit: str, pid: int | None = None) -> None:
    """Wait until a unit's group exists, with the process ``pid`` in it if given, because the call only queues a job."""
    deadline = until(LIMIT_S)
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if pid is None and place.is_dir():
                return
            if pid is not None and str(pid) in host_text.read(place / "cgroup.procs").split():
                return
        time.sleep(0.002)
    raise HostError(
        f"systemd did not make {unit} within {stretched(LIMIT_S):.0f} s", fix=f"see `systemctl status {unit}`"
    )
