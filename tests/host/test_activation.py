"""A daemon that only its socket is there of is not started by looking for it."""

import os
import socket
import subprocess
import sys
import time

import pytest

from tare.host.daemons import activation
from tare.host.network import bridge
from tare.platforms.parts.engines import lxd_server

HOLD = "import sys, time; print('holds', flush=True); time.sleep(60)"


@pytest.fixture
def listener(tmp_path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "sock"))
        listening.listen()
        yield listening


def test_a_socket_that_init_alone_has_would_start_its_daemon(listener):
    path = listener.getsockname()
    assert activation.only_init_listens(path, init=os.getpid())
    assert not activation.only_init_listens(path), "this process has it, and it is not the init system"


def test_once_the_daemon_has_it_too_it_runs(listener):
    pipe = subprocess.PIPE
    argv = [sys.executable, "-c", HOLD]
    with subprocess.Popen(argv, stdout=pipe, pass_fds=(listener.fileno(),)) as daemon:
        assert daemon.stdout.readline() == b"holds\n"
        assert not activation.only_init_listens(listener.getsockname(), init=os.getpid())
        daemon.kill()
    deadline = time.monotonic() + 5
    while not activation.only_init_listens(listener.getsockname(), init=os.getpid()):
        assert time.monotonic() < deadline


def test_a_socket_that_nobody_listens_on_starts_nothing(tmp_path):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "sock"))
        assert not activation.only_init_listens(str(tmp_path / "sock"), init=os.getpid())
    assert not activation.only_init_listens(str(tmp_path / "none"), init=os.getpid())


def test_lxds_service_is_not_started_to_look_at_it(listener, monkeypatch):
    path = listener.getsockname()
    assert str(lxd_server.answering([path])) == path
    listener.accept()[0].close()
    monkeypatch.setattr(activation, "only_init_listens", lambda path: True)
    assert lxd_server.answering([path]) is None
    listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_a_tun_module_that_would_be_loaded_is_not(tmp_path, monkeypatch):
    node = tmp_path / "tun"
    node.touch()
    monkeypatch.setattr(bridge, "TUN", node)
    monkeypatch.setattr(bridge, "TUN_DRIVER", tmp_path / "none")
    opened = []
    monkeypatch.setattr(bridge.os, "open", lambda *_: opened.append("open"))
    monkeypatch.setattr(bridge, "_can_be_loaded", lambda module: True)
    assert bridge.no_tun() is None
    assert opened == []
