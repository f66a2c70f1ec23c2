"""Whatever a sandbox makes in its folders, cleaning removes it, and nothing else."""

import contextlib
import errno
import os
import resource
import shutil
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest

from hostile import Exchanging, nest
from tare.errors import HostError
from tare.host import cgroup
from tare.host.kernel import beneath, mounts, removal
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack, Journal, sweep

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="takes root's rights: mounts, devices, attributes")


@pytest.mark.thorough
@pytest.mark.parametrize("depth", [1_500, 5_000])
def test_no_depth_is_too_deep(tmp_path, depth):
    os.close(nest(tmp_path / "space", depth))
    removers.remove(removers.folder(tmp_path / "space"))
    assert not (tmp_path / "space").exists()


def test_a_deep_tree_takes_a_few_descriptors(tmp_path):
    os.close(nest(tmp_path / "space", 200))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = len(list(Path("/proc/self/fd").iterdir())) + 8
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    try:
        removal.remove(tmp_path / "space")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert not (tmp_path / "space").exists()


def test_names_of_255_bytes_make_paths_that_the_kernel_does_not_take(tmp_path):
    here = nest(tmp_path / "space", 100, "n" * 255)
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    with pytest.raises(OSError, match="too long"):
        (tmp_path / "space" / "/".join(["n" * 255] * 100)).stat()
    removal.remove(tmp_path / "space")
    assert not (tmp_path / "space").exists()


@pytest.mark.thorough
def test_many_files_and_many_folders(tmp_path):
    for name in ("a", "b"):
        (tmp_path / "space" / name).mkdir(parents=True)
    for number in range(5_000):
        os.close(os.open(tmp_path / "space" / "a" / f"file{number}", os.O_CREAT | os.O_WRONLY))
    for number in range(500):
        (tmp_path / "space" / "b" / f"folder{number}" / "below").mkdir(parents=True)
    removal.remove(tmp_path / "space")
    assert not (tmp_path / "space").exists()


@AS_ROOT
def test_every_kind_of_entry_goes(tmp_path):
    space = tmp_path / "space"
    space.mkdir()
    os.mkfifo(space / "pipe")
    os.mknod(space / "whiteout", stat.S_IFCHR, os.makedev(0, 0))
    os.mknod(space / "memory", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(space / "disk", stat.S_IFBLK, os.makedev(7, 250))
    for name in (b"line\nend", b"not utf-8 \xff\xfe", b"\x1b[2J", b"space  ", b"-rf", b"*"):
        os.close(os.open(bytes(space) + b"/" + name, os.O_CREAT | os.O_WRONLY))
        Path(os.fsdecode(bytes(space) + b"/of " + name)).mkdir()
        os.close(os.open(bytes(space) + b"/of " + name + b"/file", os.O_CREAT | os.O_WRONLY))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(space / "socket"))
    with (space / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    (space / "link").symlink_to("/etc")
    (space / "loop").symlink_to("loop")
    (space / "closed").mkdir(mode=0)
    (space / "closed" / "file").touch()
    removal.remove(space)
    assert not space.exists()
    assert Path("/etc/passwd").exists()


@AS_ROOT
def test_attributes_that_keep_a_file_are_taken_off(tmp_path):
    """Root in a sandbox with CAP_LINUX_IMMUTABLE: chattr +i and +a, of files and of folders."""
    space = tmp_path / "space"
    (space / "folder" / "below").mkdir(parents=True)
    (space / "folder" / "below" / "file").touch()
    for name in ("fixed", "grows"):
        (space / name).touch()
    for flag, name in (("+i", "fixed"), ("+a", "grows"), ("+i", "folder/below"), ("+a", "folder")):
        done = subprocess.run(["chattr", flag, space / name], capture_output=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"the filesystem of {tmp_path} has no attributes")
    removal.remove(space)
    assert not space.exists()


@AS_ROOT
def test_mounts_in_mounts_are_unmounted_and_what_they_show_stays(tmp_path):
    """A bind mount of a folder of the same filesystem is one that `rm --one-file-system` does not see."""
    space, outside = tmp_path / "space", tmp_path / "the host's own"
    for folder in (space / "bind", space / "disk with\nname", outside / "below"):
        folder.mkdir(parents=True)
    (outside / "below" / "file").write_text("stays")
    mounts.mount("none", space / "bind", source=str(outside), flags=mounts.BIND)
    mounts.mount("none", space / "bind" / "below", source=str(outside / "below"), flags=mounts.BIND)
    mounts.mount("tmpfs", space / "disk with\nname")
    (space / "disk with\nname" / "inner").mkdir()
    mounts.mount("none", space / "disk with\nname" / "inner", source=str(outside), flags=mounts.BIND)
    mounts.mount("none", space, source=str(space), flags=mounts.BIND)
    removers.remove(removers.folder(space))
    assert not space.exists()
    assert (outside / "below" / "file").read_text() == "stays"
    assert not [point for point in mounts.points() if point.startswith(str(tmp_path))]


@AS_ROOT
def test_a_mount_that_nobody_unmounted_is_not_gone_into(tmp_path):
    """The removal itself, without the look at the mounts before: one may come in between."""
    space, outside = tmp_path / "space", tmp_path / "own"
    (space / "a" / "bind").mkdir(parents=True)
    (space / "z").mkdir()
    outside.mkdir()
    (outside / "file").write_text("stays")
    mounts.mount("none", space / "a" / "bind", source=str(outside), flags=mounts.BIND)
    try:
        with pytest.raises(HostError, match=r"cannot be removed: 'bind': Device or resource busy$"):
            removal.remove(space)
        assert (outside / "file").read_text() == "stays"
        assert not (space / "z").exists()
    finally:
        mounts.clear(space)
    removal.remove(space)


@AS_ROOT
def test_a_mount_at_a_path_that_is_too_long_is_unmounted(tmp_path):
    here = nest(tmp_path / "space", 40, "n" * 200)
    os.mkdir("point", dir_fd=here)
    point = os.open("point", os.O_PATH, dir_fd=here)
    mounts.mount("tmpfs", Path(f"/proc/self/fd/{point}"))
    os.close(point)
    os.close(here)
    removers.remove(removers.folder(tmp_path / "space"))
    assert not (tmp_path / "space").exists()


def test_one_bad_entry_keeps_no_other_and_is_named(tmp_path, monkeypatch):
    for name in ("a", "m", "z"):
        (tmp_path / "space" / name / "below").mkdir(parents=True)
        (tmp_path / "space" / name / "below" / "file").touch()
    (tmp_path / "space" / "m" / "below" / "broken\n").touch()
    unlink = os.unlink

    def failing(name, **where):
        if name == "broken\n":
            raise OSError(errno.EIO, os.strerror(errno.EIO), name)
        unlink(name, **where)

    monkeypatch.setattr(os, "unlink", failing)
    with pytest.raises(HostError, match=r"cannot be removed: 'broken\\n': Input/output error$"):
        removers.remove(removers.folder(tmp_path / "space"))
    assert [path.name for path in sorted((tmp_path / "space").rglob("*"))] == ["m", "below", "broken\n"]


@pytest.mark.thorough
def test_a_folder_exchanged_with_a_link_leads_nowhere(tmp_path):
    """A tenant that still runs exchanges folders of its tree with links to another's, all the time."""
    precious = tmp_path / "precious"
    for number in range(50):
        (precious / f"folder{number}" / "below").mkdir(parents=True)
        (precious / f"folder{number}" / "below" / "file").touch()
    before = sorted(precious.rglob("*"))
    exchanged = 0
    began = time.monotonic()
    # Three seconds; longer on a machine so busy that the tenant hardly runs.
    while (spent := time.monotonic() - began) < 3 or (exchanged <= 50 and spent < 60):
        space = tmp_path / "space"
        space.mkdir()
        for number in range(50):
            (space / "folder" / f"folder{number}" / "below").mkdir(parents=True)
            (space / "folder" / f"folder{number}" / "below" / "file").touch()
        (space / "link").symlink_to(precious)
        with Exchanging(space / "folder", space / "link") as tenant, contextlib.suppress(HostError):
            removal.remove(space)
        exchanged += tenant.turns
        removal.remove(space)
        assert not space.exists()
    assert sorted(precious.rglob("*")) == before
    assert exchanged > 50


def test_a_folder_moved_out_of_the_tree_takes_the_removal_nowhere(tmp_path):
    """The way up is by "..": what was moved meanwhile has another folder above it, in which nothing may be removed."""
    top, elsewhere = tmp_path / "top", tmp_path / "elsewhere"
    (top / "a" / "b" / "c").mkdir(parents=True)
    (top / "other").mkdir()
    (elsewhere / "b").mkdir(parents=True)
    left = []

    def enter(folder):
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
        if "c" in names:
            (top / "a" / "b").rename(elsewhere / "moved")
        return names

    def leave(folder, name):
        left.append((str(Path(f"/proc/self/fd/{folder}").readlink()), name))

    descriptor = os.open(top, beneath.FOLDER)
    beneath.walk(descriptor, enter, leave)
    os.close(descriptor)
    moved, here = str(elsewhere / "moved"), str(top)
    assert left == [(here, "other"), (moved, "c"), (f"{here}/a", "b"), (here, "a")]


def test_what_is_no_folder_is_removed_as_it_is(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    for name in ("file", "link", "none", "none/below", "file/below"):
        removal.remove(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.thorough
def test_a_sweep_goes_on_after_a_tree_that_stays(tmp_path, monkeypatch):
    """`tare clean` with a folder of 1,500 others in each other, and one that cannot be removed, of a dead run."""
    journal = Journal(tmp_path / "journal")
    deep, bad = tmp_path / "work" / "deep", tmp_path / "work" / "bad"
    deep.parent.mkdir()
    monkeypatch.setattr("tare.host.kernel.owner._start_ticks", lambda _: 1)
    cleanup = CleanupStack(journal)
    cleanup.own(removers.folder(deep), removers.folder(bad))
    os.close(nest(deep, 1_500))
    bad.mkdir()
    monkeypatch.setattr("tare.host.kernel.owner._start_ticks", lambda _: 2)
    rmdir = os.rmdir

    def failing(name, **where):
        if name == "bad":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), name)
        rmdir(name, **where)

    monkeypatch.setattr(os, "rmdir", failing)
    steps = list(sweep(journal))
    assert [step.kept is None for step in steps] == [False, True]
    assert "Read-only file system" in steps[0].kept
    assert not deep.exists()
    assert [entry.resource for entry in journal.entries()] == [removers.folder(bad)]


@pytest.mark.thorough
@AS_ROOT
def test_groups_nested_deeper_than_a_path_is_long_go_with_their_processes():
    """A sandbox to whose root its control groups are left may nest them so."""
    root = cgroup.hierarchies().mounted[0]
    if not os.access(root, os.W_OK):
        pytest.skip("this host's control groups cannot be written")
    path = f"tare-nested{os.getpid()}"
    here = nest(root / path, 1_500)
    sleeper = subprocess.Popen(["sleep", "60"])
    procs = os.open("cgroup.procs", os.O_WRONLY, dir_fd=here)
    os.write(procs, str(sleeper.pid).encode())
    os.close(procs)
    os.close(here)
    cgroup.destroy(path)
    assert not (root / path).exists()
    assert sleeper.wait(10) == -9


def test_a_kernel_without_the_call_is_one_line_with_the_fix(tmp_path, monkeypatch):
    monkeypatch.setattr(beneath, "_OPENAT2", 100_000)  # a number that no call has
    (tmp_path / "space" / "below" / "more").mkdir(parents=True)
    with pytest.raises(HostError, match="no openat2") as caught:
        removal.remove(tmp_path / "space")
    assert "5.6" in caught.value.fix


@pytest.mark.slow
def test_a_million_files_and_a_hundred_thousand_folders_in_each_other(tmp_path):
    os.close(nest(tmp_path / "deep", 100_000))
    (tmp_path / "many").mkdir()
    many = os.open(tmp_path / "many", os.O_RDONLY)
    for number in range(1_000_000):
        os.close(os.open(f"file{number}", os.O_CREAT | os.O_WRONLY, dir_fd=many))
    os.close(many)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name in ("deep", "many"):
        removal.remove(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10  # KiB


@pytest.fixture(autouse=True)
def _swept(tmp_path):
    yield
    if os.geteuid() == 0:
        mounts.clear(tmp_path)
        subprocess.run(["chattr", "-R", "-i", "-a", tmp_path], capture_output=True, check=False)
    subprocess.run([shutil.which("rm"), "-rf", "--one-file-system", *tmp_path.iterdir()], check=False)


def test_a_mount_that_went_with_the_process_that_made_it_is_removed_and_one_that_stays_is_told(monkeypatch, tmp_path):
    place = str(tmp_path)
    answers = iter([[place], [], []])
    with monkeypatch.context() as patched:
        patched.setattr(mounts, "points", lambda: next(answers))
        removers.remove(removers.mount(tmp_path))  # umount says that nothing is mounted there
        assert list(answers) == []
        patched.setattr(mounts, "points", lambda: [place])
        with pytest.raises(HostError, match="umount"):
            removers.remove(removers.mount(tmp_path))
