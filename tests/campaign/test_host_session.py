"""The host while tare starts instances on it: its parts go in reverse order, whatever becomes of each."""

import contextlib
import os
import subprocess
import sys

import pytest

from tare.campaign import host_session
from tare.campaign.host_session import HostSession
from tare.errors import HostError
from tare.host import lock, processes, state
from tare.host.resources.journal import Journal, of_this_process, sweep
from tare.host.resources.resource import is_shared
from tare.model import Arm
from tare.platforms import platform_registry


@pytest.fixture
def host(monkeypatch, tmp_path):
    """A session of no real host."""
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    monkeypatch.setattr(lock, "held", contextlib.nullcontext)
    return HostSession()


def _raising(error):
    def end():
        raise error

    return end


def test_all_parts_go_in_reverse_order_and_the_first_error_is_raised(host):
    ended = []
    first = HostError("the bridge stays", fix="tare clean")
    with pytest.raises(HostError) as raised, host:  # noqa: PT012
        host.callback(ended.append, "settings")
        host.callback(_raising(OSError("no such socket")))
        host.callback(ended.append, "client")
        host.callback(_raising(first))
        host.enter_context(contextlib.closing(type("Part", (), {"close": lambda _: ended.append("sampler")})()))
    assert ended == ["sampler", "client", "settings"]
    assert raised.value is first
    assert first.__notes__ == ["besides: no such socket"]


def test_the_error_under_way_is_raised_and_has_the_others_as_notes(host):
    with pytest.raises(ValueError, match="first") as raised, host:  # noqa: PT012
        host.callback(_raising(HostError("the bridge stays")))
        raise ValueError("first")
    assert raised.value.__notes__ == ["besides: the bridge stays"]


@pytest.mark.parametrize("under_way", [None, HostError("a start failed")])
def test_an_interrupt_of_the_teardown_is_an_interrupt(host, under_way):
    ended = []
    with pytest.raises(KeyboardInterrupt), host:  # noqa: PT012
        host.callback(ended.append, "lock")
        host.callback(_raising(HostError("the bridge stays")))
        host.callback(_raising(KeyboardInterrupt()))
        if under_way:
            raise under_way
    assert ended == ["lock"]


def test_an_interrupt_under_way_stays_one(host):
    with pytest.raises(KeyboardInterrupt), host:  # noqa: PT012
        host.callback(_raising(HostError("the bridge stays")))
        raise KeyboardInterrupt


def test_a_part_that_cannot_be_entered_is_not_left_and_those_before_it_are(host):
    ended = []

    @contextlib.contextmanager
    def broken():
        raise HostError("no network")
        yield

    with pytest.raises(HostError, match="no network"), host:  # noqa: PT012
        host.callback(ended.append, "settings")
        host.enter_context(broken())
    assert ended == ["settings"]


def test_when_the_sweep_fails_the_host_is_let_go(monkeypatch, tmp_path):
    ended = []
    monkeypatch.setenv("TARE_HOME", str(tmp_path))

    @contextlib.contextmanager
    def held():
        try:
            yield
        finally:
            ended.append("lock")

    monkeypatch.setattr(lock, "held", held)
    monkeypatch.setattr(host_session, "clear_the_way", lambda _: _raising(KeyboardInterrupt())())
    with pytest.raises(KeyboardInterrupt), HostSession():
        pass
    assert ended == ["lock"]


@pytest.fixture
def another_home(tmp_path):
    """The environment of a tare with another TARE_HOME, with the same images."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "images").symlink_to(state.images())
    return {**os.environ, "TARE_HOME": str(home)}


@pytest.mark.host
def test_a_second_campaign_with_another_home_is_refused_and_takes_nothing(launcher, another_home, tmp_path):
    [native] = platform_registry.choose(["native"])
    running = launcher.start(native, Arm("native"), measured=False)
    try:
        argv = [sys.executable, "-c", "from tare.cli import main; main()"]
        words = ["run", "-p", "native", "-w", "primes", "--blocks", "1", "-o", str(tmp_path / "x.tare")]
        second = subprocess.run(
            [*argv, *words], env=another_home, capture_output=True, text=True, check=False, timeout=120
        )
        assert running.session.execute(["true"], time_limit_s=10).code == 0, "the first run's instance is dead"
        assert second.returncode == 2
        assert f"another tare has this host, and two would measure each other: process {os.getpid()} (" in second.stderr
        assert not (tmp_path / "x.tare").exists()
    finally:
        running.stop()


@pytest.mark.host
def test_cleaning_with_another_home_takes_nothing_of_a_living_run(launcher, another_home):
    """What a killed run with that home made has the names that the living one uses now."""
    [native] = platform_registry.choose(["native"])
    running = launcher.start(native, Arm("native"), measured=False)
    script = (
        "from tare.host import state; from tare.host.resources import removers; "
        "from tare.host.resources.journal import Journal; "
        "Journal(state.journal()).write(removers.link('tare0'), removers.control_group('tare'))"
    )
    try:
        processes.run([sys.executable, "-P", "-c", script], env=another_home).require()
        clean = [sys.executable, "-P", "-c", "from tare.cli import main; main()", "clean"]
        cleaned = processes.run(clean, env=another_home)
        assert running.session.execute(["true"], time_limit_s=10).code == 0, "the living run's instance is dead"
        assert cleaned.code == 1
        assert cleaned.text.count(f": another run uses it: process {os.getpid()} (") == 2
        assert "0 removed, 2 kept" in cleaned.text
    finally:
        running.stop()


@pytest.mark.host
def test_all_that_a_session_makes_without_its_label_is_known_to_be_shared(launcher):
    mine = [entry.resource for entry in of_this_process()]
    assert {resource.kind for resource in mine} >= {"cgroup", "link", "netns", "folder"}
    for resource in mine:
        assert is_shared(resource) is (launcher.campaign not in str(resource)), str(resource)
    for step in sweep(Journal(state.journal())):
        assert step.kept is not None
