"""What the lab is made of, as pure data."""

import dataclasses
import hashlib
import io
import json
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from tare.errors import HostError, ImageError, UsageError
from tare.features.kernel.exchange.count_request import FootprintRequest
from tare.features.kernel.execution import lab as footprint_lab
from tare.features.kernel.lab import forwarded_run, headers, lab_build, lab_recipes, payload
from tare.features.kernel.lab.forwarded_run import LabCommand
from tare.features.kernel.lab.lab_machine import LINUX, LabMachine, command
from tare.host import locked_packages
from tare.platforms.parts.machines import vm

STANZAS = """\
Types: deb
# a comment
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/some.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
"""
#: From a real modules.dep of linux-image-amd64, cut.
DEPENDENCIES = """\
kernel/drivers/virtio/virtio.ko: kernel/drivers/virtio/virtio_ring.ko
kernel/drivers/virtio/virtio_ring.ko:
kernel/drivers/virtio/virtio_pci_modern_dev.ko:
kernel/drivers/virtio/virtio_pci.ko: kernel/drivers/virtio/virtio_pci_modern_dev.ko kernel/drivers/virtio/virtio.ko kernel/drivers/virtio/virtio_ring.ko
kernel/drivers/block/virtio_blk.ko: kernel/drivers/virtio/virtio.ko kernel/drivers/virtio/virtio_ring.ko
kernel/crypto/crc32c_generic.ko:
"""  # noqa: E501


def test_another_suite_is_taken_from_the_archive_that_the_host_knows():
    assert lab_build.newer_sources(STANZAS, "bookworm", "bookworm-backports") == (
        "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm-backports\nComponents: main\n"
        "Signed-By: /usr/share/keyrings/some.gpg\n"
    )
    line = "deb [signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib\n"
    assert lab_build.newer_sources(f"# mine\n{line}", "bookworm", "bookworm-backports") == line.replace(
        " bookworm ", " bookworm-backports "
    )


def test_a_host_whose_sources_lack_the_suite_has_no_other_suite_either():
    assert lab_build.newer_sources(STANZAS.replace("bookworm", "trixie"), "bookworm", "bookworm-backports") == ""
    assert lab_build.newer_sources("", "bookworm", "bookworm-backports") == ""


def test_modules_load_after_what_they_need_and_built_in_ones_are_passed_over():
    order = [Path(name).stem for name in lab_build.loading_order(DEPENDENCIES, ["virtio_pci", "virtio_blk", "ext4"])]
    assert order == ["virtio_pci_modern_dev", "virtio_ring", "virtio", "virtio_pci", "virtio_blk"]
    compressed = lab_build.loading_order(DEPENDENCIES.replace(".ko", ".ko.xz"), ["virtio_pci"])
    assert compressed[-1] == "kernel/drivers/virtio/virtio_pci.ko.xz"


def test_the_recipe_has_both_flavours_with_hashes_of_their_own():
    lab_recipe = lab_recipes.load()
    assert set(lab_recipe.hosts) == {"kvm", "xen"}
    hashes = {root.hash for root in [*lab_recipe.hosts.values(), lab_recipe.emulator, *lab_recipe.stock.values()]}
    assert len(hashes) == 3 + len(lab_recipe.stock)
    with pytest.raises(UsageError) as caught:
        lab_recipe.host("xne")
    assert "xen" in caught.value.fix


def test_a_stock_host_is_a_root_like_a_flavours_with_its_own_suite_python_and_finish():
    lab_recipe = lab_recipes.load()
    assert set(lab_recipe.stock) == {"debian12", "debian13", "debian12-minimal", "debian13-minimal"}
    assert lab_recipe.host("debian13").suite == "trixie"
    assert (lab_recipe.python("debian13"), lab_recipe.python("kvm")) == ((3, 13), (3, 11))
    assert lab_recipe.resolved("debian13") == ("debian13", None)
    for name, root in lab_recipe.stock.items():
        assert {"systemd-sysv", "apparmor", "docker.io", "python3"} <= set(root.packages)
        assert root.hook.startswith(f"host={name}\n")
    assert not {"lxc", "podman", "gcc", "qemu-system-x86"} & set(lab_recipe.host("debian12-minimal").packages)
    with pytest.raises(UsageError) as caught:
        lab_recipe.require("debian14")
    assert "debian1" in caught.value.fix


def test_a_stock_host_has_apparmor_and_a_card_that_leads_nowhere(tmp_path):
    argv = command(dataclasses.replace(machine(tmp_path / "host"), stock=True), tmp_path)
    assert "apparmor=0" not in argv[argv.index("-append") + 1]
    assert "user,id=net,restrict=on" in argv
    assert argv.index("user,id=net,restrict=on") < argv.index("virtio-blk-pci,drive=host")
    assert not [word for word in command(machine(tmp_path / "host"), tmp_path) if "netdev" in word]


LOCK = """\
contourpy==1.3.3 ; python_full_version < '3.12' \\
    --hash=sha256:0a \\
    --hash=sha256:0b
contourpy==1.4.0 ; python_full_version >= '3.12' \\
    --hash=sha256:0c
numpy==2.4.6 \\
    --hash=sha256:0d
types-docker==7.2.0 \\
    --hash=sha256:0e
"""


def test_an_entry_of_a_lock_comes_with_all_of_its_hashes():
    entries = locked_packages.lock_entries(LOCK, {"contourpy", "types-docker", "none"})
    assert entries["contourpy"].splitlines() == LOCK.splitlines()[:5]
    assert entries["types-docker"] == "types-docker==7.2.0 \\\n    --hash=sha256:0e\n"
    assert entries.keys() == {"contourpy", "types-docker"}


def test_every_package_of_this_environment_is_locked():
    names = payload.installed(Path(sysconfig.get_paths()["purelib"])) - {"tare-bench", "pip"}
    assert {"numpy", "pydantic", "types-docker"} <= names
    assert names - locked_packages.lock_entries(locked_packages.lock(), names).keys() == set()


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder that pip takes for its index, with one wheel; returns the wheel's hash."""
    wheel = tmp_path / "index" / "sample-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("sample.py", "")
        packed.writestr("sample-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: sample\nVersion: 1.0\n")
        packed.writestr("sample-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        packed.writestr("sample-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    for name in ("sample-1.0", "pip-23.2.1", "tare_bench-0.1.0", "a.plug_in-1.0"):
        (tmp_path / "here" / f"{name}.dist-info").mkdir(parents=True)
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_packages_for_another_python_are_those_with_the_locks_hashes(tmp_path, monkeypatch, index):
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "__main__.py").write_text("raise SystemExit('the current folder is another user\\'s')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(locked_packages, "lock", lambda: f"sample==1.0 \\\n    --hash=sha256:{index}\n")
    said = []
    payload._install_packages(tmp_path / "site", tmp_path / "here", "3.13", said.append)
    assert (tmp_path / "site" / "sample.py").exists()
    assert said == ["left out of the lab, as the lock has no hashes of them: a-plug-in"]


def test_a_package_with_another_hash_is_refused(tmp_path, monkeypatch, index):
    monkeypatch.setattr(locked_packages, "lock", lambda: f"sample==1.0 \\\n    --hash=sha256:{'0' * 64}\n")
    with pytest.raises(HostError, match="Expected sha256 0000") as refused:
        payload._install_packages(tmp_path / "site", tmp_path / "here", "3.13", lambda _: None)
    assert index in str(refused.value)
    assert not (tmp_path / "site" / "sample.py").exists()


def machine(host, accel="tcg"):
    home = host.parent
    return LabMachine(accel, 2, 4 << 30, host, home / "payload", home / "initramfs", home / "control", home / "console")


def test_the_emulators_root_has_tares_home_elsewhere(tmp_path):
    argv = command(machine(tmp_path / "host"), tmp_path)
    assert "/tare/host/vmlinuz" in argv
    assert not [word for word in argv if str(tmp_path) in word]
    assert argv[argv.index("-cpu") + 1] == "max,+svm,-erms,-fsrm"
    disk = next(word for word in argv if "disk.ext4" in word)
    assert "snapshot=on" in disk
    assert "readonly=on" in next(word for word in argv if "/tare/payload" in word)


def test_a_hypervisor_boots_the_kernel_where_there_is_one(tmp_path):
    host = tmp_path / "host"
    host.mkdir()
    (host / "xen").touch()
    argv = command(machine(host), tmp_path)
    assert argv[argv.index("-kernel") + 1] == "/tare/host/xen"
    assert argv[argv.index("-initrd") + 1] == f"/tare/host/vmlinuz console=hvc0 {LINUX},/tare/initramfs"
    assert "dom0_mem=2048M" in argv[argv.index("-append") + 1]
    assert "thread=single" in argv[argv.index("-accel") + 1], "Xen's memory does not keep with several"


def test_a_lab_may_want_more_of_its_kernel(tmp_path):
    with_words = dataclasses.replace(machine(tmp_path / "host"), words=("tsc=reliable", "nowatchdog"))
    argv = command(with_words, tmp_path)
    assert argv[argv.index("-append") + 1].startswith(f"console=ttyS0 {LINUX} tsc=reliable nowatchdog")


def test_an_emulated_lab_is_told_its_clock_and_not_to_try_its_timer(tmp_path):
    """On a busy host a stock Debian's kernel panicked in its boot: "IO-APIC + timer doesn't work"."""
    emulated, hardware = machine(tmp_path / "host"), machine(tmp_path / "host", "kvm")
    argv = command(emulated, tmp_path)
    assert argv[argv.index("-append") + 1].endswith(f" {' '.join(vm.clock_words('tcg'))}")
    argv = command(hardware, tmp_path)
    assert argv[argv.index("-append") + 1] == f"console=ttyS0 {LINUX}"


def test_modules_are_built_for_the_kernel_that_the_host_has(tmp_path):
    packages = {"linux-image-cloud-amd64": "6.1.192-2", "linux-image-6.1.0-56-cloud-amd64": "6.1.192-2"}
    (tmp_path / "packages.json").write_text(json.dumps(packages))
    assert headers.release(tmp_path) == ("6.1.0-56-cloud-amd64", "6.1.192-2")
    assert "linux-headers-6.1.0-56-cloud-amd64" in lab_recipes.load().headers("6.1.0-56-cloud-amd64").packages
    (tmp_path / "packages.json").write_text("{}")
    with pytest.raises(ImageError) as caught:
        headers.release(tmp_path)
    assert "has no kernel" in caught.value.what


def test_kvm_gives_the_lab_the_hosts_processor(tmp_path):
    argv = command(machine(tmp_path / "host", accel="kvm"), tmp_path)
    assert argv[argv.index("-cpu") + 1] == "host"


@pytest.mark.parametrize(
    "changes",
    [
        {"argv": []},
        {"memory_bytes": 1 << 20},
        {"cpus": 0},
        {"files": [Path("/nowhere/at/all")]},
        {"results": Path(__file__)},
    ],
)
def test_what_cannot_be_is_said_before_anything_is_built(changes):
    usual = {"argv": ["true"], "flavour": "kvm", "memory_bytes": 4 << 30, "cpus": 2, "time_limit_s": 60}
    LabCommand(**usual).check()
    with pytest.raises(UsageError) as caught:
        LabCommand(**{**usual, **changes}).check()
    assert caught.value.fix


def packed(*members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, kind in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            info.linkname = "/etc/passwd"
            data = b"data" if kind == tarfile.REGTYPE else b""
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


def test_results_come_back_as_plain_files_within_their_folder(tmp_path):
    tar = packed(
        (".", tarfile.DIRTYPE),
        ("./below", tarfile.DIRTYPE),
        ("./below/good", tarfile.REGTYPE),
        ("../escaped", tarfile.REGTYPE),
        (f"{tmp_path}/absolute", tarfile.REGTYPE),
        ("./link", tarfile.SYMTYPE),
        ("./device", tarfile.CHRTYPE),
    )
    (tmp_path / "out.tar").write_bytes(tar)
    forwarded_run.unpack(tmp_path / "out.tar", tmp_path / "out")
    (tmp_path / "out.tar").unlink()
    paths = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert paths == ["out", "out/below", "out/below/good"]


def test_of_what_a_lab_leaves_only_what_is_expected_is_taken(tmp_path):
    names = (
        "./footprint.tare", "./footprint.tare-wal", "./footprint.tare-journal", "./footprint.tare-shm", "./answer.json",
        "./readings/00000.tar.gz", "./readings/below/00000.tar.gz", "./readings/x", "./other/answer.json", "./empty",
    )  # fmt: skip
    members = [(name, tarfile.REGTYPE) for name in names] + [("./folder", tarfile.DIRTYPE)]
    (tmp_path / "out.tar").write_bytes(packed(*members, ("./readings/link.tar.gz", tarfile.SYMTYPE)))
    command = footprint_lab.lab_command(FootprintRequest(), tmp_path, None)
    forwarded_run.unpack(tmp_path / "out.tar", tmp_path / "out", command.expected)
    taken = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*"))
    assert taken == [
        "answer.json", "footprint.tare", "footprint.tare-wal", "readings", "readings/00000.tar.gz"
    ]  # fmt: skip


def test_a_file_of_a_lab_that_is_larger_than_expected_is_refused(tmp_path):
    (tmp_path / "out.tar").write_bytes(packed(("./answer.json", tarfile.REGTYPE)))
    with pytest.raises(HostError, match=r"answer\.json has more than"):
        forwarded_run.unpack(tmp_path / "out.tar", tmp_path / "out", {"answer.json": 3})
