"""A container's configuration of LXC's, on hosts with and without AppArmor."""

import pytest

from host import machines
from tare.host.facts import security
from tare.platforms import lxc


@pytest.mark.parametrize(("enabled", "profiles"), [("Y", [f"lxc.apparmor.profile = {lxc.PROFILE}"]), ("N", [])])
def test_where_apparmor_is_on_a_container_has_lxcs_own_profile(monkeypatch, tmp_path, enabled, profiles):
    root = machines.write(tmp_path, {"sys/module/apparmor/parameters/enabled": enabled})
    monkeypatch.setattr(security, "ROOT", root)
    lines = lxc.config("tare-x", "tare/x").splitlines()
    assert [line for line in lines if "apparmor" in line] == profiles


def test_the_trial_container_mounts_below_a_root_of_its_own(tmp_path):
    lines = lxc.trial_config("tare-x", "tare/x", tmp_path / "root").splitlines()
    assert f"lxc.rootfs.path = dir:{tmp_path / 'root'}" in lines
    assert all((tmp_path / "root" / name).is_dir() for name in ("proc", "sys", "dev"))
    binds = [line for line in lines if line.endswith("none bind,ro,create=dir 0 0")]
    assert "lxc.mount.entry = /usr usr none bind,ro,create=dir 0 0" in binds
