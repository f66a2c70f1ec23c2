"""Tries the findings of the second audit and their relatives again, against what really runs: `make attack`.

    python scripts/attacks [-p PLATFORM]... [--only FINDING]...

Prints a line for each finding: `closed`, `open` with the evidence, or `not tried` with the reason. Exit code 1 when one
is open, 3 when one could not be tried. It takes root, changes nothing of the host's, and leaves nothing.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bait as baits
import boxes
import files
import guests
import metrics
import neighbours
import relatives
from findings import FINDINGS, Finding, exit_code

from tare.campaign.instances.launcher import InstanceLauncher
from tare.errors import TareError
from tare.platforms import platform_registry
from tare.platforms.base import Platform

#: Those of which the audit found something, and their relatives.
PLATFORMS = (
    "runc", "crun", "bubblewrap", "nspawn", "lxc", "lxd", "libvirt-lxc", "docker", "podman", "podman-rootless",
    "containerd-cri", "gvisor", "qemu-user-tcg", "qemu-passt-tcg", "uml",
)  # fmt: skip
#: Those that begin from a campaign's file.
OF_FILES = {"H1", "H2", "M7", "M11", "M12", "L14", "L15", "L18"}
OF_OTHERS = {"H3", "L13", "D", "F"}
OF_INSTANCES = {"H4", "M6", "M8", "M9", "M10"}
OF_NEIGHBOURS = {"L16", "L17", "L19", "L20"}
OF_GUESTS = {"H3", "M5"} | OF_INSTANCES | OF_NEIGHBOURS
_BOX = 'link = "user"'
BEGAN = time.monotonic()


def main() -> int:
    """Try what was asked for, and say what came of it."""
    parser = argparse.ArgumentParser(prog="attack", description="Tries the findings of the second audit again.")
    parser.add_argument("-p", "--platform", action="append", help="Only these; default: all that run here.")
    parser.add_argument("--only", action="append", choices=list(FINDINGS), help="Only these findings.")
    options = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("it takes root (fix: sudo make attack)")
    findings = {name: Finding(name) for name in FINDINGS if name in (options.only or FINDINGS)}
    every = {name: findings.get(name, Finding(name)) for name in FINDINGS}
    before = _made()
    signal.signal(signal.SIGTERM, _cut_off)
    whole = False
    try:
        with tempfile.TemporaryDirectory(prefix="tare-attack-") as place:
            _attack(every, set(findings), Path(place), options.platform or list(PLATFORMS))
            whole = True
    finally:
        for finding in findings.values():
            print(finding.line())
        step("done" if whole else "cut off: what is closed above is so only where it was tried")
    left = sorted(_made() - before)
    if left:
        print(f"left on the host: {', '.join(left)}")
    return 1 if left else exit_code(list(findings.values()))


def _cut_off(*_: object) -> None:
    sys.exit("attack: ended by a signal")


def _attack(every: dict[str, Finding], asked: set[str], work: Path, platforms: list[str]) -> None:
    work.chmod(0o755)
    if OF_FILES & asked:
        _attack_by_files(every, asked, work)
    if OF_OTHERS & asked:
        _attack_by_others(every, asked, work)
    if OF_GUESTS & asked:
        _attack_by_guests(every, asked, work, platforms)


def _attack_by_files(every: dict[str, Finding], asked: set[str], work: Path) -> None:
    campaign = work / "campaign.tare"
    step("a campaign under attack (M7)")
    metrics.campaign(every["M7"], campaign)
    if not campaign.exists():
        for name in OF_FILES & asked - {"M7"}:
            every[name].untried.append("there is no campaign's file to begin from")
        return
    for name, attack in (
        ("H1", files.attack_journals),
        ("H2", files.attack_folder),
        ("M11", files.attack_bundles),
        ("M12", files.attack_lines),
        ("L14", relatives.attack_names),
        ("L15", lambda finding, campaign, _: relatives.attack_queries(finding, campaign)),
        ("L18", relatives.attack_links),
    ):
        if name in asked:
            step(f"{name}: {FINDINGS[name]}")
            attack(every[name], campaign, work)


def _attack_by_others(every: dict[str, Finding], asked: set[str], work: Path) -> None:
    for name, attack in (
        ("H3", boxes.attack),
        ("H3", relatives.attack_expressions),
        ("L13", relatives.attack_applications),
        ("D", relatives.attack_supply),
        ("F", relatives.attack_fleets),
    ):
        if name in asked:
            step(f"{name}: {FINDINGS[name]}")
            attack(every[name], work)


def _attack_by_guests(every: dict[str, Finding], asked: set[str], work: Path, names: list[str]) -> None:
    token = guests.word()
    os.environ["ATTACK_TOKEN"] = token
    with baits.laid(guests.word()) as bait, guests.session(lambda _: None) as (launcher, client, _):
        tried = guests.Guests(bait, token, every)
        if asked & (OF_INSTANCES | OF_NEIGHBOURS):
            step("the baseline, to which nothing is closed")
            closed_anyway = tried.control(launcher)
            for name in ("H4", "M8") if closed_anyway else ():
                every[name].untried.append(closed_anyway)
            for platform in platform_registry.choose(names):
                _attack_platform(tried, asked, platform, launcher)
        if "M5" in asked:
            step(f"M5: {FINDINGS['M5']}")
            guests.attack_from_client(tried, client, launcher)
        if "H3" in asked:
            step("H3: the monitor of a box")
            boxes.attack_monitor(every["H3"], launcher)
        if "H4" in asked:
            step("H4: a box on QEMU's own network")
            file = boxes.write(boxes.folder_of(work), "user", more=_BOX)
            [box] = platform_registry.choose([f"blackbox:{file}"])
            guests.attack_through_user_network(tried, launcher, box)


def _attack_platform(tried: guests.Guests, asked: set[str], platform: Platform, launcher: InstanceLauncher) -> None:
    answer = platform.detect()
    if not answer.available:
        step(f"{platform.name} does not run here: {answer.reason}")
        return
    step(f"{platform.name} (instances)")
    sockets = neighbours.listening()
    try:
        platform.prepare(launcher.image)
        sparse = platform.name == "runc" and "L19" in asked
        with neighbours.started(tried.findings, platform, launcher, sockets, sparse=sparse) as running:
            if asked & OF_INSTANCES:
                tried.attack_from(platform, running)
        if "M9" in asked:
            tried.attack_by_forks(platform, launcher)
        if "M6" in asked and guests.freezer_root() is None:
            tried.findings["M6"].untried.append("the host has no freezer of version 1")
        elif "M6" in asked and not platform.own_kernel:
            tried.attack_by_freezing(platform, launcher)
    except TareError as error:
        for name in sorted(asked & (OF_INSTANCES | OF_NEIGHBOURS)):
            tried.findings[name].untried.append(f"{platform.name}: {error.what}")
    finally:
        platform.close()


def step(words: str) -> None:
    """Say on standard error what is done, and how many seconds after the start."""
    print(f"attack: {time.monotonic() - BEGAN:4.0f} s {words}", file=sys.stderr, flush=True)


def _made() -> set[str]:
    """What tare and these attacks make on a host, as it is there now."""
    found = {f"namespace {line.split()[0]}" for line in _lines("ip", "netns") if "tare" in line or "attack" in line}
    found |= {f"link {line.split()[0]}" for line in _lines("ip", "-br", "link") if line.startswith(("tare", "attack"))}
    for program in ("iptables", "ip6tables"):
        found |= {f"{program} {line}" for line in _lines(program, "-S") if "tare" in line}
    mounts = Path("/proc/self/mounts").read_text(errors="replace").splitlines()
    found |= {f"mount {line.split(' ')[1]}" for line in mounts if "/work/" in line and "tare" in line}
    found |= {f"control group {path}" for path in Path("/sys/fs/cgroup").glob("**/tare") if path.is_dir()}
    return found | {f"file {path}" for path in Path(tempfile.gettempdir()).glob("tare-attack-*")}


def _lines(*argv: str) -> list[str]:
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.splitlines()
    except FileNotFoundError:
        return []


sys.exit(main())
