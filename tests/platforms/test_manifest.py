"""What is said of an instance's network and of the cache of its data, against what instances were seen to show."""

from dataclasses import replace

import pytest

from tare.contract import manifest
from tare.contract.manifest import NetworkFacts, contradictions
from tare.platforms import platform_registry
from tare.platforms.parts.machines import vm

HOSTS = NetworkFacts(on_hosts=True)
ON_BRIDGE = NetworkFacts(on_hosts=False, plugged=frozenset({"tare0"}), addressed=True)
#: As the namespace of a sandbox of runsc's: netstack has taken the address over.
NETSTACK = replace(ON_BRIDGE, addressed=False, programs=frozenset({"runsc", "runsc-gofer", "runsc-sandbox"}))
ON_DOCKERS = replace(ON_BRIDGE, plugged=frozenset({"docker0"}), published=True)
ROOTLESS = replace(ON_BRIDGE, tun=True, programs=frozenset({"podman", "conmon", "slirp4netns", "rootlessport"}))
PASTA = replace(ROOTLESS, programs=frozenset({"podman", "conmon", "pasta"}))
#: Of a machine: QEMU, with its TAP's device open, and virtio inside.
MACHINE = NetworkFacts(
    on_hosts=True,
    plugged=frozenset({"tare0"}),
    tun=True,
    programs=frozenset({"qemu-system-x86_64"}),
    drivers=frozenset({"virtio_net"}),
)
#: Of one in a network namespace.
APART = replace(MACHINE, on_hosts=False, addressed=True, tun=False)
USERS = replace(APART, words=frozenset({"user,id=net,hostfwd=tcp::20100-:20100"}))
PASST = replace(APART, programs=frozenset({"qemu-system-x86_64", "passt.avx2"}))
SEEN = {
    "native": HOSTS,
    "docker-host": HOSTS,
    "runc": ON_BRIDGE,
    "gvisor": NETSTACK,
    "gvisor-host": replace(NETSTACK, addressed=True),
    "docker": ON_DOCKERS,
    "docker-gvisor": replace(NETSTACK, plugged=frozenset({"docker0"}), published=True),
    "podman-rootless": ROOTLESS,
    "qemu-tcg": MACHINE,
    "qemu-user-tcg": USERS,
    "qemu-passt-tcg": PASST,
    "runc-none": NetworkFacts(on_hosts=False),
    "kubelet-gvisor": replace(HOSTS, words=frozenset({"--network=host"})),
}


def path(name):
    [platform] = platform_registry.choose([name])
    return platform.network_path


@pytest.mark.parametrize("name", SEEN)
def test_what_an_instance_shows_agrees_with_its_network_path(name):
    assert contradictions(path(name), SEEN[name]) == []


@pytest.mark.parametrize(
    ("name", "seen", "wrong"),
    [
        ("native", ON_BRIDGE, ["host stack"]),
        ("runc", HOSTS, ["veth"]),
        ("runc", ON_DOCKERS, ["veth"]),  # plugged into another bridge
        ("gvisor", ON_BRIDGE, ["gVisor's netstack"]),
        ("gvisor", replace(NETSTACK, addressed=True), ["gVisor's netstack"]),
        ("gvisor-host", NETSTACK, ["sockets by pass-through"]),
        ("kubelet-gvisor", HOSTS, ["sockets by pass-through"]),
        ("kubelet-gvisor", replace(ON_BRIDGE, addressed=True), ["host stack"]),
        ("docker", replace(ON_DOCKERS, published=False), ["published port (NAT)"]),
        ("docker", replace(ON_BRIDGE, published=True), ["veth"]),
        ("podman-rootless", PASTA, ["published port (rootlessport)", "slirp4netns"]),
        ("qemu-tcg", USERS, ["TAP"]),
        ("qemu-tcg", replace(MACHINE, drivers=frozenset({"e1000"})), ["virtio-net"]),
        ("qemu-user-tcg", PASST, ["QEMU's user-mode network (slirp)"]),
        ("qemu-user-tcg", replace(USERS, on_hosts=True, plugged=frozenset()), ["veth"]),
        ("qemu-passt-tcg", USERS, ["passt"]),
    ],
)  # fmt: skip
def test_a_path_that_is_not_so_is_named_by_its_words(name, seen, wrong):
    assert contradictions(path(name), seen) == wrong


def test_what_is_in_a_guest_is_not_looked_for_on_the_host():
    assert manifest.pieces(path("docker-in-qemu-tcg")) == [("client", ""), ("bridge", "client"), ("TAP", "bridge")]


def test_each_word_of_a_path_has_its_reading_or_a_reason_why_it_has_none():
    words = {*manifest.READINGS, *manifest.UNREAD}
    for platform in platform_registry.all_platforms().values():
        pieces = manifest.pieces(platform.network_path)
        bridges = {before for word, before in pieces if word == "veth"}
        assert {word for word, _ in pieces} - bridges <= words, platform.name


@pytest.mark.parametrize(
    ("described", "mib", "so"),
    [
        ("the host's page cache", 8, True),
        ("the host's page cache", 4, False),
        (vm.DIRECT_DISK_CACHE, 0, True),
        (vm.DIRECT_DISK_CACHE, 1, False),
        (vm.DISK_CACHE, 9, True),
        (vm.DISK_CACHE, 0, False),
    ],
)
def test_what_is_said_of_a_cache_is_held_to_the_pages_that_the_host_has(described, mib, so):
    assert manifest.cache_is(described, mib << 20) == so
