"""Docker daemons with other settings than Docker's defaults: the same promises, and the facts say the settings."""

import os

import pytest

from platforms.dockerds import REMAPPED, Dockerd
from tare.contract import suite
from tare.contract.promises import CHECKS
from tare.host import processes, state, userns
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack, Journal
from tare.platforms import platform_registry

pytestmark = [pytest.mark.host, pytest.mark.own_host]

#: The first Docker that has an image store of containerd's; Debian 12's has none.
WITH_CONTAINERD_STORE = 24
SETTINGS = {
    "userns-remap": {"userns-remap": REMAPPED},
    "containerd-store": {"features": {"containerd-snapshotter": True}},
}
#: `stream-is-clean` writes to /data and reads it on the host.
PROMISES = ("start-is-seen", "stream-is-clean", "memory-holds", "escape", "stop-leaves-nothing")


@pytest.fixture(scope="module", params=SETTINGS)
def bench(request):
    """A daemon that is set so, and a bench of its containers without a network."""
    version = processes.run(["dockerd", "--version"]).require().text.split()[2]
    if request.param == "containerd-store" and int(version.partition(".")[0]) < WITH_CONTAINERD_STORE:
        pytest.skip(f"Docker {version} has no image store of containerd's: make host-test has one that has")
    folder = state.work() / f"dockerd{os.getpid()}"
    folder.mkdir()
    with CleanupStack(Journal(state.journal())) as cleanup, pytest.MonkeyPatch.context() as patch:
        cleanup.own(removers.folder(folder), removers.mount(folder / "data"))
        daemon = Dockerd(folder, cleanup, SETTINGS[request.param])
        patch.setenv("DOCKER_HOST", daemon.host)
        [platform] = platform_registry.choose(["docker-none"])
        try:
            answer = platform.detect()
            assert answer.available, answer.reason
            with suite.benches(lambda _: None) as bench_of:
                docker_bench = bench_of(platform)
                platform.prepare(docker_bench.launcher.image)
                yield docker_bench
                docker_bench.close()
        finally:
            platform.close()
            daemon.daemon.stop()


@pytest.mark.parametrize("check", [check for check in CHECKS if check.name in PROMISES], ids=lambda check: check.name)
def test_it_keeps_its_promise(bench, check):
    check.run(bench)


def test_the_facts_say_how_the_daemon_is_set(bench, request):
    facts = bench.platform.detect().details
    remapped = request.node.callspec.params["bench"] == "userns-remap"
    assert facts["users"] == ("remapped (userns-remap)" if remapped else "the host's")
    assert facts["image store"] == ("the daemon's own" if remapped else "containerd")


def test_root_inside_is_who_the_facts_say(bench, request):
    remapped = request.node.callspec.params["bench"] == "userns-remap"
    bench.running.session.put("/data/mine", b"", 0o644)
    owner = (bench.running.instance.spec.space.data / "mine").stat().st_uid
    assert owner == (userns.FIRST if remapped else 0)
