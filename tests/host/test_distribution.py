"""How a missing package is installed on distributions that are not Debian, by their own os-release files."""

from pathlib import Path

import pytest

import tare
from tare.host import distribution
from tare.host.distribution import DEBIAN, FEDORA, command, family

ROCKY = 'NAME="Rocky Linux"\nVERSION="9.4 (Blue Onyx)"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n'
UBUNTU = 'PRETTY_NAME="Ubuntu 24.04 LTS"\nID=ubuntu\nID_LIKE=debian\n'
APT = "apt-get install"
LEAN = "dnf install --setopt=install_weak_deps=False"
ALPINE = 'NAME="Alpine Linux"\nID=alpine\n'


@pytest.mark.parametrize(
    ("os_release", "expected"),
    [("ID=debian\n", DEBIAN), (UBUNTU, DEBIAN), ("ID=fedora\n", FEDORA), (ROCKY, FEDORA), (ALPINE, None), ("", None)],
)
def test_the_family_is_named_by_the_distribution_or_what_it_is_like(os_release, expected):
    assert family(os_release) is expected


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
    ],
)
def test_each_family_has_its_own_command_and_names(packages, options, debian, fedora):
    assert command(DEBIAN, packages.split(), **options) == debian
    assert command(FEDORA, packages.split(), **options) == fedora
    assert command(None, packages.split(), **options) == f"install what Debian calls {packages}"


def test_a_host_like_fedora_is_told_dnf(monkeypatch, tmp_path):
    (tmp_path / "os-release").write_text(ROCKY)
    monkeypatch.setattr(distribution, "OS_RELEASE", tmp_path / "os-release")
    distribution._here.cache_clear()
    try:
        assert distribution.install("docker.io") == "dnf install moby-engine"
        assert distribution.owner("frob") == "dnf install the package that has frob"
    finally:
        distribution._here.cache_clear()


def test_no_other_module_names_a_distributions_command():
    """But for the fixed kernel's headers, which only a Debian host is asked for."""
    root = Path(tare.__file__).parent
    naming = {str(path.relative_to(root)) for path in root.rglob("*.py") if "apt-get install" in path.read_text()}
    assert naming == {"host/distribution.py", "lab/fixes.py"}
