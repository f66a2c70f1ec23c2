"""The requests of a snapshot, to an API as Firecracker's; machines of it run in the lab (tests/lab)."""

import json
import socket
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace

import pytest

from tare.errors import PlatformError
from tare.platforms import firecracker_restored, platform_registry
from tare.platforms.firecracker import JailPaths
from tare.platforms.parts.machines import microvm

CONFIG = {"vsock": {"guest_cid": 3, "uds_path": "v"}}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A process whose API notes what it is asked, and whose agent connects when it is told to start."""
    events = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self):
            events.append((self.command, self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(204)
            self.end_headers()
            if self.path == "/actions":
                self.server.agent.connect(str(tmp_path / "v_5000"))
                self.server.agent.sendall(self.server.says)

        do_PATCH = do_PUT  # noqa: N815 (the name by which the server finds it)

        def log_message(self, *args):
            pass

        def address_string(self):
            return "socket"

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(microvm.listening(str(tmp_path / "v")))
    listener.listen(1)
    with Server(str(tmp_path / "api"), Handler) as server, socket.socket(socket.AF_UNIX) as agent, listener:
        server.agent, server.says = agent, b"."
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        started = []

        def start(argv, **_):
            started.append(argv)
            return SimpleNamespace(poll=lambda: None)

        monkeypatch.setattr(firecracker_restored.processes, "start", start)
        monkeypatch.setattr(firecracker_restored.processes, "end", lambda process: events.append("ended"))
        spec = SimpleNamespace(
            id="ab12", start_limit_s=5, group=SimpleNamespace(leaf=lambda name: []),
            space=SimpleNamespace(log=tmp_path / "console.log"),
        )  # fmt: skip
        yield SimpleNamespace(
            spec=spec, place=JailPaths(tmp_path, jailed=False), listener=listener, server=server, seen=events
        )
        server.shutdown()


def test_a_machine_is_booted_paused_written_and_ended_before_the_start(machine, tmp_path):
    [platform] = platform_registry.choose(["firecracker-restored"])
    platform._before(machine.spec, machine.place, CONFIG, machine.listener)
    assert machine.seen == [
        ("PUT", "/vsock", CONFIG["vsock"]),
        ("PUT", "/actions", {"action_type": "InstanceStart"}),
        ("PATCH", "/vm", {"state": "Paused"}),
        (
            "PUT",
            "/snapshot/create",
            {"snapshot_type": "Full", "snapshot_path": f"{tmp_path}/snapshot", "mem_file_path": f"{tmp_path}/memory"},
        ),
        "ended",
    ]
    assert not (tmp_path / "api").exists()  # the next process makes its own


def test_the_start_is_the_load_of_the_snapshot(machine, tmp_path):
    [platform] = platform_registry.choose(["firecracker-restored"])
    assert platform._puts(machine.place, CONFIG) == [
        (
            "/snapshot/load",
            {
                "snapshot_path": f"{tmp_path}/snapshot",
                "mem_backend": {"backend_type": "File", "backend_path": f"{tmp_path}/memory"},
                "resume_vm": True,
            },
        )
    ]


def test_no_snapshot_is_taken_of_an_agent_that_does_not_wait(machine):
    machine.server.says = b"{"
    [platform] = platform_registry.choose(["firecracker-restored"])
    with pytest.raises(PlatformError, match="was to wait for a snapshot"):
        platform._before(machine.spec, machine.place, CONFIG, machine.listener)
    assert machine.seen[-1] == "ended"
    assert not [request for request in machine.seen if "/snapshot/create" in request]


def test_it_is_refused_like_firecracker_where_that_is_missing(monkeypatch):
    monkeypatch.setattr("tare.platforms.firecracker.processes.find", lambda name: None)
    assert platform_registry.choose(["firecracker-restored"])[0].detect().reason == "no firecracker binary on PATH"
