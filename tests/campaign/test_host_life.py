"""Instances that live by their platforms' own commands, on real platforms: figures, and nothing left."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tare.campaign.execution import life as life_trial
from tare.campaign.execution.living import Living
from tare.campaign.execution.own_instances import run_apart
from tare.campaign.instances.pool import InstancePool
from tare.contract.leftovers import left_on_host
from tare.errors import PlatformError, UnsupportedError
from tare.host import processes
from tare.host.kernel import parentage
from tare.model import FAILURES, NOT_SEEN, Arm
from tare.platforms import platform_registry
from tare.workloads import workload_registry as workloads
from tare.workloads.apart import Operation
from tare.workloads.life.programs import STAYS

pytestmark = [pytest.mark.host, pytest.mark.own_host]
NAMES = (
    "native",
    "runc",
    "crun",
    "docker",
    "podman",
    "lxc",
    "gvisor",
    "nspawn",
    "bubblewrap",
    "charliecloud",
    "lxd",
    "libvirt-qemu-tcg",
)


@pytest.fixture(params=NAMES)
def platform(request, launcher):
    [platform] = platform_registry.choose([request.param])
    platform.prepare(launcher.image)
    yield platform
    platform.close()


def _pool(platform, launcher):
    return InstancePool(platform, Arm(platform.name), launcher, pytest.fail, pytest.fail)


def test_a_whole_life_has_a_figure_for_each_part_and_leaves_nothing(platform, launcher, prepared):
    result = run_apart(workloads.get("whole-life"), {"time_s": 0}, _pool(platform, launcher), prepared[1])
    figures = {sample.metric: sample.value for sample in result.samples}
    parts = {"create", "start", "execute", "stop", "remove"}
    assert {"whole", "cpu", *parts} <= set(figures) <= {"whole", "cpu", *parts, *(f"{part}-cpu" for part in parts)}
    assert min(figures.values()) > 0
    assert left_on_host(f"{launcher.campaign}x") == []


def test_the_end_of_a_start_that_stays_is_known_by_its_own_handle_alone(launcher):
    """Another that waited for it left a handle of a process that seemed to run for ever."""
    [native] = platform_registry.choose(["native"])
    with parentage.adopting():
        instance = Living.placed(native, launcher, STAYS)
        try:
            for operation in (Operation.START, Operation.EXECUTE):
                instance.do(operation)
            assert instance.started.pid in instance.spec.group.pids()
            assert instance.started.pid not in instance.orphans
            instance.do(Operation.KILL)
            assert instance.started.returncode is not None
        finally:
            instance.end()


def test_a_platform_without_a_command_for_pauses_says_so(launcher, prepared):
    [nspawn] = platform_registry.choose(["nspawn"])
    with pytest.raises(UnsupportedError, match="systemd-nspawn has no command for it"):
        run_apart(workloads.get("pause"), {"time_s": 0}, _pool(nspawn, launcher), prepared[1])


@pytest.mark.parametrize(
    "name", ["native", "charliecloud", "lxd", pytest.param("libvirt-qemu-tcg", marks=pytest.mark.slow)]
)
def test_a_pause_stands_still_and_goes_on(name, launcher, prepared):
    [platform] = platform_registry.choose([name])
    platform.prepare(launcher.image)
    result = run_apart(workloads.get("pause"), {"time_s": 0}, _pool(platform, launcher), prepared[1])
    platform.close()
    assert {sample.metric for sample in result.samples} == {"pause", "resume", "ok"}


def test_a_pause_that_fails_is_a_figure_and_not_the_trials_end(launcher, prepared, monkeypatch, tmp_path):
    [native] = platform_registry.choose(["native"])
    life = native.life
    once = '[ -e "$0" ] || { touch "$0"; echo "unable to freeze" >&2; exit 1; }; exec "$@"'

    def refuses_once(spec, cleanup, argv):
        lived = life(spec, cleanup, argv)
        return replace(lived, pause=("sh", "-c", once, str(tmp_path / "refused"), *lived.pause))

    monkeypatch.setattr(native, "life", refuses_once)
    pool = _pool(native, launcher)
    with pytest.raises(PlatformError, match="native ended with 1: unable to freeze"):
        run_apart(workloads.get("pause"), {"time_s": 0}, pool, prepared[1])  # no pause succeeded
    (tmp_path / "refused").unlink()
    # However busy the host is, a round takes a second by this clock: there are three.
    monkeypatch.setattr(life_trial, "time", SimpleNamespace(monotonic=itertools.count().__next__))
    result = run_apart(workloads.get("pause"), {"time_s": 2.5}, pool, prepared[1])
    figures = {sample.metric: sample.value for sample in result.samples}
    assert figures["ok"] == pytest.approx(100 * 2 / 3)
    assert b"ended with 1: unable to freeze" in result.outputs[FAILURES]
    assert left_on_host(f"{launcher.campaign}x") == []


@pytest.mark.parametrize("name", ["native", "podman", "lxc", "nspawn", "charliecloud", "lxd"])
def test_what_does_not_obey_is_killed(name, launcher):
    [platform] = platform_registry.choose([name])
    platform.prepare(launcher.image)
    living = Living.placed(platform, launcher, STAYS)
    for operation in (Operation.CREATE, Operation.START, Operation.KILL):
        living.do(operation)
    assert living.spec.group.pids() == []
    living.end()
    assert left_on_host(f"{launcher.campaign}x") == []


def test_a_program_that_cannot_be_run_is_said_by_the_platforms_own_words(launcher):
    [runc] = platform_registry.choose(["runc"])
    living = Living.placed(runc, launcher, ["no-such-program"])
    with pytest.raises(PlatformError, match=r"`runc .* create .*` of runc ended with 1: .*no-such-program"):
        living.do(Operation.CREATE)
    living.end()
    assert left_on_host(f"{launcher.campaign}x") == []


def test_a_platform_whose_commands_tare_does_not_know_is_unsupported(launcher, prepared):
    [libvirt] = platform_registry.choose(["libvirt-lxc"])
    with pytest.raises(UnsupportedError, match="tare does not know the commands by which users of libvirt-lxc"):
        run_apart(workloads.get("exec"), {"time_s": 0}, _pool(libvirt, launcher), prepared[1])


BURST = {"most": 4, "starts": 1, "memory_mib": 192}


@pytest.mark.parametrize("name", ["native", "gvisor", "docker"])
def test_a_burst_has_a_time_for_each_number_and_leaves_nothing(name, launcher, prepared):
    [platform] = platform_registry.choose([name])
    platform.prepare(launcher.image)
    result = run_apart(workloads.get("burst"), BURST, _pool(platform, launcher), prepared[1])
    platform.close()
    figures = {sample.metric: sample.value for sample in result.samples}
    assert [figures[f"ok-{count}"] for count in (1, 2, 4)] == [100, 100, 100], result.outputs
    assert figures["p50-4"] > 0
    assert figures["cpu-4"] > 0
    assert left_on_host(f"{launcher.campaign}x") == []


def test_a_start_that_fails_is_a_figure_of_a_burst_and_not_its_end(launcher, prepared, monkeypatch):
    [runc] = platform_registry.choose(["runc"])
    life, lives = runc.life, []

    def every_other(spec, cleanup, argv):
        lives.append(life(spec, cleanup, argv if len(lives) % 2 else ["no-such-program"]))
        return lives[-1]

    monkeypatch.setattr(runc, "life", every_other)
    result = run_apart(workloads.get("burst"), {**BURST, "most": 2, "starts": 2}, _pool(runc, launcher), prepared[1])
    figures = {sample.metric: sample.value for sample in result.samples}
    assert figures["ok-1"] == figures["ok-2"] == 50
    assert b"no-such-program" in result.outputs[FAILURES]
    assert left_on_host(f"{launcher.campaign}x") == []


def test_beyond_its_time_a_burst_tries_no_larger_number(launcher, prepared):
    [native] = platform_registry.choose(["native"])
    result = run_apart(workloads.get("burst"), {**BURST, "time_s": 0}, _pool(native, launcher), prepared[1])
    assert {sample.metric for sample in result.samples} == {"p50-1", "ok-1", "total-1", "cpu-1"}
    assert b"p50-2: beyond 0 s" in result.outputs[NOT_SEEN]
    assert b"ok-4: beyond 0 s" in result.outputs[NOT_SEEN]


def test_a_staggered_burst_starts_at_its_rate(launcher, prepared):
    [native] = platform_registry.choose(["native"])
    params = {**BURST, "starts": 1, "rate": 4}
    result = run_apart(workloads.get("burst-staggered"), params, _pool(native, launcher), prepared[1])
    figures = {sample.metric: sample.value for sample in result.samples}
    assert figures["total-4"] >= 750  # the last of four is issued after three quarters of a second
    assert figures["p50-4"] < 750


@pytest.fixture
def gvisor(launcher):
    [platform] = platform_registry.choose(["gvisor"])
    platform.prepare(launcher.image)
    yield platform
    platform.close()


def test_a_restored_instance_answers_and_has_the_same_memory(gvisor, launcher, prepared):
    params = {"time_s": 0, "memory_mib": 384}
    result = run_apart(workloads.get("snapshot-64"), params, _pool(gvisor, launcher), prepared[1])
    figures = {sample.metric: sample.value for sample in result.samples}
    assert figures["size"] == pytest.approx(66, abs=10)
    assert 0 < figures["restore"] < figures["first-command"]
    assert figures["silent"] > 5
    assert left_on_host(f"{launcher.campaign}x") == []


@pytest.mark.parametrize(("name", "most"), [("gvisor", 4), ("qemu-tcg", 1)])
def test_copies_of_an_instance_answer_and_have_its_memory(name, most, launcher, prepared):
    [platform] = platform_registry.choose([name])
    platform.prepare(launcher.image)
    params = {"most": most, "memory_mib": 384}
    result = run_apart(workloads.get("fork"), params, _pool(platform, launcher), prepared[1])
    platform.close()
    figures = {sample.metric: sample.value for sample in result.samples}
    assert figures[f"ok-{most}"] == 100, result.outputs
    assert figures[f"memory-{most}"] > 64
    assert left_on_host(f"{launcher.campaign}x") == []


@pytest.mark.parametrize("workload", ["snapshot-64", "fork"])
def test_who_has_no_snapshot_says_why(workload, launcher, prepared):
    [runc] = platform_registry.choose(["runc"])
    params = workloads.get(workload).profiles["quick"]
    with pytest.raises(UnsupportedError, match="runc cannot snapshot: "):
        run_apart(workloads.get(workload), params, _pool(runc, launcher), prepared[1])


@pytest.fixture(scope="module", params=["containerd", "lxd"])
def engine(request, launcher):
    [platform] = platform_registry.choose([request.param])
    platform.prepare(launcher.image)
    yield platform
    platform.close()


def test_an_engine_of_tares_own_is_restarted_and_its_containers_outlive_it(engine, launcher, prepared):
    result = run_apart(workloads.get("engine-restart"), {"running": 1}, _pool(engine, launcher), prepared[1])
    figures = {sample.metric: sample.value for sample in result.samples}
    assert figures["survivors"] == 100
    assert 0 < figures["answers"] < figures["restart"]
    assert left_on_host(f"{launcher.campaign}x") == []


@pytest.mark.parametrize(("name", "why"), [("runc", "it has no daemon"), ("docker", "not one of tare's own")])
def test_an_engine_that_is_not_tares_own_is_not_restarted(name, why, launcher):
    [platform] = platform_registry.choose([name])
    with pytest.raises(UnsupportedError, match=why):
        platform.restart_engine()


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_what_a_container_on_an_engines_bridge_reaches_is_restricted_while_it_lives(name, launcher):
    [platform] = platform_registry.choose([name])
    platform.prepare(launcher.image)
    living = Living.placed(platform, launcher, STAYS)
    living.do(Operation.CREATE)
    living.do(Operation.START)
    label = f"tare-{living.spec.id}"
    assert label in processes.run(["iptables", "-w", "-S"]).text
    living.end()
    platform.close()
    assert label not in processes.run(["iptables", "-w", "-S"]).text
