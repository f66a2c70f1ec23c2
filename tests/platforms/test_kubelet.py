"""A kubelet's configuration, its pods, and what is said where it does not run; on real ones by `make cluster-test`."""

import json
import stat
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from tare.errors import HostError, PlatformError, UnsupportedError
from tare.host.resources import claims
from tare.model import PIDS
from tare.platforms import containerd, platform_registry
from tare.platforms import kubelet as platform_module
from tare.platforms.parts.engines import containerd_server, kubelet_node
from tare.setup import kubernetes_build

FOLDER = Path("/var/lib/tare/work/tare-a")


@pytest.fixture
def platform():
    [platform] = platform_registry.choose(["kubelet"])
    return platform


def test_without_a_kubelet_the_fix_names_what_builds_it(platform, monkeypatch):
    monkeypatch.setattr(kubelet_node, "program", lambda: None)
    answer = platform.detect()
    assert (answer.available, answer.reason) == (False, "kubelet is not installed")
    assert answer.fix == "tare setup --with kubelet"
    with pytest.raises(HostError, match="kubelet is not installed"):
        kubelet_node.KubeletNode()


def test_the_kubelet_that_tare_built_is_taken_before_another(tmp_path, monkeypatch):
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    with monkeypatch.context() as without:
        without.setattr(kubelet_node.processes, "find", lambda name: f"/usr/bin/{name}")
        assert kubelet_node.program() == "/usr/bin/kubelet"
    built = tmp_path / "bin" / "kubelet"
    built.parent.mkdir()
    built.write_text("#!/bin/sh\necho Kubernetes v1.34.4\n")
    built.chmod(0o755)
    assert kubelet_node.program() == str(built)
    assert kubelet_node.version(str(built)) == "1.34.4"


def test_a_missing_runtime_is_named_with_its_package(platform, monkeypatch):
    monkeypatch.setattr(kubelet_node, "program", lambda: "/bin/true")
    monkeypatch.setattr(containerd.processes, "find", lambda name: None if name == "ctr" else f"/usr/bin/{name}")
    answer = platform.detect()
    assert (answer.available, answer.reason) == (False, "ctr is not installed")
    assert "containerd" in answer.fix


def test_pods_of_gvisor_need_its_shim(monkeypatch, tmp_path):
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    monkeypatch.setattr(kubelet_node, "program", lambda: "/bin/true")
    shim = "containerd-shim-runsc-v1"
    monkeypatch.setattr(containerd.processes, "find", lambda name: None if name == shim else f"/usr/bin/{name}")
    [platform] = platform_registry.choose(["kubelet-gvisor"])
    answer = platform.detect()
    assert (answer.available, answer.reason) == (False, f"{shim} is not installed")
    assert answer.fix == "tare setup --with containerd-gvisor"


def test_a_daemon_that_cannot_talk_to_gvisors_shim_is_stopped_again(monkeypatch):
    class Node:
        def __init__(self, runtime):
            self.server = SimpleNamespace(version=lambda: "1.6.20~ds1")
            started.append(runtime)

        def close(self):
            started.append("closed")

    started = []
    monkeypatch.setattr(kubelet_node, "program", lambda: "/bin/true")
    monkeypatch.setattr(kubelet_node, "version", lambda _: "1.34.4")
    monkeypatch.setattr(containerd, "path_of", lambda name: name)
    monkeypatch.setattr(platform_module, "KubeletNode", Node)
    [platform] = platform_registry.choose(["kubelet-gvisor"])
    answer = platform.detect()
    assert (answer.available, answer.fix) == (False, "a newer containerd")
    assert "this is 1.6.20" in answer.reason
    assert started == ["runsc", "closed"]


def test_a_kubelet_alone_has_its_runtime_as_containerds_default(tmp_path):
    for runtime in ("runc", "runsc"):
        config = tomllib.loads(containerd_server.configuration(tmp_path, "/run/c.sock", runtime))
        runtimes = config["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]
        assert runtimes["default_runtime_name"] == runtime
        assert runtime in runtimes["runtimes"]
    assert runtimes["runtimes"]["runsc"]["options"]["ConfigPath"].startswith(str(tmp_path))


def test_a_kubelet_opens_no_door_and_removes_nothing_on_its_own():
    config = kubelet_node.configuration(FOLDER, "/run/c.sock", "/tare-pods-1/pods")
    assert config["enableServer"] is False
    assert config["healthzPort"] == 0
    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["makeIPTablesUtilChains"] is False
    assert config["imageGCHighThresholdPercent"] == 100
    assert set(config["evictionHard"].values()) == {"0%"}
    assert config["podPidsLimit"] == PIDS
    assert config["cgroupRoot"] == "/tare-pods-1/pods"
    places = [config[name] for name in ("staticPodPath", "podLogsDir", "volumePluginDir")]
    assert all(Path(place).is_relative_to(FOLDER) for place in places)


def test_a_pod_is_found_by_its_label_and_limited_by_its_group():
    pod = kubelet_node.pod_of(
        "tare-x1", "a-b", "localhost/tare:1", ["/agent"], memory_bytes=512, cpu_quota=1.5, data=Path("/d")
    )
    assert pod["metadata"] == {"name": "tare-x1", "namespace": "tare", "uid": "a-b", "labels": {"tare": "tare-x1"}}
    [container] = pod["spec"]["containers"]
    assert container["resources"]["limits"] == {"memory": "512", "cpu": "1.5"}
    # Requests below the limits: the group is kubepods/burstable/podUID, which `Node.pod_group` names.
    assert set(container["resources"]["requests"].values()).isdisjoint(container["resources"]["limits"].values())
    assert pod["spec"]["volumes"] == [{"name": "data", "hostPath": {"path": "/d", "type": "Directory"}}]
    assert "privileged" not in json.dumps(pod)
    assert pod["spec"]["restartPolicy"] == "Never"


def test_a_pods_group_may_stand_in_the_journal():
    group = kubelet_node.removers.control_group("tare-pods-12ab/pods/kubepods/burstable/pod0a1b-2c")
    assert claims.fault(group, claims.Bounds(Path("/var/lib/tare"))) is None


def test_no_commands_of_users_enter_a_pod_of_a_kubelet_alone(platform):
    with pytest.raises(UnsupportedError, match="takes files"):
        platform.life(None, None, [])


def test_a_pod_that_containerd_lists_late_is_waited_for(monkeypatch):
    answers = iter([[], [], ["sandbox", "container"]])
    monkeypatch.setattr(containerd_server, "pods_ids", lambda address, label: next(answers))
    assert containerd_server.started_ids("/run/c.sock", "tare-x1") == ["sandbox", "container"]


def test_a_pod_that_containerd_never_lists_is_an_error(monkeypatch):
    monkeypatch.setattr(containerd_server, "pods_ids", lambda address, label: [])
    monkeypatch.setattr(containerd_server, "LIMIT_S", 0.0)
    with pytest.raises(PlatformError, match="does not list the pod tare-x1 as running"):
        containerd_server.started_ids("/run/c.sock", "tare-x1")


@pytest.mark.host
@pytest.mark.own_host
def test_a_kubelet_reads_its_settings_and_the_host_keeps_its_own(tmp_path):
    """The script's own commands, in a mount namespace, with a writer in the kubelet's place."""
    home, settings = tmp_path / "home", tmp_path / "settings"
    for folder in (home, settings):
        folder.mkdir()
    (home / "kept").write_text("as it was")
    (settings / "vm.overcommit_memory").write_text("7\n")
    host = Path("/proc/sys/vm/overcommit_memory")
    before = host.read_text()
    writer = 'echo 1 >"$2"; mkdir -p /var/lib/kubelet; cat "$1/kept" "$2"'
    script = Path(kubelet_node.__file__).with_name("kubelet.sh")
    argv = ["unshare", "--mount", "--propagation", "slave", "sh", str(script), str(home), str(settings)]
    there = Path("/var/lib/kubelet").exists()
    done = subprocess.run(
        [*argv, "sh", "-c", writer, "sh", str(home), str(host)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "as it was1\n"
    assert host.read_text() == before
    assert Path("/var/lib/kubelet").exists() == there


@pytest.mark.parametrize("program", kubernetes_build.PROGRAMS, ids=lambda program: program.place)
def test_each_program_s_module_fixes_all_that_it_is_built_from(program):
    needs, sums = (kubernetes_build._source(program.module, name).decode() for name in ("go.mod", "go.sum"))
    assert needs.startswith(f"module tare.build/{program.module}\n")
    words = [line.removeprefix("require ").split() for line in needs.splitlines() if "=>" not in line]
    required = [line[0] for line in words if len(line) > 1 and line[1].startswith("v")]
    assert any(f"{program.package}/".startswith(f"{module}/") for module in required)
    assert all(len(line.split()) == 3 and " h1:" in line for line in sums.splitlines())
    assert "./" not in needs


def test_a_program_that_was_built_from_other_sources_is_built_again(tmp_path, monkeypatch):
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    program = kubernetes_build.KUBELET
    place = tmp_path / program.place
    place.parent.mkdir()
    place.touch(mode=0o755)
    assert not kubernetes_build._is_there(program)
    kubernetes_build._stamp(place).write_bytes(kubernetes_build._digest(program))
    assert kubernetes_build._is_there(program)
    kubernetes_build._stamp(place).write_bytes(b"0" * 64)
    assert not kubernetes_build._is_there(program)
    assert stat.S_IMODE(place.stat().st_mode) & 0o100
