"""Which unit a group is, and how limits are told to systemd; what systemd makes of it is tried on a stock host."""

from pathlib import Path

import pytest

from tare.errors import HostError
from tare.host import cgroup, processes, systemd
from tare.host.resources import claims, removers
from tare.host.resources.resource import is_shared
from tare.model import Resources

V2 = cgroup.Hierarchies({}, Path("/sys/fs/cgroup"), (Path("/sys/fs/cgroup"),))
HYBRID = cgroup.Hierarchies({"cpu": Path("/c/cpu")}, Path("/c/unified"), (Path("/c/cpu"), Path("/c/unified")))


@pytest.fixture
def by_systemd(monkeypatch, tmp_path):
    monkeypatch.setattr(cgroup, "hierarchies", lambda: V2)
    monkeypatch.setattr(systemd, "BOOTED", tmp_path)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("tare", "tare.slice"),
        ("tare/ab12cx3", "tare.slice/tare-ab12cx3.slice"),
        ("tare/client", "tare.slice/tare-client.slice"),
        ("tare-detect17abcd", "tare_detect17abcd.slice"),  # no part of a session's, which may end meanwhile
        ("tare-daemon-libvirt-lxc-17-18ab", "tare_daemon_libvirt_lxc_17_18ab.slice"),
        ("tare/ab12cx*", "tare.slice/tare-ab12cx*.slice"),
    ],
)
def test_a_group_is_a_slice_whose_name_says_where_it_is(name, path):
    assert systemd.path_of(name) == path


def test_groups_are_made_below_the_delegated_scope_only(by_systemd):
    group = cgroup.named("tare/ab12cx3")
    assert group.path == "tare.slice/tare-ab12cx3.slice"
    assert group.inner == "tare.slice/tare-ab12cx3.slice/tare-ab12cx3.scope"


def test_without_systemd_a_group_is_where_its_name_says(monkeypatch, tmp_path):
    monkeypatch.setattr(cgroup, "hierarchies", lambda: V2)
    monkeypatch.setattr(systemd, "BOOTED", tmp_path / "missing")
    group = cgroup.named("tare/ab12cx3")
    assert (group.path, group.inner, group.slice) == ("tare/ab12cx3", "tare/ab12cx3", None)


def test_beside_v1_systemd_keeps_no_groups_of_tares(monkeypatch, tmp_path):
    monkeypatch.setattr(cgroup, "hierarchies", lambda: HYBRID)
    monkeypatch.setattr(systemd, "BOOTED", tmp_path)
    assert cgroup.path_of("tare/ab12cx3") == "tare/ab12cx3"


def test_a_daemons_own_group_is_no_unit_of_tares(by_systemd):
    group = cgroup.Group("system.slice/docker.service")
    assert (group.inner, group.slice) == ("system.slice/docker.service", None)
    assert cgroup.Group("user.slice").slice is None


def test_an_engine_gets_the_parent_that_its_driver_takes(by_systemd):
    group = cgroup.named("tare/ab12cx3")
    assert group.parent_for("systemd") == "tare-ab12cx3.slice"
    assert group.parent_for("cgroupfs") == "/tare.slice/tare-ab12cx3.slice/tare-ab12cx3.scope"


def test_an_engine_of_systemds_has_no_place_beside_v1(monkeypatch):
    monkeypatch.setattr(cgroup, "hierarchies", lambda: HYBRID)
    group = cgroup.named("tare/ab12cx3")
    assert group.parent_for("cgroupfs") == "/tare/ab12cx3"
    with pytest.raises(HostError, match="made by systemd") as refusal:
        group.parent_for("systemd")
    assert "cgroupfs" in refusal.value.fix


def test_cpus_are_told_as_a_bit_mask_in_octets():
    assert systemd.limits(Resources((0, 3, 9), 1 << 30)) == [
        ["AllowedCPUs", "ay", "2", "9", "2"],
        ["MemoryMax", "t", "1073741824"],
        ["MemorySwapMax", "t", "0"],
        ["CPUWeight", "t", "100"],
        ["TasksMax", "t", "4096"],
    ]
    assert systemd.limits(Resources((16,), 1 << 30))[0] == ["AllowedCPUs", "ay", "3", "0", "0", "1"]
    assert systemd.limits(Resources((7,), 1 << 30))[0] == ["AllowedCPUs", "ay", "1", "128"]


def test_a_daemons_slice_has_as_many_tasks_as_it_likes():
    limits = systemd.limits(Resources((0,), 1 << 30, pids=None))
    assert limits[-1] == ["TasksMax", "t", "18446744073709551615"]


def test_a_quota_is_told_as_the_time_of_a_second():
    *_, quota = systemd.limits(Resources((0, 1), 1 << 30, cpu_quota=1.5))
    assert quota == ["CPUQuotaPerSecUSec", "t", "1500000"]


def test_the_scope_is_delegated_and_below_the_slice():
    words = systemd.delegated("tare-ab12cx3.slice", 4711)
    assert words[:3] == ["Slice", "s", "tare-ab12cx3.slice"]
    assert words[3:6] == ["Delegate", "b", "true"]
    assert words[6:10] == ["PIDs", "au", "1", "4711"]


def test_the_keeper_of_the_scope_is_none_of_the_groups_processes(tmp_path, monkeypatch):
    tree = cgroup.Hierarchies({}, tmp_path, (tmp_path,))
    monkeypatch.setattr(cgroup, "hierarchies", lambda: tree)
    monkeypatch.setattr(systemd, "BOOTED", tmp_path)
    group = cgroup.named("tare/ab12cx3")
    for name, pid in ((f"{group.inner}/{systemd.KEEPER}", 11), (f"{group.inner}/tool", 12), (group.path, 13)):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "cgroup.procs").write_text(f"{pid}\n")
    assert group.pids() == [12, 13]


@pytest.mark.parametrize(
    "path",
    [
        "tare.slice",
        "tare.slice/tare-ab12cx3.slice",
        "tare.slice/tare-ab12cx3.slice/tare-ab12cx3.scope/tool",
        "tare_detect17abcd.slice",
        "tare_detect17abcd.slice/tare_detect17abcd.scope/tool",
    ],
)
def test_units_of_tares_are_claimed(path):
    bounds = claims.Bounds(Path("/var/lib/tare"))
    assert claims.fault(removers.control_group(path), bounds) is None
    assert claims.fault(removers.podman_container("tare-x1", path), bounds) is None


@pytest.mark.parametrize(
    "path",
    [
        "system.slice",
        "tare.slice/../system.slice",
        "tare.slice/system.slice",
        "tare.slice/docker.service",
        "tares.slice",
        "tare.slice/tare-a.slice/docker-1.scope",
        "system.slice/tare-a.slice",
    ],
)
def test_units_of_others_are_not(path):
    assert claims.fault(removers.control_group(path), claims.Bounds(Path("/var/lib/tare"))) is not None


def test_every_session_has_the_slice_of_all_instances_and_the_clients():
    assert is_shared(removers.control_group("tare.slice"))
    assert is_shared(removers.control_group("tare.slice/tare-client.slice"))
    assert not is_shared(removers.control_group("tare.slice/tare-ab12cx3.slice"))


#: What `busctl` of systemd 252 said on a Debian 12 without dbus, and with it of a unit that is there.
@pytest.mark.parametrize(
    ("answer", "fix"),
    [
        (b"Failed to connect to bus: No such file or directory\n", "dbus"),
        (b"Call failed: Unit tare-client.slice already exists.\n", "journalctl"),
    ],
)
def test_a_systemd_that_cannot_be_called_names_what_is_missing(answer, fix, monkeypatch, tmp_path):
    called = processes.Finished(("busctl",), 1, b"", answer, 1)
    monkeypatch.setattr(processes, "run", lambda *_, **__: called)
    with pytest.raises(HostError, match=r"tare-client\.slice: " + answer.decode().strip()) as refused:
        systemd.make_slice(tmp_path, "tare.slice/tare-client.slice")
    assert fix in refused.value.fix
