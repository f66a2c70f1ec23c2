"""A folder of the host's as a guest's /data: both makes of the daemon as data, one of them on a real guest."""

from dataclasses import replace
from pathlib import Path

import pytest

from platforms.guests import MACHINE
from tare.campaign.execution import caches
from tare.campaign.instances import instance_posture
from tare.errors import HostError, UnsupportedError
from tare.model import Arm
from tare.platforms import platform_registry
from tare.platforms.parts.machines import virtiofs
from tare.platforms.parts.machines.qemu_line import command
from tare.workloads.base import RunPlan

#: What Debian 12's (of QEMU) and the one of crates.io, which Debian 13 packages, say to `--version`.
IN_C = """\
virtiofsd version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)
Copyright (c) 2003-2022 Fabrice Bellard and the QEMU Project developers
using FUSE kernel interface version 7.36
"""
IN_RUST = "virtiofsd 1.14.0\n"


@pytest.mark.parametrize(
    ("shown", "version", "words"),
    [
        (IN_C, "7.2.22", ["--fd=9", "-f", "-o", "source=/work/data"]),
        (IN_RUST, "1.14.0", ["--fd=9", "--shared-dir=/work/data"]),
    ],
)
def test_each_make_of_the_daemon_is_told_in_its_own_words(shown, version, words):
    daemon = virtiofs.parse("/usr/libexec/virtiofsd", shown)
    assert daemon.version == version
    assert virtiofs.command(daemon, Path("/work/data"), 9) == ["/usr/libexec/virtiofsd", *words]


@pytest.mark.parametrize("shown", ["", "fusermount3 version: 3.14.0\n"])
def test_what_is_no_virtiofsd_is_told(shown):
    with pytest.raises(HostError, match="--version"):
        virtiofs.parse("virtiofsd", shown)


def test_a_host_without_one_says_what_to_install(monkeypatch):
    monkeypatch.setattr(virtiofs.processes, "find", lambda _: None)
    with pytest.raises(HostError) as caught:
        virtiofs.located.__wrapped__()
    assert caught.value.what == "virtiofsd is not installed"
    assert "virtiofsd" in caught.value.fix


def test_a_machine_shares_its_memory_with_the_daemon_and_has_one_disk():
    argv = " ".join(command(replace(MACHINE, data=None, shared=Path("/work/shared"))))
    assert "-object memory-backend-memfd,id=memory,size=768M,share=on -machine memory-backend=memory" in argv
    assert "-chardev socket,id=data,path=/work/shared -device vhost-user-fs-pci,chardev=data,tag=data" in argv
    assert "tare.data=virtiofs" in argv
    assert "drive=data" not in argv


@pytest.mark.host
def test_a_guests_data_are_the_hosts_folder_and_direct_io_goes_through_the_hosts_cache(launcher):
    platform = platform_registry.choose(["qemu-virtiofs-tcg"])[0]
    answer = platform.detect()
    assert answer.available, answer.reason
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm(platform.name), measured=False)
    try:
        folder = running.instance.spec.space.data
        work = "head -c 8388608 /dev/urandom >file && sync && dd if=file of=/dev/null bs=1M iflag=direct status=none"
        done = running.session.execute(["sh", "-c", work], cwd="/data", time_limit_s=120)
        assert done.code == 0, done.stderr
        kind = running.session.execute(["stat", "-f", "-c", "%T", "/data"], time_limit_s=30).stdout
        assert (folder / "file").stat().st_size == 8 << 20
        plan = RunPlan(measures=(), uncached=("file",))
        caches.require_direct(plan, running)
        with pytest.raises(UnsupportedError, match="through the host's page cache"):
            caches.require_uncached(plan, running, work=8)
        beside = instance_posture.facts(platform, running)[instance_posture.BESIDE]
    finally:
        running.stop()
    assert b"fuse" in kind or b"virtiofs" in kind
    assert list(beside) == ["virtiofsd"]
    confined = beside["virtiofsd"]
    assert confined["seccomp"].startswith("filter")
    assert "sys_admin" not in confined["capabilities"]
    assert confined["capabilities"].partition(":")[0] in {str(count) for count in range(1, 10)}
