"""Consoles: whoever floods, trickles or says nothing, the end is kept, and the disk holds no more than twice that."""

import os
import re
import threading
import time
from pathlib import Path

import pytest

from tare.host import instance_console, processes
from tare.platforms.watchers.guest_service import CONSOLE, FirstAnswer, GuestService


@pytest.fixture
def log(tmp_path):
    return tmp_path / "console.log"


def _wait(until, limit_s=20):
    deadline = time.monotonic() + limit_s
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_several_say_is_kept_in_one_file_and_there_at_once(log):
    for word in ("one", "two"):
        with instance_console.opened(log) as pipe:
            processes.finish(processes.start(["sh", "-c", f"echo {word}"], stdout=pipe, stderr=pipe), ["sh"])
        assert instance_console.read(log).endswith(word.encode() + b"\n")
    assert instance_console.read(log) == log.read_bytes() == b"one\ntwo\n"


def test_a_flood_leaves_its_end_and_never_more_than_two_mebibytes(log):
    most = 0
    with instance_console.opened(log) as pipe:
        flood = processes.start(["sh", "-c", "seq 1 800000; echo the last word >&2"], stdout=pipe, stderr=pipe)
    while flood.poll() is None:
        most = max(most, len(instance_console.read(log)), log.stat().st_size)
    kept = instance_console.read(log)
    assert kept.startswith(instance_console.CUT)
    assert kept.endswith(b"800000\nthe last word\n")
    assert instance_console.CAP - 100 < len(kept) <= instance_console.CAP + len(instance_console.CUT)
    numbers = [int(word) for word in kept.split(b"\n")[2:-2]]
    assert numbers == list(range(numbers[0], 800_001)), "a hole in what was kept"
    assert max(most, log.stat().st_size) <= 2 * instance_console.CAP + 65_536 + len(instance_console.CUT)


def test_who_has_the_console_has_no_file_of_the_hosts(log):
    with instance_console.opened(log) as pipe:
        tried = processes.start(
            ["sh", "-c", "readlink /proc/self/fd/1; fallocate -l 1G /proc/self/fd/1"], stdout=pipe, stderr=pipe
        )
        assert tried.wait(20) != 0
    assert re.match(rb"pipe:\[[0-9]+\]\n.*fallocate", instance_console.read(log))
    assert log.stat().st_blocks * 512 < 1 << 20


def test_it_is_taken_without_anybody_asking_and_the_pipe_goes_with_its_last_writer(log):
    before = len(list(Path("/proc/self/fd").iterdir()))
    with instance_console.opened(log) as pipe:
        os.write(pipe, b"x" * 1000)
        _wait(lambda: log.stat().st_size == 1000)
    _wait(lambda: len(list(Path("/proc/self/fd").iterdir())) <= before + 2)  # of the first: epoll and eventfd


def test_an_instance_that_is_gone_takes_no_console_with_it(log):
    with instance_console.opened(log) as pipe:
        log.unlink()
        os.write(pipe, b"last words")
        assert instance_console.read(log) == b""
        assert not log.exists()


def test_a_file_that_others_write_gives_back_its_blocks(log):
    instance_console.watch(log)
    with log.open("ab", 0) as other:
        for _ in range(24):
            other.write(b"y" * instance_console.CAP)
        other.write(b"the end")
        _wait(lambda: log.stat().st_blocks * 512 <= 2 * instance_console.CAP)
        assert log.stat().st_size == 24 * instance_console.CAP + 7
        kept = instance_console.read(log)
    assert kept.startswith(instance_console.CUT + b"yyy")
    assert kept.endswith(b"yyythe end")


def test_a_follower_reads_each_byte_once_though_the_file_is_cut_meanwhile(log):
    follower = instance_console.Follower(log)
    with instance_console.opened(log) as pipe:
        assert follower.more() == b""
        os.write(pipe, b"a")
        assert (follower.more(), follower.more()) == (b"a", b"")
        for _ in range(40):
            os.write(pipe, b"b" * 65_536)
            assert follower.more().count(b"b") >= 65_536
        os.write(pipe, b"c")
        assert follower.more() == b"c"


def test_a_follower_reads_once_what_is_printed_while_it_reads(log, monkeypatch):
    log.write_bytes(b"ready")
    follower = instance_console.Follower(log)
    usual = os.fstat

    def printed_then(descriptor):
        seen = usual(descriptor)
        with log.open("ab") as other:
            other.write(b" and more")
        return seen

    monkeypatch.setattr(os, "fstat", printed_then)
    first = follower.more()
    monkeypatch.setattr(os, "fstat", usual)
    assert first + follower.more() == b"ready and more"


def test_a_word_on_a_console_is_found_however_it_comes_and_costs_no_whole_reading(log, monkeypatch):
    reads = []
    usual = instance_console.Follower.more

    def counted(self):
        reads.append(usual(self))
        return reads[-1]

    monkeypatch.setattr(instance_console.Follower, "more", counted)
    answer = FirstAnswer([GuestService(CONSOLE, str(log), 0, "^ready$")])

    def talk():
        with instance_console.opened(log) as pipe:
            for piece in (b"z" * 60_000, b"\r\nno\r\n", b"rea", b"dy", b"\r\n"):
                os.write(pipe, piece)
                time.sleep(0.05)

    talker = threading.Thread(target=talk)
    talker.start()
    answer.wait(20)
    talker.join()
    assert not answer.silent()
    assert sum(map(len, reads)) <= 60_013
