"""What `tare doctor` says of the kernel's levels and of the lab; no host in use has a kernel that counts its lines."""

import pytest

from tare.errors import ImageError
from tare.features.kernel.checks import of_levels
from tare.features.kernel.lab import kernel, lab_checks, lab_recipes
from tare.host import state
from tare.host.host_checks import HostCheck
from tare.model import Level


def _told(lab_state):
    return {check.name: check for check in of_levels(HostCheck("lab", lab_state, "this one"))}


def test_what_is_counted_in_a_lab_is_no_fault_of_the_host(monkeypatch):
    monkeypatch.delenv("TARE_LAB", raising=False)
    every = _told("ok")
    assert len(every) == len(Level) + 1
    assert every["lab"].observed == "this one"
    lines_check = every["count lines"]
    assert (lines_check.state, lines_check.advice) == ("ok", None)
    assert lines_check.observed.startswith(
        "in a lab, which tare footprint --level lines boots; on this host not: the kernel "
    )


def test_without_a_lab_or_in_one_it_is_said_with_the_fix(monkeypatch):
    monkeypatch.delenv("TARE_LAB", raising=False)
    lines_check = _told("warn")["count lines"]
    assert (lines_check.state, lines_check.advice) == ("warn", "see lab below: tare footprint --level lines boots one")
    monkeypatch.setenv("TARE_LAB", "1")
    inside = _told("warn")
    assert "lab" not in inside
    lines_check = inside["count lines"]
    assert lines_check.state == "warn"
    assert "does not count its lines" in lines_check.observed
    assert "on the host outside" in lines_check.advice


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    assert state.home() == tmp_path
    return tmp_path


def test_a_lab_that_is_not_built_will_be_unless_something_keeps_it_from_it(home):
    check = lab_checks.check(lambda: None)
    assert check.state == "ok"
    assert check.observed.startswith("not built yet; kvm, xen, lines: by what first needs it")
    check = lab_checks.check(lambda: ImageError("mmdebstrap is not installed", fix="apt-get install mmdebstrap"))
    assert (check.state, check.advice) == ("warn", "apt-get install mmdebstrap")
    assert "cannot be: mmdebstrap is not installed" in check.observed
    assert not (home / "lab").exists()  # looking makes nothing


def test_a_flavour_is_built_when_all_that_boots_it_is_there(home):
    lab_recipe = lab_recipes.load()
    for name in (f"qemu-{lab_recipe.emulator.hash}", f"host-kvm-{lab_recipe.host('kvm').hash}"):
        (home / "lab" / name).mkdir(parents=True)
    assert lab_checks.check(lambda: None).observed.startswith("kvm: built; xen, lines:")
    counting = lab_recipe.resolved("lines")[1]
    (home / "lab" / "kernels" / f"{kernel._name(counting)}-01234567").mkdir(parents=True)
    assert lab_checks.check(lambda: None).observed.startswith("kvm, lines: built; xen:")
    (home / "lab" / f"host-xen-{lab_recipe.host('xen').hash}").mkdir()
    assert lab_checks.check(lambda: ImageError("no disk")).observed == "kvm, xen, lines: built"
