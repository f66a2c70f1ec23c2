"""The most memory of a control group in a stretch of time, on both kinds of hierarchy."""

import errno
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tare.errors import HostError
from tare.host import cgroup, peak
from tare.model import Resources

MIB = 1 << 20


@dataclass
class Group:
    """A group whose files are in a folder."""

    folder: Path
    unified: bool

    def file(self, controller, name):
        return self.folder / name


def _refusing(*_):
    raise OSError(errno.EINVAL, "this kernel has no such write")


def test_version_1_forgets_what_was_before(tmp_path):
    file = tmp_path / "memory.max_usage_in_bytes"
    file.write_text("900\n")
    with peak.watched(Group(tmp_path, unified=False)) as highest:
        assert file.read_text() == "0"
        file.write_text("700\n")
        assert highest() == 700


def test_version_2_forgets_for_one_descriptor_where_the_kernel_can(tmp_path):
    file = tmp_path / "memory.peak"
    file.write_text("900\n")
    with peak.watched(Group(tmp_path, unified=True)) as highest:
        file.write_text("700\n")
        assert highest() == 700


def test_where_it_cannot_only_what_exceeds_all_before_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(peak.os, "write", _refusing)
    file = tmp_path / "memory.peak"
    file.write_text("900\n")
    with peak.watched(Group(tmp_path, unified=True)) as highest:
        with pytest.raises(HostError, match="before the run"):
            highest()
        file.write_text("901\n")
        assert highest() == 901


def test_a_kernel_without_a_peak_is_named(tmp_path):
    with pytest.raises(HostError, match=r"5\.19"), peak.watched(Group(tmp_path, unified=True)):
        raise AssertionError("there is no such file")


def test_descriptors_are_closed(tmp_path):
    (tmp_path / "memory.peak").write_text("1\n")

    def opened():
        return [
            link
            for link in Path("/proc/self/fd").iterdir()
            if link.is_symlink() and "memory.peak" in str(link.readlink())
        ]

    with peak.watched(Group(tmp_path, unified=True)):
        assert len(opened()) == 1
    assert opened() == []


@pytest.mark.host
@pytest.mark.own_host
def test_a_real_groups_peak_is_that_of_each_stretch():
    path = f"tare/peak{os.getpid()}"
    group = cgroup.Group(cgroup.path_of(path))
    group.create(Resources((0,), 512 * MIB))
    try:
        enter = "; ".join(f"open({str(procs)!r}, 'w').write('0')" for procs in group.leaf("tool"))

        def takes(mib):
            subprocess.run([sys.executable, "-c", f"{enter}; x = bytearray({mib} << 20)"], check=True)

        with peak.watched(group) as highest:
            takes(128)
            assert 128 * MIB <= highest() < 200 * MIB
        if group.unified:
            return  # the kernel may not be able to forget
        with peak.watched(group) as highest:
            takes(32)
            assert 32 * MIB <= highest() < 100 * MIB
    finally:
        group.close()
        cgroup.destroy(group.path)
