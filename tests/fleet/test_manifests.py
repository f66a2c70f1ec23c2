"""A fleet on a cluster, without a cluster: its objects, the script of its Jobs, and how a Job's state is read."""

import json
import os
import shutil
import subprocess

import pytest
import yaml

from tare.cli.commands import fleet_run_command
from tare.errors import UsageError
from tare.fleet import cluster, cluster_objects
from tare.fleet.cluster_objects import ClusterPlan
from tare.fleet.host_states import HostState
from tare.fleet.job import SCRIPT

WORDS = ("-p", "kubernetes:gvisor", "-w", "startup", "--note", 'it\'s "here": $HOME $(KUBERNETES_PORT)')
PLAN = ClusterPlan(("node1", "node2.example"), "debian:12", WORDS)


def _objects(plan=PLAN):
    return list(yaml.safe_load_all(cluster_objects.text(plan)))


def _jobs(plan=PLAN):
    return [found for found in _objects(plan) if found["kind"] == "Job"]


def test_a_manifest_is_plain_yaml_of_the_objects_that_a_fleet_needs():
    text = cluster_objects.text(PLAN)
    assert "&id" not in text
    kinds = [found["kind"] for found in _objects()]
    assert kinds == [
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Job",
        "Job",
    ]
    assert all(found["metadata"]["labels"]["tare.fleet"] == "tare" for found in _objects())
    assert list(yaml.safe_load_all(text)) == cluster_objects.objects(PLAN)


def test_each_node_has_a_job_that_is_bound_to_it_and_runs_once():
    jobs = _jobs()
    assert [job["spec"]["template"]["spec"]["nodeName"] for job in jobs] == ["node1", "node2.example"]
    for job in jobs:
        pod = job["spec"]["template"]["spec"]
        assert job["spec"]["backoffLimit"] == 0
        assert pod["restartPolicy"] == "Never"
        assert pod["hostPID"] is True
        [container] = pod["containers"]
        assert container["securityContext"] == {"privileged": True}
        assert {"name": "results", "hostPath": {"path": "/var/lib/tare-fleet", "type": "DirectoryOrCreate"}} in pod[
            "volumes"
        ]
        # A kubelet makes $ of $$, and would replace $(NAME).
        words = [word.replace("$$", "$") for word in container["command"]]
        assert words[:4] == ["sh", "-c", SCRIPT, "job"]
        assert tuple(words[-len(WORDS) :]) == WORDS
        assert not any("$" in word.replace("$$", "") for word in container["command"])
    assert len({job["metadata"]["name"] for job in jobs}) == 2


def test_names_are_short_and_never_the_same_for_two_nodes():
    long = ["a" * 200, "a" * 201, "node.a", "node-a"]
    names = [cluster_objects.job_name(node) for node in long]
    assert len(set(names)) == 4
    assert all(len(name) <= 63 for name in names)


def test_the_account_may_start_pods_in_its_own_namespace_alone():
    by_kind = {found["kind"]: found for found in _objects()}
    assert [rule["resources"] for rule in by_kind["Role"]["rules"]] == [["pods"]]
    verbs = {verb for rule in by_kind["ClusterRole"]["rules"] for verb in rule["verbs"]}
    assert verbs == {"get", "list"}
    assert by_kind["RoleBinding"]["subjects"] == [{"kind": "ServiceAccount", "name": "tare", "namespace": "tare"}]


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"nodes": ("node 1",)}, "no name of a node"),
        ({"nodes": ("-o",)}, "no name of a node"),
        ({"namespace": "kube-system"}, "not the fleet's alone"),
        ({"namespace": "Tare"}, "no name of a namespace"),
        ({"folder": "/var/../etc"}, "no whole path"),
        ({"folder": "results"}, "no whole path"),
        ({"tare": "bin/tare"}, "no whole path"),
        ({"image": ""}, "is no image"),
        ({"image": "-v"}, "is no image"),
    ],
)
def test_a_name_that_kubernetes_would_not_take_is_refused(changed, match):
    with pytest.raises(UsageError, match=match):
        ClusterPlan(**{"nodes": ("a",), "image": "debian:12", "words": (), **changed})


def test_runtime_classes_are_platforms():
    assert cluster_objects.classes(["gvisor,kata", "gvisor"]) == ["-p", "kubernetes:gvisor", "-p", "kubernetes:kata"]
    with pytest.raises(UsageError, match="no name of a runtime class"):
        cluster_objects.classes(["g visor"])


def test_the_command_needs_nodes_an_image_and_something_to_weigh():
    for nodes, classes, image, match in (
        ((), ["gvisor"], "debian:12", "no nodes are named"),
        (("a",), ["gvisor"], "", "no image is named"),
        (("a",), [], "debian:12", "no platform is named"),
    ):
        with pytest.raises(UsageError, match=match):
            fleet_run_command._plan(nodes, classes, image, "tare", "tare", [])
    plan = fleet_run_command._plan(("a",), ["gvisor"], "debian:12", "tare", "tare", ["-w", "startup"])
    assert plan.words == ("-p", "kubernetes:gvisor", "-w", "startup")


def _played(tmp_path, *words, seen=False):
    """Run a Job's script with programs in the places of nsenter and its own folder; return what tare would get."""
    programs = tmp_path / "programs"
    programs.mkdir()
    nsenter = programs / "nsenter"
    nsenter.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n')
    tare = tmp_path / "tare"
    tare.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >"$WRITTEN"; cat "$KUBECONFIG" >"$WRITTEN.config"; exit 3\n')
    for program in (nsenter, tare):
        program.chmod(0o755)
    result = tmp_path / "node1.tare"
    if seen:
        result.touch()
    script = SCRIPT.replace("/scratch/", f"{tmp_path}/")
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "WRITTEN": str(tmp_path / "written"),
        "TARE_NAMESPACE": "tare",
        "KUBERNETES_SERVICE_HOST": "10.96.0.1",
        "KUBERNETES_SERVICE_PORT": "443",
    }
    argv = ["sh", "-c", script, "job", str(tare), str(result), "/on/node.tare", *words]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    return done, (tmp_path / "written").read_text().splitlines(), (tmp_path / "written.config").read_text()


def test_a_job_hands_words_on_as_they_are_and_ends_as_tare_does(tmp_path):
    done, words, config = _played(tmp_path, *WORDS)
    assert (done.returncode, done.stderr) == (3, "")
    assert words == ["run", "--output", "/on/node.tare", *WORDS]
    read = yaml.safe_load(config)
    assert read["clusters"][0]["cluster"]["server"] == "https://10.96.0.1:443"
    assert read["contexts"][0]["context"]["namespace"] == "tare"
    assert read["users"][0]["user"].keys() == {"tokenFile"}  # and no token


def test_a_job_goes_on_with_a_result_that_was_begun(tmp_path):
    _, words, _ = _played(tmp_path, *WORDS, seen=True)
    assert words == ["run", "--resume", "/on/node.tare"]


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_the_script_is_clean():
    subprocess.run(["shellcheck", "--shell=sh", "-"], input=SCRIPT, text=True, check=True)


@pytest.mark.parametrize(
    ("job", "state", "reason"),
    [
        (None, HostState.FAILED, "its Job is gone"),
        ({}, HostState.STARTING, ""),
        ({"status": {"active": 1}}, HostState.RUNNING, ""),
        ({"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, HostState.FETCHING, ""),
        ({"status": {"conditions": [{"type": "Failed", "status": "False"}], "active": 1}}, HostState.RUNNING, ""),
        (
            {"status": {"conditions": [{"type": "Failed", "status": "True", "message": "late"}]}},
            HostState.FAILED,
            "late",
        ),
    ],
)
def test_a_node_stands_as_its_job_does(job, state, reason):
    found = cluster.stands(job)
    assert found[0] is state
    assert found[1].startswith(reason)


def test_a_folder_keeps_its_fleet_and_refuses_another(tmp_path):
    folder = tmp_path / "night"
    assert cluster.begin(folder, PLAN) == PLAN
    assert cluster.begin(folder, None) == PLAN
    assert list(yaml.safe_load_all((folder / cluster.OBJECTS).read_text())) == cluster_objects.objects(PLAN)
    with pytest.raises(UsageError, match="another fleet"):
        cluster.begin(folder, ClusterPlan(("other",), "debian:12", WORDS))
    with pytest.raises(UsageError, match="there is no fleet"):
        cluster.begin(tmp_path / "none", None)
    (folder / cluster.PLAN).write_text(json.dumps({"nodes": 7}))
    with pytest.raises(UsageError, match="cannot be read"):
        cluster.begin(folder, None)
