"""What pods of a cluster need of it, and how they are found on the node; on a real cluster by `make cluster-test`."""

import json
import socket
import subprocess
from types import SimpleNamespace

import pytest

from tare.contract import hostile
from tare.errors import HostError, PlatformError, SessionError, UsageError
from tare.host import cgroup
from tare.host.daemons import containerd_access, kubectl
from tare.host.kernel.owner import boot_id
from tare.host.resources import removers
from tare.platforms import kubernetes as platform_module
from tare.platforms import platform_registry
from tare.platforms.parts.engines import pods

UID = "0a1b2c3d-0000-4000-8000-00000000000f"
#: A kubectl that prints what a file beside it says for its first two words, and notes all of its words.
KUBECTL = """#!/bin/sh
folder=${0%/*}
printf '%s\\n' "$*" >>"$folder/asked"
[ -e "$folder/$1-$2" ] || { echo "Error from server (NotFound): no such thing" >&2; exit 1; }
cat "$folder/$1-$2"
"""


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A folder whose files are the answers of kubectl: `get-nodes`, `get-runtimeclass`."""
    place = tmp_path / "kubectl"
    place.write_text(KUBECTL)
    place.chmod(0o755)
    monkeypatch.setattr(kubectl, "program", lambda: str(place))
    monkeypatch.setattr(containerd_access, "hosts_own", lambda: containerd_access.SOCKETS[0])
    _nodes(tmp_path, boot_id())
    return tmp_path


def _nodes(folder, boot):
    info = {"bootID": boot, "kubeletVersion": "v1.34.4", "containerRuntimeVersion": "containerd://2.2.9"}
    node = {"metadata": {"name": "node1"}, "status": {"nodeInfo": info}}
    (folder / "get-nodes").write_text(json.dumps({"items": [node]}))


def _platform(name="kubernetes:gvisor"):
    [platform] = platform_registry.choose([name])
    return platform


def test_a_class_of_the_cluster_is_available_on_its_node(cluster):
    (cluster / "get-runtimeclass").write_text(json.dumps({"handler": "runsc"}))
    (cluster / "config-view").write_text("tare")
    answer = _platform().detect()
    assert answer.available, answer.reason
    assert answer.version == "1.34.4"
    assert answer.details == {
        "node": "node1", "container runtime": "containerd://2.2.9", "handler": "runsc", "namespace": "tare",
    }  # fmt: skip


def test_a_pod_without_a_class_asks_for_none(cluster):
    answer = _platform("kubernetes:default").detect()
    assert answer.available
    assert answer.details["namespace"] == "default"
    assert "runtimeclass" not in (cluster / "asked").read_text()


def test_what_is_missing_is_said_with_its_fix(cluster, monkeypatch):
    answer = _platform().detect()
    assert (answer.available, answer.reason) == (False, "the cluster has no runtime class gvisor")
    (cluster / "get-runtimeclass").write_text(json.dumps({"handler": "runsc"}))
    with monkeypatch.context() as without:
        without.setattr(containerd_access, "hosts_own", lambda: None)
        assert "containerd does not answer" in _platform().detect().reason
    _nodes(cluster, "another")
    answer = _platform().detect()
    assert (answer.available, answer.reason) == (False, "none of the cluster's 1 nodes is this host")
    assert "tare fleet manifest" in answer.fix
    (cluster / "get-nodes").write_text("no JSON")
    assert "is no JSON" in _platform().detect().reason
    monkeypatch.setattr(kubectl, "program", lambda: None)
    assert _platform().detect().reason == "kubectl is not installed"


def test_no_name_of_a_class_is_an_option_of_kubectl():
    for name in ("-o", "a b", "A", "x" * 64):
        with pytest.raises(UsageError, match="no name of a runtime class"):
            platform_module.Kubernetes(name)


def test_a_pod_is_deleted_by_name_whoever_made_it(cluster):
    (cluster / "delete-pod").touch()
    removers.remove(removers.cluster_pod("tare", "tare-x1", "tare/x1"))
    asked = (cluster / "asked").read_text()
    assert asked.startswith("delete pod tare-x1 --namespace=tare --ignore-not-found --wait=true --grace-period=1")
    assert "--force" not in asked


def test_a_cluster_that_is_not_reached_keeps_the_pod_in_the_journal(cluster):
    with pytest.raises(HostError, match=r"pod tare-x1 cannot be deleted") as refused:
        removers.remove(removers.cluster_pod("tare", "tare-x1", "tare/x1"))
    assert refused.value.fix.endswith("then `tare clean`")


@pytest.mark.parametrize(
    "place",
    [
        f"kubepods/burstable/pod{UID}",
        f"tare-pods-1/pods/kubepods/burstable/pod{UID}",
        f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice",
    ],
)
def test_a_pods_group_is_found_and_pinned_by_either_driver(place, tmp_path, monkeypatch):
    for below in ("", "container"):
        (tmp_path / place / below).mkdir(parents=True, exist_ok=True)
        (tmp_path / place / below / "cpuset.cpus").touch()
    (tmp_path / "kubepods" / "burstable" / "pod-of-another").mkdir(parents=True, exist_ok=True)
    v1 = dict.fromkeys(cgroup.CONTROLLERS, tmp_path)
    monkeypatch.setattr(cgroup, "hierarchies", lambda: cgroup.Hierarchies(v1, None, (tmp_path,)))
    group = pods.group_of(UID)
    assert group.path == place
    pods.pin(group, (1, 3))
    assert (tmp_path / place / "cpuset.cpus").read_text() == "1,3"
    assert (tmp_path / place / "container" / "cpuset.cpus").read_text() == "1,3"
    with pytest.raises(PlatformError, match="no control group on this host"):
        pods.group_of("another")


def test_a_connection_breaks_with_the_process_that_stands_for_the_pod(monkeypatch):
    with subprocess.Popen(["sleep", "60"]) as sandbox:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            monkeypatch.setattr(cgroup.Group, "pids", lambda _: [sandbox.pid])
            pods.end_with(ours, cgroup.Group("tare/x"))
            ours.settimeout(0.05)
            with pytest.raises(TimeoutError):
                ours.recv(1)
            sandbox.kill()
            ours.settimeout(20)
            assert ours.recv(1) == b""


def test_a_kubectl_that_still_makes_the_pod_is_waited_for(cluster, monkeypatch):
    (cluster / "delete-pod").touch()
    turns = iter([[1], [1], []])
    monkeypatch.setattr(cgroup.Group, "pids", lambda _: next(turns))
    removers.remove(removers.cluster_pod("tare", "tare-x1", "tare/x1"))
    assert next(turns, None) is None


@pytest.mark.parametrize("refusal", ["Function not implemented", "Operation not permitted"])
def test_a_stream_that_the_kernel_inside_gives_nobody_is_out_of_reach(refusal):
    spoken = SimpleNamespace(over=True, stdout=f"cannot: {refusal}\n".encode())
    running = SimpleNamespace(session=SimpleNamespace(ping=lambda time_limit_s: None))
    assert hostile._lost(running, spoken) is None


def test_a_stream_that_is_lost_is_timed_although_the_guest_says_it_cannot_reach_it():
    def ping(time_limit_s):
        raise SessionError("the sandbox is gone")

    spoken = SimpleNamespace(over=True, stdout=b"cannot: Operation not permitted\n")
    _, error = hostile._lost(SimpleNamespace(session=SimpleNamespace(ping=ping)), spoken)
    assert str(error) == "the sandbox is gone"
