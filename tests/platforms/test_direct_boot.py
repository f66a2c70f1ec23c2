"""Machines that boot without an initramfs: the kernel's command line, and what is said where that kernel is missing."""

import itertools
import re
import shlex
import subprocess
from dataclasses import replace

import pytest

from platforms.guests import MACHINE
from platforms.test_firecracker import MACHINE as MICROVM
from tare.image import guest
from tare.platforms import platform_registry
from tare.platforms.parts.machines import direct_boot, microvm, qemu_line

DIRECT = replace(MACHINE, kind="microvm", initramfs=None)


def _append(argv):
    return next(after for before, after in itertools.pairwise(argv) if before == "-append")


def _first_program(append):
    """What the kernel starts: its rule is that a word in double quotes is one (lib/cmdline.c, next_arg)."""
    before, _, after = append.partition(" -- ")
    [init] = re.findall(r"\binit=(\S+)", before)
    return [init, *(word.strip('"') for word in re.findall(r'"[^"]*"|\S+', after))]


def test_the_kernel_mounts_the_root_and_has_the_address_by_itself():
    before, _, _ = _append(qemu_line.command(DIRECT)).partition(" -- ")
    assert "root=/dev/vda rootfstype=ext4 rw" in before
    assert "ip=10.77.0.10::10.77.0.1:255.255.255.0::eth0:off" in before
    assert "-initrd" not in qemu_line.command(DIRECT)
    assert "tare.ip" not in before


def test_the_shell_is_given_one_line_that_becomes_the_agent():
    program = _first_program(_append(qemu_line.command(DIRECT)))
    assert program[:2] == ["/bin/sh", "-c"]
    assert len(program) == 3
    assert subprocess.run(["sh", "-n", "-c", program[2]], check=False).returncode == 0
    last = program[2].rpartition("; ")[2]
    assert last.startswith("exec /usr/local/bin/tare-agent serve --beacon 10.0.0.1:914 --init --userspace-at $began")
    assert "tare.0" in program[2]


def test_firecrackers_agent_connects_by_itself_and_no_initramfs_is_named():
    boot = microvm.settings(replace(MICROVM, initramfs=None))["boot-source"]
    assert set(boot) == {"kernel_image_path", "boot_args"}
    program = _first_program(boot["boot_args"])
    assert f"--host vsock:{microvm.HOST_CID}:{microvm.PORT}" in program[2]
    assert "virtio-ports" not in program[2]
    assert "pci=off" in boot["boot_args"]


def test_the_command_line_is_no_longer_than_a_kernel_takes():
    token = ("serve", "--beacon", "10.77.0.1:65535", "--token", "f" * 32)
    assert len(_append(qemu_line.command(replace(DIRECT, agent=token)))) < 2048


def test_a_double_quote_that_would_end_the_line_is_refused():
    with pytest.raises(ValueError, match="no double quote"):
        direct_boot.words("10.77.0.10/24", "10.77.0.1", ["serve", 'x"'], port=True)
    assert shlex.split(direct_boot.words("10.0.0.2/8", "10.0.0.1", ["serve"], port=False)[-1])


@pytest.mark.parametrize("name", ["qemu-microvm-direct-tcg", "firecracker-direct"])
def test_without_that_kernel_it_is_said_how_it_is_built(name, monkeypatch, tmp_path):
    monkeypatch.setattr(guest, "direct_folder", lambda: tmp_path)
    [platform] = platform_registry.choose([name])
    with pytest.raises(guest.ImageError) as refused:
        platform._boots()
    assert "make direct-kernel" in (refused.value.fix or "")


def test_the_kernels_release_is_that_of_its_build(monkeypatch, tmp_path):
    monkeypatch.setattr(guest, "direct_folder", lambda: tmp_path)
    (tmp_path / guest.PACKED).write_bytes(b"")
    (tmp_path / guest.RELEASE).write_text("6.1.192-tare-direct\n")
    assert guest.direct() == guest.Direct("6.1.192-tare-direct", tmp_path / guest.PACKED)
