"""How a missing package is installed on distributions that are not Debian, by their own os-release files."""

import ast
import tomllib
from pathlib import Path

import pytest

import tare
from tare.host import distribution, host_checks
from tare.host.distribution import ALPINE, ARCH, DEBIAN, FEDORA, RHEL, SUSE, command, family, name_of, parse, title
from tare.image import vmlinux
from tare.platforms import libvirt, podman
from tare.setup.components import CLONE, COMPONENTS, DEVELOPMENT

#: As these distributions ship them, but for addresses and colours.
ROCKY = """\
NAME="Rocky Linux"
VERSION="9.4 (Blue Onyx)"
ID="rocky"
ID_LIKE="rhel centos fedora"
VERSION_ID="9.4"
PLATFORM_ID="platform:el9"
PRETTY_NAME="Rocky Linux 9.4 (Blue Onyx)"
"""
FEDORA_41 = 'NAME="Fedora Linux"\nVERSION="41 (Server Edition)"\nID=fedora\nVERSION_ID=41\n'
RHEL_9 = 'NAME="Red Hat Enterprise Linux"\nID="rhel"\nID_LIKE="fedora"\nVERSION_ID="9.4"\n'
STREAM = 'NAME="CentOS Stream"\nVERSION="9"\nID="centos"\nID_LIKE="rhel fedora"\n'
ORACLE = 'NAME="Oracle Linux Server"\nVERSION="9.4"\nID="ol"\nID_LIKE="fedora"\n'
AMAZON = 'NAME="Amazon Linux"\nVERSION="2023"\nID="amzn"\nID_LIKE="fedora"\n'
TUMBLEWEED = 'NAME="openSUSE Tumbleweed"\n# VERSION="20241001"\nID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n'
LEAP = 'NAME="openSUSE Leap"\nVERSION="15.6"\nID="opensuse-leap"\nID_LIKE="suse opensuse"\n'
SLES = 'NAME="SLES"\nVERSION="12-SP1"\nID="sles"\nANSI_COLOR="0;32"\n'
ARCH_LINUX = 'NAME="Arch Linux"\nPRETTY_NAME="Arch Linux"\nID=arch\nBUILD_ID=rolling\n'
ALPINE_3 = 'NAME="Alpine Linux"\nID=alpine\nVERSION_ID=3.20.3\nPRETTY_NAME="Alpine Linux v3.20"\n'
NIXOS = 'NAME=NixOS\nID=nixos\nVERSION_ID="25.05"\n'
UBUNTU = 'PRETTY_NAME="Ubuntu 24.04 LTS"\nID=ubuntu\nID_LIKE=debian\n'
MINT = 'NAME="Linux Mint"\nID=linuxmint\nID_LIKE="ubuntu debian"\n'
APT = "apt-get install"
LEAN = "dnf install --setopt=install_weak_deps=False"


@pytest.mark.parametrize(
    ("os_release", "expected"),
    [
        ("ID=debian\n", DEBIAN), (UBUNTU, DEBIAN), (MINT, DEBIAN), (FEDORA_41, FEDORA), (ROCKY, RHEL), (RHEL_9, RHEL),
        (STREAM, RHEL), (ORACLE, RHEL), (TUMBLEWEED, SUSE), (LEAP, SUSE), (SLES, SUSE), (ARCH_LINUX, ARCH),
        (ALPINE_3, ALPINE), (AMAZON, None), (NIXOS, None), ("", None),
    ],
)  # fmt: skip
def test_the_family_is_named_by_the_distribution_or_what_it_is_like(os_release, expected):
    assert family(parse(os_release)) is expected


def test_values_are_read_with_and_without_quotes_and_comments_are_none():
    assert parse(ROCKY)["ID_LIKE"] == "rhel centos fedora"
    assert (parse(FEDORA_41)["ID"], parse(TUMBLEWEED).get("VERSION")) == ("fedora", None)
    assert (title(parse(ROCKY)), title(parse(NIXOS)), title({})) == ("Rocky Linux 9.4 (Blue Onyx)", "NixOS", "Linux")


@pytest.mark.parametrize(
    ("packages", "options", "debian", "fedora"),
    [
        ("lxc", {"lean": True}, f"{APT} --no-install-recommends lxc", f"{LEAN} lxc"),
        ("runc", {"again": True}, "apt-get install --reinstall runc", "dnf reinstall runc"),
        (
            "iproute2 mount util-linux",
            {},
            "apt-get install iproute2 mount util-linux",
            "dnf install iproute util-linux",
        ),
        ("lxd lxc", {}, "apt-get install lxd lxc", "this distribution has no lxd (Debian has)"),
        ("mmdebstrap", {}, "apt-get install mmdebstrap", "install what Debian calls mmdebstrap"),
        (
            "make linux-headers-6.1",
            {},
            "apt-get install make linux-headers-6.1",
            "dnf install make, and install what Debian calls linux-headers-6.1",
        ),
    ],
)
def test_each_family_has_its_own_command_and_names(packages, options, debian, fedora):
    assert command(DEBIAN, packages.split(), **options) == debian
    assert command(FEDORA, packages.split(), **options) == fedora
    assert command(None, packages.split(), **options) == f"install what Debian calls {packages}"


def test_rhel_is_not_fedora():
    assert command(RHEL, ["qemu-system-x86", "podman"]) == "dnf install qemu-kvm podman"
    assert command(FEDORA, ["qemu-system-x86", "docker.io"]) == "dnf install qemu-system-x86 moby-engine"
    assert command(RHEL, ["docker.io"]) == "install what Debian calls docker.io"  # Docker's own archive has it


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (SUSE, "zypper install --no-recommends iproute2 podman shadow passt"),
        (ARCH, "pacman -S iproute2 podman shadow passt"),
        (ALPINE, "apk add iproute2 podman shadow-uidmap passt"),
    ],
)
def test_others_have_theirs(of, expected):
    assert command(of, ["iproute2", "podman", "uidmap", "passt"], lean=True) == expected


def test_a_host_like_fedora_is_told_dnf(monkeypatch, tmp_path):
    (tmp_path / "os-release").write_text(ROCKY)
    monkeypatch.setattr(distribution, "OS_RELEASE", tmp_path / "os-release")
    distribution.here.cache_clear()
    try:
        assert distribution.install("uidmap") == "dnf install shadow-utils"
        assert distribution.owner("frob") == "dnf install the package that has frob"
    finally:
        distribution.here.cache_clear()


#: Not in the table: certain of none of the families.
NOWHERE = {"mmdebstrap", "user-mode-linux"}


def test_the_table_has_all_that_a_user_may_be_told_to_install_and_nothing_else():
    """But for what builds and tests tare."""
    users = {name for name in COMPONENTS if name not in {CLONE, DEVELOPMENT, "youki"}}
    packages = {need.package for name in users for need in COMPONENTS[name].needs}
    modules = map(Path.read_text, Path(tare.__file__).parent.rglob("*.py"))
    for text in (text for text in modules if "distribution.install" in text):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "distribution.install":
                packages |= {argument.value for argument in node.args if isinstance(argument, ast.Constant)}
    packages |= set(podman._INSTALL) | set(libvirt.INSTALL) | set(host_checks._PACKAGES.values())
    packages |= {package for kind in (libvirt.LibvirtLxc, libvirt.LibvirtQemu) for package in kind.packages}
    packages |= {vmlinux.PACKAGES.get(packer, packer) for packer in vmlinux.PACKERS.values()}
    assert set(tomllib.loads(distribution.NAMES.read_text())) == packages - NOWHERE


def test_the_table_names_families_that_there_are():
    families = {of.name for of in (FEDORA, RHEL, SUSE, ARCH, ALPINE)}
    for package, names in tomllib.loads(distribution.NAMES.read_text()).items():
        assert isinstance(names, str) or set(names) <= families, package
        assert name_of(package, None) is None
        assert name_of(package, DEBIAN) == package


def test_no_other_module_names_a_distributions_command():
    """But for the fixed kernel's headers, which only a Debian host is asked for."""
    root = Path(tare.__file__).parent
    naming = {str(path.relative_to(root)) for path in root.rglob("*.py") if "apt-get install" in path.read_text()}
    assert naming == {"host/distribution.py", "features/kernel/lab/fixes.py"}
