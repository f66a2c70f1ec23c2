"""gVisor: runsc on an OCI bundle, without a daemon. Variants are its ways to trap system calls, and its networks."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tare.host import probe_cache, processes
from tare.host.daemons import runtimes
from tare.host.kernel import process_table
from tare.host.resources.journal import CleanupStack
from tare.image.forms import image_bytes
from tare.image.image_build import Image
from tare.model import Family
from tare.platforms.base import HELPER_PIDS, Availability, Instance, LaunchSpec, Life, Observed, Platform, Prepared
from tare.platforms.parts.bundles import own_build
from tare.platforms.parts.bundles.oci_bundle import Bundle, Net, bundle_life, launch_bundle, make_bundle
from tare.platforms.parts.common.attempt import TrialSite, complaint
from tare.platforms.parts.engines.engine import RUNSC_DEFAULTS

#: The end of a packet's way, unless runsc uses Linux's own sockets (``--network=host``).
NETSTACK = ", gVisor's netstack"
#: With ``--network=host``: of the sandbox's namespace.
HOST_SOCKETS = ", sockets by pass-through"
#: How runsc mounts a bind, by the option `cache` in the sandbox's own /proc/mounts (pkg/sentry/fsimpl/gofer): with
#: these it keeps no data of files; the others, which are for files that nobody else has, do.
UNCACHED = ("none", "remote_revalidating")
#: Systrap answers a call without a switch of the host's while its sentry and the program are awake on two CPUs.
SLOW_CALLS = "systrap's fast path is off with one CPU"
INSTALL = "tare setup --with gvisor"
KVM_FIX = "use a host whose KVM runs guests, or a lab: tare lab run -- tare doctor"


def find_runsc() -> str | None:
    """Return the runsc that `make gvisor` built, else one on PATH."""
    return runtimes.find("runsc")


@functools.cache
def default_trap(program: str) -> str:
    """Return how a runsc traps system calls that is not told: ``systrap``, before mid-2023 ``ptrace``.

    ``program``: its name or path; where it is not on this host it is taken for a current one.
    """
    path = processes.find(program) if program else None
    return (
        read_default_trap(processes.run([path, "flags"], time_limit_s=10).text) if path else RUNSC_DEFAULTS["platform"]
    )


def read_default_trap(flags: str) -> str:
    """Return how a runsc traps system calls by default (`default_trap`), from what ``runsc flags`` prints."""
    default = re.search(r'^ *-platform string\n.*\(default "(\w+)"\)$', flags, re.MULTILINE)
    return default[1] if default else RUNSC_DEFAULTS["platform"]


class Gvisor(Platform):
    """A kernel in user space: runsc's own network stack, its own filesystem over a gofer.

    ``netstack``: else its programs use the sockets of the sandbox's network namespace (``--network=host``).
    """

    helper_pids = HELPER_PIDS

    def __init__(self, name: str, trap: str = "systrap", *, netstack: bool = True, build: str = "") -> None:
        """``build``: the path of a user's own build of runsc."""
        self.name = name
        by = f"{'a build of ' if build else ''}runsc, {trap}{'' if netstack else ', no netstack'}"
        self.title = f"gVisor ({by}) on an OCI bundle, no daemon"
        self._build = build
        self.network_path = f"client, bridge, veth{NETSTACK if netstack else HOST_SOCKETS}"
        self.by_default = trap == "systrap" and netstack and not build  # runsc's own defaults
        self._trap = trap
        self._netstack = netstack

    def detect(self) -> Availability:
        """Start a trivial sandbox by ``runsc do``, with nothing of the host but its root for reading."""
        runsc = self._runsc()
        if runsc is None:
            return Availability(False, reason="runsc is not installed", fix=INSTALL)
        unfit = own_build.unfit(runsc, "runsc") if self._build else None
        if unfit is not None:
            return unfit
        if self._trap == "kvm" and not os.access("/dev/kvm", os.R_OK | os.W_OK):
            return Availability(False, reason="/dev/kvm cannot be opened", fix=KVM_FIX)
        version = processes.run([runsc, "--version"], time_limit_s=5).text.splitlines()
        why = self._why_not(runsc)
        if why:
            fix = KVM_FIX if self._trap == "kvm" else INSTALL
            return Availability(False, reason=f"a trivial sandbox fails: {why}", fix=fix)
        shown = version[0].removeprefix("runsc version ").strip() if version else "unknown"
        details = {"platform": self._trap, "runsc": runsc, **(own_build.details(runsc) if self._build else {})}
        return Availability(True, version=shown, details=details)

    def _runsc(self) -> str | None:
        return self._build or find_runsc()

    def released(self, version: str) -> int | None:
        """Return the year of the release or of the commit, which runsc's version has in it."""
        date = re.search(r"(?<!\d)(20\d\d)(?:[01]\d)(?:[0-3]\d)", version)
        return int(date[1]) if date else None

    def _why_not(self, runsc: str) -> str:
        """Return why a trivial sandbox does not run, "" where it does."""

        def attempt() -> str:
            return complaint(lambda site: self._command(runsc, site))

        # Where KVM is there and does not work, it hangs, and takes all processors until it is ended.
        return (
            probe_cache.why_not(self.name, [Path(runsc).stat().st_mtime_ns], attempt)
            if self._trap == "kvm"
            else attempt()
        )

    def _command(self, runsc: str, site: TrialSite) -> list[str]:
        # `runsc do` mounts below a folder with a random name, and keeps both when it is ended: so in a mount namespace.
        alone = ["unshare", "--mount", "--propagation", "private", "env", f"TMPDIR={site.folder}"]
        options = [f"--root={site.folder}", f"--platform={self._trap}", "--network=none", "--ignore-cgroups"]
        return [*alone, runsc, *options, "do", "true"]

    def prepare(self, image: Image) -> Prepared:
        """Return the image as a folder."""
        return Prepared("folder", image_bytes(image), (image.root,), (self._runsc() or "runsc",))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Run the bundle."""
        return launch_bundle(self._bundle(spec, cleanup, spec.agent_argv()), spec)

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:
        """Return the commands of runsc itself."""
        bundle = self._bundle(spec, cleanup, argv)
        image, host = spec.space.folder / "checkpoint", bundle.address.host

        def remake() -> None:
            if self._netstack and host is not None:
                spec.network.give_address(spec.id, host)  # which the sandbox's own stack took over

        return replace(
            bundle_life(bundle, spec),
            snapshot=(*bundle.tool, "checkpoint", f"--image-path={image}", "--leave-running", bundle.name),
            restore=_restored(bundle, image),
            snapshot_at=image,
            remake=remake,
        )

    def copy(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str], snapshot: Path) -> Life:
        """Return the checkpoint, restored as another container: without a network, as all copies have one address."""
        bundle = self._bundle(spec, cleanup, argv, Net.NONE)
        return replace(bundle_life(bundle, spec), create=(), start=_restored(bundle, snapshot))

    def _bundle(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str], net: Net | None = None) -> Bundle:
        runsc = self._runsc()
        assert runsc is not None, "launch follows a successful detect"
        options = [f"--platform={self._trap}", f"--network={'sandbox' if self._netstack else 'host'}"]
        net = net or (Net.OWN_STACK if self._netstack else Net.VETH)
        return make_bundle(spec, cleanup, argv, runsc, options, net, removed_by="runsc")

    def observed(self, instance: Instance, read: Callable[[str], str]) -> Observed:
        """Return what its sandbox's mounts and its sentry show."""
        return seen(self, instance, read)


def _restored(bundle: Bundle, image: Path) -> tuple[str, ...]:
    """Return the command that starts a bundle's container from a checkpoint."""
    words = ("restore", f"--image-path={image}", "--bundle", str(bundle.folder), "--detach", bundle.name)
    return (*bundle.tool, *words)


def seen(platform: Platform, instance: Instance, read: Callable[[str], str]) -> Observed:
    """Return what a sandbox of runsc's shows, whoever started it (`Platform.observed`)."""
    commands = [process_table.argv(pid) for pid in instance.host_processes()]
    return Observed(data_cache(read("/proc/mounts")), platform.network_path, remarks(commands))


def data_cache(mounts: str) -> str:
    """Return what stands between /data and the disk, from the sandbox's own ``/proc/mounts``."""
    lines = [line.split() for line in mounts.splitlines()]
    options = next((words[3].split(",") for words in lines if words[1:2] == ["/data"] and len(words) > 3), None)
    if options is None:
        return "unknown"
    way = "directly (directfs)" if "directfs" in options else "by its gofer"
    cache = next((option.removeprefix("cache=") for option in options if option.startswith("cache=")), "none")
    if cache in UNCACHED:
        return f"the host's page cache, which the sentry goes to {way}"
    return f"gVisor's own cache ({cache}) over the host's, which the sentry goes to {way}"


def remarks(commands: Iterable[Sequence[str]]) -> dict[str, str]:
    """Return what figures are to be read with, from the command lines of the sandbox's processes on the host."""
    for argv in commands:
        if argv and argv[0].startswith("runsc-sandbox") and not {"--platform=ptrace", "--platform=kvm"} & set(argv):
            # systrap.go, New: one CPU by the process's affinity, or by its Go runtime's limit, which this option sets.
            return {Family.KERNEL: SLOW_CALLS} if "--cpu-num 1 " in " ".join(argv) + " " else {}
    return {}


PLATFORMS = (
    Gvisor("gvisor"),
    Gvisor("gvisor-ptrace", "ptrace"),
    Gvisor("gvisor-kvm", "kvm"),
    Gvisor("gvisor-host", netstack=False),
)
FAMILIES = own_build.family("gvisor", "runsc", lambda name, path: Gvisor(name, build=path))
