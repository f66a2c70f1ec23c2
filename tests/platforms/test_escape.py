"""The doors on real instances: what is open is found, the attempts change nothing on the host, and bait goes again."""

import re
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tare.campaign.execution import preflight
from tare.contract import bait, escapes, services, suite
from tare.contract.bench import BrokenPromiseError
from tare.contract.doors import AttemptState
from tare.contract.escapes import escape, try_doors
from tare.host import processes, state
from tare.platforms.bubblewrap import Bubblewrap
from tare.platforms.native import Native
from tare.platforms.runc import Runc

pytestmark = pytest.mark.host
AS_NOBODY = ("setpriv", f"--reuid={bait.NOBODY}", f"--regid={bait.NOBODY}", "--clear-groups")
#: All that an open door of the table could have changed.
SETTINGS = (
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname",
    "/proc/sys/vm/panic_on_oom",
    "/proc/irq/default_smp_affinity", "/proc/modules", "/proc/swaps", "/proc/mounts", "/proc/filesystems",
    "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/uevent_helper", "/sys/kernel/kexec_loaded",
    "/proc/sys/kernel/tainted", "/proc/partitions",
)  # fmt: skip
#: What attempts and bait name what they make. Others, such as a test in another host that shares /tmp, have such names.
MADE = re.compile("tare-([0-9a-f]{16}|(doors|node)-[0-9]+|no-such-file|beyond)")


@pytest.fixture(scope="module")
def bench_of():
    with suite.benches(lambda _: None) as bench_of:
        yield bench_of


class Undeclared(Native):
    """The bare host, as if it were a sandbox."""

    open_by_design = {}


def of_the_host():
    """The settings by name, the hierarchies' release agents, what lies in /tmp and the like, and the clock's zone."""
    settings = {name: Path(name).read_text() for name in SETTINGS if Path(name).exists()}
    agents = {str(file): file.read_text() for file in Path("/sys/fs/cgroup").glob("*/release_agent")}
    folders = ("/", "/dev", "/dev/shm", "/run", "/tmp")
    left = {name: sorted(file.name for file in Path(name).iterdir() if MADE.fullmatch(file.name)) for name in folders}
    shared = {"shm": _shared_memory()}
    accounted = {"zone": subprocess.run(["date", "+%z"], capture_output=True, text=True, check=True).stdout}
    return settings | agents | left | shared | accounted


def _shared_memory():
    """The ids of root's segments. PostgreSQL servers of tests that run beside this one have others, as other users."""
    head, *lines = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()]
    rows = [dict(zip(head, line, strict=True)) for line in lines]
    return sorted(row["shmid"] for row in rows if row["cuid"] == "0")


def test_where_all_is_open_it_is_found_and_the_host_is_left_as_it_was(bench_of):
    bench = bench_of(Undeclared())
    try:
        _ = bench.running
        before = of_the_host()
        with pytest.raises(BrokenPromiseError, match=r"core-pattern .*chroot .*freezer .*host-ports .*metadata"):
            escape(bench)
        after = of_the_host()
    finally:
        bench.close()
    assert {name for name in before if before[name] != after[name]} == set()
    assert before == after
    assert not list(state.work().glob("tare-*"))


def test_a_container_reaches_none_of_the_bait(bench_of):
    bench = bench_of(Runc("runc"))
    try:
        states = {attempt.door.name: attempt.state for attempt in try_doors(bench)}
    finally:
        bench.close()
    for name in ("files", "proc-root", "chroot", "file-handles", "hostfs", "shares", "processes", "ptrace"):
        assert states[name] is AttemptState.CLOSED, name
    assert states["host-ports"] is states["metadata"] is AttemptState.CLOSED
    assert states["limits"] is AttemptState.OWN  # of a group below the one that limits it


def test_a_process_in_the_group_with_its_limits_is_found_to_lift_them(bench_of, monkeypatch):
    """As libvirt's containers were: what they see as a whole hierarchy was the group with their limits."""
    bench = bench_of(Runc("runc"))
    real = bait._number
    try:
        below = [str(path) for path in bait._folders(bench.running.instance.spec.group)]
        monkeypatch.setattr(bait, "_number", lambda path: real(path / "box" if str(path) in below else path))
        states = {attempt.door.name: attempt.state for attempt in try_doors(bench)}
    finally:
        bench.close()
    assert states["limits"] is AttemptState.OPEN


def test_an_instance_that_ends_at_its_limit_of_processes_has_taken_none_of_the_hosts(bench_of, monkeypatch):
    """As gVisor's sentry did with ptrace, one time in eight."""
    bench, real = bench_of(Runc("runc")), escapes._answers

    def answers(session, doors, values):
        if [door.name for door in doors] == ["process-ids"]:
            bench.running.instance.spec.group.kill()
        return real(session, doors, values)

    monkeypatch.setattr(escapes, "_answers", answers)
    try:
        outcomes = {outcome.door.name: outcome for outcome in try_doors(bench)}
    finally:
        bench.close()
    assert outcomes["process-ids"].state is AttemptState.CLOSED
    assert outcomes["process-ids"].how == f"here: {escapes.ENDED}"
    assert outcomes["keys"].state is AttemptState.OPEN  # what was tried before it counts


def test_a_setuid_file_is_found_where_another_user_can_run_it(tmp_path):
    for folder in (tmp_path, *tmp_path.parents[:-1]):
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o001)
    reached, guarded, plain = tmp_path / "reached", tmp_path / "private" / "guarded", tmp_path / "plain"
    guarded.parent.mkdir(mode=0o700)
    for file, mode in ((reached, 0o4755), (guarded, 0o4755), (plain, 0o755)):
        file.touch()
        file.chmod(mode)
    assert bait.runnable_by_nobody([reached, guarded, plain, tmp_path / "none"]) == [reached]


def test_bait_is_there_while_it_lies_and_then_gone(bench_of):
    bench = bench_of(Native())
    try:
        with bait.laid(bench.launcher, bench.running) as laid:
            mark = laid.given["process"]
            canaries = [Path(path) for path in laid.given["canaries"].split(",")]
            assert [path.read_text() for path in canaries] == [laid.host.secret] * 2
            assert processes.run([*AS_NOBODY, "cat", str(canaries[1])]).text == laid.host.secret
            assert processes.run([*AS_NOBODY, "cat", str(canaries[0])]).code != 0
            assert services.answers(services.METADATA["metadata"])
            assert laid.host.secret not in laid.given.values()
            assert mark in Path("/proc/keys").read_text()
            assert f"@{mark}" in Path("/proc/net/unix").read_text()
            for _ in range(50):  # a busy machine may not have come to it yet
                if _runs(mark):
                    break
                time.sleep(0.1)
            assert _runs(mark)
    finally:
        bench.close()
    assert not any(path.parent.exists() for path in canaries)
    assert not Path("/run/netns", services.BEYOND).exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(laid.given["loopback"])))
    for _ in range(50):  # the kernel's collector removes a key that is linked nowhere some time later
        if mark not in Path("/proc/keys").read_text():
            break
        time.sleep(0.1)
    assert mark not in Path("/proc/keys").read_text()
    assert f"@{mark}" not in Path("/proc/net/unix").read_text()
    assert not _runs(mark)


def _runs(mark):
    return any(mark.encode() in _command(process) for process in Path("/proc").glob("[0-9]*"))


def _command(process):
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def test_what_is_open_by_design_is_in_the_record_and_the_manifest(bench_of):
    platform = Native()
    launcher = bench_of(platform).launcher
    ready = preflight._try(platform, platform.detect(), launcher.image, launcher)
    assert ready.record.open_by_design == dict(platform.open_by_design) != {}
    assert ready.fairness["open to the host by design"] == ready.record.open_by_design


def test_no_guest_sees_tares_environment_and_one_that_is_given_it_is_found(bench_of, monkeypatch):
    bench = bench_of(Bubblewrap("bubblewrap"))
    try:
        assert {each.door.name: each.state for each in try_doors(bench)}["environment"] is AttemptState.CLOSED
    finally:
        bench.close()
    monkeypatch.setattr(processes, "environment", processes.own_environment)
    bench = bench_of(Bubblewrap("bubblewrap"))
    try:
        assert {each.door.name: each.state for each in try_doors(bench)}["environment"] is AttemptState.OPEN
    finally:
        bench.close()
