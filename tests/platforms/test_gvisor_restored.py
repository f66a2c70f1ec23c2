"""What a restored sandbox is begun with; the restore itself is held by the contract, on a real runsc."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tare.errors import HostError, PlatformError
from tare.host.network import bridge, subnets
from tare.platforms import gvisor_restored, platform_registry


@pytest.fixture
def spec(tmp_path):
    space = SimpleNamespace(folder=tmp_path, log=tmp_path / "console.log")
    return SimpleNamespace(space=space, group=SimpleNamespace(leaf=lambda name: []))


def _runsc(tmp_path, run, checkpoint):
    program = tmp_path / "runsc"
    program.write_text(f"""#!/bin/sh
echo "$@" >>{tmp_path}/asked
case $1 in run) {run} ;; checkpoint) {checkpoint} ;; esac
""")
    program.chmod(0o755)
    return [str(program)]


def test_a_checkpoint_is_taken_once_the_agent_says_that_it_is_there(tmp_path, spec):
    runs = f"printf .; while [ ! -e {tmp_path}/ck ]; do sleep 0.01; done"
    command = _runsc(tmp_path, runs, f"touch {tmp_path}/ck")
    gvisor_restored._checkpoint(spec, command, "tare-a", tmp_path / "image")
    assert (tmp_path / "asked").read_text().splitlines() == [
        f"run --bundle {tmp_path} tare-a",
        f"checkpoint --image-path={tmp_path}/image tare-a",
    ]


def test_a_sandbox_that_does_not_come_up_is_not_checkpointed(tmp_path, spec):
    with pytest.raises(PlatformError, match="did not come up"):
        gvisor_restored._checkpoint(spec, _runsc(tmp_path, "exit 1", "exit 0"), "tare-a", tmp_path / "image")
    assert "checkpoint" not in (tmp_path / "asked").read_text()


def test_a_checkpoint_that_is_refused_is_told_in_runscs_words_and_ends_the_sandbox(tmp_path, spec):
    command = _runsc(
        tmp_path, f"echo $$ >{tmp_path}/pid; printf .; exec sleep 60", "echo 'no such state' >&2; exit 128"
    )
    with pytest.raises(HostError, match="no such state"):
        gvisor_restored._checkpoint(spec, command, "tare-a", tmp_path / "image")
    pid = (tmp_path / "pid").read_text().strip()
    assert not Path("/proc", pid).exists()


def test_the_address_that_a_stack_took_is_given_back_to_the_namespace(monkeypatch):
    commands = []
    monkeypatch.setattr(bridge, "ip_batch", lambda *lines: commands.extend(lines))
    network = bridge.Network(subnets.CANDIDATES[0])
    network.give_address("ab12", "10.77.0.10")
    assert commands == [
        "-n tare-ab12 addr replace 10.77.0.10/24 dev eth0",
        "-n tare-ab12 route replace default via 10.77.0.1",
    ]


def test_it_is_a_variant_that_takes_no_part_by_default():
    [platform] = platform_registry.choose(["gvisor-restored"])
    assert not platform.by_default
    assert "warm start" in platform.title
