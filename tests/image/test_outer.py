"""The system of a guest that is a host: which files come along."""

import struct

import pytest

from tare.errors import ImageError
from tare.host import libraries
from tare.image import guest, outer


def test_a_program_comes_with_what_it_is_linked_with(monkeypatch):
    libc = "/lib/x86_64-linux-gnu/libc.so.6"
    monkeypatch.setattr(libraries, "linked", lambda _program: {"libc.so.6": libc})
    assert outer.with_libraries("/usr/sbin/runc") == ["/usr/sbin/runc", libc]


def test_a_library_that_is_not_there_is_said_with_the_fix(monkeypatch):
    monkeypatch.setattr(libraries, "linked", lambda _program: {"libseccomp.so.2": None})
    with pytest.raises(ImageError) as caught:
        outer.with_libraries("runc")
    assert "libseccomp.so.2 is missing" in caught.value.what
    assert caught.value.fix == "reinstall runc"


def test_a_program_that_is_not_there_is_said_with_the_fix():
    with pytest.raises(ImageError) as caught:
        outer.located("no-such-program-anywhere")
    assert "no-such-program-anywhere is not installed" in caught.value.what


def test_what_a_module_needs_stands_in_it():
    # As in Debian's bridge.ko, overlay.ko.
    head = struct.pack("16s", b"\x7fELF")
    assert guest.needs(head + b"\0license=GPL\0depends=stp,llc\0retpoline=Y\0") == ["stp", "llc"]
    assert guest.needs(head + b"\0license=GPL\0depends=\0retpoline=Y\0") == []
    assert guest.needs(head) == []


def test_modules_come_after_those_that_they_need(tmp_path, monkeypatch):
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    folder = tmp_path / "guest" / "linux-image-1" / "lib" / "modules" / "1"
    folder.mkdir(parents=True)
    needs = {"bridge": "stp,llc", "stp": "llc", "llc": "", "br_netfilter": "bridge", "nf-x": ""}
    for name, others in needs.items():
        (folder / f"{name}.ko").write_bytes(b"\x7fELF\0depends=" + others.encode() + b"\0")
    modules = [file.stem for file in guest.with_needed(["br_netfilter", "nf_x", "ext4"])]
    assert modules == ["llc", "stp", "bridge", "br_netfilter", "nf-x"]
