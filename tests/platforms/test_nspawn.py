from pathlib import Path

from tare.platforms.nspawn import traces


def test_what_a_killed_nspawn_forgets_goes_after_its_processes(tmp_path):
    cleanup = traces(tmp_path, "tare-x", "tare/x")
    status = tmp_path.stat()
    assert [resource.kind for resource in cleanup] == [
        "folder",
        "mount",
        "folder",
        "file",
        "cgroup",
    ]  # removed in reverse
    assert cleanup[3].facts["path"] == f"/run/systemd/nspawn/locks/inode-{status.st_dev}:{status.st_ino}"
    assert cleanup[4].facts["path"] == "tare/x/tool"
    assert Path(cleanup[2].facts["path"]).name == "tare-x"
