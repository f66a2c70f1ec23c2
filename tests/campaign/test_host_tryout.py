"""The tryout of each platform that `tare doctor` makes, for real: its agent speaks, and nothing stays."""

import re

import pytest

import host_state
from tare.campaign import platform_check
from tare.host import processes, state
from tare.host.resources.journal import Journal
from tare.platforms import platform_registry

pytestmark = pytest.mark.host
STARTED = (
    "native",
    "runc",
    "crun",
    "bubblewrap",
    "nspawn",
    "gvisor",
    "podman",
    "podman-gvisor",
    "docker",
    "libvirt-lxc",
)
#: Folders that nspawn, and a runtime that `podman info` asks about itself, make at their first use on a machine.
ENGINES_FOLDERS = re.compile(r"\+ file: /run/(systemd/nspawn(/locks|/propagate|/unix-export)?|crun|runc) d")


def _images():
    listed = [["docker", "images", "-q", "tare"], ["podman", "images", "-q", "tare"]]
    return [processes.run(argv, time_limit_s=30).text for argv in listed]


def test_each_comes_up_on_a_root_of_some_megabytes_and_nothing_stays():
    journal = Journal(state.journal()).entries()
    images, before = _images(), host_state.snapshot(["/run", str(state.work())])
    platforms = platform_registry.choose(STARTED)
    with platform_check.ready() as ready:
        assert sum(file.stat().st_size for file in ready.launcher.image.root.rglob("*") if file.is_file()) < 64 << 20
        for platform in platforms:
            assert platform_check.why_not(platform) == ""
            assert platform.detect().available
            ready.run(platform)
            platform.close()
        kept = _images()
    assert kept != images, "Docker and podman had it in their stores"
    assert _images() == images
    assert Journal(state.journal()).entries() == journal
    stays = host_state.settled(before, folders=["/run", str(state.work())])
    stays = [line for line in stays if not line.startswith("- process")]  # those of other tests end meanwhile
    stays = [line for line in stays if not ENGINES_FOLDERS.match(line)]
    assert [line for line in stays if re.search(r"tare|runsc|crun|null-netns|nspawn|libvirt", line)] == []
