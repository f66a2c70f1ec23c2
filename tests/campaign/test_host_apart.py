"""Trials that start instances of their own, on real platforms."""

import contextlib
import dataclasses
from pathlib import Path

import pytest

from tare.campaign.execution.cold import drop_start_files
from tare.campaign.execution.own_instances import run_apart
from tare.campaign.instances.pool import InstancePool
from tare.errors import HostError, PlatformError
from tare.host import processes, state
from tare.host.filesystems import roots
from tare.host.resources.journal import CleanupStack, Journal
from tare.image import minimal_root
from tare.image.image_build import AGENT_INSIDE, HASH_INSIDE, agent_path
from tare.model import Arm
from tare.platforms import platform_contract, platform_registry
from tare.workloads import workload_registry as workloads

#: What a trial does with its instances does not know what platform they are of; tests/workloads has gVisor's besides.
NAMES = (
    "native",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("docker", "runc", "gvisor", "uml", "qemu-tcg")),
)
#: Where it is about a platform's own files and starts, one with a daemon too.
OF_PLATFORMS = ("native", "docker", *NAMES[2:])
TINY = {
    "density-primes": {"most": 2, "slice_ms": 60, "rounds": 5, "warmup_ms": 20},
    "density-stream": {"most": 2, "array_bytes": 16 << 20, "slice_ms": 60, "rounds": 5, "warmup_ms": 20},
    "density-network": {"most": 2, "time_s": 1},
    "density-start": {"most": 2},
    "redis-beside-cpu": {"pairs": 1, "requests": 500, "keys": 300},
    "redis-beside-network": {"pairs": 1, "requests": 500, "keys": 300},
    "density-memory": {"most": 2},
    "image-size": {},
    "memory-least": {"slice_ms": 40, "rounds": 4, "warmup_ms": 10},
    "memory-least-stream": {"slice_ms": 40, "rounds": 4, "warmup_ms": 10, "tries": 2},
}


@pytest.fixture(params=NAMES)
def pool(request, launcher):
    [platform] = platform_registry.choose([request.param])
    platform.prepare(launcher.image)
    pool = InstancePool(platform, Arm(platform.name), launcher, pytest.fail, pytest.fail)
    yield pool
    assert pool.running_instances == [], "who ran it has ended what it started"
    platform.close()


def _told(name, pool, client):
    workload = workloads.get(name)
    result = run_apart(workload, {**workload.profiles["quick"], **TINY[name]}, pool, client)
    return {sample.metric: sample.value for sample in result.samples}, result


@pytest.mark.host
@pytest.mark.parametrize("name", ["redis-beside-cpu", "redis-beside-network"])
def test_a_workload_has_its_figures_alone_and_beside_a_noisy_neighbour(name, pool, prepared):
    figures, result = _told(name, pool, prepared[1])
    assert figures["kept"] == pytest.approx(100 * figures["beside"] / figures["alone"])
    assert figures["latency"] > 0
    shares = {}
    for place, text in result.outputs.items():
        if place.endswith("neighbour"):
            shares[place.split()[1]] = float(text.decode().split()[0])
    assert shares["alone"] < shares["beside"] / 2


@pytest.mark.host
@pytest.mark.parametrize("name", ["density-primes", "density-stream", "density-network"])
def test_two_at_once_have_figures_each_and_together(name, pool, prepared):
    figures, result = _told(name, pool, prepared[1])
    assert {"each-1", "each-2", "total-2", "cpu-cost"} <= set(figures)
    assert figures["each-2"] > 0
    assert figures["each-2"] * 2 == pytest.approx(figures["total-2"])
    assert result.cpu_ns > 0


@pytest.mark.host
def test_starts_at_once_are_all_there_when_the_last_is(pool, prepared):
    figures, _ = _told("density-start", pool, prepared[1])
    assert figures.keys() == {"each-1", "each-2", "total-2"}
    assert figures["total-2"] >= figures["each-2"] > 0


@pytest.mark.host
@pytest.mark.parametrize("pool", OF_PLATFORMS, indirect=True)
def test_instances_started_at_once_are_as_good_as_any(pool):
    try:
        running_instances = pool.grow_at_once(3)
        assert len({running.instance.spec.id for running in running_instances}) == 3
        assert [running.session.execute(["echo", "here"]).stdout for running in running_instances] == [b"here\n"] * 3
    finally:
        pool.clear()


@pytest.mark.host
@pytest.mark.parametrize("pool", OF_PLATFORMS, indirect=True)
def test_one_more_instance_takes_some_memory(pool, prepared):
    figures, _ = _told("density-memory", pool, prepared[1])
    assert figures["further-group"] > 0
    assert figures["first-pss"] > 0


@pytest.mark.host
def test_the_least_memory_is_a_step_and_not_all(pool, prepared):
    figures, result = _told("memory-least", pool, prepared[1])
    assert figures["limit"] % 8 == 0
    assert 8 <= figures["limit"] < 512
    assert result.outputs["tries"].startswith(b"512 MiB: ")


@pytest.mark.host
def test_arrays_need_their_own_memory_besides(pool, prepared):
    figures, _ = _told("memory-least-stream", pool, prepared[1])
    assert 3 * 64 < figures["limit"] < 512


@pytest.mark.host
@pytest.mark.parametrize("pool", OF_PLATFORMS, indirect=True)
def test_the_image_takes_about_what_is_in_it(pool, prepared):
    figures, result = _told("image-size", pool, prepared[1])
    assert 0.5 * figures["unpacked"] < figures["disk"] < 2 * figures["unpacked"]
    assert result.outputs["form"]


@pytest.fixture
def own_image(pool, tmp_path):
    """A root that is this test's alone: what other sessions start at the same time is of other files.

    A guest wants more in it (`tryout.why_not`): it has the campaign's, and in the slow tests no session beside.
    """
    if pool.platform.own_kernel:
        yield pool.launcher.image
        return
    image = minimal_root.make(agent_path(), tmp_path)
    with CleanupStack(Journal(state.journal())) as cleanup:
        cleanup.own(*pool.platform.kept(image))
        pool.launcher = dataclasses.replace(pool.launcher, image=image)
        yield image


@pytest.mark.host
@pytest.mark.parametrize("pool", OF_PLATFORMS, indirect=True)
def test_what_a_start_reads_leaves_the_page_cache(pool, own_image):
    form = platform_contract.prepared(pool.platform, own_image)
    watched = [path if path.is_file() else path / name for path in form.files for name in (AGENT_INSIDE, HASH_INSIDE)]
    for path in watched:
        path.read_bytes()
    assert all(_cached(path) for path in watched)
    drop_start_files(pool.platform, own_image)
    assert not any(_cached(path) for path in watched)
    pool.grow(1)
    pool.clear()


@pytest.mark.host
@pytest.mark.parametrize("pool", OF_PLATFORMS, indirect=True)
def test_a_platforms_own_programs_leave_it_too_unless_they_run(pool, own_image):
    programs = [
        Path(processes.find(name)).resolve() for name in platform_contract.prepared(pool.platform, own_image).programs
    ]
    assert programs
    for path in programs:
        path.read_bytes()
    for _ in range(20):
        drop_start_files(pool.platform, own_image)
        stays = [path for path in programs if _cached(path) and not _mapped(path)]
        if not stays:  # else another session's may have ended just now
            break
    assert stays == []


def _mapped(path):
    """Whether some process of this host runs it: the kernel keeps it then."""
    facts = path.stat()
    for maps in Path("/proc").glob("[0-9]*/map_files"):
        with contextlib.suppress(OSError):  # it ended
            for mapping in maps.iterdir():
                with contextlib.suppress(OSError):
                    mapped = mapping.stat()
                    if (mapped.st_dev, mapped.st_ino) == (facts.st_dev, facts.st_ino):
                        return True
    return False


def _cached(path):
    """Whether any page is in the page cache. A read that may not wait would tell too, and fetch it."""
    return bool(roots.cached_share(path.parent, path.name))


@pytest.mark.host
def test_a_start_whose_files_are_not_known_cannot_be_cold(launcher):
    [platform] = platform_registry.choose(["native-userland"])
    with pytest.raises(HostError) as refused:
        drop_start_files(platform, launcher.image)
    assert refused.value.fix == "leave startup-cold out for native-userland"


@pytest.mark.host
def test_a_start_that_fails_beside_others_ends_all_and_tells_why(launcher, monkeypatch):
    """The third never comes to the gate, where the first two are held."""
    [platform] = platform_registry.choose(["runc"])
    platform.prepare(launcher.image)
    launch, names = platform.launch, []

    def one_fails(spec, cleanup):
        names.append(spec.id)
        if len(names) == 3:
            raise PlatformError("there is no third")
        return launch(spec, cleanup)

    monkeypatch.setattr(platform, "launch", one_fails)
    pool = InstancePool(platform, Arm("runc"), launcher, pytest.fail, pytest.fail)
    with pytest.raises(PlatformError, match="there is no third"):
        pool.grow_at_once(3)
    pool.clear()
    left = [path for path in launcher.work.iterdir() if path.name in names]
    assert left == []
