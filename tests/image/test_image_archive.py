"""The image as a file: what was exported comes back the same, and what anybody else may have written is data."""

import hashlib
import io
import os
import tarfile

import pytest
import zstandard

from image.tars import info, tar
from tare.errors import ImageError
from tare.host.filesystems import archives
from tare.image import archive, image_build


def _tar(*infos, data=b"hello"):
    return io.BytesIO(tar(*infos, data=data))


def _folder(name, **fields):
    return info(name, type=tarfile.DIRTYPE, **fields)


def _link(name, to, kind=tarfile.SYMTYPE):
    return info(name, type=kind, linkname=to)


def test_files_links_modes_and_dates_come_out_as_they_went_in(tmp_path):
    tree = _tar(
        _folder("root", mode=0o1777, mtime=9), info("root/su", mode=0o4755, mtime=7),
        _link("root/sh", "/bin/dash"), _link("root/also", "root/su", tarfile.LNKTYPE),
    )  # fmt: skip
    archives.unpack_root(tree, tmp_path, 1 << 20)
    assert (tmp_path / "root").stat().st_mode & 0o7777 == 0o1777
    assert (tmp_path / "root").stat().st_mtime == 9
    assert (tmp_path / "root/su").stat().st_mode & 0o7777 == 0o4755
    assert (tmp_path / "root/su").stat().st_mtime == 7
    assert (tmp_path / "root/sh").readlink().as_posix() == "/bin/dash"
    assert (tmp_path / "root/also").samefile(tmp_path / "root/su")


def test_root_of_a_user_namespace_gets_all_but_the_devices_and_no_other_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(archives.own_namespaces, "inside", lambda: True)
    null, disk = (
        info("null", type=tarfile.CHRTYPE, devmajor=major, devminor=minor) for major, minor in ((1, 3), (8, 0))
    )
    archives.unpack_root(_tar(_folder("dev"), null, info("file")), tmp_path, 1 << 20)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dev", "file"]
    with pytest.raises(tarfile.ReadError, match="no file, folder, link or harmless device"):
        archives.unpack_root(_tar(disk), tmp_path, 1 << 20)


@pytest.mark.parametrize(
    "infos",
    [
        [info("../out")],
        [info("/out")],
        [_folder("a"), info("a/../../out")],
        [_link("a", ".."), info("a/out")],
        [_link("a", "/"), _folder("a/out")],
        [_link("out", "/nowhere"), info("out")],
        [info("a"), info("a")],
        [info("a/b")],
        [_link("a", "../out", tarfile.LNKTYPE)],
        [_link("b", ".."), _link("a", "b/out", tarfile.LNKTYPE)],
        [info("disk", type=tarfile.BLKTYPE, devmajor=8, devminor=0)],
        [info("mem", type=tarfile.CHRTYPE, devmajor=1, devminor=1)],
        [info("pipe", type=tarfile.FIFOTYPE)],
        [info("a", uid=1 << 20)],
        [info("a", pax_headers={"SCHILY.xattr.trusted.overlay.opaque": "y"})],
        [info(""), info(".")],
    ],
    ids=lambda infos: ",".join(f"{info.name}>{info.linkname}" if info.linkname else info.name for info in infos),
)
def test_what_is_not_below_the_folder_or_no_harmless_thing_is_refused(tmp_path, infos):
    outside = tmp_path / "out"
    outside.write_text("mine")
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises(tarfile.TarError):
        archives.unpack_root(_tar(*infos), inside, 1 << 20)
    assert outside.read_text() == "mine"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["inside", "out"]


def test_more_than_the_bounds_is_refused(tmp_path, monkeypatch):
    with pytest.raises(tarfile.ReadError, match="larger than it may be"):
        archives.unpack_root(_tar(info("a"), data=bytes(1 << 20)), tmp_path, 1 << 19)
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    with pytest.raises(tarfile.ReadError, match="more than 3 members"):
        archives.unpack_root(_tar(*(_folder(f"d{n}") for n in range(4))), tmp_path, 1 << 20)


@pytest.fixture
def packed(tmp_path):
    """Writes an archive of these members; returns it and its hash."""

    def write(*infos, data=b"{}"):
        file = tmp_path / "some.tar.zst"
        file.write_bytes(zstandard.compress(_tar(*infos, data=data).getvalue()))
        return file, hashlib.sha256(file.read_bytes()).hexdigest()

    return write


def _export(file):
    with file.open("wb") as target:
        return archive.export(target, lambda _: None)


@pytest.mark.host
class TestAsRoot:
    """Files of an image have several owners: only root can make them."""

    def test_an_image_of_another_machine_is_the_same_and_needs_no_mmdebstrap(self, bench, tmp_path, monkeypatch):
        file = tmp_path / "image.tar.zst"
        digest = _export(file)
        assert digest == hashlib.sha256(file.read_bytes()).hexdigest()
        first = image_build.ensure(bench.agent, progress=bench.progress.append)
        monkeypatch.setenv("TARE_HOME", str(tmp_path / "another"))
        monkeypatch.setenv("PATH", os.environ["PATH"].split(":", 1)[1])  # no mmdebstrap that would be of any use
        assert not image_build.base_is_there()
        manifest = archive.bring_in(file, digest.upper(), bench.progress.append)
        assert image_build.base_is_there()
        again = image_build.ensure(bench.agent, progress=bench.progress.append)
        assert again.hash == first.hash
        assert again.manifest == manifest == first.manifest
        assert (again.root / "usr/bin/tool").read_text() == "a program\n"
        assert bench.runs == 1
        assert _export(tmp_path / "second") == digest

    def test_another_hash_is_refused_before_anything_is_unpacked(self, bench, tmp_path, monkeypatch):
        file = tmp_path / "image.tar.zst"
        digest = _export(file)
        monkeypatch.setenv("TARE_HOME", str(tmp_path / "another"))
        monkeypatch.setattr(archives, "unpack_root", lambda *_: pytest.fail("it was unpacked"))
        with pytest.raises(ImageError, match=f"has the SHA-256 {digest}, and not {'0' * 64}"):
            archive.bring_in(file, "0" * 64, bench.progress.append)
        assert [entry.name for entry in (tmp_path / "another" / "images").iterdir()] == ["lock"]

    def test_what_is_no_archive_is_one_line(self, bench, tmp_path):
        file = tmp_path / "text"
        file.write_text("hello")
        with pytest.raises(ImageError, match="is no image"):
            archive.bring_in(file, archive.hash_of(file), bench.progress.append)
        assert bench.places == []

    def test_a_bomb_is_refused(self, bench, tmp_path, monkeypatch):
        monkeypatch.setattr(archive, "MAX_BYTES", 1 << 20)
        file = tmp_path / "bomb"
        file.write_bytes(zstandard.compress(bytes(64 << 20)))
        with pytest.raises(ImageError, match="unpacks to more than 1 MiB"):
            archive.bring_in(file, archive.hash_of(file), bench.progress.append)
        assert bench.places == []

    def test_strange_contents_are_refused_and_nothing_stays(self, bench, packed):
        about = f'{{"format": 1, "machine": "{os.uname().machine}"}}'.encode()
        cases = [
            ([info("hello")], b"{}", "it has hello"),
            ([info("about.json"), info("manifest.json"), _folder("root")], b"{}", "of another tare"),
            ([_link("about.json", "/etc/passwd"), info("manifest.json"), _folder("root")], about, "no image"),
            ([_folder("root"), info("root/../../x")], b"", "not below it"),
        ]
        for infos, data, words in cases:
            file, digest = packed(*infos, data=data)
            with pytest.raises(ImageError, match=words):
                archive.bring_in(file, digest, bench.progress.append)
            assert bench.places == []


def test_an_image_is_only_taken_by_its_hash(commands, tmp_path):
    file = tmp_path / "image.tar.zst"
    file.write_bytes(b"whatever")
    digest = hashlib.sha256(b"whatever").hexdigest()
    ended = commands.run("image", "import", str(file), cwd=tmp_path, env={"TARE_HOME": str(tmp_path / "home")})
    assert ended.returncode == 2
    assert "tare imports it only by its hash" in ended.stderr
    assert f"--sha256 {digest}" in ended.stderr
    assert not (tmp_path / "home").exists()
