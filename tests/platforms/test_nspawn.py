from pathlib import Path

from tare.platforms.nspawn import traces


def test_what_a_killed_nspawn_forgets_goes_after_its_processes(tmp_path):
    things = traces(tmp_path, "tare-x", "tare/x")
    seen = tmp_path.stat()
    assert [thing.kind for thing in things] == ["folder", "mount", "folder", "file", "cgroup"]  # removed in reverse
    assert things[3].facts["path"] == f"/run/systemd/nspawn/locks/inode-{seen.st_dev}:{seen.st_ino}"
    assert things[4].facts["path"] == "tare/x/tool"
    assert Path(things[2].facts["path"]).name == "tare-x"
