"""Instances that live by their platforms' own commands, on real platforms: figures, and nothing left."""

import pytest

from tare.campaign.execution.apart import run_apart
from tare.campaign.execution.living import Living
from tare.campaign.instances.pool import InstancePool
from tare.contract.leftovers import left_on_host
from tare.errors import PlatformError, UnsupportedError
from tare.host import processes
from tare.model import Arm
from tare.platforms import registry
from tare.workloads import registry as workloads
from tare.workloads.apart import Operation
from tare.workloads.life.programs import STAYS

pytestmark = [pytest.mark.host, pytest.mark.own_host]
NAMES = ("native", "runc", "crun", "docker", "podman", "lxc", "gvisor")


@pytest.fixture(params=NAMES)
def platform(request, launcher):
    [platform] = registry.choose([request.param])
    platform.prepare(launcher.image)
    yield platform
    platform.close()


def _pool(platform, launcher):
    return InstancePool(platform, Arm(platform.name), launcher, pytest.fail, pytest.fail)


def test_a_whole_life_has_a_figure_for_each_part_and_leaves_nothing(platform, launcher, prepared):
    result = run_apart(workloads.get("whole-life"), {"time_s": 0}, _pool(platform, launcher), prepared[1])
    figures = {sample.metric: sample.value for sample in result.samples}
    assert set(figures) == {"whole", "cpu", "create", "start", "execute", "stop", "remove"}
    assert min(figures.values()) > 0
    assert left_on_host(f"{launcher.campaign}x") == []


def test_a_pause_stands_still_and_goes_on(platform, launcher, prepared):
    result = run_apart(workloads.get("pause"), {"time_s": 0}, _pool(platform, launcher), prepared[1])
    assert {sample.metric for sample in result.samples} == {"pause", "resume"}


def test_what_does_not_obey_is_killed(platform, launcher):
    living = Living.placed(platform, launcher, STAYS)
    for operation in (Operation.CREATE, Operation.START, Operation.KILL):
        living.do(operation)
    assert living.spec.group.pids() == []
    living.end()
    assert left_on_host(f"{launcher.campaign}x") == []


def test_a_program_that_cannot_be_run_is_said_by_the_platforms_own_words(launcher):
    [runc] = registry.choose(["runc"])
    living = Living.placed(runc, launcher, ["no-such-program"])
    with pytest.raises(PlatformError, match=r"`runc .* create .*` of runc ended with 1: .*no-such-program"):
        living.do(Operation.CREATE)
    living.end()
    assert left_on_host(f"{launcher.campaign}x") == []


def test_a_platform_whose_commands_tare_does_not_know_is_unsupported(launcher, prepared):
    [bubblewrap] = registry.choose(["bubblewrap"])
    with pytest.raises(UnsupportedError, match="bubblewrap has no command that enters or ends a sandbox"):
        run_apart(workloads.get("exec"), {"time_s": 0}, _pool(bubblewrap, launcher), prepared[1])


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_what_a_container_on_an_engines_bridge_reaches_is_restricted_while_it_lives(name, launcher):
    [platform] = registry.choose([name])
    platform.prepare(launcher.image)
    living = Living.placed(platform, launcher, STAYS)
    living.do(Operation.CREATE)
    living.do(Operation.START)
    label = f"tare-{living.spec.id}"
    assert label in processes.run(["iptables", "-w", "-S"]).text
    living.end()
    platform.close()
    assert label not in processes.run(["iptables", "-w", "-S"]).text
