"""How a host's kernel gives out memory, from the files of invented hosts."""

import pytest

from tare.host.facts.memory_policy import MemoryPolicy

FILES = {
    "sys/kernel/mm/ksm/run": "1\n",
    "proc/sys/vm/swappiness": "60\n",
    "proc/sys/vm/overcommit_memory": "2\n",
    "proc/self/cgroup": "12:cpu:/x\n0::/user.slice/session\n",
    "sys/fs/cgroup/user.slice/memory.high": "1073741824\n",
    "sys/fs/cgroup/user.slice/session/memory.high": "max\n",
    "sys/bus/virtio/drivers/virtio_balloon/virtio0/status": "",
}


def _policy(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return MemoryPolicy.read(root)


def test_every_setting_is_read(tmp_path):
    found = _policy(tmp_path, FILES)
    assert found == MemoryPolicy(merging="on", swappiness=60, overcommit="never", high=1 << 30, balloon=True)


def test_a_kernel_without_them_shows_nothing(tmp_path):
    found = _policy(tmp_path, {})
    assert found == MemoryPolicy(merging=None, swappiness=None, overcommit=None, high=None, balloon=False)


@pytest.mark.parametrize("text", ["", "many", "9" * 5000, "-1"])
def test_a_file_of_another_shape_is_no_setting(tmp_path, text):
    found = _policy(tmp_path, dict.fromkeys(FILES, text))
    assert (found.merging, found.swappiness, found.overcommit, found.high) == (None, None, None, None)


def test_hyper_v_has_a_balloon(tmp_path):
    assert _policy(tmp_path, {"sys/bus/vmbus/drivers/hv_balloon/1eccfd72-4b41/uevent": ""}).balloon
