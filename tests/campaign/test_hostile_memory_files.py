"""Files by which an instance shows that it remembers: what its root may make of them reaches nothing of the host's."""

import os
from types import SimpleNamespace

import pytest

from tare.campaign.execution import forks, snapshots
from tare.errors import PlatformError
from tare.workloads.life.programs import AGAIN, BEAT, SUM

SECRET = "a secret of the host's"


@pytest.fixture
def placed(tmp_path, monkeypatch):
    """A function that makes an instance with a /data; beside the folders is a file of the host's."""
    monkeypatch.setattr(snapshots, "LIMIT_S", 0.05)
    (tmp_path / "secret").write_text(SECRET)

    def make(name):
        (tmp_path / name).mkdir()
        space = SimpleNamespace(data=tmp_path / name)
        return SimpleNamespace(spec=SimpleNamespace(space=space), life=SimpleNamespace(files=None))

    return make


def test_an_answer_is_read_and_removed(placed):
    instance = placed("data")
    (instance.spec.space.data / SUM).write_text("17")
    assert snapshots.read_memory(instance, 17) > 0
    assert [file.name for file in instance.spec.space.data.iterdir()] == [AGAIN]


@pytest.mark.parametrize("target", ["secret", "/dev/zero", "nowhere"])
def test_no_link_is_followed_for_an_answer(target, placed, tmp_path):
    instance = placed("data")
    (instance.spec.space.data / SUM).symlink_to(tmp_path / target)
    with pytest.raises(PlatformError, match="does not answer") as error:
        snapshots.read_memory(instance, 17)
    assert SECRET not in str(error.value)


def test_a_pipe_is_not_waited_for_and_an_endless_file_not_read(placed):
    instance = placed("data")
    os.mkfifo(instance.spec.space.data / SUM)
    with pytest.raises(PlatformError, match="does not answer"):
        snapshots.read_memory(instance, 17)
    other = placed("other")
    (other.spec.space.data / SUM).touch()
    os.truncate(other.spec.space.data / SUM, 1 << 40)
    with pytest.raises(PlatformError, match="not what it was"):
        snapshots.read_memory(other, 17)


def test_no_file_is_made_where_a_link_leads(placed, tmp_path):
    instance = placed("data")
    (instance.spec.space.data / AGAIN).symlink_to(tmp_path / "made")
    with pytest.raises(PlatformError, match="something else of its files"):
        snapshots.read_memory(instance, 17)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("target", ["secret", "/dev/zero"])
def test_a_copy_gets_no_file_of_the_hosts(target, placed, tmp_path):
    prepared, copy = placed("data"), placed("copy")
    (prepared.spec.space.data / BEAT).symlink_to(tmp_path / target)
    forks._take_beat(prepared, copy)
    assert (copy.spec.space.data / BEAT).read_bytes() == b""


def test_a_copy_gets_the_beat_and_no_file_without_end(placed):
    prepared, copy, other = placed("data"), placed("copy"), placed("other")
    beat = prepared.spec.space.data / BEAT
    beat.write_bytes(b"...")
    forks._take_beat(prepared, copy)
    assert (copy.spec.space.data / BEAT).read_bytes() == b"..."
    os.truncate(beat, 1 << 40)
    with pytest.raises(PlatformError, match="more than 16 MiB"):
        forks._take_beat(prepared, other)
