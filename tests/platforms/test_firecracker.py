"""Firecracker's settings as pure data, the requests of its API, and what is said where it does not run."""

from __future__ import annotations

import json
import socketserver
import stat
import threading
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace

import pytest

from tare.errors import PlatformError
from tare.host.network import bridge
from tare.image import guest
from tare.platforms import firecracker, platform_registry
from tare.platforms.parts.machines import firecracker_api, microvm, vm

VARIANTS = ("firecracker", "firecracker-api", "firecracker-jailer")
MACHINE = microvm.MicroVm(
    cpus=2,
    memory_bytes=448 << 20,
    kernel="/k",
    initramfs="/i",
    root="/root.ext4",
    data="/data.ext4",
    socket="/v",
    tap="tareab1x2",
    mac="02:7a:0a:4d:00:0a",
    address="10.77.0.10/24",
    gateway="10.77.0.1",
    agent=("serve", "--beacon", "10.0.0.1:914"),
)
#: Of the form that Firecracker 1.17 took in the lab.
GOLDEN = json.loads((Path(__file__).parent / "data" / "firecracker.json").read_text())


def test_the_file_is_of_the_form_that_firecracker_took():
    assert microvm.settings(MACHINE) == GOLDEN


def test_more_cpus_than_a_machine_can_have_are_refused_before_it_starts():
    assert microvm.settings(replace(MACHINE, cpus=32))["machine-config"]["vcpu_count"] == 32
    with pytest.raises(PlatformError, match="at most 32 CPUs, and instances are to have 63") as refused:
        microvm.settings(replace(MACHINE, cpus=63))
    assert "--cpus" in refused.value.fix


def test_the_agent_connects_where_the_host_listens():
    _, _, agent = GOLDEN["boot-source"]["boot_args"].partition(" -- ")
    assert agent.endswith(f"--host vsock:{microvm.HOST_CID}:{microvm.PORT}")
    assert microvm.listening(GOLDEN["vsock"]["uds_path"]) == "/v_5000"


def test_the_api_is_told_the_same_and_then_to_start():
    requests = microvm.requests(GOLDEN)
    assert [path for path, _ in requests] == [
        "/machine-config",
        "/boot-source",
        "/drives/root",
        "/drives/data",
        "/network-interfaces/eth0",
        "/vsock",
        "/actions",
    ]
    assert requests[3][1] == GOLDEN["drives"][1]
    assert requests[-1][1] == {"action_type": "InstanceStart"}


@dataclass(frozen=True)
class Answering:
    """An HTTP server on a Unix socket that notes what it is asked."""

    place: Path
    seen: list


@pytest.fixture
def answering(tmp_path):
    requests = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append((self.path, body))
            refused = body.get("drive_id") == "bad"
            answer = b'{"fault_message":"The drive is bad."}' if refused else b""
            self.send_response(400 if refused else 204)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args):
            pass

        def address_string(self):
            return "socket"

    with socketserver.UnixStreamServer(str(tmp_path / "api"), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield Answering(tmp_path / "api", requests)
        server.shutdown()
        thread.join()


def test_requests_go_over_one_connection_in_order(answering):
    api = firecracker_api.Api(answering.place)
    for path, body in microvm.requests(GOLDEN):
        api.put(path, body)
    api.close()
    assert answering.seen == microvm.requests(GOLDEN)


def test_a_refusal_shows_firecrackers_own_words(answering):
    api = firecracker_api.Api(answering.place)
    with pytest.raises(PlatformError, match=r"refuses PUT /drives/bad: The drive is bad\."):
        api.put("/drives/bad", {"drive_id": "bad"})
    api.close()


def test_an_api_that_is_gone_is_said(tmp_path):
    with pytest.raises(PlatformError, match="does not answer to PUT /actions"):
        firecracker_api.Api(tmp_path / "api").put("/actions", {})


def test_an_answer_that_is_no_json_is_shown_as_it_is():
    assert firecracker_api.fault("Bad gateway") == "Bad gateway"
    assert firecracker_api.fault("") == "no message"


def test_in_a_jail_files_are_named_from_its_root_and_brought_in(tmp_path):
    (tmp_path / "real").write_bytes(b"\x7fELF")
    kernel = tmp_path / "vmlinux"
    kernel.symlink_to("real")
    root = tmp_path / "jail"
    root.mkdir()
    place = firecracker.JailPaths(root, jailed=True)
    assert place.bring(kernel) == "/vmlinux"
    assert not (root / "vmlinux").is_symlink()
    assert (root / "vmlinux").samefile(kernel)
    assert place.seen(root / "api") == "/api"
    assert firecracker.JailPaths(root, jailed=False).bring(kernel) == str(kernel)


def _without(monkeypatch, *missing):
    find = firecracker.processes.find
    monkeypatch.setattr(
        firecracker.processes, "find", lambda name: None if name in missing else find(name) or f"/bin/{name}"
    )


@pytest.mark.parametrize("name", VARIANTS)
def test_without_a_binary_it_says_so_with_the_fix(monkeypatch, name):
    _without(monkeypatch, "firecracker")
    answer = platform_registry.choose([name])[0].detect()
    assert not answer.available
    assert answer.reason == "no firecracker binary on PATH"
    assert "no package registry has" in answer.fix


def test_without_the_jailer_only_the_jailed_one_is_missing(monkeypatch):
    _without(monkeypatch, "jailer")
    assert platform_registry.choose(["firecracker-jailer"])[0].detect().reason == "no jailer binary on PATH"


@pytest.fixture
def a_root_user(monkeypatch):
    """A host on which all is there but KVM."""
    monkeypatch.setattr(bridge, "no_tun", lambda: None)
    monkeypatch.setattr(guest, "ensure", lambda kind="virtio": guest.Guest("6.1", Path("/k"), Path("/i")))
    _without(monkeypatch)


def test_a_host_whose_kvm_runs_no_guest_says_what_qemu_found_out(monkeypatch, a_root_user):
    monkeypatch.setattr(firecracker.os, "access", lambda *_: True)
    monkeypatch.setattr(firecracker, "complaint", lambda program, made: "a guest does not come up within 5 s")
    monkeypatch.setattr(vm, "accelerated", lambda made: ("tcg", "KVM: a guest does not come up within 5 s"))
    answer = platform_registry.choose(["firecracker"])[0].detect()
    assert not answer.available
    assert answer.reason == "KVM: a guest does not come up within 5 s"
    assert "tare lab run" in answer.fix


def test_a_qemu_that_fails_by_itself_refuses_no_other_monitor(monkeypatch, a_root_user):
    monkeypatch.setattr(firecracker.os, "access", lambda *_: True)
    monkeypatch.setattr(vm, "accelerated", lambda made: ("tcg", "KVM: a guest does not start: failed to set MSR"))
    monkeypatch.setattr(firecracker, "complaint", lambda program, made: "")
    version = SimpleNamespace(text="Firecracker v1.17.0\n")
    monkeypatch.setattr(firecracker.processes, "run", lambda *_, **__: version)
    answer = platform_registry.choose(["firecracker"])[0].detect()
    assert (answer.available, answer.version) == (True, "v1.17.0")


def test_a_monitor_that_fails_where_qemus_guests_run_says_its_own_words(monkeypatch, a_root_user):
    monkeypatch.setattr(vm, "accelerated", lambda made: ("kvm", "a guest came up"))
    assert firecracker.explained("a guest does not start: no such file") == "a guest does not start: no such file"


def test_a_host_without_dev_kvm_says_so(monkeypatch, a_root_user):
    monkeypatch.setattr(firecracker.os, "access", lambda *_: False)
    assert platform_registry.choose(["firecracker"])[0].detect().reason == "KVM: /dev/kvm cannot be opened"


def _program(tmp_path, script):
    program = tmp_path / "firecracker"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def test_a_firecracker_that_starts_no_guest_says_its_last_words(tmp_path):
    boot_files = guest.Guest("6.1", Path("/k"), Path("/i"))
    broken = _program(tmp_path, "echo 'RunWithoutApiError error: KVM is not available' >&2; exit 1")
    assert firecracker.complaint(broken, boot_files).endswith("KVM is not available")
