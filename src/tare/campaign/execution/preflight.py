"""Before the first block: which platforms run here, whether each starts, and whether the comparison is fair."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tare.campaign.host_session import HostSession
from tare.campaign.instances import instance_posture, program_environment
from tare.campaign.instances.client import LoadClient
from tare.campaign.instances.launcher import InstanceLauncher, RunningInstance
from tare.errors import Failed, HostError, PlatformError, TareError, attempt
from tare.host import instance_limits
from tare.host.cgroup import Group
from tare.host.facts import security
from tare.host.filesystems import volumes
from tare.host.kernel import host_text, process_table
from tare.host.tuning.tune import Tuned
from tare.image.image_build import Image
from tare.model import NO_DAEMON, Arm, Progress, Resources
from tare.platforms import platform_contract, platform_registry
from tare.platforms.base import AGENT, NO_NETWORK, Availability, Observed, Platform
from tare.session import Refused
from tare.store import LeftOut, PlatformRecord

CLOCK_SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#: Of a platform that publishes ports.
PUBLISHED = "in instances that a workload's client calls, and not in a start that is measured"
#: Called with where a platform's code failed, and the failure: for the campaign's file.
Keep = Callable[[str, Failed], None]


@dataclass(frozen=True, slots=True)
class StartedPlatform:
    """A platform that was started once, with its record and its fairness manifest."""

    platform: Platform
    record: PlatformRecord
    fairness: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PreparedPlatforms:
    """The platforms that were started once, those that are left out, and what starts instances in the host session."""

    ready: list[StartedPlatform]
    left_out: list[LeftOut]
    launcher: InstanceLauncher
    client: LoadClient
    tuned: list[Tuned] | None  # None: the host's settings are as they were


def prepare(
    host: HostSession,
    chosen: list[Platform],
    image: Callable[[], Image],
    resources: Resources,
    *,
    keep: Keep,
    check: Callable[[Sequence[LeftOut]], None] = lambda _: None,
    tune: bool = False,
    subnet: str | None = None,
    stand_ins: bool = False,
    prefix: int = 24,
    client: str | None = None,
) -> PreparedPlatforms:
    """Detect the chosen platforms, make the host ready for instances, and start each platform once.

    All are closed when the host session ends; ``stand_ins`` (`available`) are put into ``chosen`` for that. ``image``
    is called once the platforms are detected: to build one may take minutes. ``check`` is called with all that are left
    out after the detection, and again after the first starts, and may raise.
    """
    host.callback(close_all, chosen)
    detected, missing = available(chosen, progress=host.progress, keep=keep, stand_ins=stand_ins)
    chosen.extend(platform for platform, _ in detected if platform not in chosen)
    check(missing)
    for_all = image()
    tuned = host.tune(resources.cpus) if tune else None
    launcher, peer = host.prepare(for_all, resources, subnet, prefix=prefix, client=client)
    ready, broken = try_each(detected, for_all, launcher, progress=host.progress, keep=keep)
    left_out = [*missing, *broken]
    check(left_out)
    return PreparedPlatforms(ready, left_out, launcher, peer, tuned)


def close_all(platforms: Sequence[Platform]) -> list[tuple[Platform, Failed]]:
    """Close all platforms, even where closing one of them fails. Returns the failures."""
    ends = [(platform, attempt(platform.close)) for platform in platforms]
    return [(platform, end) for platform, end in ends if isinstance(end, Failed)]


def available(
    platforms: Iterable[Platform], *, progress: Progress, keep: Keep, stand_ins: bool = False
) -> tuple[list[tuple[Platform, Availability]], list[LeftOut]]:
    """Detect each platform; returns those that run here, and those that are left out with the reason.

    Only the baseline cannot be left out. Raises `HostError` where it does not run here; where its detection fails, the
    error of that, or `PlatformError` for a fault of its code. ``stand_ins``: where a platform does not run, look for
    its `Platform.stand_in`.
    """
    detected: list[tuple[Platform, Availability]] = []
    left_out: list[LeftOut] = []
    waiting = list(platforms)
    names = {platform.name for platform in waiting}
    while waiting:
        platform = waiting.pop(0)
        progress(f"looking for {platform.name}")
        answer = attempt(partial(platform_contract.detected, platform))
        if isinstance(answer, Failed):
            left_out.append(_without(platform, answer, keep, "the detection of"))
        elif answer.available:
            detected.append((platform, answer))
        elif platform.baseline:
            raise HostError(f"{platform.name} does not run here: {answer.reason}", fix=answer.fix or None)
        else:
            left_out.append(LeftOut(platform=platform.name, reason=answer.reason, fix=answer.fix or None))
            stand_in = platform_registry.all_platforms().get(platform.stand_in) if stand_ins else None
            if stand_in is not None and stand_in.name not in names:
                names.add(stand_in.name)
                waiting.insert(0, stand_in)
    return detected, left_out


def try_each(
    detected: Sequence[tuple[Platform, Availability]],
    image: Image,
    launcher: InstanceLauncher,
    *,
    progress: Progress,
    keep: Keep,
) -> tuple[list[StartedPlatform], list[LeftOut]]:
    """Start an instance of every platform once and end it: caches are then warm, and failing platforms are known.

    One that fails is left out with its reason; the baseline's failure raises, as in `available`.
    """
    ready: list[StartedPlatform] = []
    left_out: list[LeftOut] = []
    for platform, answer in detected:
        progress(f"trying {platform.name}")
        tried = attempt(partial(_try, platform, answer, image, launcher))
        if isinstance(tried, Failed):
            left_out.append(_without(platform, tried, keep, "the first start of"))
        else:
            ready.append(tried)
    return ready, left_out


def require_any(chosen: Sequence[Platform], left_out: Sequence[LeftOut]) -> None:
    """Raise `HostError` where platforms were chosen beside the baseline, and all of them are left out."""
    others = {platform.name for platform in chosen if not platform.baseline}
    missing = [platform for platform in left_out if platform.platform in others]
    if not missing or len(missing) < len(others):
        return
    first, *more = missing
    besides = f"; nor do {', '.join(platform.platform for platform in more)} (tare doctor says why)" if more else ""
    raise HostError(f"{first.platform} does not run here: {first.reason}{besides}", fix=first.fix)


def _without(platform: Platform, failed: Failed, keep: Keep, step: str) -> LeftOut:
    """Leave a platform out. Raises the error of the baseline, without which there is no campaign."""
    error = failed.error
    if isinstance(error, TareError):
        if platform.baseline:
            raise error
        return LeftOut(platform=platform.name, reason=error.what, fix=error.fix)
    if platform.baseline:
        fix = "get the traceback with `tare --debug run`, and report it to whoever wrote the platform"
        raise PlatformError(f"{step} {platform.name} failed: {failed.reason}", fix=fix) from error
    keep(f"{step} {platform.name}", failed)
    return LeftOut(platform=platform.name, reason=failed.reason)


def _try(platform: Platform, answer: Availability, image: Image, launcher: InstanceLauncher) -> StartedPlatform:
    form = platform_contract.prepared(platform, image)
    running = launcher.start(platform, Arm(platform.name), measured=False)
    try:
        observed = platform_contract.observed(platform, running.instance, partial(_text_inside, platform, running))
        fairness = _fairness(platform, running, observed, launcher)
        limits = _limits(platform, running)
    finally:
        running.stop()
    wanted = instance_limits.wanted(running.instance.spec.resources)
    not_honoured = [*platform.not_honoured, *instance_limits.not_honoured(wanted, limits)]
    record = PlatformRecord(
        name=platform.name,
        title=platform.title,
        version=answer.version,
        details={**answer.details, "image form": form.form},
        image_bytes=form.disk_bytes,
        not_honoured=not_honoured,
        open_by_design=dict(platform.open_by_design),
        network_path=observed.network_path,
        remarks={**program_environment.remarks(fairness), **observed.remarks},
        daemon=platform.daemon,
        needs_root=platform.needs_root,
        package=platform_registry.package(platform.name),
        released=platform_contract.released(platform, answer.version),
    )
    return StartedPlatform(
        platform, record, {**fairness, **instance_limits.facts(limits), "not honoured": not_honoured}
    )


def _fairness(
    platform: Platform, running: RunningInstance, observed: Observed, launcher: InstanceLauncher
) -> dict[str, Any]:
    """Return what a platform's instance really got of the resources that should be alike for all platforms."""
    spec = running.instance.spec
    return {
        "host": "another" if platform.elsewhere else "this one",
        "cpus pinned": list(spec.resources.cpus),
        "cpu quota": spec.resources.cpu_quota or "none",
        "probes on cpu": spec.resources.probe_cpu if platform.has_agent else "none: no agent",
        **_loaded_by(launcher),
        "memory limit": spec.resources.memory_bytes if spec.group.accounts else "none",
        **({"memory beside it, for the monitor": platform.monitor_bytes} if platform.monitor_bytes else {}),
        **({"processes beside it, for its engine": platform.helper_pids} if platform.helper_pids else {}),
        **_seen_inside(platform, running),
        "clock source": _clock_source(),
        "security labels": security.labels(running.instance.host_processes()),
        **instance_posture.facts(platform, running),
        **program_environment.facts(platform, running),
        "daemons' cpus": _cpus_of(running.instance.daemons),
        "priority": _priorities_of(running.instance.host_processes()),
        **({"published ports": PUBLISHED} if platform.publishes else {}),
        **({"no direct I/O": platform.no_direct_io} if platform.no_direct_io else {}),
        "disk cache": observed.disk_cache,
        **observed.facts,
        "data volume": volumes.described(spec.space.folder, spec.resources.data_bytes),
        "network path": observed.network_path,
        "remarks": list(observed.remarks.values()),
        "open to the host by design": dict(platform.open_by_design),
    }


def _loaded_by(launcher: InstanceLauncher) -> dict[str, Any]:
    """Return where tare and the client ran."""
    harness, here, client = list(launcher.host_cpus.harness), list(launcher.host_cpus.client), launcher.client
    if client is None and here == harness:
        return {"harness and client on cpus": harness, "harness shares the client's cpus": "yes: too few are left"}
    if client is None:
        return {"harness on cpus": harness, "client on cpus": here}
    machine = f"{client.name} ({client.client}, {client.cpus} CPUs), which calls {client.called}"
    return {"harness on cpus": harness, "client on another machine": machine}


def _cpus_of(daemons: Sequence[Group]) -> str:
    """Return the CPUs that a platform's shared daemons may use, as the kernel lists them."""
    pids = (pid for daemon in daemons for pid in daemon.pids())
    lists = {process_table.status(pid).get("Cpus_allowed_list", "") for pid in pids} - {""}  # of one that has ended
    return ", ".join(sorted(lists)) or NO_DAEMON


def _priorities_of(pids: Iterable[int]) -> str:
    """Return the scheduling of an instance's processes, which they have from who started them."""
    return "; ".join(sorted({process_table.priority(pid) for pid in pids} - {""})) or instance_limits.UNKNOWN


def _seen_inside(platform: Platform, running: RunningInstance) -> dict[str, Any]:
    if not platform.has_agent:
        return {"bits": "other bits, which the image's figures do not compare with", "image": None, "agent": None}
    hello = running.session.hello
    return {
        "cpus seen inside": hello.cpus,
        "memory seen inside": hello.memory_bytes,
        "kernel seen inside": hello.kernel,
        # It differs between kernels (a guest's, gVisor's), and so does the effect of a lossy or shaped network path.
        "tcp congestion control": _output_of(running, ["cat", "/proc/sys/net/ipv4/tcp_congestion_control"]),
        "mtu inside": _mtu(running),
        "clock source inside": _output_of(running, ["cat", CLOCK_SOURCE]),
        "data filesystem inside": _output_of(running, ["stat", "-f", "-c", "%T", "/data"]),
        "bits": "the image" if platform.same_bits else "other bits, which the image's figures do not compare with",
        "image": hello.image,
        "agent": hello.agent,
    }


def _limits(platform: Platform, running: RunningInstance) -> dict[str, str]:
    """Return the limits that a program inside has (`limits.LIMITS`); unknown where nobody can be asked."""
    printed = _output_of(running, [AGENT, "limits"]) if platform.has_agent else ""
    group = {} if platform.elsewhere else running.instance.spec.group.limits()
    return instance_limits.seen(printed, group, own_kernel=platform.own_kernel)


def _mtu(running: RunningInstance) -> int | str:
    """Return the MTU, in bytes, of the link by which an instance's packets begin their way to the client.

    As its own network stack has it: /sys shows the host's links in nspawn, and in gVisor none. gVisor without a stack
    of its own says 0.
    """
    address = running.instance.address
    if address.host is None:
        return NO_NETWORK
    route = _output_of(running, ["ip", "route", "get", address.client or running.instance.spec.network.caller])
    link = re.search(r" dev (\S+)", route)
    shown = _output_of(running, ["ip", "link", "show", "dev", link[1]]) if link else ""
    mtu = re.search(r" mtu ([1-9]\d{0,9})\b", shown, re.ASCII)
    return int(mtu[1]) if mtu else "unknown"


def _text_inside(platform: Platform, running: RunningInstance, path: str) -> str:
    return _output_of(running, ["cat", path]) if platform.has_agent else "unknown"


def _output_of(running: RunningInstance, argv: list[str]) -> str:
    try:
        done = running.session.execute(argv, time_limit_s=10)
    except Refused:  # an application's own image need not have the program
        return "unknown"
    output = done.stdout.decode(errors="replace").strip()
    return output if done.code == 0 and output else "unknown"


def _clock_source() -> str:
    return host_text.said(CLOCK_SOURCE) or "unknown"
