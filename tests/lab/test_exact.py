"""A machine that is counted: its command line, what goes into it, and where the kernel has its fields."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from tare.errors import ImageError, PlatformError
from tare.features.kernel.lab import btf, exact, payload
from tare.features.kernel.lab.exact import Exact
from tare.features.kernel.lab.forwarded_run import LabCommand
from tare.image import guest

DATA = Path(__file__).with_name("data")
HOME = Path("/home/of/tare")


def described(tmp_path, **changes):
    disks = []
    for number in range(3):
        disk = tmp_path / f"disk{number}"
        disk.touch()
        os.truncate(disk, exact.ALIGN * (number + 1))
        disks.append(disk)
    facts = {
        "kernel": tmp_path / "vmlinuz", "initramfs": tmp_path / "initramfs", "disks": disks[:2], "results": disks[2],
        "memory_bytes": 4 << 30, "seed": 7, "console": tmp_path / "console", "output": tmp_path / "output",
        "plugin": tmp_path / "icount.so", "arguments": {"memory": "1", "log": "/tare/log"}, "words": ("extra=1",),
    }  # fmt: skip
    return Exact(**facts | changes)


def test_nothing_of_the_command_line_lets_two_runs_differ(tmp_path):
    line = " ".join(exact.command(described(tmp_path), tmp_path))
    for word in (
        "-smp 1", "-icount shift=0,sleep=off", "-cpu max,-rdrand,-rdseed", "-seed 7", "tare.seed=7 extra=1",
        f"-rtc base={exact.BEGAN},clock=vm", "-plugin /tare/icount.so,memory=1,log=/tare/log", "thread=single",
    ):  # fmt: skip
        assert word in line
    for device in ("virtio", "netdev", "drive", "socket", "rng", str(tmp_path)):
        assert device not in line
    assert "mem-path=/tare/disk0,size=2097152,share=off,readonly=on" in line, "the host's disk is never written"
    assert "mem-path=/tare/disk2,size=6291456,share=on" in line


@pytest.mark.thorough
def test_the_code_is_the_same_tar_each_time_and_its_modules_are_taken_as_they_are(tmp_path):
    with tarfile.open(fileobj=io.BytesIO(payload.code())) as tar:
        tar.extractall(tmp_path)
        assert {member.mtime for member in tar.getmembers()} == {0}
    compiled = next((tmp_path / "src/tare/__pycache__").glob("model.*.pyc")).read_bytes()
    assert compiled[4:8] == b"\1\0\0\0", "by hash, and unchecked"
    assert b"/lab/checkout/src/tare/model.py" in compiled
    assert (tmp_path / "src/tare/features/kernel/lab/icount/plugin.c").is_file()


def test_what_goes_in_has_the_command_with_its_environment_and_standard_input(tmp_path):
    program = tmp_path / "crun"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    command = LabCommand(["sh", "-c", "a 'b'"], "kvm", 2 << 30, 1, 60.0, [program], env={"X": "1 2"}, stdin=b"{}")
    with tarfile.open(fileobj=io.BytesIO(exact._given(command))) as tar:
        start = tar.extractfile("start.sh").read().decode()
        assert tar.extractfile("stdin").read() == b"{}"
        assert tar.getmember("files/crun").mode == 0o755
    assert "'X=1 2'" in start
    assert """sh -c 'a '"'"'b'"'"'' </lab/stdin""" in start


def test_a_machine_that_does_not_get_to_its_end_is_told_by_its_last_words(tmp_path):
    console = tmp_path / "console"
    assert exact._code(b"well\r\ntare: ended with 3\r\n", [console]) == 3
    console.write_bytes(b"[ 1.0] Kernel panic - not syncing\n")
    with pytest.raises(PlatformError, match="Kernel panic"):
        exact._code(b"", [console])


def test_a_disk_in_memory_is_made_as_long_as_one_must_be(tmp_path):
    disk = tmp_path / "payload"
    disk.write_bytes(b"x" * 5000)
    assert exact._aligned(exact._aligned(disk)).stat().st_size == exact.ALIGN
    assert disk.read_bytes().rstrip(b"\0") == b"x" * 5000


def test_offsets_of_fields_are_those_that_the_compiler_chose():
    types = btf.section((DATA / "types.o").read_bytes(), ".BTF")
    assert btf.offsets(types) == {"comm": 24, "cgroups": 56, "dfl_cgrp": 112, "kn": 16, "parent": 8, "name": 16}
    with pytest.raises(ImageError, match="have no pid"):
        btf.offsets(types, {"task_struct": ("comm", "pid")})
    with pytest.raises(ImageError, match=r"no section \.BTF\.base"):
        btf.section((DATA / "types.o").read_bytes(), ".BTF.base")


def test_fields_of_nameless_structures_are_the_outer_ones():
    types = btf.section((DATA / "nested.o").read_bytes(), ".BTF")
    assert btf.offsets(types, btf.CODE) == {"host": 8, "i_dentry": 8, "d_u": 24, "d_name": 8}


def test_an_initramfs_is_the_same_bytes_whenever_it_is_packed(tmp_path):
    packed = []
    for stamp in (1_000_000_000, 1_700_000_000):
        module = tmp_path / f"{stamp}" / "nfit.ko"
        module.parent.mkdir()
        module.write_bytes(b"module")
        os.utime(module, (stamp, stamp))
        packed.append(guest.pack(b"#!/bin/sh", guest.busybox_path(), [module]))
    assert packed[0] == packed[1]
