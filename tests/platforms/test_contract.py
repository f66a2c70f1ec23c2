"""One suite over every platform: what a platform promises, held on real sandboxes (`tare.contract.promises`)."""

import contextlib

import pytest

from platforms import guests
from tare.contract import suite
from tare.contract.promises import CHECKS
from tare.platforms import platform_registry
from tare.platforms.containerd import Containerd
from tare.platforms.parts.engines.containerd_server import SHARED

pytestmark = pytest.mark.host

PLATFORMS = platform_registry.all_platforms()
#: These must run wherever the suite runs: `make test` sets them up.
REQUIRED = {
    "blackbox",
    "native",
    "native-veth",
    "native-userland",
    "runc-none",
    "crun-none",
    "runc-userns",
    "crun-userns",
    "bubblewrap-userns",
    "charliecloud",
    "containerd",
    "containerd-cri",
    "containerd-cri-crun",
    "containerd-crun",
    "containerd-gvisor-runc",
    "docker-crun",
    "docker-host",
    "docker-none",
    "docker-gvisor-host",
    "podman-crun",
    "podman-runc",
    "podman-gvisor",
    "podman-host",
    "podman-rootless",
    "gvisor-host",
    "gvisor-restored",
    "runc",
    "crun",
    "bubblewrap",
    "nspawn",
    "crun-in-qemu-tcg",
    "docker",
    "libvirt-lxc",
    "libvirt-qemu-tcg",
    "lxc",
    "lxd",
    "podman",
    "gvisor",
    "docker-in-qemu-tcg",
    "docker-gvisor",
    "runc-in-qemu-tcg",
    "qemu-microvm-tcg",
    "qemu-tcg",
    "qemu-passt-tcg",
    "qemu-user-tcg",
    "uml",
    "uml-ubd",
}


@pytest.fixture(scope="module")
def bench_of():
    with suite.benches(lambda _: None) as bench_of:
        yield bench_of


#: `make slow-test` checks these. A kubelet is built by `make cluster`, outside the gate, and held to all by
#: `make cluster-test`.
SLOW = {
    "crun-in-qemu-tcg",  # runc-in-qemu-tcg with another runtime inside
    "docker-in-qemu-tcg",  # a start takes a minute or two by emulation, and the suite makes a dozen
    "kubelet",
    "kubelet-gvisor",
    "libvirt-qemu-writeback-tcg",  # libvirt-qemu-tcg with another disk cache
    "qemu-writeback-tcg",  # qemu-tcg with another disk cache
}
#: Their daemon is the whole machine's.
REAL_HOST = {"lxd", "lxd-privileged"}
#: What changes with a word of the command line, a runtime or a namespace.
INSIDE = {
    "escape", "manifest-holds", "network-both-ways", "same-bits", "start-is-seen", "stop-leaves-nothing",
    "work-is-accounted",
}  # fmt: skip
#: And with a network.
DIFFERENT = INSIDE | {"escape-to-others"}
#: And with a daemon's other runtime, on the same network.
RUNTIME = INSIDE | {"cpus-hold", "death-is-noticed", "helpers-are-counted", "memory-holds"}
STARTS = {"manifest-holds", "same-bits", "start-is-seen"}
#: gVisor's kernel guards the same doors whichever engine starts it. The gate tries them on gvisor, gvisor-ptrace and
#: docker-gvisor, and on those that share the host's network.
GUARDED = {"escape"}
#: Those that have the code, the machine and the stream of one that is held to all are held to what they change, and to
#: the rest by `make slow-test`.
HELD_TO = {
    "bubblewrap-userns": INSIDE,
    "containerd-cri-crun": STARTS | {"escape", "stop-leaves-nothing"},  # containerd-cri by crun
    "containerd-crun": STARTS | {"escape", "stop-leaves-nothing"},  # containerd likewise
    "containerd-gvisor-runc": RUNTIME - GUARDED,
    "crun": RUNTIME | {"four-at-once", "stream-is-clean"},  # runc's bundle, by another program
    "crun-none": DIFFERENT,
    "crun-seccomp": INSIDE,
    "crun-userns": INSIDE,
    "docker-crun": RUNTIME,
    "docker-gvisor": RUNTIME,
    "docker-gvisor-host": DIFFERENT,
    "docker-gvisor-ptrace": INSIDE - GUARDED,
    "docker-host": DIFFERENT,
    "docker-none": DIFFERENT,
    "gvisor-host": DIFFERENT,
    "gvisor-ptrace": INSIDE,
    "gvisor-restored": (INSIDE | {"four-at-once", "stream-is-clean"}) - GUARDED,
    # qemu-tcg's guest, disks and stream, by another program's hand, with its groups and network.
    "libvirt-qemu-tcg": STARTS | {"death-is-noticed", "escape", "memory-holds", "stop-leaves-nothing"},
    "native-userland": DIFFERENT,
    "native-plain": DIFFERENT,
    "native-veth": DIFFERENT,
    "lxd-privileged": DIFFERENT,
    "nspawn-users": DIFFERENT,
    "podman-crun": RUNTIME,
    "podman-runc": RUNTIME,
    "podman-gvisor": INSIDE - GUARDED,
    "podman-host": DIFFERENT,
    "qemu-microvm-tcg": STARTS | {"stop-leaves-nothing"},  # qemu-tcg's network
    "qemu-passt-tcg": STARTS | {"escape", "network-both-ways", "stop-leaves-nothing"},
    "qemu-user-tcg": DIFFERENT - {"stop-leaves-nothing", "work-is-accounted"},
    "qemu-virtiofs-tcg": STARTS | {"memory-holds", "stop-leaves-nothing", "work-is-accounted"},  # a helper beside it
    "runc-in-qemu-tcg": STARTS | {"escape", "stop-leaves-nothing"},  # qemu-tcg's network
    "runc-none": DIFFERENT,
    "runc-seccomp": INSIDE,
    "runc-userns": DIFFERENT,
    "uml-ubd": STARTS | {"escape", "stop-leaves-nothing"},  # uml with its root on a disk
    "youki": RUNTIME | {"four-at-once", "stream-is-clean"},  # as crun
}
#: Promises that take minutes here, or that depend on how fast several emulated machines boot beside other tests.
#: Those of commands and streams are kept by the agent and its reader, those of several instances by the pool: other
#: platforms have the same.
TOO_SLOW = {
    "blackbox": {"four-at-once"},
    "qemu-tcg": {"thousand-commands", "four-at-once", "floods-are-stopped", "streams-have-limits"},
    "uml": {"thousand-commands"},
}


def _slow(name, check):
    here = check.name in HELD_TO.get(name, {check.name}) - TOO_SLOW.get(name, set())
    return name in SLOW or not here


def _marks(name, check):
    return [pytest.mark.own_host] * (name not in REAL_HOST) + [pytest.mark.slow] * _slow(name, check)


PROMISES = [
    pytest.param(name, check, id=f"{name}-{check.name}", marks=_marks(name, check))
    for name, platform in sorted(PLATFORMS.items())
    for check in CHECKS
    if not check.inapplicable(platform)
]


@pytest.fixture(scope="module")
def bench_for(bench_of):
    """The bench of a platform, or why there is none; of one at a time, as the tests come platform by platform.

    All of containerd's have one daemon, in turn: to start one, and to have it unpack the image, takes ten seconds.
    """
    with contextlib.ExitStack() as daemon, contextlib.ExitStack() as last:
        held = {}

        def bench_for(name):
            if name not in held:
                if isinstance(PLATFORMS[name], Containerd):
                    daemon.callback(SHARED.given_back, daemon)
                    SHARED.taken(daemon)
                else:
                    daemon.close()
                last.close()
                held.clear()
                held[name] = _bench(PLATFORMS[name], bench_of, last)
            return held[name]

        yield bench_for


def _bench(platform, bench_of, last):
    last.callback(platform.close)
    answer = platform.detect()
    if not answer.available:
        assert answer.reason
        assert platform.name not in REQUIRED, f"{platform.name} must run here: {answer.reason}"
        return answer.reason
    assert answer.version
    bench = bench_of(platform)
    if platform.name.endswith("-tcg"):  # QEMU before 8.1 hangs one of some 350 that have two (`vm.HANG_FIX`)
        bench.launcher = guests.with_one_processor(bench.launcher)
    # The image's bits; what runs others may be a kernel and one program.
    assert platform.prepare(bench.launcher.image).disk_bytes > (50 if platform.same_bits else 5) << 20
    last.callback(bench.close)
    return bench


def test_what_has_no_agent_is_held_to_what_it_can_keep_and_the_rest_is_not_broken():
    applicable = {check.name for check in CHECKS if not check.inapplicable(PLATFORMS["blackbox"])}
    assert applicable == {
        "start-is-seen", "manifest-holds", "helpers-are-counted", "network-both-ways", "four-at-once",
        "stop-leaves-nothing", "death-is-noticed",
    }  # fmt: skip
    assert not [check for check in CHECKS if check.inapplicable(PLATFORMS["native"])]


@pytest.mark.parametrize(("name", "check"), PROMISES)
def test_it_keeps_its_promise(bench_for, name, check):
    bench = bench_for(name)
    if isinstance(bench, str):
        pytest.skip(f"{name}: {bench}")
    check.run(bench)
