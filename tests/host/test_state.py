import grp
import importlib
import os
import pwd
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tare.errors import HostError
from tare.host import state
from tare.setup import gvisor_build

NOBODY = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="takes root's rights: to become another user")


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    monkeypatch.setenv("TARE_HOME", str(folder))
    return folder


def test_home_is_made_for_its_owner_alone(home):
    assert state.home() == home
    assert home.stat().st_mode & 0o777 == 0o700


def test_folders_below_are_made_when_they_are_asked_for(home):
    assert [state.images(), state.work(), state.journal()] == [home / "images", home / "work", home / "journal"]
    assert state.images().is_dir()


def test_without_a_setting_it_is_the_system_s(monkeypatch, tmp_path):
    monkeypatch.delenv("TARE_HOME", raising=False)
    monkeypatch.setattr(state, "DEFAULT_HOME", tmp_path / "var")
    assert state.home() == tmp_path / "var"


def test_a_home_that_cannot_be_made_is_one_line_with_a_fix(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(HostError, match="cannot be written: Not a directory") as caught:
        state.home()
    assert "TARE_HOME" in caught.value.fix


def test_a_home_that_may_not_be_written(home, monkeypatch):
    home.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere, the tests may run as root
    with pytest.raises(HostError, match="permission denied"):
        state.home()


def test_a_home_that_only_others_eyes_were_let_into_is_closed_and_told_once(home, monkeypatch):
    monkeypatch.setattr(state, "_closed", [])
    home.mkdir(mode=0o755)
    (home / "images").mkdir()
    for _ in range(2):
        assert state.home() == home
    assert home.stat().st_mode & 0o777 == 0o700
    assert state.closed() == [home]


def test_all_that_tare_keeps_in_its_home_is_known_as_its_own():
    kept = set()
    for file in Path(state.__file__).parents[1].rglob("*.py"):
        source = file.read_text()
        for name in re.findall(r"\bhome(?:_if_any)?\(\) / ([\w.\"]+)|\b_below\((\"\w+\"|[A-Z]+)", source):
            word = "".join(name)
            if word.startswith('"'):
                kept.add(word.strip('"'))
            elif (constant := word.split(".")[-1]).isupper():  # else a variable, of a path that is asked for
                kept.add(getattr(importlib.import_module(_module(file)), constant, None) or getattr(state, constant))
    assert {"bin", "images", "journal", "key", "tries", "calibration.json"} <= kept
    assert kept - {".local", ".cargo"} <= state.CONTENTS  # the user's own home


def _module(file):
    return ".".join(("tare", *file.relative_to(Path(state.__file__).parents[1]).with_suffix("").parts))


def test_a_folder_with_what_is_not_tare_s_is_not_closed_to_others(home):
    """TARE_HOME=/var/lib would lock the system out of its own."""
    home.mkdir(mode=0o755)
    (home / "dpkg").mkdir()
    with pytest.raises(HostError, match="dpkg in it is not tare's") as caught:
        state.home()
    assert f"chmod 700 {home}" in caught.value.fix
    assert home.stat().st_mode & 0o777 == 0o755
    home.chmod(0o700)
    assert state.home() == home


@pytest.mark.parametrize("mode", [0o770, 0o775, 0o702, 0o1777])
def test_a_home_that_others_can_write_is_refused(home, mode):
    home.mkdir()
    home.chmod(mode)
    with pytest.raises(
        HostError, match=rf"is not safe from other users: others can write it \(mode {mode:o}\) "
    ) as caught:
        state.home()
    assert "TARE_HOME" in caught.value.fix
    assert home.stat().st_mode & 0o7777 == mode


def test_a_home_below_a_folder_that_others_can_write_is_refused_unless_that_is_sticky(home):
    home.parent.chmod(0o777)
    with pytest.raises(HostError, match=rf"others can write {home.parent} \(mode 777\) "):
        state.home()
    home.parent.chmod(0o1777)
    assert state.home() == home


def test_folders_that_tare_makes_above_its_home_are_no_groups_to_write(home, monkeypatch):
    """As on Debian 13, where a user's umask is 002: his first `tare image import` ended there."""
    monkeypatch.setenv("TARE_HOME", str(home / "share" / "tare"))
    umask = os.umask(0o002)
    try:
        assert state.home() == home / "share" / "tare"
    finally:
        os.umask(umask)
    assert [folder.stat().st_mode & 0o777 for folder in (home, home / "share")] == [0o755, 0o755]


@pytest.mark.parametrize(
    ("group", "members", "refused"),
    [
        ("own", [], False),
        ("own", ["me"], False),
        ("own", ["me", "you"], True),
        ("shared", [], True),
        ("lost", [], True),
    ],
)
def test_above_a_home_the_users_own_group_may_write_where_nobody_else_is_in_it(
    home, monkeypatch, group, members, refused
):
    me = pwd.struct_passwd(("me", "x", os.geteuid(), os.getegid(), "", "/", "/bin/sh"))
    if group == "shared":
        me = pwd.struct_passwd(("me", "x", os.geteuid(), os.getegid() + 1, "", "/", "/bin/sh"))

    def known(gid):
        if group == "lost":
            raise KeyError(gid)
        return grp.struct_group(("me", "x", gid, members))

    monkeypatch.setattr(state.pwd, "getpwuid", lambda uid: me)
    monkeypatch.setattr(state.pwd, "getpwall", lambda: [me])
    monkeypatch.setattr(state.grp, "getgrgid", known)
    home.parent.chmod(0o775)
    if not refused:
        assert state.home() == home
        return
    with pytest.raises(HostError, match=r"others can write .* \(mode 775\) "):
        state.home()


@AS_ROOT
@pytest.mark.parametrize("whose", ["the home", "the folder above", "a link that leads there"])
def test_a_home_that_another_user_could_exchange_is_refused(home, monkeypatch, whose):
    home.mkdir(mode=0o700)
    if whose == "the home":
        os.chown(home, NOBODY, NOBODY)
    elif whose == "the folder above":
        os.chown(home.parent, NOBODY, NOBODY)
    else:
        link = home.parent / "link"
        link.symlink_to(home)
        os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
        monkeypatch.setenv("TARE_HOME", str(link))
    with pytest.raises(HostError, match=f"is not safe from other users: .*belongs to {pwd.getpwuid(NOBODY).pw_name} "):
        state.home()


@AS_ROOT
def test_nothing_below_a_home_can_be_opened_by_another_user(home):
    """Whoever makes the folder below: it is the home that is closed."""
    (state.work() / "instance").mkdir(mode=0o777)
    planted = state.work() / "instance" / "id"
    shutil.copy(shutil.which("id"), planted)
    planted.chmod(0o4755)
    tried = subprocess.run(
        ["setpriv", f"--reuid={NOBODY}", "--clear-groups", "sh", "-c", '"$0" -u; ls "$1"', planted, home],
        capture_output=True,
        text=True,
        check=False,
    )
    assert tried.stdout == ""
    assert tried.stderr.count("ermission denied") == 2


_GO = """#!/bin/sh
case $1 in
version) echo go version go1.26.3 linux/amd64 ;;
env) echo go1.26.3 ;;
mod) echo '{"Sum": "SUM", "Dir": "MODULE"}' ;;
build) : >"$3" ;;
esac
"""


def test_the_script_that_comes_first_makes_the_home_as_tare_does(tmp_path, monkeypatch):
    """scripts/gvisor may be run before anything else of tare's: here with a Go that builds at once."""
    home, go = tmp_path / "home", tmp_path / "go"
    for name in ("go.mod", "go.sum"):
        (tmp_path / name).touch()
    go.write_text(_GO.replace("SUM", gvisor_build.SUM).replace("MODULE", str(tmp_path)))
    go.chmod(0o755)
    monkeypatch.setenv("TARE_HOME", str(home))
    monkeypatch.setattr(gvisor_build, "_go", lambda: str(go))
    before = os.umask(0o022)
    try:
        gvisor_build.build(lambda line: None)
    finally:
        os.umask(before)
    assert (home / "bin/runsc").stat().st_mode & 0o777 == 0o755
    assert home.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("link", [False, True])
def test_a_home_whose_path_no_runtime_can_be_told_is_refused(tmp_path, monkeypatch, link):
    odd = tmp_path / os.fsdecode(b"h\xff")
    if link:
        odd.mkdir(mode=0o700)
        (tmp_path / "plain").symlink_to(odd)
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "plain" if link else odd))
    with pytest.raises(HostError, match="is not UTF-8"):
        state.home()
    assert link or not odd.exists()


@pytest.mark.parametrize("name", ["a:b", "a,b", "a\\b"])
def test_a_home_whose_path_engines_would_cut_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.setenv("TARE_HOME", str(tmp_path / name))
    with pytest.raises(HostError, match="in its path") as refused:
        state.home()
    assert "no colon, comma or backslash" in refused.value.fix
    assert not (tmp_path / name).exists()


def test_a_user_whom_no_account_names_is_told_of_tare_home(monkeypatch):
    for name in ("TARE_HOME", "XDG_DATA_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("getuid", "geteuid"):
        monkeypatch.setattr(os, name, lambda: 54321)
    with pytest.raises(HostError, match="no home folder") as refused:
        state.home()
    assert "TARE_HOME" in refused.value.fix
