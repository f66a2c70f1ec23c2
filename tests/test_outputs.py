"""Nothing that a user has is lost by what tare writes: an output that is an input is refused, and files are replaced
whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from tare import outputs
from tare.errors import TareError, UsageError

PAGE = "<!doctype html><title>old</title>"


@pytest.fixture
def campaign(tmp_path):
    file = tmp_path / "night.tare"
    file.write_bytes(b"SQLite format 3\0 precious")
    return file


@pytest.mark.parametrize(
    ("campaign", "page"),
    [
        ("night.tare", "night.html"),
        ("cpu.docker", "cpu.docker.html"),
        ("cpu.gvisor", "cpu.gvisor.html"),
        ("v1.2.tare", "v1.2.html"),
        ("cpu", "cpu.html"),
    ],
)
def test_every_campaign_has_a_page_of_its_own(tmp_path, campaign, page):
    assert outputs.page_of(tmp_path / campaign) == tmp_path / page


def _names(campaign, tmp_path):
    (tmp_path / "link").symlink_to(campaign)
    (tmp_path / "hard").hardlink_to(campaign)
    (tmp_path / "folder").symlink_to(tmp_path)
    yield campaign
    yield tmp_path / "link"
    yield tmp_path / "hard"
    yield tmp_path / "folder" / campaign.name
    yield tmp_path / ".." / tmp_path.name / campaign.name
    for beside in ("-wal", "-shm", "-journal"):
        yield campaign.with_name(campaign.name + beside)


def test_a_page_that_is_an_input_by_any_name_is_refused(campaign, tmp_path):
    for name in _names(campaign, tmp_path):
        with pytest.raises(UsageError, match=r"replace|SQLite keeps"):
            outputs.check_page(name, [campaign])


def test_nothing_but_a_page_is_replaced_by_a_page(campaign, tmp_path):
    with pytest.raises(UsageError, match="no page of tare's"):
        outputs.check_page(campaign)  # that is no input
    old = tmp_path / "old.html"
    old.write_text(PAGE)
    outputs.check_page(old, [campaign])
    with pytest.raises(UsageError, match="is a folder"):
        outputs.check_page(tmp_path, [campaign])


@pytest.mark.parametrize(
    "name", ["no/x.tare", "night.tare", "night.tare-wal", "x.html", "x.HTML", "n" * 300, "dangling"]
)
def test_a_place_where_no_campaign_can_be_is_known_before(campaign, tmp_path, name):
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(TareError) as refused:
        outputs.check_new_campaign(tmp_path / name)
    assert refused.value.fix
    assert sorted(tmp_path.iterdir()) == before


def test_a_log_that_a_new_database_would_take_for_its_own_is_left_alone(tmp_path):
    (tmp_path / "gone.tare-wal").write_bytes(b"what a moved campaign has not taken in")
    with pytest.raises(TareError, match="log of a database"):
        outputs.check_new_campaign(tmp_path / "gone.tare")


def test_a_folder_that_takes_no_files_is_known_before():
    with pytest.raises(UsageError, match="cannot be written"):
        outputs.check_new_campaign(Path("/proc/x.tare"))


def _fail_in_the_middle(place, error):
    with outputs.written(place) as file:
        file.write("half of")
        file.flush()
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_a_writing_that_fails_leaves_what_was_there(tmp_path, error):
    place = tmp_path / "page.html"
    place.write_text(PAGE)
    with pytest.raises((error, UsageError)):
        _fail_in_the_middle(place, error)
    assert place.read_text() == PAGE
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_what_is_written_is_whole_at_its_place_and_not_before(tmp_path):
    place = tmp_path / "page.html"
    with outputs.written(place) as file:
        file.write("all of it")
        assert not place.exists()
    assert place.read_text() == "all of it"


def test_a_new_file_has_the_mode_of_the_umask_and_a_replaced_one_keeps_its_own(tmp_path):
    place = tmp_path / "page.html"
    former = os.umask(0o027)
    try:
        with outputs.written(place) as file:
            file.write("one")
    finally:
        os.umask(former)
    assert stat.S_IMODE(place.stat().st_mode) == 0o640
    place.chmod(0o600)
    with outputs.written(place) as file:
        file.write("two")
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_a_link_stays_and_what_it_names_is_replaced(tmp_path):
    real = tmp_path / "real.html"
    real.write_text("old")
    link = tmp_path / "link.html"
    link.symlink_to(real)
    with outputs.written(link) as file:
        file.write("new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_a_device_is_written_to_and_never_replaced(tmp_path):
    device = tmp_path / "null"
    device.symlink_to("/dev/null")
    outputs.check_page(device)
    with outputs.written(device) as file:
        file.write("gone")
    assert stat.S_ISCHR(device.stat().st_mode)


def _write_where_somebody_else_does(place):
    with outputs.written(place, new=True) as file:
        file.write("ours")
        place.write_text("somebody else's")


def test_what_came_to_a_new_files_place_meanwhile_is_not_replaced(tmp_path):
    place = tmp_path / "samples.csv"
    with pytest.raises(UsageError, match="exists"):
        _write_where_somebody_else_does(place)
    assert place.read_text() == "somebody else's"
    assert [path.name for path in tmp_path.iterdir()] == ["samples.csv"]


@pytest.mark.parametrize("kind", ["filled", "file", "below a file"])
def test_results_are_not_put_where_they_could_overwrite(tmp_path, kind):
    folder = tmp_path / "out"
    if kind == "filled":
        folder.mkdir()
        (folder / "kvm.tare").write_bytes(b"precious")
    else:
        folder.write_text("a file")
    with pytest.raises(UsageError):
        outputs.check_empty_folder(folder / "deeper" if kind == "below a file" else folder)


def test_results_may_go_into_a_new_or_an_empty_folder(tmp_path):
    outputs.check_empty_folder(tmp_path / "new" / "deeper")
    (tmp_path / "empty").mkdir()
    outputs.check_empty_folder(tmp_path / "empty")
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


@pytest.fixture
def shared(tmp_path):
    """A folder where everybody may put something, as /tmp, and what another user put there."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def _plant(link, target):
    link.symlink_to(target)
    os.chown(link, 54321, 54321, follow_symlinks=False)


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what another user owns")


@as_root
@pytest.mark.parametrize("name", ["r.html", "folder/r.html", "own.html"])
def test_a_link_that_another_user_planted_is_not_followed(shared, tmp_path, name):
    (tmp_path / "target").mkdir()
    _plant(shared / "r.html", tmp_path / "made.html")
    _plant(shared / "folder", tmp_path / "target")
    (shared / "own.html").symlink_to("r.html")
    with pytest.raises(UsageError, match="belongs to user 54321, in a folder that everybody may write to"):
        outputs.check_page(shared / name)
    for new in (False, True):
        try:
            with outputs.written(shared / name, new=new) as file:
                file.write("x")
        except UsageError:
            pass
    assert not (tmp_path / "made.html").exists()
    assert list((tmp_path / "target").iterdir()) == []


@as_root
def test_a_link_that_another_user_planted_leads_to_no_campaign(shared, campaign):
    _plant(shared / "night.tare", campaign)
    with pytest.raises(TareError, match="belongs to user 54321"):
        outputs.require_campaign(shared / "night.tare")


@as_root
def test_a_file_of_another_user_in_a_shared_folder_is_not_replaced(shared):
    page = shared / "r.html"
    page.write_text(PAGE)
    os.chown(page, 54321, 54321)
    with pytest.raises(UsageError, match="belongs to user 54321"):
        outputs.check_page(page)
    with pytest.raises(UsageError, match="belongs to user 54321"), outputs.written(page) as file:
        file.write("of root, and it would be theirs")
    assert page.read_text() == PAGE


@as_root
def test_a_folder_of_another_user_in_a_shared_folder_gets_no_files(shared):
    (shared / "out").mkdir()
    os.chown(shared / "out", 54321, 54321)
    with pytest.raises(UsageError, match="belongs to user 54321"):
        outputs.check_empty_folder(shared / "out")


def test_a_new_file_does_not_follow_a_link_that_came_meanwhile(tmp_path):
    (tmp_path / "new.csv").symlink_to(tmp_path / "made.csv")
    with pytest.raises(UsageError, match="File exists"), outputs.written(tmp_path / "new.csv", new=True) as file:
        file.write("x")
    assert not (tmp_path / "made.csv").exists()


def test_links_of_ones_own_are_followed_wherever_they_lead(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "there").symlink_to("a/b/../b")
    (tmp_path / "link.html").symlink_to("there/../real.html")
    with outputs.written(tmp_path / "link.html") as file:
        file.write("x")
    assert (tmp_path / "a" / "real.html").read_text() == "x"


def test_a_loop_of_links_is_said(tmp_path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(UsageError, match="Too many levels of symbolic links"):
        outputs.check_page(tmp_path / "one")
