"""Without root: what is missing is said in one line with its fix, and what a user has is found."""

import dataclasses
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_checks import QUIET

from tare.cli import run
from tare.errors import HostError
from tare.host import cgroup, host_checks, lock, own_namespaces, state
from tare.platforms import platform_contract, platform_registry
from tare.report.sentences.host import rights_note

SUBUID = "alice:100000:65536\n1001:165536:65536\nalice:300000:10\n"


def test_subordinate_ids_are_counted_by_name_and_by_number():
    assert own_namespaces.subordinate(SUBUID, "alice", 1000) == 65546
    assert own_namespaces.subordinate(SUBUID, "bob", 1001) == 65536
    assert own_namespaces.subordinate(SUBUID, "carol", 1002) == 0


def test_root_of_the_host_is_in_no_namespace_of_its_own_and_enters_none():
    own_namespaces.inside.cache_clear()
    mapped = Path("/proc/self/uid_map").read_text().split()
    assert own_namespaces.inside() is (os.geteuid() == 0 and mapped != ["0", "0", "4294967295"])
    if os.geteuid() == 0:
        own_namespaces.enter(Path("/nonexistent"))


def test_a_user_without_subordinate_ids_is_told_the_command_that_gives_some(monkeypatch):
    monkeypatch.setattr(own_namespaces.os, "getuid", lambda: 65534)
    monkeypatch.setattr(own_namespaces, "_SWITCHES", ())
    lacking = own_namespaces.obstacle()
    assert lacking is not None
    assert "nobody has 0 subordinate uids in /etc/subuid" in lacking.what
    assert lacking.fix.startswith("usermod --add-subuids 100000-165535 nobody")


def test_a_kernel_that_forbids_users_namespaces_is_named_with_its_switch(monkeypatch):
    value = Path("/proc/sys/user/max_user_namespaces").read_text().strip()
    monkeypatch.setattr(own_namespaces, "_SWITCHES", (("user/max_user_namespaces", value, "sysctl it=1"),))
    lacking = own_namespaces.obstacle()
    assert lacking is not None
    assert f"(user.max_user_namespaces is {value})" in lacking.what
    assert lacking.fix == "sysctl it=1; or run tare as root (sudo)"


def test_a_user_s_home_is_by_the_xdg_specification(monkeypatch, tmp_path):
    monkeypatch.delenv("TARE_HOME", raising=False)
    monkeypatch.setattr(state.os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert state.home_if_any() == tmp_path / "tare"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/alice")
    assert state.home_if_any() == Path("/home/alice/.local/share/tare")


@pytest.fixture
def inside(monkeypatch):
    monkeypatch.setattr(own_namespaces, "inside", lambda: True)


@pytest.mark.usefixtures("inside")
def test_a_user_s_lock_is_in_his_run_time_folder_and_names_the_process_on_the_host(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("TARE_LOCK_HOLDER", "4242")
    monkeypatch.setattr(lock.os, "geteuid", lambda: 0)
    monkeypatch.setattr(lock, "_held", False)
    with lock.held_if_free() as holder:
        assert holder is None
        assert '"pid": 4242' in (tmp_path / "tare" / "lock").read_text()


@pytest.mark.usefixtures("inside")
def test_a_platform_that_needs_root_says_so_and_is_not_tried():
    [runc] = platform_registry.choose(["runc"])
    answer = platform_contract.detected(runc)
    assert (answer.available, answer.reason, answer.fix) == (False, "it needs root", "run tare as root (sudo)")


@pytest.mark.parametrize("name", ["native", "bubblewrap", "runc", "qemu"])
def test_who_is_not_even_root_of_a_namespace_is_told_so_for_every_platform(name, monkeypatch):
    monkeypatch.setattr(platform_contract.os, "geteuid", lambda: 1000)
    [platform] = platform_registry.choose([name])
    monkeypatch.setattr(type(platform), "detect", lambda _: pytest.fail("it was tried"))
    answer = platform_contract.detected(platform)
    assert (answer.available, answer.reason, answer.fix) == (False, "it needs root", "run tare as root (sudo)")


@pytest.mark.usefixtures("inside")
def test_only_what_was_delegated_with_its_controllers_takes_groups(tmp_path):
    (tmp_path / "cgroup.procs").touch()
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    tree = cgroup.delegated(cgroup.Hierarchies({}, tmp_path, (tmp_path,)))
    assert (tree.none, tree.pins, tree.controllers()) == (False, False, ["cpu", "memory", "pids"])
    (tmp_path / "cgroup.controllers").write_text("pids\n")
    assert cgroup.delegated(cgroup.Hierarchies({}, tmp_path, (tmp_path,))).none
    assert cgroup.delegated(cgroup.Hierarchies({"cpu": tmp_path}, None, (tmp_path,))).none


def test_without_groups_nothing_is_accounted_and_instances_have_a_process_namespace(monkeypatch):
    monkeypatch.setattr(cgroup, "hierarchies", lambda: cgroup.Hierarchies({}, None, ()))
    group = cgroup.Group("tare/x1")
    group.create(SimpleNamespace(cpus=(1, 3), memory_bytes=1))
    assert group.surroundings() == [
        "taskset", "--cpu-list", "1,3", "unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--",
    ]  # fmt: skip
    assert (group.accounts, group.leaf("tool"), group.pids()) == (False, [], [])
    with pytest.raises(HostError, match="nothing is accounted") as raised:
        group.cpu_ns()
    assert raised.value.fix == cgroup.DELEGATE


def test_doctor_tells_a_user_what_he_has_and_what_he_lacks():
    facts = QUIET.model_copy(update={"root": False, "own_namespaces": True, "cgroup": "none"})
    rights, groups = [check for check in host_checks.checks(facts) if check.name in {"root", "control groups"}]
    assert (rights.state, groups.state) == ("warn", "warn")
    assert "user namespace" in rights.observed
    assert "no memory limit" in groups.observed
    assert groups.advice == cgroup.DELEGATE
    check = host_checks.without_rights(HostError("no luck", fix="try"), root=False)
    assert dataclasses.astuple(check) == ("root", "fail", "not root, and no luck", "try")


def test_a_campaign_without_root_is_one_with_a_caution():
    assert rights_note({"root": True}) is None
    assert "no CPU time" in rights_note({"own_namespaces": True, "cgroup": "none"})
    assert "no CPU time" not in rights_note({"own_namespaces": True, "cgroup": "v2"})


def test_a_user_who_names_platforms_of_root_alone_is_told_that_first(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    with pytest.raises(HostError, match="docker, runc: this needs root") as raised:
        run._require_rights(["docker", "runc"])
    assert raised.value.fix == "run tare as root (sudo)"
    run._require_rights(["docker", "bubblewrap"])
    run._require_rights([])
    run._require_rights(["all"])
