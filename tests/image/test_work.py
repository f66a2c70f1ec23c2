"""A user's folder in an image: there twice, with its times, the rest by links; and which are no use any more."""

import os
import stat
from pathlib import Path

import pytest

from tare.errors import ImageError
from tare.image import image_build, work
from tare.image.unused import unused
from tare.model import Application


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/.wh.file").write_text("no whiteout")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o750)
    (folder / "link").symlink_to("/etc/passwd")
    os.link(folder / "run", folder / "again")
    os.utime(folder / "run", (1_900_000_000, 1_900_000_000))
    return folder


@pytest.fixture
def image(bench):
    return image_build.ensure(bench.agent, progress=bench.progress.append)


def _tree(root):
    """Names, kinds, modes, owners, times and contents of all below a folder."""
    facts = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        kind = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        time = None if path.is_dir() else int(info.st_mtime)
        facts[path.relative_to(root)] = (stat.S_IFMT(info.st_mode), info.st_mode & 0o7777, info.st_uid, time, kind)
    return facts


def test_a_folder_is_there_twice_and_the_hosts_is_as_it_was(bench, image, folder):
    os.chown(folder / "run", 1234567, 1234567)
    os.setxattr(folder / "run", "user.origin", b"a browser's")
    before = _tree(folder)
    made = work.ensure(image, folder, bench.progress.append)
    assert _tree(folder) == before
    owned = {path: (kind, mode, 0, *rest) for path, (kind, mode, _, *rest) in before.items()}
    assert _tree(made.root / "work") == _tree(made.root / ".tare-work") == owned
    assert (made.root / "etc/tare-image").read_text().strip() == made.hash != image.hash
    assert (image.root / "etc/tare-image").read_text().strip() == image.hash
    assert not (image.root / "work").exists()
    assert (made.root / "usr/bin/tool").stat().st_ino == (image.root / "usr/bin/tool").stat().st_ino
    assert (made.tools, made.application, made.manifest.packages) == (image, None, image.manifest.packages)


def test_the_same_contents_are_the_same_image_and_others_are_not(bench, image, folder):
    def hash_now():
        return work.ensure(image, folder, bench.progress.append).hash

    first = hash_now()
    os.chown(folder / "run", 7, 7)
    assert hash_now() == first, "it belongs to the image's user whoever has it here"
    os.utime(folder / "run", (1_900_000_001, 1_900_000_001))
    assert hash_now() != first, "make(1) compares times"
    os.utime(folder / "run", (1_900_000_000, 1_900_000_000))
    assert hash_now() == first
    (folder / "run").write_text("#!/bin/false\n")
    assert hash_now() != first


def test_it_covers_what_the_image_has_there_and_belongs_to_its_user(bench, image, folder, tmp_path):
    root = tmp_path / "own" / "root"
    for path in ("etc", "work/old", "elsewhere"):
        (root / path).mkdir(parents=True)
    (root / "etc/passwd").write_text("root:x:0:0::/:\nweb:x:900:901::/:\n")
    (root / "etc/group").write_text("www:x:77:\n")
    (root / "etc/tare-image").write_text("x")
    (root / ".tare-work").symlink_to(tmp_path / "elsewhere")
    for user, owner in (("web", (900, 901)), ("web:www", (900, 77)), ("5:6", (5, 6)), ("55", (55, 0)), ("", (0, 0))):
        own = image_build.Image("0" * 64, root, image.manifest, image.agent_hash, application=Application(user=user))
        made = work.ensure(own, folder, bench.progress.append)
        assert not (made.root / "work/old").exists()
        for path in ("work", "work/run", "work/link", ".tare-work", ".tare-work/sub"):
            info = (made.root / path).lstat()
            assert (info.st_uid, info.st_gid) == owner
    own = image_build.Image(
        "0" * 64, root, image.manifest, image.agent_hash, application=Application(user="nobody-here")
    )
    with pytest.raises(ImageError, match="no user 'nobody-here'"):
        work.ensure(own, folder, bench.progress.append)


def test_what_no_instance_can_have_is_refused(bench, image, folder, tmp_path):
    for place in (tmp_path / "nowhere", folder / "run", Path("/"), bench.home, bench.home.parent):
        with pytest.raises(ImageError, match="is no folder that instances can have"):
            work.ensure(image, place, bench.progress.append)
    os.mkfifo(folder / "pipe")
    with pytest.raises(ImageError, match=r"pipe' is no file, folder, link or harmless device"):
        work.ensure(image, folder, bench.progress.append)
    assert not [name for name in bench.places if name.startswith(("own-", "new-"))]


def test_an_earlier_state_of_a_folder_is_no_use_and_the_user_is_told_of_many(bench, image, folder):
    states = []
    for number in range(work.MANY_STATES + 1):
        (folder / "state").write_text(str(number))
        states.append(work.ensure(image, folder, bench.progress.append))
        os.utime(states[-1].root.parent / work.NAMED, (number, number))
    told = [line for line in bench.progress if "tare clean --images" in line]
    assert told == ["5 images of folders as they were earlier are kept: tare clean --images"]
    other = work.ensure(image, folder / "sub", bench.progress.append)
    why = {entry.place: entry.why for entry in unused(bench.agent, ())}
    assert why == {state.root.parent: "of an earlier state of a folder" for state in states[:-1]}
    assert other.root.parent not in why
    (folder / "state").write_text("0")
    again = work.ensure(image, folder, bench.progress.append)
    assert again.root.parent not in {entry.place for entry in unused(bench.agent, ())}, "it is the present state again"
