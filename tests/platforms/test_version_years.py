"""The year in which the line of an engine's version first came out."""

import pytest

from tare.platforms import platform_contract, platform_registry


@pytest.mark.parametrize(
    ("name", "version", "year"),
    [
        ("runc", "1.1.15+ds1", 2022),
        ("runc", "1.10.0", None),
        ("crun", "1.8.1", 2023),
        ("docker", "20.10.24+dfsg1", 2020),
        ("docker", "28.5.1", 2025),
        ("podman", "4.3.1", 2022),
        ("podman-rootless", "5.4.2", 2025),
        ("containerd", "1.6.20~ds1", 2022),
        ("nspawn", "252 (252.39-1~deb12u2)", 2022),
        ("qemu-tcg", "7.2.22, tcg", 2022),
        ("crun-in-qemu-tcg", "1.8.1 in QEMU 7.2.22, tcg", None),
        ("libvirt-qemu-tcg", "libvirt 9.0.0, QEMU 7.2.22, tcg", 2023),
        ("gvisor", "v0.0.0-20260905035102-160fafc42237", 2026),
        ("gvisor", "release-20230801.0", 2023),
        ("gvisor", "unknown", None),
        ("native", "6.18.44", None),
    ],
)
def test_the_line_of_a_version_is_known_by_its_year(name, version, year):
    [platform] = platform_registry.choose([name])
    assert platform_contract.released(platform, version) == year


def test_no_line_stands_in_two_years():
    for platform in platform_registry.all_platforms().values():
        lines = [line for known in platform.years.values() for line in known.split()]
        assert len(lines) == len(set(lines)), platform.name
        assert all(2010 < year < 2100 for year in platform.years)


def test_a_plug_in_that_gives_no_year_is_refused():
    [platform] = platform_registry.choose(["runc"])
    platform.released = lambda _: "2024"
    try:
        with pytest.raises(TypeError, match="which is no year"):
            platform_contract.released(platform, "1.1")
    finally:
        del platform.released
