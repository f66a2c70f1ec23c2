"""Thirteen faults, each in a real campaign, and each followed by an independent look at the host (``make faults``).

A fault strikes in the middle: after trials that went well and before others. What it hits says so in one line, what it
does not hit is well, and the host is as it was before.
"""

import contextlib
import gc
import os
import re
import secrets
import subprocess
import sys
import time
from dataclasses import dataclass, replace

import pytest

import host_state
from campaign.fakes import Quiet, a_record
from campaign.test_host_disks import MIB, Shell
from platforms.test_daemon_weather import Dockerd, loses_sockets
from tare.campaign.execution.runner import Runner
from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.plan.campaign_plan import CampaignPlan, WorkloadJob
from tare.errors import HostError, StoreError
from tare.host import processes, state
from tare.host.filesystems import volumes
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack, Journal, of_this_process
from tare.image import guest, image_build
from tare.model import Resources
from tare.platforms import platform_registry
from tare.store import create_store, open_store, read_store

#: Slow: whoever else is at work on the host is in the comparison, and `make test` has more tests beside this one.
pytestmark = [pytest.mark.host, pytest.mark.slow]

MEMORY = 512 * MIB

#: Files of the test's own, what `ip netns` makes of its folder when it is first used on a host, and what the shims of a
#: containerd leave that is killed: it removes that itself when it is started again.
OWN = ("/pytest-of-", "mount: /run/netns / tmpfs", "file: /run/containerd/s/")
#: What others leave meanwhile on a host that is shared, as a regular expression.
OTHERS = os.environ.get("TARE_FAULTS_OTHERS", "")


class Strikes(Shell):
    """Does something to the host in the middle of a campaign, once."""

    def __init__(self, strike, script="echo 42"):
        super().__init__("strikes", script)
        self._strike = strike

    def plan(self, params, around):
        # A plan is asked for before there is an instance too, to know whether clients call it.
        if self._strike is not None and around.memory_bytes == MEMORY:
            strike, self._strike = self._strike, None
            strike()
        return super().plan(params, around)


@dataclass
class Result:
    rows: list
    error: StoreError | HostError | None = None

    def reasons(self, workload, platform=None):
        return [
            row["reason"]
            for row in self.rows
            if row["status"] == "failed" and row["workload"] == workload and platform in {None, row["platform"]}
        ]


def _conduct(names, jobs, file, blocks=2, work=None, resumed=False):
    """A campaign of so many blocks, each: well, then the fault."""
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    platforms = tuple(platform_registry.choose(names))
    for platform in platforms:
        platform.prepare(image)
    resources = Resources(default_cpus(), MEMORY)
    plan = CampaignPlan(
        "quick", 14, platforms, tuple(WorkloadJob(job, {}) for job in jobs), resources, blocks, None, in_order=True
    )
    error = None
    with contextlib.ExitStack() as last:
        for platform in platforms:
            last.callback(platform.close)
        launcher, client = last.enter_context(HostSession()).prepare(image, resources)
        if work is not None:
            launcher = replace(launcher, work=work / "work", journal=Journal(work / "journal"))
        with open_store(file) if resumed else create_store(file, a_record(plan)) as store:
            try:
                Runner(plan, store, launcher, client, Quiet()).run()
            except (StoreError, HostError) as ended:
                error = ended
        with read_store(file) as store:
            return Result(list(store.trials().iter_rows(named=True)), error)


@pytest.fixture(scope="module", autouse=True)
def used_host(tmp_path_factory):
    """A campaign before the first fault: what tare and engines make once on a host is there when it is compared.

    Docker's container is in the host's network: of one with its own Docker removes a file only later.
    """
    file = tmp_path_factory.mktemp("used") / "used.tare"
    run = ["run", "-p", "runc", "-p", "docker-host", "-p", "qemu-tcg", "-w", "primes", "--blocks", "1", "-o", str(file)]
    done = subprocess.run([sys.executable, "-m", "tare", *run], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def note_outcome(request):
    """Takes down what a fault came to; the host is compared with what it was before the fault."""
    before = host_state.snapshot()
    line = []
    yield lambda result, platform, reason: line.extend((result, platform, reason))
    left = host_state.settled(before, ignored="|".join(filter(None, (*OWN, OTHERS))))
    if not line:
        return  # the test has failed by then
    result, platform, reason = line
    ok = sum(row["status"] == "ok" for row in result.rows)
    fault = request.node.name.removeprefix("test_").replace("_", " ")
    host = "as it was" if not left else f"{len(left)} differences"
    reporter = request.config.pluginmanager.getplugin("terminalreporter")
    counted = f"{ok:3} ok {len(result.rows) - ok:3} failed"
    reporter.write_line(f"\n{fault:32} {platform:12} {counted}  host: {host}  said: {reason}")
    assert left == []


@pytest.fixture
def small_disk(tmp_path):
    """A disk with few files, for instances and their journal; made and removed outside of what is compared."""
    file, place = tmp_path / "disk.ext4", state.work() / f"disk-{secrets.token_hex(3)}"
    place.mkdir()
    file.touch()
    os.truncate(file, 4 << 30)
    processes.run(["mkfs.ext4", "-q", "-F", "-m", "0", "-N", "40000", str(file)]).require()
    processes.run(["mount", "-o", "loop", str(file), str(place)]).require()
    for name in ("journal", "work"):
        (place / name).mkdir(mode=0o700)
    yield place
    processes.run(["umount", str(place)]).require()
    place.rmdir()
    file.unlink()


def _only_the_fault_failed(result, expected, *, workload="strikes", platform=None):
    """Each has one line that says why; all else is well."""
    reasons = result.reasons(workload, platform)
    assert reasons
    for reason in reasons:
        assert re.search(expected, reason), reason
        assert "\n" not in reason
    others = [row for row in result.rows if row["workload"] != workload]
    assert {row["status"] for row in others} == {"ok"}, others
    return reasons[0]


def _shell_fault(script, limit_s, names, tmp_path, expected, **more):
    jobs = [Shell("well", "echo 42"), Shell("strikes", script, limit_s)]
    result = _conduct(names, jobs, tmp_path / "fault.tare", **more)
    return result, _only_the_fault_failed(result, expected)


def test_hang(note_outcome, tmp_path):
    note_outcome(*_named(_shell_fault("sleep 1000", 1, ["native", "runc"], tmp_path, "time limit"), "runc"))


def test_flood(note_outcome, tmp_path):
    note_outcome(*_named(_shell_fault("yes", 1, ["native", "runc"], tmp_path, "time limit"), "runc"))


def test_memory_that_runs_out(note_outcome, tmp_path):
    note_outcome(
        *_named(_shell_fault("tail /dev/zero", 30, ["native", "runc"], tmp_path, "signal 9|ended|137"), "runc")
    )


def test_panic(note_outcome, tmp_path, monkeypatch):
    """A guest whose kernel gives up, by what it boots from: nothing that could reach the host's own kernel."""
    real, initramfs = guest.ensure(), tmp_path / "initramfs"
    initramfs.write_bytes(b"not an archive" * 100)

    def break_it():
        monkeypatch.setattr(guest, "ensure", lambda *_: replace(real, initramfs=initramfs))

    jobs = [Shell("well", "echo 42"), Strikes(break_it)]
    result = _conduct(["native", "qemu-tcg"], jobs, tmp_path / "fault.tare")
    assert {row["status"] for row in result.rows if row["platform"] == "native" or row["block"] == 0} == {"ok"}
    [reason] = set(result.reasons("well", "qemu-tcg")[:1])
    assert "Kernel panic" in reason
    note_outcome(result, "qemu-tcg", reason)


def test_full_disk(small_disk, note_outcome, tmp_path):
    script = "fallocate -l 3G /data/x; cat /dev/zero >/data/fill; sleep 100"
    note_outcome(
        *_named(_shell_fault(script, 60, ["native", "runc"], tmp_path, "of the host's disk", work=small_disk), "runc")
    )


def test_out_of_inodes(small_disk, note_outcome, tmp_path):
    script = "n=0; while n=$((n+1)); touch $(seq -f $n.%.0f 5000); do :; done; sleep 100"
    note_outcome(
        *_named(_shell_fault(script, 60, ["native", "runc"], tmp_path, "of the host's disk", work=small_disk), "runc")
    )


class Fills(Shell):
    """After its first run a disk is full, of files that are no instance's."""

    def __init__(self, disk):
        super().__init__("fills", "echo 42")
        self._disk, self.filler = disk, disk / "filler"

    def parse(self, params, results):
        if not self.filler.exists():
            with contextlib.suppress(OSError), self.filler.open("wb", buffering=0) as writing:
                os.posix_fallocate(writing.fileno(), 0, volumes.free(self._disk).bytes - MIB)
                while writing.write(bytes(4096)):
                    pass
        return super().parse(params, results)


def test_full_disk_that_others_have_filled(small_disk, note_outcome, tmp_path):
    """What runs by then is well; the campaign ends before the next block, and goes on from there."""
    jobs, file = [Shell("well", "echo 42"), Fills(small_disk)], tmp_path / "fault.tare"
    result = _conduct(["native", "runc"], jobs, file, blocks=3, work=small_disk)
    assert [row["status"] for row in result.rows] == ["ok"] * 6, [row["reason"] for row in result.rows]
    assert isinstance(result.error, HostError)
    assert f"the disk of {small_disk}/work is full" in str(result.error)
    jobs[-1].filler.unlink()
    jobs[-1] = Shell("fills", "echo 42")
    after = _conduct(["native", "runc"], jobs, file, blocks=3, work=small_disk, resumed=True)
    assert after.error is None
    assert [row["status"] for row in after.rows] == ["ok"] * 18
    note_outcome(after, "runc", str(result.error).replace(str(small_disk), "..."))


def _named(outcome, platform):
    return outcome[0], platform, outcome[1]


@loses_sockets
def test_death_of_a_daemon(note_outcome, tmp_path, monkeypatch):
    journal, folder = Journal(state.journal()), state.work() / f"dockerd-{secrets.token_hex(3)}"
    folder.mkdir()
    with CleanupStack(journal) as cleanup:
        cleanup.own(removers.folder(folder), removers.mount(folder / "data"))
        dockerd = Dockerd(folder, cleanup)
        monkeypatch.setenv("DOCKER_HOST", dockerd.host)
        jobs = [Shell("well", "echo 42"), Strikes(dockerd.daemon.process.kill)]
        result = _conduct(["native", "docker-none"], jobs, tmp_path / "fault.tare")
        dockerd.daemon.process.wait()
        for mount in dockerd.mounts():
            processes.run(["umount", "-l", mount.split()[1]])
    # What the campaign could not remove is the daemon's record of its container, which went with the daemon's folder.
    for entry in of_this_process():
        removers.remove(entry.resource)
        journal.forget(entry)
    gc.collect()
    assert result.reasons("strikes", "native") == []
    reasons = [*result.reasons("strikes", "docker-none"), *result.reasons("well", "docker-none")]
    assert all("the Docker daemon does not answer" in reason for reason in reasons)
    note_outcome(result, "docker-none", reasons[0])


def test_loss_of_the_bridge(note_outcome, tmp_path):
    strikes = Strikes(lambda: processes.run(["ip", "link", "del", "tare0"]).require())
    result = _conduct(["native", "runc"], [Shell("well", "echo 42"), strikes], tmp_path / "fault.tare")
    reasons = (result.reasons("strikes") + result.reasons("well"))[:1] or ["nothing failed"]
    assert [row["status"] for row in result.rows if row["platform"] == "native"] == ["ok"] * 8
    assert "runc is left out from here on" in result.reasons("strikes", "runc")[-1]
    note_outcome(result, "runc", reasons[0])


def test_clock_that_jumps(note_outcome, tmp_path, monkeypatch):
    usual, began = time.time, time.monotonic()
    strikes = Strikes(lambda: monkeypatch.setattr(time, "time", lambda: usual() - 7200))
    result = _conduct(["native", "runc"], [Shell("well", "echo 42"), strikes], tmp_path / "fault.tare")
    assert {row["status"] for row in result.rows} == {"ok"}
    turns = [row["turn_s"] for row in result.rows]
    assert min(turns) >= 0
    assert sum(turns) < time.monotonic() - began
    note_outcome(result, "runc", f"nothing; turns of {sum(turns):.1f} s in all")


def test_full_disk_of_the_campaign_file(tmp_path, request):
    place = tmp_path / "small"
    place.mkdir()
    processes.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]).require()
    note_outcome = request.getfixturevalue("note_outcome")
    file, filler = place / "fault.tare", place / "filler"

    def fill():
        with contextlib.suppress(OSError), filler.open("wb") as writing:
            while True:
                writing.write(bytes(4096))
                writing.flush()

    jobs = [Shell("well", "echo 42"), Strikes(fill, "head -c 200k /dev/urandom >&2; echo 42")]
    result = _conduct(["native", "runc"], jobs, file)
    assert result.error is not None
    assert "its disk is full" in str(result.error)
    assert "--resume" in str(result.error)
    kept = {row["seq"]: row["started"] for row in result.rows}
    filler.unlink()
    after = _conduct(["native", "runc"], [Shell("well", "echo 42"), Strikes(None)], file, resumed=True)
    assert len(after.rows) == 12
    assert {row["status"] for row in after.rows} == {"ok"}
    assert {
        seq: started for seq, started in ((row["seq"], row["started"]) for row in after.rows) if seq in kept
    } == kept
    note_outcome(after, "runc", str(result.error).replace(str(place), "..."))
    request.addfinalizer(lambda: processes.run(["umount", str(place)]).require())


def test_read_only_home(small_disk, note_outcome, tmp_path):
    def strike():
        processes.run(["mount", "--bind", str(small_disk), str(small_disk)]).require()
        processes.run(["mount", "-o", "remount,ro,bind", str(small_disk)]).require()

    strikes = Strikes(strike)
    result = _conduct(["native", "runc"], [Shell("well", "echo 42"), strikes], tmp_path / "fault.tare", work=small_disk)
    reasons = result.reasons("well") + result.reasons("strikes")
    assert reasons
    assert all("\n" not in reason for reason in reasons)
    assert {row["status"] for row in result.rows if row["block"] == 0 and row["workload"] == "well"} == {"ok"}
    processes.run(["umount", "-l", str(small_disk)]).require()
    for entry in reversed((journal := Journal(small_disk / "journal")).entries()):
        removers.remove(entry.resource)
        journal.forget(entry)
    note_outcome(result, "runc", reasons[0])


WRAP = """
set -e
tare="from tare.cli import main; main()"
"$0" -c "$tare" run -p runc -w startup -w primes --blocks 50 -o "$1/fault.tare" >/dev/null 2>&1 &
victim=$!
while [ ! -s "$1/fault.tare" ]; do sleep 0.1; done
sleep 2
kill -9 $victim; wait $victim || true
while [ "$stranger" != $victim ]; do
    echo $((victim - 1)) >/proc/sys/kernel/ns_last_pid
    sleep 100 &
    stranger=$!
    [ $stranger = $victim ] || kill $stranger
done
"$0" -c "$tare" clean
kill -0 $stranger
kill $stranger
echo "process $stranger was the campaign's and then a stranger's"
"""


def test_process_ids_that_wrap(note_outcome, tmp_path):
    """The journal names a killed campaign by its process id, which is another's by now: that one is left alone."""
    argv = [
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "bash",
        "-c",
        WRAP,
        sys.executable,
        str(tmp_path),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "removed" in done.stdout
    assert " removed, 0 kept" in done.stdout
    with read_store(tmp_path / "fault.tare") as store:
        result = Result(list(store.trials().iter_rows(named=True)))
    note_outcome(result, "runc", done.stdout.splitlines()[-1])
