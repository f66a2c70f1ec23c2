"""What comes back from a lab, through the real agent: whatever its size, and never lost for how it ends here."""

import os

import pytest

from tare.errors import HostError, PlatformError
from tare.features.kernel.lab import forwarded_run
from tare.session.messages import MAX_OUTPUT_CAP


@pytest.fixture
def lab(tmp_path):
    """The folder of a lab with results in it."""
    (tmp_path / "lab" / "out" / "below").mkdir(parents=True)
    return tmp_path / "lab"


@pytest.mark.thorough
@pytest.mark.parametrize("size", [0, 5, MAX_OUTPUT_CAP + 12_345])
def test_results_come_back_as_they_are(session, lab, tmp_path, size):
    content = os.urandom(size)
    (lab / "out" / "below" / "x.tare").write_bytes(content)
    forwarded_run.fetch(session, tmp_path / "here", lab)
    assert (tmp_path / "here" / "below" / "x.tare").read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "lab"]


@pytest.mark.slow
def test_results_of_more_than_a_gibibyte_come_back(session, lab, tmp_path):
    with (lab / "out" / "large").open("wb") as file:
        file.truncate((1 << 30) + 4097)
        file.seek(1 << 30)
        file.write(b"end")
    forwarded_run.fetch(session, tmp_path / "here", lab)
    came = tmp_path / "here" / "large"
    assert came.stat().st_size == (1 << 30) + 4097
    with came.open("rb") as file:
        file.seek(1 << 30)
        assert file.read(4) == b"end\0"


def test_what_cannot_be_unpacked_is_kept_and_said(session, lab, tmp_path):
    (lab / "out" / "x.tare").write_bytes(b"hours of work")
    (tmp_path / "here").write_text("a file where the folder should be")
    with pytest.raises(HostError) as caught:
        forwarded_run.fetch(session, tmp_path / "here", lab)
    kept = tmp_path / "here.from-lab.tar"
    assert caught.value.what.endswith(f"what came of the results is kept in {kept}")
    forwarded_run.unpack(kept, tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere" / "x.tare").read_bytes() == b"hours of work"


def test_a_full_disk_keeps_what_there_is_room_for(session, lab, tmp_path, monkeypatch):
    (lab / "out" / "x.tare").write_bytes(os.urandom(3 << 20))
    monkeypatch.setattr(forwarded_run, "PIECE", 1 << 20)
    monkeypatch.setattr(
        forwarded_run.shutil, "disk_usage", lambda _: type("Usage", (), {"free": forwarded_run.SPARED + (2 << 20)})
    )
    with pytest.raises(HostError, match="has room for 2 MiB; what came of the results is kept in"):
        forwarded_run.fetch(session, tmp_path / "here", lab)
    assert (tmp_path / "here.from-lab.tar").stat().st_size == 2 << 20


def test_a_lab_that_lies_about_the_size_is_no_endless_work(session, lab, tmp_path, monkeypatch):
    (lab / "stat").write_text("#!/bin/sh\necho 99999999999\n")
    (lab / "stat").chmod(0o755)
    execute = session.execute
    monkeypatch.setattr(
        session,
        "execute",
        lambda argv, **options: execute([str(lab / "stat")] if argv[0] == "stat" else argv, **options),
    )
    with pytest.raises(PlatformError, match="of 99999999999 bytes of results came out of the lab"):
        forwarded_run.fetch(session, tmp_path / "here", lab)
