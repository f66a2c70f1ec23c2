"""The kernel that counts its lines: what is asked of its build, as pure data, and what is said when it cannot be."""

import os
from pathlib import Path

import pytest

from tare.errors import ImageError, UsageError
from tare.features.kernel.lab import kernel, lab_build, lab_recipes
from tare.features.kernel.lab.lab_machine import LabMachine, MachineParts, _initramfs, command
from tare.image import image_build

DATA = Path(__file__).parent / "data"
#: The configuration that Debian's source 6.1.192-2 made of what is asked for; the options that are set.
CONFIGURED = (DATA / "configured.txt").read_text()


def test_debians_source_gives_all_that_is_asked_for():
    assert kernel.missing(kernel.asked_config(), CONFIGURED) == []


@pytest.mark.parametrize(
    ("asked", "changed", "lost"),
    [
        ("CONFIG_GCOV_PROFILE_ALL=y", "", "CONFIG_GCOV_PROFILE_ALL=y"),
        ("CONFIG_NR_CPUS=8", "CONFIG_NR_CPUS=64", "CONFIG_NR_CPUS=8"),
        ("CONFIG_PCI=y", "CONFIG_PCI=y\nCONFIG_MODULES=y", "# CONFIG_MODULES is not set"),
    ],
)
def test_an_option_that_fell_out_is_named(asked, changed, lost):
    assert kernel.missing(kernel.asked_config(), CONFIGURED.replace(f"{asked}\n", f"{changed}\n")) == [lost]


def test_an_option_that_says_it_is_not_set_is_not_set():
    assert kernel.missing("# CONFIG_IPV6 is not set\n", "# CONFIG_IPV6 is not set\n") == []
    assert kernel.missing("CONFIG_IPV6=y\n", "# CONFIG_IPV6 is not set\n") == ["CONFIG_IPV6=y"]


def test_the_version_is_the_one_that_apt_would_install():
    policy = (DATA / "policy.txt").read_text()
    assert kernel.candidate(policy) == "6.1.192-2"
    assert kernel.candidate(policy.replace("Candidate: 6.1.192-2", "Candidate: (none)")) is None
    assert kernel.candidate("") is None


def test_lines_is_the_host_kvm_on_another_kernel():
    lab_recipe = lab_recipes.load()
    host, own_kernel = lab_recipe.resolved("lines")
    assert host == "kvm"
    assert own_kernel is not None
    assert own_kernel.source == "linux-source-6.1"
    assert lab_recipe.resolved("kvm") == ("kvm", None)
    with pytest.raises(UsageError) as caught:
        lab_recipe.host("line")
    assert "lines" in caught.value.fix


def test_source_and_compiler_are_of_the_version_that_the_cache_goes_by():
    own_kernel = lab_recipes.load().resolved("lines")[1]
    packages = lab_recipes.build_root(own_kernel, {"gcc-12": "12.2.0-14", "linux-source-6.1": "6.1.192-2"}).packages
    assert {"gcc-12=12.2.0-14", "linux-source-6.1=6.1.192-2", "make"} <= set(packages)


def test_its_kernel_boots_with_the_hosts_disk_and_no_modules(tmp_path):
    host = tmp_path / "host"
    (host / "modules").mkdir(parents=True)
    (host / "modules" / "00-virtio.ko").write_bytes(b"a module of another kernel" * 1000)
    image = tmp_path / "kernel-gcov" / "bzImage"
    files = [tmp_path / name for name in ("payload", "initramfs", "control", "console")]
    argv = command(LabMachine("tcg", 2, 4 << 30, host, *files, kernel=image), tmp_path)
    assert argv[argv.index("-kernel") + 1] == "/tare/kernel-gcov/bzImage"
    assert any("/tare/host/disk.ext4" in word for word in argv)
    parts = MachineParts(tmp_path, host, files[0])
    assert len(_initramfs(parts)) > len(_initramfs(MachineParts(tmp_path, host, files[0], image)))


def test_objects_that_count_are_known_by_the_names_of_their_counters():
    vmlinux = (
        b"\0/usr/src/linux/mm/mmap.gcda\0\0/usr/src/linux/arch/x86/kvm/../../../virt/kvm/kvm_main.gcda\0"
        b"/usr/src/linux/mm/mmap.gcda\0/usr/src/linux/drivers/char/hw_random/virtio-rng.gcda\0/elsewhere/a.gcda\0"
    )
    assert kernel.linked(vmlinux) == [
        "drivers/char/hw_random/virtio-rng",
        "mm/mmap",
        "virt/kvm/kvm_main",
    ]


def test_a_function_is_of_the_one_source_that_has_it():
    by_path = {
        "include/linux/mm.h": ["mmap_lock", "do_mmap"],
        "mm/mmap.c": ["do_mmap", "init"],
        "fs/exec.c": ["do_execve", "init"],
    }
    expected = {"do_execve": "fs/exec.c", "do_mmap": "mm/mmap.c", "mmap_lock": "include/linux/mm.h"}
    assert kernel.by_function(by_path) == expected


@pytest.mark.parametrize(
    ("log", "code", "what"),
    [
        (
            "  CC      mm/mmap.o\nmm/mmap.c:12:1: error: unknown type name 'u3'\n"
            "make[1]: *** [scripts/Makefile.build:250: mm/mmap.o] Error 1\nmake: *** [Makefile:2021: .] Error 2\n",
            2,
            "mm/mmap.c:12:1: error: unknown type name 'u3'",
        ),
        (
            "/bin/sh: 1: flex: not found\nmake[1]: *** [scripts/Makefile.host:9: lexer.lex.c] Error 127\n",
            2,
            "lexer.lex.c",
        ),
        ("  AR      vmlinux.a\nld: final link failed: No space left on device\n", 2, "no space is left"),
        ("  CC      mm/mmap.o\n", None, "not done in 240 minutes"),
        ("", -9, "failed with -9: no message"),
    ],
)
def test_a_build_that_fails_says_why(log, code, what):
    assert what in kernel._failed(log, "compile", code, 4 * 3600).what


def test_progress_is_said_by_the_share_of_files():
    lines = []
    share = kernel._Share(40, lines.append)
    for done in range(0, 51, 3):
        share(b"  CC      a.o\n  AR      built-in.a\n" * done)
    assert len(lines) == 9, lines
    assert "of about 40 files compiled (15 %)" in lines[0]
    assert all("100" not in line for line in lines), "it is not done until it boots"


def test_a_host_whose_apt_has_no_source_is_told_so(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "apt-cache"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 0\n")  # as apt-cache does for a name that it does not know
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(image_build, "sources", list)
    with pytest.raises(ImageError) as caught:
        kernel.ensure("lines", lambda _: None)
    assert "linux-source-6.1" in caught.value.what
    assert [path.name for path in (lab_build.folder() / "kernels").iterdir()] == ["lock"], "nothing half made stays"


def test_other_flavours_have_the_hosts_own_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    assert kernel.ensure("kvm", lambda _: None) is None
