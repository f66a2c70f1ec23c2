import dataclasses
import json
import socket
import tarfile
from pathlib import Path

import pytest

from tare.errors import PlatformError
from tare.host import processes
from tare.host.daemons import lxd_access
from tare.host.kernel import mounts
from tare.host.resources import removers
from tare.host.resources.claims import OPENED
from tare.model import Arm
from tare.platforms import platform_contract, platform_registry
from tare.platforms.lxd import Lxd, root_settings
from tare.platforms.parts.engines.lxd_server import INCUS, LXD, answering, container, empty_image, first_user


def test_a_container_has_its_groups_below_the_instances_and_its_cpus_by_name():
    text = container(
        "tare-1", "tare/ab12x3", (0, 2), ["lxc.rootfs.path = dir:/r"], {"data": {"type": "disk"}}, privileged=False
    )
    instance = json.loads(text)
    lines = instance["config"]["raw.lxc"].splitlines()
    assert "lxc.cgroup.dir.container = tare/ab12x3/box" in lines
    assert "lxc.cgroup.dir.monitor = tare/ab12x3/monitor" in lines
    assert lines[-1] == "lxc.rootfs.path = dir:/r"
    assert instance["config"]["limits.cpu"] == "0-0,2-2"
    assert instance["devices"] == {"root": {"type": "disk", "path": "/", "pool": "tare-1"}, "data": {"type": "disk"}}


def test_only_the_privileged_one_is_told_so():
    config = {
        privileged: json.loads(container("t", "g", (0,), [], {}, privileged=privileged))["config"]
        for privileged in (True, False)
    }
    assert config[True].pop("security.privileged") == "true"
    assert config[True] == config[False]


#: Of LXD 5.0.2, which took the ids that Debian's package gave to root in /etc/subuid.
IDS = (
    '[{"Isuid":true,"Isgid":false,"Hostid":100000,"Nsid":0,"Maprange":10000001},'
    '{"Isuid":false,"Isgid":true,"Hostid":100000,"Nsid":0,"Maprange":10000001}]'
)


def test_a_root_that_belongs_to_the_containers_root_is_not_mapped_once_more():
    assert root_settings(Path("/r"), privileged=False) == ["lxc.rootfs.path = dir:/r", "lxc.rootfs.options ="]
    assert root_settings(Path("/r"), privileged=True) == ["lxc.rootfs.path = dir:/r"]


def test_whose_root_a_container_has_is_read_of_its_configuration():
    assert first_user({"volatile.idmap.base": "0", "volatile.idmap.next": IDS}) == 100_000
    with pytest.raises(PlatformError, match="no users for an unprivileged container") as error:
        first_user({"volatile.idmap.next": IDS.replace("10000001", "1000")})
    assert "/etc/subuid" in error.value.fix


def test_the_image_has_a_root_with_nothing_in_it(tmp_path):
    empty_image(tmp_path / "empty.tar")
    with tarfile.open(tmp_path / "empty.tar") as tar:
        assert sorted(tar.getnames()) == ["metadata.yaml", "rootfs"]


def test_a_socket_that_nobody_listens_on_is_no_daemon(tmp_path):
    silent, heard = tmp_path / "silent", tmp_path / "heard"
    with socket.socket(socket.AF_UNIX) as gone, socket.socket(socket.AF_UNIX) as listener:
        gone.bind(str(silent))
        listener.bind(str(heard))
        listener.listen()
        assert answering([str(tmp_path / "none"), str(silent)]) is None
        assert answering([str(silent), str(heard)]) == heard


def test_a_host_without_it_is_told_how_to_get_it():
    for kind in (LXD, INCUS):
        answer = Lxd("x", dataclasses.replace(kind, client="no-such-client")).detect()
        assert (answer.available, answer.reason) == (False, "no-such-client is not installed")
        assert answer.fix.startswith("apt-get install")


def test_what_was_in_a_daemon_of_tares_own_goes_with_it(tmp_path):
    reach = lxd_access.LxdAccess("lxc", tmp_path / "gone", None, tmp_path / "client")
    removers.remove(removers.of_lxd(reach, "container", "tare-x"))


def test_folders_between_go_once_they_are_empty(tmp_path):
    kept, gone = tmp_path / "a" / "b" / "kept", tmp_path / "a" / "c" / "d"
    for folder in (kept, gone):
        folder.mkdir(parents=True)
    resource = removers.folder(gone, below=tmp_path)
    for _ in range(2):
        removers.remove(resource)
        assert sorted(map(Path, tmp_path.rglob("*"))) == [tmp_path / "a", tmp_path / "a" / "b", kept]


def test_a_daemon_is_named_and_no_path_wherever_it_lies(monkeypatch):
    monkeypatch.setattr(processes, "find", lambda name: name if name.startswith("/usr/libexec") else None)
    assert INCUS.daemon == "/usr/libexec/incus/incusd"
    assert Lxd("incus", INCUS).daemon == "incusd"


#: What another user may try by the names that /proc/self/mounts tells everybody; prints what succeeded.
_NEIGHBOUR = """
for place in $(cut -d ' ' -f 2 /proc/self/mounts | grep -e "/$1" -e "^/run/tare-open/"); do
    ls "$place" >/dev/null && echo "reads $place"
    touch "$place/tmp/planted" && echo "writes $place"
done 2>/dev/null
true
"""


@pytest.mark.host
@pytest.mark.parametrize("name", ["lxd-privileged", pytest.param("lxd", marks=pytest.mark.slow)])
def test_another_user_reaches_neither_an_instances_root_nor_the_daemons_folder(launcher, name):
    [platform] = platform_registry.choose([name])
    answer = platform_contract.detected(platform)
    if not answer.available:
        pytest.skip(answer.reason)
    platform_contract.prepared(platform, launcher.image)
    try:
        running = launcher.start(platform, Arm(name), measured=False)
        try:
            label = f"tare-{running.instance.spec.id}"
            points = [mount.point for mount in mounts.table()]
            mounted = [point for point in points if f"/{label}" in point]
            daemons = [point for point in points if point.startswith(f"{OPENED}/") and point.endswith("/devlxd")]
            as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            found = processes.run([*as_nobody, "sh", "-c", _NEIGHBOUR, "sh", label]).require().text
            own = platform._server().own
            planted = running.session.execute(["ls", "/tmp"]).stdout
        finally:
            running.stop()
    finally:
        platform.close()
    assert bool(mounted) == (name == "lxd")
    assert bool(daemons) == own
    assert (found, planted) == ("", b"")
