"""The configuration of a Xen guest as pure data, what is said where there is no Xen, and the loop devices."""

from dataclasses import replace
from pathlib import Path

import pytest

from tare.host import processes
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack, Journal
from tare.platforms import platform_registry, xen

DOMAIN = xen.Domain(
    name="tare-ab1x2",
    kernel=Path("/k"),
    initramfs=Path("/i"),
    words=("console=hvc0", "--", "serve"),
    memory_bytes=512 << 20,
    cpus=(2, 3),
    disks=("/dev/loop0", "/dev/loop1"),
    link="tareab1x2",
    mac="02:7a:0a:4d:00:0a",
)


def test_the_configuration_is_the_golden_one():
    assert xen.config(DOMAIN) == (Path(__file__).parent / "data" / "xen.cfg").read_text()


def test_a_trivial_guest_has_neither_disks_nor_a_network():
    lines = xen.config(replace(DOMAIN, disks=(), link="", mac="")).splitlines()
    assert "disk = []" in lines
    assert "vif = []" in lines


def test_a_host_that_is_no_dom0_says_so_with_the_fix(monkeypatch, tmp_path):
    monkeypatch.setattr(xen, "CAPABILITIES", tmp_path / "capabilities")
    answer = platform_registry.choose(["xen-pv"])[0].detect()
    assert not answer.available
    assert answer.reason == "this host does not run under Xen as dom0"
    assert "apt-get install xen-system-amd64" in answer.fix
    assert "tare lab run --flavour xen" in answer.fix


def test_a_guest_of_xens_is_no_dom0_and_one_that_controls_is(monkeypatch, tmp_path):
    monkeypatch.setattr(xen, "CAPABILITIES", tmp_path / "capabilities")
    (tmp_path / "capabilities").write_text("\n")
    assert not xen.is_dom0()
    (tmp_path / "capabilities").write_text("control_d\n")
    assert xen.is_dom0()


def test_a_dom0_without_xl_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(xen, "CAPABILITIES", tmp_path / "capabilities")
    (tmp_path / "capabilities").write_text("control_d\n")
    monkeypatch.setattr(xen.processes, "find", lambda name: None)
    assert platform_registry.choose(["xen-pv"])[0].detect().reason == "xl is not installed"


def test_what_was_never_made_is_removed_quietly(tmp_path):
    removers.remove(removers.loop(tmp_path / "nothing"))
    removers.remove(removers.xen_domain("tare-nothing"))


@pytest.mark.host
def test_a_loop_device_is_there_and_goes_with_its_owner(tmp_path):
    file = tmp_path / "work" / "disk"
    file.parent.mkdir()
    file.write_bytes(bytes(1 << 20))
    cleanup = CleanupStack(Journal(tmp_path / "journal"))
    device = xen.loop_device(cleanup, file)
    listed = ["losetup", "--associated", str(file)]
    assert device in processes.run(listed).text
    cleanup.release()
    assert processes.run(listed).text == ""
    removers.remove(removers.loop(file))
