"""One suite over every platform: what a platform promises, held on real sandboxes."""

import os
import secrets
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from platforms.leftovers import left_on_host
from tare.campaign import ground
from tare.errors import SessionError
from tare.host import processes
from tare.image import build
from tare.model import Arm, Resources
from tare.platforms import registry

pytestmark = pytest.mark.host

MEMORY = 512 << 20
PLATFORMS = registry.all_platforms()
#: These must run wherever the suite runs: `make test` sets them up.
REQUIRED = {
    "native",
    "runc",
    "crun",
    "bubblewrap",
    "nspawn",
    "docker",
    "lxc",
    "podman",
    "gvisor",
    "docker-gvisor",
    "qemu",
}


@pytest.fixture(scope="module")
def image():
    return build.ensure(build.agent_path(), progress=lambda _: None)


@pytest.fixture(scope="module")
def nursery(image):
    with ground.sole_campaign(), ground.prepared(image, Resources(ground.default_cpus(), MEMORY), None) as (nursery, _):
        yield nursery


@pytest.fixture(scope="module", params=sorted(PLATFORMS))
def platform(request, image):
    platform = PLATFORMS[request.param]
    answer = platform.detect()
    if not answer.available:
        assert answer.reason
        assert request.param not in REQUIRED, f"{request.param} must run here: {answer.reason}"
        pytest.skip(f"{request.param}: {answer.reason}")
    assert answer.version
    assert platform.prepare(image).disk_bytes > 50 << 20
    yield platform
    platform.close()


@pytest.fixture(scope="module")
def live(platform, nursery):
    live = nursery.start(platform, Arm(platform.name), measured=True)
    yield live
    live.stop()


def test_the_start_is_seen_from_outside(live):
    marks = live.marks
    assert 0 < marks.first_byte_ns <= marks.command_ns < 30e9
    assert 0 < marks.datagram_ns < 30e9, marks.reasons
    if marks.ping_ns is None:
        assert marks.reasons["ping_ns"]
    else:
        assert 0 < marks.ping_ns < 30e9


def test_the_same_bits_run_inside(live, image):
    assert live.session.get("/etc/tare-image", cap=200).decode().strip() == image.hash
    inside = live.session.execute(["sha256sum", "/usr/bin/sysbench"], time_limit_s=30)
    outside = processes.run(["sha256sum", str(image.root / "usr/bin/sysbench")])
    assert inside.stdout.split()[0] == outside.stdout.split()[0]


def test_sixteen_mebibytes_go_both_ways_unharmed(live, platform):
    data = secrets.token_bytes(16 << 20)
    live.session.put("/data/blob", data, 0o644)
    assert live.session.get("/data/blob", cap=len(data)) == data
    if platform.shares_data:
        assert (live.instance.spec.space.data / "blob").read_bytes() == data
    assert live.session.execute(["rm", "/data/blob"], time_limit_s=30).code == 0


def test_exit_codes_signals_and_stdin(live):
    assert live.session.execute(["sh", "-c", "exit 7"], time_limit_s=10).code == 7
    killed = live.session.execute(["sh", "-c", "kill -9 $$"], time_limit_s=10)
    assert (killed.code, killed.signal) == (None, 9)
    echoed = live.session.execute(["cat"], stdin=bytes(range(256)) * 100, time_limit_s=10)
    assert echoed.stdout == bytes(range(256)) * 100


def test_a_command_that_goes_on_is_ended_at_its_limit(live):
    began = time.monotonic()
    done = live.session.execute(["sh", "-c", "sleep 60 & wait"], time_limit_s=0.5)
    assert done.timed_out
    assert time.monotonic() - began < 10


def test_output_without_end_is_capped_and_the_instance_lives_on(live):
    done = live.session.execute(["sh", "-c", "yes | head -c 20000000"], time_limit_s=60, output_cap=100_000)
    assert done.truncated
    assert len(done.stdout) <= 100_000
    assert live.session.execute(["true"], time_limit_s=10).code == 0


def test_a_thousand_quick_commands(live):
    for _ in range(1000):
        assert live.session.execute(["true"], time_limit_s=30).code == 0


def test_its_processes_are_in_its_group_and_its_work_is_accounted_there(live):
    assert live.instance.host_processes()
    before = live.cpu_ns()
    live.session.execute(["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"], time_limit_s=60)
    assert live.cpu_ns() - before > 20_000_000


def test_it_runs_on_its_cpus_only(live):
    allowed = set(live.instance.spec.resources.cpus)
    for pid in live.instance.host_processes():
        try:
            assert os.sched_getaffinity(pid) <= allowed
        except ProcessLookupError:
            continue


def test_the_memory_limit_holds(live):
    program = "head -c 800m /dev/zero | tail -c 700m | wc -c"
    try:
        done = live.session.execute(["sh", "-c", program], time_limit_s=120)
    except SessionError:
        return  # the whole sandbox was killed for it: so it is with gVisor
    assert done.stdout.strip() != b"734003200", "700 MiB were held within 512 MiB"


def test_the_client_reaches_it(nursery, platform):
    live = nursery.start(platform, Arm(platform.name), measured=False)  # the memory test may have killed the other
    try:
        address = live.instance.address
        server = live.session.start(
            ["iperf3", "-s", "-1", "--forceflush", "-p", str(address.instance_port)], time_limit_s=30
        )
        server.wait_output(b"listening", 10)
        argv = ["iperf3", "-c", address.host, "-p", str(address.port), "-n", "1M"]
        root = str(nursery.image.root)
        done = processes.run(["nsenter", "--net=/run/netns/tare-client", "chroot", root, *argv], time_limit_s=30)
        assert done.code == 0, done
    finally:
        live.stop()


def test_four_start_at_once_and_do_not_collide(nursery, platform):
    with ThreadPoolExecutor(4) as pool:
        lives = list(pool.map(lambda _: nursery.start(platform, Arm(platform.name), measured=False), range(4)))
    try:
        for number, live in enumerate(lives):
            live.session.put("/data/who", str(number).encode(), 0o644)
        assert [live.session.get("/data/who", cap=10) for live in lives] == [b"0", b"1", b"2", b"3"]
    finally:
        for live in lives:
            live.stop()


def test_a_killed_instance_is_noticed_within_a_second(nursery, platform):
    live = nursery.start(platform, Arm(platform.name), measured=False)
    try:
        for pid in live.instance.host_processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        began = time.monotonic()
        with pytest.raises(SessionError):
            live.session.execute(["true"], time_limit_s=30)
        assert time.monotonic() - began < 1
    finally:
        live.stop()


def test_stopping_leaves_nothing(nursery, platform):
    live = nursery.start(platform, Arm(platform.name), measured=True)
    label = live.instance.spec.id
    assert left_on_host(label)
    live.stop()
    assert left_on_host(label) == []
