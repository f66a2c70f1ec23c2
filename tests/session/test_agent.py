"""The real agent over pipes."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agents import RunningAgent

from tare.errors import SessionError, SessionTimeout, UsageError
from tare.host import processes
from tare.session import Refused, Session

EIGHT_BIT = bytes(range(256)) * 4096


def test_it_says_where_it_is(session: Session) -> None:
    assert session.hello.protocol == 1
    assert session.hello.cpus == len(os.sched_getaffinity(0))
    assert session.hello.kernel == os.uname().release
    assert {"primes", "stream"} <= set(session.hello.probes)
    assert session.noise == b""
    assert 0 < time.monotonic_ns() - session.first_byte_ns < 60e9


def test_it_is_static(agent_binary: Path) -> None:
    linked = processes.run(["ldd", str(agent_binary)])
    assert "statically linked" in linked.text or b"not a dynamic executable" in linked.stderr


def test_it_tells_its_version_and_refuses_what_it_does_not_know(agent_binary: Path) -> None:
    assert processes.run([str(agent_binary), "version"]).text.startswith("tare-agent 0.")
    wrong = processes.run([str(agent_binary), "serve", "--loud"])
    assert wrong.code == 2
    assert b"--loud" in wrong.stderr


def test_the_beacon_is_what_the_hello_says_and_nobody_can_read_before(run_agent: Callable[..., RunningAgent]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as host:
        host.bind(("127.0.0.1", 0))
        host.settimeout(10)
        said = set()
        for _ in range(2):
            agent = run_agent("--beacon", f"127.0.0.1:{host.getsockname()[1]}")
            session = Session.open(agent.stream, 10)
            assert host.recv(64).decode() == session.hello.beacon
            shown = [Path(f"/proc/{agent.process.pid}/{name}").read_text() for name in ("cmdline", "environ")]
            assert session.hello.beacon not in "".join(shown)
            said.add(session.hello.beacon)
        assert len(said) == 2


def test_without_a_beacon_the_hello_says_none(session: Session) -> None:
    assert session.hello.beacon is None


def test_a_beacon_that_cannot_leave_does_not_end_it(run_agent: Callable[..., RunningAgent]) -> None:
    # 255.255.255.255 without SO_BROADCAST is refused by the kernel.
    agent = run_agent("--beacon", "255.255.255.255:9")
    assert Session.open(agent.stream, 10).execute(["true"]).code == 0
    agent.stream.close()
    assert agent.process.stderr is not None
    assert b"beacon was not sent" in agent.process.stderr.read()


def test_output_and_exit_code(session: Session) -> None:
    result = session.execute(["sh", "-c", "echo out; echo err >&2; exit 7"])
    assert (result.code, result.signal, result.timed_out) == (7, None, False)
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")
    assert (result.stdout_bytes, result.stderr_bytes, result.truncated) == (4, 4, False)
    assert result.wall_ns > 0
    assert result.spawn_ns > 0
    assert result.max_rss_bytes > 0


def test_cpu_time_is_that_of_the_command_and_its_children(session: Session) -> None:
    result = session.execute(["sh", "-c", "(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done); true"])
    assert 0 < result.user_ns + result.system_ns <= result.wall_ns * 2


def test_a_signal_is_told(session: Session) -> None:
    result = session.execute(["sh", "-c", "kill -TERM $$"])
    assert (result.code, result.signal) == (None, signal.SIGTERM)


def test_environment_and_folder(session: Session, tmp_path: Path) -> None:
    result = session.execute(["sh", "-c", 'echo "$TARE|$HOME|$LANG|$(pwd)"'], env={"TARE": "ü"}, cwd=str(tmp_path))
    assert result.stdout.decode() == f"ü|/root|C.UTF-8|{tmp_path}\n"
    assert b"TARE" not in session.execute(["env"]).stdout


def test_a_command_inherits_no_signal_mask(session: Session) -> None:
    status = session.execute(["cat", "/proc/self/status"]).stdout.decode()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(fields["SigBlk"], 16) == 0
    # Signals 32 and 33 are the C library's own; posix_spawn leaves them ignored in every program.
    assert int(fields["SigIgn"], 16) & 0x7FFFFFFF == 0


@pytest.fixture
def deaf() -> Iterator[None]:
    """What a shell does to what runs in its background, and nohup."""
    ours = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)}
    yield
    for number, action in ours.items():
        signal.signal(number, action)


@pytest.mark.usefixtures("deaf")
def test_a_command_heeds_signals_that_the_harness_ignores(run_agent: Callable[..., RunningAgent]) -> None:
    status = Session.open(run_agent().stream, 10).execute(["cat", "/proc/self/status"]).stdout.decode()
    [ignored] = [line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:")]
    assert int(ignored, 16) & 0x7FFFFFFF == 0


def test_a_command_has_no_descriptors_but_its_own(session: Session) -> None:
    # 3 is that of ls itself, for the folder.
    assert session.execute(["ls", "/proc/self/fd"]).stdout.split() == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("argv", "cwd", "code", "says"),
    [
        (["no-such-program"], "/", "not-found", "no-such-program"),
        (["/no/such/program"], "/", "not-found", "/no/such/program"),
        (["/etc/passwd"], "/", "denied", "/etc/passwd"),
        (["true"], "/no/such/folder", "not-found", "/no/such/folder"),
    ],
)
def test_what_cannot_start_is_refused_and_the_session_goes_on(
    session: Session, argv: list[str], cwd: str, code: str, says: str
) -> None:
    with pytest.raises(Refused, match=says) as refused:
        session.execute(argv, cwd=cwd)
    assert refused.value.code == code
    assert session.execute(["true"]).code == 0


def test_a_callers_mistake_never_reaches_the_agent(session: Session) -> None:
    with pytest.raises(UsageError, match="argv"):
        session.execute([])
    with pytest.raises(UsageError, match="path"):
        session.get("relative", 1)
    with pytest.raises(UsageError, match="too large"):
        session.execute(["echo", *["x" * 100_000] * 3])
    assert session.execute(["true"]).code == 0


def test_the_time_limit_ends_the_whole_group(session: Session) -> None:
    result = session.execute(["sh", "-c", "sleep 600 & echo $!; sleep 600"], time_limit_s=0.3)
    assert (result.timed_out, result.code, result.signal) == (True, None, signal.SIGKILL)
    assert 0.3e9 <= result.wall_ns < 5e9
    assert not is_alive(int(result.stdout))


def test_what_a_command_leaves_in_its_group_ends_with_it(session: Session) -> None:
    result = session.execute(["sh", "-c", "sleep 600 & echo $!"])
    assert result.code == 0
    assert not is_alive(int(result.stdout))


def flee(session: Session, mark: Path, then: str) -> int:
    """Run a command that ends once a child of it has left its group, and that holds its stdout; the child's id."""
    child = f"echo $$ >{mark}.new; mv {mark}.new {mark}; exec {then}"
    result = session.execute(["sh", "-c", f"setsid sh -c '{child}' & while ! test -e {mark}; do :; done"])
    assert result.code == 0
    return int(mark.read_text())


def test_one_that_fled_the_group_cannot_keep_a_command_from_ending(session: Session, tmp_path: Path) -> None:
    fled = flee(session, tmp_path / "mark", "sleep 600")
    os.kill(fled, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    """False for zombies too; waits a moment, as SIGKILL takes one."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return False
        except (FileNotFoundError, ProcessLookupError):
            return False
        time.sleep(0.01)
    return True


def test_a_mebibyte_of_all_bytes_comes_back_as_it_was(session: Session) -> None:
    result = session.execute(["cat"], stdin=EIGHT_BIT, output_cap=2 << 20)
    assert result.stdout == EIGHT_BIT


def test_stdin_that_nobody_reads_blocks_nobody(session: Session) -> None:
    lazy = session.start(["sleep", "600"], stdin=EIGHT_BIT)
    assert session.execute(["cat"], stdin=b"busy").stdout == b"busy"
    lazy.kill()
    assert lazy.wait(10).signal == signal.SIGKILL


def test_stdin_that_is_closed_early_is_dropped(session: Session) -> None:
    result = session.execute(["sh", "-c", "head -c 10; exec <&-; sleep 0.2; echo done"], stdin=EIGHT_BIT * 2)
    assert result.stdout == EIGHT_BIT[:10] + b"done\n"


def test_no_stdin_is_an_end_at_once(session: Session) -> None:
    assert session.execute(["wc", "-c"], time_limit_s=10).stdout == b"0\n"


def test_output_beyond_the_cap_is_counted_and_not_kept(session: Session) -> None:
    result = session.execute(["sh", "-c", "head -c 3000000 /dev/zero; echo err >&2"], output_cap=100_000)
    assert result.stdout == bytes(100_000)
    assert (result.stdout_bytes, result.stderr, result.truncated) == (3_000_000, b"err\n", True)


def test_exactly_the_cap_is_not_truncated(session: Session) -> None:
    result = session.execute(["head", "-c", "1000", "/dev/zero"], output_cap=1000)
    assert (len(result.stdout), result.truncated) == (1000, False)
    assert session.execute(["true"], output_cap=0).stdout == b""


def test_a_flood_neither_fills_the_agent_nor_keeps_others_waiting(run_agent: Callable[..., RunningAgent]) -> None:
    agent = run_agent()
    session = Session.open(agent.stream, 10)
    floods = [session.start(["yes"], output_cap=1000) for _ in range(2)]
    stuck = session.start(["cat", "/dev/zero"], output_cap=64 << 20)
    time.sleep(0.3)  # the host reads nothing, and the agent may not hold it all
    assert resident_bytes(agent.process.pid) < 24 << 20
    assert session.execute(["echo", "here"]).stdout == b"here\n"
    for command in (*floods, stuck):
        command.kill()
    assert all(command.wait(20).signal == signal.SIGKILL for command in (*floods, stuck))
    assert resident_bytes(agent.process.pid) < 24 << 20


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_two_hundred_quick_commands(session: Session) -> None:
    for number in range(200):
        assert session.execute(["echo", str(number)]).stdout == f"{number}\n".encode()


def test_many_at_once_each_get_their_own(session: Session) -> None:
    running = [session.start(["sh", "-c", f"echo {number}; cat"], stdin=b"%d" % number) for number in range(20)]
    for number, execution in reversed(list(enumerate(running))):
        assert execution.wait(20).stdout == b"%d\n%d" % (number, number)


def test_too_many_at_once_are_refused(session: Session) -> None:
    running = [session.start(["sleep", "600"]) for _ in range(64)]
    with pytest.raises(Refused) as refused:
        session.execute(["true"])
    assert refused.value.code == "busy"
    for execution in running:
        execution.kill()
    assert {execution.wait(20).signal for execution in running} == {signal.SIGKILL}


def test_a_callers_limit_leaves_the_command_running(session: Session) -> None:
    execution = session.start(["sh", "-c", "read line; echo $line"], stdin=b"")
    assert execution.wait(20).stdout == b"\n"
    execution = session.start(["sleep", "600"])
    with pytest.raises(SessionTimeout, match="sleep 600"):
        execution.wait(0.05)
    execution.kill()
    assert execution.wait(20).signal == signal.SIGKILL


def test_a_server_is_waited_for_by_what_it_says(session: Session) -> None:
    server = session.start(["sh", "-c", "printf rea; sleep 0.1; echo dy; exec sleep 600"])
    server.wait_output(b"ready", 10)
    assert server.stdout == b"ready\n"
    with pytest.raises(SessionTimeout, match="never"):
        server.wait_output(b"never", 0.05)
    server.kill()
    with pytest.raises(SessionError, match=r"ended before it said \"never\""):
        server.wait_output(b"never", 10)
    assert session.dead is None


def test_a_server_is_waited_for_until_it_says_it_again(session: Session) -> None:
    server = session.start(["sh", "-c", "echo ready; sleep 0.1; echo ready; exec sleep 600"])
    server.wait_output(b"ready", 10, times=2)
    assert server.stdout == b"ready\nready\n"
    with pytest.raises(SessionTimeout, match="ready"):
        server.wait_output(b"ready", 0.05, times=3)
    server.kill()
    server.wait(20)


def test_files_there_and_back(session: Session, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    session.put(path, EIGHT_BIT, 0o640)
    assert (tmp_path / "file").stat().st_mode & 0o7777 == 0o640
    assert session.get(path, len(EIGHT_BIT)) == EIGHT_BIT
    session.put(path, b"")
    assert session.get(path, 0) == b""
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_file_without_a_size_is_read_to_its_end(session: Session) -> None:
    assert b"MemTotal" in session.get("/proc/meminfo", 1 << 20)
    with pytest.raises(Refused) as refused:
        session.get("/proc/meminfo", 5)
    assert refused.value.code == "too-big"


def test_files_that_cannot_be(session: Session, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(11))
    os.mkfifo(tmp_path / "fifo")
    for path, code in [("big", "too-big"), ("none", "not-found"), ("fifo", "denied"), (".", "denied")]:
        with pytest.raises(Refused) as refused:
            session.get(f"{tmp_path}/{path}", 10)
        assert refused.value.code == code
    for path, code in [("none/file", "not-found"), ("fifo", "denied"), ("", "denied")]:
        with pytest.raises(Refused) as refused:
            session.put(f"{tmp_path}/{path}", EIGHT_BIT)
        assert refused.value.code == code
    assert session.execute(["true"]).code == 0


def test_clocks_of_one_machine_are_the_same(session: Session) -> None:
    assert session.ping() > 0
    clock = session.sync_clock()
    assert abs(clock.offset_ns) <= clock.uncertainty_ns
    assert clock.to_host(clock.to_agent(5)) == 5


def test_an_idle_agent_never_wakes(run_agent: Callable[..., RunningAgent]) -> None:
    agent = run_agent()
    session = Session.open(agent.stream, 10)
    session.ping()
    wait_asleep(agent.process.pid)
    before = switches(agent.process.pid)
    time.sleep(0.5)
    assert switches(agent.process.pid) == before


def wait_asleep(pid: int) -> None:
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "S":
        assert time.monotonic() < deadline


def switches(pid: int) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line for line in lines if line.startswith("voluntary_ctxt_switches"))


def test_shutdown_ends_it_and_all_it_runs(run_agent: Callable[..., RunningAgent]) -> None:
    agent = run_agent()
    session = Session.open(agent.stream, 10)
    server = session.start(["sh", "-c", "echo $$; exec sleep 600"])
    server.wait_output(b"\n", 10)
    session.shutdown()
    assert agent.process.wait(10) == 0
    assert not is_alive(int(server.stdout))
    with pytest.raises(SessionError, match="was shut down"):
        session.ping()


def test_the_end_of_the_stream_ends_it_and_all_it_runs(run_agent: Callable[..., RunningAgent]) -> None:
    agent = run_agent()
    session = Session.open(agent.stream, 10)
    server = session.start(["sh", "-c", "echo $$; exec sleep 600"])
    server.wait_output(b"\n", 10)
    session.close()
    assert agent.end() == 0
    assert not is_alive(int(server.stdout))


def test_an_agent_that_dies_is_told(run_agent: Callable[..., RunningAgent]) -> None:
    agent = run_agent()
    session = Session.open(agent.stream, 10)
    agent.process.kill()
    with pytest.raises(SessionError, match="connection ended"):
        session.execute(["true"])
    with pytest.raises(SessionError, match="connection ended"):
        session.ping()


def test_garbage_ends_the_agent_with_a_word(run_agent: Callable[..., RunningAgent]) -> None:
    agent = run_agent()
    session = Session.open(agent.stream, 10)
    agent.stream.send(b"GET / HTTP/1.1\r\n", time.monotonic() + 10)
    with pytest.raises(SessionError, match=r"agent ended the session.*bad-magic"):
        session.ping()
    assert agent.process.wait(10) == 1


def test_orphans_are_reaped(session: Session, tmp_path: Path) -> None:
    orphan = flee(session, tmp_path / "mark", "sleep 600")
    os.kill(orphan, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while Path(f"/proc/{orphan}").exists():
        assert time.monotonic() < deadline
    assert session.execute(["true"]).code == 0
