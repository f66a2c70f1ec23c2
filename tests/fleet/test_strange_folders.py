"""A fleet's folder that another user made, or that came with links: nothing of it is obeyed, followed or removed."""

import json
import os
from dataclasses import asdict, replace

import pytest

from tare.errors import HostError, UsageError
from tare.fleet import cluster, cluster_objects, playing, run_fleet
from tare.fleet.cluster_objects import ClusterPlan
from tare.fleet.host_states import MAX_REASON, HostRow, HostState, told
from tare.fleet.playing import Inventory
from tare.host.daemons import kubectl
from tare.host.processes import Finished

NOBODY = 65_534
PLAN = ClusterPlan(("node1",), "debian:12", ("-p", "runc"))
root = pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")


def a_fleet(folder):
    run_fleet.begin(folder, Inventory(("a.example,",)), ["-p", "runc"])
    cluster.begin(folder, PLAN)
    return folder


READS = {
    "order": run_fleet.read_order,
    "resume": lambda folder: run_fleet.begin(folder, Inventory(()), []),
    "cluster": lambda folder: cluster.begin(folder, None),
    "play": lambda folder: playing.owned(folder).__enter__(),
}


@root
@pytest.mark.parametrize("read", READS)
def test_another_users_folder_is_refused(read, tmp_path):
    folder = a_fleet(tmp_path / "night")
    os.chown(folder, NOBODY, NOBODY)
    with pytest.raises(UsageError, match="no fleet of yours alone: it belongs to user 65534"):
        READS[read](folder)


@root
def test_another_users_empty_folder_gets_no_fleet(tmp_path):
    folder = tmp_path / "night"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    with pytest.raises(UsageError, match="belongs to user"):
        run_fleet.begin(folder, Inventory(("a.example,",)), ["-p", "runc"])
    with pytest.raises(UsageError, match="belongs to user"):
        cluster.begin(folder, PLAN)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
def test_a_folder_that_others_write_to_is_refused(read, mode, tmp_path):
    folder = a_fleet(tmp_path / "night")
    folder.chmod(mode)
    with pytest.raises(UsageError, match="other users may write to it") as caught:
        READS[read](folder)
    assert caught.value.fix == f"if nobody has: chmod go-w {folder}"


def test_a_new_folder_is_written_to_by_its_user_alone(tmp_path):
    before = os.umask(0)
    try:
        folder = a_fleet(tmp_path / "night")
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o022 == 0


def test_a_link_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "night").symlink_to(a_fleet(tmp_path / "other"))
    with pytest.raises(UsageError, match="it is a link"):
        run_fleet.read_order(tmp_path / "night")


@pytest.mark.parametrize("begin", [lambda place: cluster.begin(place, PLAN), a_fleet])
@pytest.mark.parametrize("place", ["file", "dangling", "file/below"])
def test_a_place_where_no_folder_can_be_is_an_error_for_users(place, begin, tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError) as caught:
        begin(tmp_path / place)
    assert caught.value.fix
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("lock", ["controller", "play"])
def test_a_lock_that_is_a_link_is_not_opened(lock, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("of the host's")
    work = a_fleet(tmp_path / "night") / playing.WORK
    work.mkdir()
    (work / lock).symlink_to(victim)
    with pytest.raises(UsageError, match="is a link"), playing.owned(tmp_path / "night"):
        pass
    assert victim.read_text() == "of the host's"


def test_links_in_the_folder_of_work_are_not_written_through(tmp_path):
    victims = {name: tmp_path / f"victim-{name}" for name in ("variables.json", "limit", "errors", "control")}
    work = a_fleet(tmp_path / "night") / playing.WORK
    work.mkdir()
    for name, victim in victims.items():
        victim.write_text("of the host's")
        (work / name).symlink_to(victim)
    (tmp_path / "away").mkdir()
    (work / "incoming").symlink_to(tmp_path / "away")
    with playing.owned(tmp_path / "night") as place:
        assert {path.name for path in place.iterdir()} <= {"controller", "play"}
    assert all(victim.read_text() == "of the host's" for victim in victims.values())


@pytest.mark.parametrize("named", ["{victim}", "{victim}/../victim", "{link}", "/proc/self/nothing", "\0"])
def test_no_folder_is_removed_that_the_file_of_sockets_names(named, tmp_path):
    victim, link = tmp_path / "victim", tmp_path / playing._short_name(tmp_path / "night" / playing.WORK)
    victim.mkdir()
    (victim / "file").write_text("of the host's")
    link.symlink_to(victim)
    work = a_fleet(tmp_path / "night") / playing.WORK
    work.mkdir()
    (work / "control").write_text(named.format(victim=victim, link=link))
    with playing.owned(tmp_path / "night"):
        pass
    assert (victim / "file").read_text() == "of the host's"


def test_the_cluster_gets_the_plans_objects_and_not_a_files(tmp_path, monkeypatch):
    folder = a_fleet(tmp_path / "night")
    (folder / cluster.OBJECTS).write_text("kind: ClusterRoleBinding\n")
    calls = []

    def answer(*words, stdin=b"", **_):
        if words[0] == "get":
            return Finished((), 1, b"", b"Error from server (NotFound)", False)
        calls.append((words, stdin))
        return Finished((), 0, b"", b"", False) if words[0] == "delete" else Finished((), 1, b"", b"no", False)

    monkeypatch.setattr(kubectl, "run", answer)
    with pytest.raises(HostError, match="kubectl fails: no"):
        cluster.run(folder, PLAN, lambda rows: None)
    cluster.clean(folder, lambda rows: None, force=False)
    assert [words[:3] for words, _ in calls] == [("apply", "-f", "-"), ("delete", "-f", "-")]
    assert {stdin.decode() for _, stdin in calls} == {cluster_objects.text(PLAN)}


@pytest.mark.parametrize(
    "changed",
    [{"words": [1]}, {"words": "ab"}, {"nodes": None}, {"image": 5}, {"folder": []}],
)
def test_a_plan_of_other_types_is_refused_in_one_line(changed, tmp_path):
    folder = a_fleet(tmp_path / "night")
    (folder / cluster.PLAN).write_text(json.dumps({**asdict(PLAN), **changed}))
    with pytest.raises(UsageError) as caught:
        cluster.begin(folder, None)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "answer", [None, [], {}, {"items": None}, {"items": [1]}, {"items": [{"metadata": {"name": 5}}]}]
)
def test_a_strange_answer_of_a_cluster_is_an_error_for_users(answer, monkeypatch):
    monkeypatch.setattr(kubectl, "ask", lambda *_, **__: answer)
    with pytest.raises(HostError, match="kubectl's answer"):
        cluster.nodes("")


@pytest.mark.parametrize("job", [{"status": None}, {"status": {"conditions": 5}}, {"status": {"conditions": [None]}}])
def test_a_strange_job_is_one_that_starts(job):
    assert cluster.stands(job)[0] is HostState.STARTING


@pytest.mark.parametrize("changed", [{"left_s": ""}, {"blocks": "3"}, {"state": 5}, {"reason": None}, {"host": 5}])
def test_rows_of_other_types_are_none(changed, tmp_path):
    row = {**asdict(HostRow("a")), **changed}
    (tmp_path / run_fleet.ROWS).write_text(json.dumps({"hosts": [row]}))
    for read in run_fleet.read_rows(tmp_path):
        assert read == replace(HostRow("a"), blocks=3)


def test_rows_of_a_file_have_an_answers_bounds(tmp_path):
    row = {**asdict(HostRow("a")), "left_s": 1e300, "blocks": 10**30, "size": -1, "reason": "x\n" * 5000}
    (tmp_path / run_fleet.ROWS).write_text(json.dumps({"hosts": [row]}))
    [read] = run_fleet.read_rows(tmp_path)
    assert (read.left_s, read.blocks, read.size, len(read.reason)) == (None, None, 0, MAX_REASON)


@pytest.mark.parametrize(
    "event", [{"event": {}}, {"event": "runner_on_ok", "event_data": 5}, {"event_data": {"host": []}}]
)
def test_an_event_of_other_types_changes_nothing(event, tmp_path):
    fleet = run_fleet._Fleet(tmp_path, ["a"], lambda rows: None)
    fleet.take(event)
    assert fleet.rows == {"a": HostRow("a")} == {"a": told(HostRow("a"), event, 0)}


@root
@pytest.mark.parametrize("whose", ["file", "folder", "both"])
def test_another_users_settings_of_ansible_are_not_taken(whose, tmp_path, monkeypatch):
    """They name programs; root may type the command in the folder of any user."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ANSIBLE_CONFIG", raising=False)
    (tmp_path / "ansible.cfg").write_text("[defaults]\n")
    assert playing._environment(tmp_path)["ANSIBLE_CONFIG"] == str(tmp_path / "ansible.cfg")
    for place in {"file": ["ansible.cfg"], "folder": ["."], "both": [".", "ansible.cfg"]}[whose]:
        os.chown(tmp_path / place, NOBODY, NOBODY)
    assert "ANSIBLE_CONFIG" not in playing._environment(tmp_path)


def test_an_empty_folder_has_no_settings_of_ansible(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ANSIBLE_CONFIG", raising=False)
    assert "ANSIBLE_CONFIG" not in playing._environment(tmp_path)


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_no_inventory_is_read_where_everybody_may_put_variables(mode, tmp_path):
    shared, ran = tmp_path / "shared", tmp_path / "ran"
    (shared / "group_vars").mkdir(parents=True)
    (shared / "hosts.ini").write_text("a ansible_host=192.0.2.1\n")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho ran >{ran}\nexit 255\n")
    program.chmod(0o755)
    (shared / "group_vars" / "all.yml").write_text(f"ansible_ssh_executable: {program}\n")
    inventory = Inventory((str(shared / "hosts.ini"),))
    shared.chmod(mode)
    for ask in (playing.hosts, lambda inventory: run_fleet.begin(tmp_path / "night", inventory, ["-p", "runc"])):
        with pytest.raises(UsageError, match=f"what {shared} says for the inventory hosts.ini, and everybody may"):
            ask(inventory)
    shared.chmod(0o755)
    assert playing.hosts(inventory) == ["a"]
    with playing.owned(tmp_path / "fleet") as work:  # whose folder it is alone, Ansible does what it says
        playing.play("look", inventory, {"tare_look_limit_s": 8}, work, lambda _: None, forks=1, limit=["a"])
    assert ran.exists()


@root
def test_another_users_folder_has_no_variables_for_roots_inventory(tmp_path):
    (tmp_path / "theirs").mkdir()
    file = tmp_path / "theirs" / "hosts.ini"
    file.write_text("a\n")
    os.chown(tmp_path / "theirs", NOBODY, NOBODY)
    with pytest.raises(UsageError, match="it belongs to user 65534"):
        playing.hosts(Inventory((str(file),)))
    os.chown(file, NOBODY, NOBODY)  # whom root names on the command line root trusts: sudo in a user's own folder
    assert playing.hosts(Inventory((str(file),))) == ["a"]
    file.chmod(0o666)
    with pytest.raises(UsageError, match="everybody may write"):
        playing.hosts(Inventory((str(file),)))
