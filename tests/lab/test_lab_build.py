"""What the builds of the lab say when they cannot be done."""

import os
from pathlib import Path

import pytest

from tare.errors import ImageError
from tare.features.kernel.lab import lab_build
from tare.image import image_build

DATA = Path(__file__).parent / "data"


@pytest.fixture
def bootstrap(tmp_path, monkeypatch):
    """A stand-in for mmdebstrap that says what a real one said, and fails; and a host whose sources have the suite."""
    program = tmp_path / "bin" / "mmdebstrap"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/asked\ncat {DATA}/no-backports.txt >&2\nexit 25\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    sources = tmp_path / "debian.sources"
    sources.write_text("Types: deb\nURIs: http://127.0.0.1:9/debian\nSuites: bookworm\nComponents: main\n")
    monkeypatch.setattr(image_build, "sources", lambda: [str(sources)])
    monkeypatch.setattr(lab_build, "NEEDED_DISK", 0)  # nothing is fetched: a host with less room runs these tests too
    return tmp_path


def test_backports_that_are_not_there_are_named_with_the_fix(bootstrap):
    with pytest.raises(ImageError) as caught:
        lab_build.emulator(lambda _: None)
    assert "the lab's QEMU comes from bookworm-backports" in caught.value.what
    assert "does not have a Release file" in caught.value.what
    assert "tare lab build" in caught.value.fix
    assert "qemu-system-x86" in (bootstrap / "asked").read_text()
    assert lab_build.built() == {}, "nothing half made stays"


def test_a_host_that_knows_no_archive_is_told_so(bootstrap, monkeypatch):
    monkeypatch.setattr(image_build, "sources", list)
    with pytest.raises(ImageError) as caught:
        lab_build.emulator(lambda _: None)
    assert "where bookworm-backports is, is not known" in caught.value.what


def test_too_little_disk_is_said_before_anything_is_fetched(bootstrap, monkeypatch):
    monkeypatch.setattr(lab_build, "NEEDED_DISK", 1 << 60)
    with pytest.raises(ImageError) as caught:
        lab_build.host("kvm", lambda _: None)
    assert "GiB are free" in caught.value.what
    assert not (bootstrap / "asked").exists()
