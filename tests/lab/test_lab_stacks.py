"""What only a lab can show of stacks: control groups of version 2 alone, Debian's kernel, and guests of KVM."""

import json

import pytest

from tare.features.kernel.analysis.stacks import SampleParts
from tare.features.kernel.counters import stack_sampler
from tare.features.kernel.lab import forwarded_run as lab_run
from tare.features.kernel.lab.forwarded_run import LabCommand
from tare.features.kernel.reading import bpf
from tare.footprint_model import GUEST

pytestmark = [pytest.mark.lab, pytest.mark.host, pytest.mark.timeout(1800)]


def test_the_guests_time_is_a_frame_and_natives_has_none(tmp_path):
    printed = {1: b"", 2: b""}

    def output(channel, data):
        printed[channel] += data

    program = tmp_path / "stacks.o"
    program.write_bytes(bpf.compiled(stack_sampler.SOURCE))
    argv = ["python3", "tests/lab/stacks.py", f"/lab/files/{program.name}"]
    command = LabCommand(argv, "kvm", 2 << 30, 2, 900.0, (program,))
    assert lab_run.run(command, output, lambda _: None) == 0, printed[2].decode()
    answer = json.loads(printed[1])
    assert answer["missed"] == []
    hits = {
        footprint["platform"]: footprint["hits"]
        for footprint in answer["footprints"]
        if footprint["workload"] and footprint["scope"] != "host"
    }
    assert set(hits) == {"native", "gvisor-kvm"}
    native, gvisor = SampleParts.of(hits["native"]), SampleParts.of(hits["gvisor-kvm"])
    assert native.guest == 0
    assert native.user > 0.5 * native.samples
    # How much is left for the guest goes by what leaving it costs in an emulator that other work disturbs: 21 % once.
    assert gvisor.guest > 0.02 * gvisor.samples
    assert {stack.partition(";")[0] for stack in hits["gvisor-kvm"] if stack.endswith(GUEST)} == {"runsc-sandbox"}
    assert any(";entry_SYSCALL_64_after_hwframe;do_syscall_64" in stack for stack in hits["gvisor-kvm"])
