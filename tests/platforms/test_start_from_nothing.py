"""What a start finds made, and what is published: on real sandboxes."""

import time

import pytest

from tare.campaign.instances.launcher import StartOptions
from tare.host import processes
from tare.model import Arm
from tare.platforms import platform_registry

#: Of each kind: nothing, a bundle, a root of nspawn's, a daemon's container, a command's, one of a daemon of tare's.
NAMES = ("native", "runc", "bubblewrap", "nspawn", "lxc", "docker", "podman", "lxd")


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.parametrize("name", NAMES)
def test_what_is_made_before_the_start_instant_is_timed_without_the_journal(launcher, name):
    [platform] = platform_registry.choose([name])
    try:
        platform.prepare(launcher.image)
        began = time.monotonic_ns()
        running = launcher.start(platform, Arm(name), measured=True, terms=StartOptions(published=False))
        try:
            made_ns = running.marks.made_ns
            assert made_ns > 100_000, "an overlay at the least was mounted"
            assert made_ns + running.cleanup.noting_ns < running.instance.started.monotonic_ns - began
        finally:
            running.stop()
    finally:
        platform.close()


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.parametrize("name", ["docker", "podman"])
def test_a_port_is_published_only_where_a_client_calls(launcher, name):
    [platform] = platform_registry.choose([name])
    platform.prepare(launcher.image)
    try:
        for published in (False, True):
            running = launcher.start(platform, Arm(name), measured=False, terms=StartOptions(published=published))
            try:
                address = running.instance.address
                rules = processes.run(["iptables-save", "-t", "nat"]).text
                assert (f"{address.port}" in rules) == published
                assert running.reachable == published
            finally:
                running.stop()
    finally:
        platform.close()
