"""What root in a real sandbox makes in its folders is no danger to the host, and goes with the instance."""

import os

import pytest

from hostile import TREE
from tare.host import processes
from tare.host.filesystems import roots
from tare.model import Arm
from tare.platforms import platform_registry

pytestmark = [pytest.mark.host, pytest.mark.own_host]

AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
#: Root inside has no right to make devices there.
NODES = {"nspawn": "no-nodes"}
PRIVILEGED = "grep ' / / ' /proc/self/mountinfo | tail -n 1"


@pytest.mark.timeout(170)
@pytest.mark.parametrize(
    "name", ["native", "lxc", *(pytest.param(name, marks=pytest.mark.slow) for name in ("runc", "nspawn"))]
)
def test_what_root_in_a_sandbox_makes_has_no_rights_on_the_host_and_goes(launcher, name):
    [platform] = platform_registry.choose([name])
    answer = platform.detect()
    if not answer.available:
        pytest.skip(f"{name}: {answer.reason}")
    running = launcher.start(platform, Arm(name), measured=False)
    folder = running.instance.spec.space.folder
    try:
        tree = running.session.execute(["sh", "-c", TREE, "sh", NODES.get(name, "")], time_limit_s=60)
        assert tree.code == 0, tree.stderr
        privileged = running.session.execute(["sh", "-c", PRIVILEGED], time_limit_s=10)
        for path in (folder / "data" / "id", folder / "upper/var/tmp/id", folder / "root/var/tmp/id"):
            assert path.stat().st_mode & 0o7777 == 0o4755
            # By a shell: setpriv itself has root's capabilities until it has become another program.
            stranger = processes.run([*AS_NOBODY, "sh", "-c", '"$0" -u', str(path)])
            assert stranger.code != 0
            assert b"ermission denied" in stranger.stderr
            assert os.statvfs(path).f_flag & (os.ST_NOSUID | os.ST_NODEV) == os.ST_NOSUID | os.ST_NODEV
        for place in () if name in NODES else ("data", "upper/var/tmp", "root/var/tmp"):
            with pytest.raises(PermissionError):
                (folder / place / "null").read_bytes()
        if name in {"runc", "nspawn", "lxc"}:  # inside it is as its users have it
            assert privileged.code == 0
            assert b"nosuid" not in privileged.stdout.split()[5], privileged.stdout
        roots.drop_page_cache(folder / "data")
    finally:
        running.stop()
    assert not folder.exists()
