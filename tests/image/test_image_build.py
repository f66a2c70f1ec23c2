import errno
import fcntl
import hashlib
import os
import shutil
import threading
from types import SimpleNamespace

import pytest

from tare.errors import HostError, ImageError
from tare.host import processes
from tare.image import image_build, image_manifest, image_recipe


def ensure(bench):
    return image_build.ensure(bench.agent, progress=bench.progress.append)


def test_an_image_is_the_base_with_the_agent(bench):
    image = ensure(bench)
    assert (image.root / image_build.AGENT_INSIDE).read_bytes() == b"an agent"
    assert (image.root / image_build.AGENT_INSIDE).stat().st_mode & 0o777 == 0o755
    assert (image.root / "etc/tare-image").read_text() == f"{image.hash}\n"
    assert (image.root / "data").is_dir()
    assert (image.root / "usr/bin/tool").read_text() == "a program\n"
    assert image.agent_hash == hashlib.sha256(b"an agent").hexdigest()
    assert image.manifest.packages["libc6"] == "2.36-9"
    assert image.manifest.recipe_hash == image_recipe.load().hash


def test_a_base_whose_root_is_a_link_is_copied_all_the_same(bench):
    root = bench.images / f"base-{ensure(bench).manifest.recipe_hash[:16]}" / "root"
    root.rename(bench.home / "another-disk")
    root.symlink_to(bench.home / "another-disk")
    bench.agent.write_bytes(b"another agent")
    image = ensure(bench)
    assert not image.root.is_symlink()
    assert not (root / image_build.AGENT_INSIDE).exists()


def test_the_host_that_built_it_is_not_in_it(bench):
    root = ensure(bench).root
    assert (root / "etc/hostname").read_text() == "tare\n"
    assert (root / "etc/resolv.conf").read_text() == ""
    assert not (root / "etc/resolv.conf").is_symlink()
    assert list((root / "etc/apt/sources.list.d").iterdir()) == []
    assert not (root / "var/log/apt").exists()
    assert [path.name for path in (root / "var/lib/apt/lists").iterdir()] == ["partial"]


def test_packages_have_the_checksums_of_the_index(bench):
    manifest = ensure(bench).manifest
    assert manifest.checksums == dict.fromkeys(manifest.packages, "beef")


def test_only_the_version_that_is_installed_counts(tmp_path):
    lists = tmp_path / "var/lib/apt/lists"
    lists.mkdir(parents=True)
    stanzas = "Package: fio\nVersion: 3.33-3\nFilename: pool/f/fio.deb\nSHA256: aa\n\nPackage: fio\nVersion: 3.34-1\n"
    (lists / "a_Packages").write_text(f"{stanzas}SHA256: bb\n")
    assert image_build._checksums(tmp_path, {"fio": "3.34-1"}) == {"fio": "bb"}
    assert list(lists.iterdir()) == []


def test_another_archive_is_named_by_the_environment(monkeypatch):
    monkeypatch.setenv("TARE_DEBIAN_ARCHIVE", "file:/srv/snapshot")
    assert image_build.sources() == ["file:/srv/snapshot"]


def test_the_second_time_nothing_is_built(bench):
    first = ensure(bench)
    bench.progress.clear()
    assert ensure(bench) == first
    assert bench.runs == 1
    assert bench.progress == []


def test_another_agent_is_another_image_on_the_same_base(bench):
    first = ensure(bench)
    bench.agent.write_bytes(b"a newer agent")
    second = ensure(bench)
    assert second.hash != first.hash
    assert bench.runs == 1
    assert (first.root / image_build.AGENT_INSIDE).read_bytes() == b"an agent"


def test_the_hash_covers_recipe_packages_and_agent():
    manifest = image_manifest.Manifest(suite="s", recipe_hash="r", packages={"a": "1", "b": "2"})
    others = [
        manifest.model_copy(update={"recipe_hash": "q"}),
        manifest.model_copy(update={"packages": {"a": "1", "b": "3"}}),
        manifest.model_copy(update={"packages": {"a": "1"}}),
    ]
    hashes = {image_build.image_hash(variant, "agent") for variant in [manifest, *others]} | {
        image_build.image_hash(manifest, "other")
    }
    assert len(hashes) == 5
    reordered = manifest.model_copy(update={"packages": {"b": "2", "a": "1"}})
    assert image_build.image_hash(reordered, "agent") == image_build.image_hash(manifest, "agent")


def test_a_pin_that_is_not_kept_is_refused(bench):
    bench.has(libc6="2.36-9", **{**dict(image_recipe.load().pinned), "sysbench": "0.9"})
    with pytest.raises(ImageError, match=r"the base has sysbench 0\.9, the recipe pins 1\.0"):
        ensure(bench)
    assert bench.places == []


@pytest.mark.parametrize(
    ("file", "says", "fix"),
    [
        ("offline.txt", "archive is not reached: Failed to fetch .*Connection refused", "apt-get update"),
        ("pin-missing.txt", r"does not have sysbench 9\.9 any more", "apt-cache madison sysbench"),
        ("disk-full.txt", "no space is left", "TARE_HOME"),
    ],
)
def test_a_failed_build_is_one_line_and_leaves_nothing(bench, data, file, says, fix):
    bench.says(data / file)
    with pytest.raises(ImageError, match=says) as caught:
        ensure(bench)
    assert fix in caught.value.fix
    assert "\n" not in str(caught.value)
    assert bench.places == []
    bench.says(None)
    assert ensure(bench).root.is_dir()


def test_words_that_nobody_foresaw_are_shown():
    assert "E-mail is full" in str(image_build.explain("I: hello\nE-mail is full\n", timed_out=False))
    assert "no message" in str(image_build.explain("", timed_out=False))
    assert "too long" in str(image_build.explain("I: extracting\n", timed_out=True))


def test_a_killed_build_is_not_taken_for_an_image(bench):
    image = ensure(bench)
    place, base = image.root.parent, bench.images / f"base-{image.manifest.recipe_hash[:16]}"
    for whole in (place, base):  # as SIGKILL just before the renames leaves them
        whole.rename(whole.with_name(f"new-{whole.name}"))
    (base.with_name(f"new-{base.name}") / "half").write_text("")
    assert ensure(bench) == image
    assert bench.runs == 2
    assert bench.places == sorted([place.name, base.name])
    assert not (base / "half").exists()


def test_too_little_disk_is_said_before_anything_is_made(bench, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1 << 30))
    with pytest.raises(ImageError, match=r"1\.0 GiB are free .* the image needs 3 GiB"):
        ensure(bench)
    assert bench.runs == 0


def test_a_disk_that_fills_up_while_the_agent_is_copied(bench, monkeypatch):
    def full(source, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(ImageError, match="cannot be written: No space left") as caught:
        ensure(bench)
    assert "free some space" in caught.value.fix
    assert [name for name in bench.places if not name.startswith("base-")] == []


def test_without_mmdebstrap(bench, monkeypatch):
    monkeypatch.setattr(processes, "find", lambda program: None)
    with pytest.raises(ImageError, match="mmdebstrap is not installed") as caught:
        ensure(bench)
    assert "tare setup" in caught.value.fix
    assert "tare image import" in caught.value.fix


def test_a_damaged_base_is_said_and_not_used(bench):
    image = ensure(bench)
    (bench.images / f"base-{image.manifest.recipe_hash[:16]}" / "manifest.json").write_text("{")
    with pytest.raises(ImageError, match="is damaged") as caught:
        ensure(bench)
    assert caught.value.fix.startswith("rm -r ")


def test_builds_do_not_meet(bench):
    bench.images.mkdir(parents=True)
    waiting = threading.Event()
    built = []

    def other_build():
        built.append(image_build.ensure(bench.agent, progress=lambda step: "waiting" in step and waiting.set()))

    descriptor = os.open(bench.images / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    thread = threading.Thread(target=other_build)
    thread.start()
    assert waiting.wait(30)
    assert bench.runs == 0
    os.close(descriptor)
    thread.join(30)
    assert built[0].root.is_dir()


def test_the_command_pins_and_leaves_out(tmp_path):
    argv = image_build.command(image_recipe.load(), tmp_path, ["/etc/apt/some.sources"])
    assert argv[-3:] == ["bookworm", str(tmp_path), "/etc/apt/some.sources"]
    assert any("sysbench=1.0.20+ds-5" in word for word in argv)
    assert "--dpkgopt=path-exclude=/usr/share/man/*" in argv


def test_the_agent_is_named_or_built(tmp_path, monkeypatch):
    agent = tmp_path / "agent"
    monkeypatch.setenv("TARE_AGENT", str(agent))
    with pytest.raises(HostError, match="the agent is not built") as caught:
        image_build.agent_path()
    assert "unset TARE_AGENT" in caught.value.fix
    agent.write_bytes(b"")
    assert image_build.agent_path() == agent
