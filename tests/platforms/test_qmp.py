"""QEMU's monitor, played by a socket."""

import json
import shlex
import socket
import threading

import pytest

from tare.errors import PlatformError
from tare.platforms.parts.machines import qmp

GREETING = {"QMP": {"version": {}, "capabilities": []}}
STOPPED = {"event": "STOP", "timestamp": {"seconds": 1, "microseconds": 2}}


@pytest.fixture
def monitor(tmp_path):
    """A monitor that answers with these lines, one list a command; what it was asked is in the list that it returns."""
    place, heard = tmp_path / "monitor", []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place))
    listener.listen(1)
    threads = []

    def play(*answers):
        def serve():
            connection, _ = listener.accept()
            with connection, connection.makefile("rwb") as stream:
                for lines in answers:
                    stream.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
                    stream.flush()
                    heard.append(stream.readline())

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        return place

    yield play, heard
    for thread in threads:
        thread.join()
    listener.close()


def test_a_command_follows_the_capabilities_and_events_are_passed_over(monitor):
    play, heard = monitor
    qmp.ask(play([GREETING], [{"return": {}}], [STOPPED, {"return": {}}]), "stop")
    assert [json.loads(line) for line in heard if line] == [{"execute": "qmp_capabilities"}, {"execute": "stop"}]


def test_an_error_is_said_in_the_monitors_words(monitor):
    play, _ = monitor
    refused = {"error": {"class": "GenericError", "desc": "the machine has no such thing"}}
    with pytest.raises(PlatformError, match="QEMU's monitor refuses: the machine has no such thing"):
        qmp.ask(play([GREETING], [{"return": {}}], [refused]), "cont")


def test_what_is_no_monitor_is_refused(monitor):
    play, _ = monitor
    with pytest.raises(PlatformError, match="QEMU's monitor says"):
        qmp.ask(play([{"hello": 1}]), "cont")


def test_a_monitor_that_ends_with_its_machine_has_done_what_it_was_asked(monitor):
    play, _ = monitor
    qmp.ask(play([GREETING], [{"return": {}}]), "quit")


def test_a_monitor_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(PlatformError, match="QEMU's monitor does not answer: No such file"):
        qmp.ask(tmp_path / "none", "stop")


def test_a_monitor_that_does_not_listen_yet_is_waited_for(tmp_path, monkeypatch):
    place = tmp_path / "monitor"
    turns = iter((lambda listener: listener.bind(str(place)), lambda listener: listener.listen(1)))
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as connection:
        monkeypatch.setattr(qmp.time, "sleep", lambda _: next(turns)(listener))
        with pytest.raises(FileNotFoundError):
            qmp._connect(connection, place, 0.0)
        qmp._connect(connection, place, qmp.until(qmp.LIMIT_S))  # there is no file, then nobody listens, then it does
        assert connection.getpeername() == str(place)


def test_a_machines_state_is_waited_for(monitor, tmp_path):
    play, heard = monitor
    place = play(
        [GREETING], [{"return": {}}], [{"return": {}}], [{"return": {}}],
        [{"return": {"status": "active"}}], [{"return": {"status": "completed"}}],
    )  # fmt: skip
    with qmp.connected(place) as asked:
        qmp.save(asked, tmp_path / "it's state")
    [_, parameters, migrate, *looks] = [json.loads(line) for line in heard if line]
    assert parameters["arguments"] == {"max-bandwidth": 1 << 40}
    assert shlex.split(migrate["arguments"]["uri"].removeprefix("exec:")) == ["cat", ">", str(tmp_path / "it's state")]
    assert [look["execute"] for look in looks] == ["query-migrate"] * 2


def test_a_state_that_cannot_be_written_is_an_error(monitor, tmp_path):
    play, _ = monitor
    failed = [{"return": {"status": "failed"}}]
    place = play([GREETING], [{"return": {}}], [{"return": {}}], [{"return": {}}], failed)
    with (
        pytest.raises(PlatformError, match="query-migrate says failed, and not completed"),
        qmp.connected(place) as asked,
    ):
        qmp.save(asked, tmp_path / "state")
