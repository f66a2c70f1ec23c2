import contextlib
import socket
import struct
import threading
from urllib.parse import quote

import h2.config
import h2.connection
import h2.events
import pytest

from tare.campaign.execution.own_instances import run_apart
from tare.campaign.instances.pool import InstancePool
from tare.contract.leftovers import left_on_host
from tare.errors import HostError, UnsupportedError
from tare.host import processes
from tare.host.daemons import cri
from tare.host.daemons.cri import CriRuntime, fields, message
from tare.model import Arm
from tare.platforms import containerd_cri, platform_registry
from tare.platforms.containerd_cri import handler
from tare.platforms.parts.engines.containerd_server import OWN, SHARED
from tare.workloads import workload_registry

#: `metadata { name: "tare-a" attempt: 300 }` of a ContainerConfig (fields 1; 1 and 2), by the encoding's specification.
METADATA = b"\x0a\x0b\x0a\x06tare-a\x10\xac\x02"
FRAME = struct.Struct(">BI")


@contextlib.contextmanager
def serving(place, answers):
    """A server of gRPC on a Unix socket: gives each request the next answer, (body, trailers); holds the requests."""
    requests = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen(1)
        thread = threading.Thread(target=_serve, args=(listener, iter(answers), requests), daemon=True)
        thread.start()
        yield requests
        thread.join(5)


def _serve(listener, answers, requests):
    connection, _ = listener.accept()
    server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
    server.initiate_connection()
    paths, bodies = {}, {}
    with connection, contextlib.suppress(OSError):  # the client may be gone before it has all
        while data := connection.recv(65536):
            for event in server.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    paths[event.stream_id] = dict(event.headers)[":path"]
                elif isinstance(event, h2.events.DataReceived):
                    bodies[event.stream_id] = bodies.get(event.stream_id, b"") + event.data
                elif isinstance(event, h2.events.StreamEnded):
                    requests.append((paths[event.stream_id], bodies[event.stream_id]))
                    body, trailers = next(answers)
                    server.send_headers(event.stream_id, [(":status", "200"), ("content-type", "application/grpc")])
                    for at in range(0, len(body), 16384):
                        server.send_data(event.stream_id, body[at : at + 16384])
                        connection.sendall(server.data_to_send())
                    server.send_headers(event.stream_id, trailers, end_stream=True)
            connection.sendall(server.data_to_send())


def framed(body):
    return FRAME.pack(0, len(body)) + body


def test_a_message_is_what_protocol_buffers_have():
    assert message({1: message({1: "tare-a", 2: 300})}) == METADATA
    assert message({3: ["/agent", "serve"]}) == b"\x1a\x06/agent\x1a\x05serve"


def test_texts_are_read_by_number_and_other_kinds_passed_over():
    numbers = message({1: 7}) + b"\x11" + bytes(8) + b"\x1d" + bytes(4)
    assert fields(numbers + message({2: ["a", "b"], 15: b"c"})) == {2: [b"a", b"b"], 15: [b"c"]}


@pytest.mark.parametrize(
    "damaged", [METADATA[:-1], METADATA[:5], METADATA[2:-1], b"\x0a", b"\x0b", b"\x0a\xff\xff\xff\xff\x0f"]
)
def test_what_is_no_message_is_said_to_be_none(damaged):
    with pytest.raises(HostError, match="no message of the CRI"):
        fields(damaged)


def test_requests_go_over_one_connection_and_the_answers_come_back(tmp_path):
    pods = message({1: [message({1: "f" * 64, 3: 0}), message({1: "0" * 64})]})
    answers = [
        (framed(message({1: "0.1.0", 2: "containerd", 3: "1.6.20~ds1"})), [("grpc-status", "0")]),
        (framed(pods), [("grpc-status", "0")]),
    ]
    with serving(tmp_path / "s", answers) as requests, contextlib.closing(CriRuntime(str(tmp_path / "s"))) as runtime:
        assert runtime.version() == "containerd 1.6.20~ds1"
        assert runtime.pods("tare-a") == ["f" * 64, "0" * 64]
    assert requests == [
        ("/runtime.v1.RuntimeService/Version", framed(b"")),
        ("/runtime.v1.RuntimeService/ListPodSandbox", framed(b"\x0a\x10\x1a\x0e\x0a\x04tare\x12\x06tare-a")),
    ]


def test_a_refusal_is_told_in_the_daemons_words(tmp_path):
    trailers = [("grpc-status", "5"), ("grpc-message", "no runtime for %22kata%22 is configured")]
    with (
        serving(tmp_path / "s", [(b"", trailers)]),
        contextlib.closing(CriRuntime(str(tmp_path / "s"))) as runtime,
        pytest.raises(HostError, match='refuses RunPodSandbox: no runtime for "kata" is configured'),
    ):
        runtime.call("RunPodSandbox", b"")


def test_a_service_that_has_just_begun_is_waited_for_but_not_without_end(tmp_path, monkeypatch):
    """What containerd 1.6.20 of Debian 12 said on a busy host, whose socket was there already."""
    not_yet = (b"", [("grpc-status", "2"), ("grpc-message", "server is not initialized yet")])
    fine = (framed(METADATA), [("grpc-status", "0")])
    with (
        serving(tmp_path / "s", [not_yet, not_yet, fine, not_yet]) as requests,
        contextlib.closing(CriRuntime(str(tmp_path / "s"))) as runtime,
    ):
        assert runtime.call("RunPodSandbox", b"a") == METADATA
        assert [body for _, body in requests] == [framed(b"a")] * 3
        monkeypatch.setattr(cri, "_NOT_YET_LIMIT_S", 0.0)
        with pytest.raises(HostError, match="refuses RunPodSandbox: server is not initialized yet"):
            runtime.call("RunPodSandbox", b"a")


#: What containerd 1.6.20 of Debian 12 says on a host without a network, but for the registry's name.
NO_PAUSE = (
    'failed to get sandbox image "registry.example/pause:3.6": failed to pull image "registry.example/pause:3.6": '
    'failed to pull and unpack image "registry.example/pause:3.6": failed to resolve reference '
    '"registry.example/pause:3.6": failed to do request: Head "https://registry.example/v2/pause/manifests/3.6": '
    "dial tcp: lookup registry.example on [::1]:53: connect: network is unreachable"
)


def test_a_pods_image_that_is_not_there_is_named_with_how_it_comes(tmp_path):
    trailers = [("grpc-status", "2"), ("grpc-message", quote(NO_PAUSE))]
    with (
        serving(tmp_path / "s", [(b"", trailers)]),
        contextlib.closing(CriRuntime(str(tmp_path / "s"))) as runtime,
        pytest.raises(HostError, match="network is unreachable") as refused,
    ):
        runtime.call("RunPodSandbox", b"")
    assert "registry of registry.example/pause:3.6" in refused.value.fix
    assert refused.value.fix.endswith("ctr -n k8s.io images import FILE")


def test_an_answer_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(cri, "ANSWER_CAP", 1000)
    answers = [(framed(bytes(1000)), [("grpc-status", "0")])]
    with (
        serving(tmp_path / "s", answers),
        contextlib.closing(CriRuntime(str(tmp_path / "s"))) as runtime,
        pytest.raises(HostError, match="longer than"),
    ):
        runtime.call("Version", b"")


def test_nobody_there_is_said(tmp_path):
    with pytest.raises(HostError, match="no containerd answers at"):
        CriRuntime(str(tmp_path / "s"))


def test_runc_is_the_default_handler_and_others_are_named():
    assert [handler(runtime) for runtime in ("runc", "crun", "runsc", "kata")] == ["", "crun", "runsc", "kata"]


def test_a_pod_says_that_it_has_the_nodes_network():
    for platform in platform_registry.choose(["containerd-cri", "containerd-cri-crun"]):
        assert "hostNetwork" in " ".join(platform.not_honoured)
        assert "other-arm" in platform.open_by_design


@pytest.mark.parametrize(
    ("name", "why", "instead"),
    [
        ("containerd-cri-gvisor", "in an empty network namespace then", "-p containerd-gvisor"),
        ("containerd-cri-kata", "may break the node's", "-p containerd-kata"),
    ],
)
def test_a_handler_whose_pods_cannot_have_the_nodes_network_is_never_given_it(name, why, instead):
    [platform] = platform_registry.choose([name])
    answer = platform.detect()
    assert not answer.available
    assert "the node's network (hostNetwork)" in answer.reason
    assert why in answer.reason
    assert answer.fix == instead
    assert platform.network_path == "it has no network"


def test_where_a_kubelet_runs_pods_are_in_a_daemon_of_tares_own(monkeypatch):
    """A kubelet ends pods that it does not know. One that starts later is tare's, on a daemon of its own."""
    [platform] = platform_registry.choose(["containerd-cri"])
    kubelets = []
    monkeypatch.setattr("tare.platforms.containerd_cri.process_table.named", lambda names: kubelets)
    assert platform.shared is SHARED
    kubelets.append(17)
    assert platform.shared is SHARED
    platform.close()
    assert platform.shared is OWN
    platform.close()


def test_without_crictl_a_pod_has_no_life_and_the_fix_installs_it(monkeypatch):
    [platform] = platform_registry.choose(["containerd-cri"])
    monkeypatch.setattr(containerd_cri, "path_of", lambda _: None)
    with pytest.raises(UnsupportedError, match="crictl is not installed") as lacking:
        platform.life(None, None, ["perl"])
    assert lacking.value.fix == "tare setup --with containerd-cri"


@pytest.fixture
def crictl(tmp_path):
    """A crictl that prints its words, and an id; and the folder of an instance that was created."""
    program = tmp_path / "crictl"
    program.write_text('#!/bin/sh\nshift 2\necho "$*" >&2\necho "id-of-$1"\n')
    program.chmod(0o755)
    return program


def test_pod_and_container_are_made_started_entered_and_removed_by_their_ids(crictl, tmp_path):
    def typed(script, *words):
        done = processes.run(["sh", "-ec", script, str(crictl), str(tmp_path), *words])
        assert done.code == 0
        return done.stderr.decode().replace(str(tmp_path), "HERE").splitlines()

    created = typed(containerd_cri._CREATE, "--runtime=crun")
    assert created == ["runp --runtime=crun HERE/pod.json", "create id-of-runp HERE/container.json HERE/pod.json"]
    assert typed(containerd_cri._START) == ["start id-of-create"]
    assert typed(containerd_cri._EXECUTE, "echo", "a b") == ["exec id-of-create echo a b"]
    assert typed(containerd_cri._STOP, "30") == ["stop --timeout 30 id-of-create", "stopp id-of-runp"]
    assert typed(containerd_cri._REMOVE) == ["rm id-of-create", "rmp id-of-runp"]


@pytest.mark.host
@pytest.mark.own_host
def test_a_pods_life_by_crictl_has_a_figure_for_each_part_and_leaves_nothing(launcher, prepared):
    if containerd_cri.path_of("crictl") is None:
        pytest.skip("crictl is not installed: tare setup --with containerd-cri")
    [platform] = platform_registry.choose(["containerd-cri"])
    platform.prepare(launcher.image)
    pool = InstancePool(platform, Arm(platform.name), launcher, pytest.fail, pytest.fail)
    try:
        result = run_apart(workload_registry.get("whole-life"), {"time_s": 0}, pool, prepared[1])
        with pytest.raises(UnsupportedError, match="crictl has no command for it"):
            run_apart(workload_registry.get("pause"), {"time_s": 0}, pool, prepared[1])
    finally:
        platform.close()
    assert {sample.metric for sample in result.samples} >= {"create", "start", "execute", "stop", "remove"}
    assert left_on_host(f"{launcher.campaign}x") == []
