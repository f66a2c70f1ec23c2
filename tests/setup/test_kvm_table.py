"""The script for machines whose KVM runs guests names platforms and workloads that there are."""

import re
from pathlib import Path

from tare.platforms import platform_registry as platforms
from tare.workloads import workload_registry as workloads

SCRIPT = (Path(__file__).parents[2] / "scripts" / "kvm-table").read_text()


def _array(name):
    [listed] = re.findall(rf"^{name}=\(\n(.*?)^\)", SCRIPT, re.MULTILINE | re.DOTALL)
    return re.sub(r"#.*", "", listed).split()


def test_what_it_measures_is_there():
    assert set(_array("platforms")) <= set(platforms.all_platforms())
    assert set(_array("workloads")) <= set(workloads.all_workloads())


def test_it_measures_every_kind_of_machine_by_kvm_and_none_by_emulation():
    assert {"qemu", "qemu-microvm", "libvirt-qemu", "firecracker", "cloud-hypervisor"} <= set(_array("platforms"))
    assert not [name for name in _array("platforms") if name.endswith("-tcg")]
