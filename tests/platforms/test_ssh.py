"""The platform ssh against an sshd of its own: the contract, and what only a remote host can do wrong."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from platforms import remote_host
from tare.contract import suite
from tare.contract.leftovers import carries, left_on_host
from tare.contract.promises import CHECKS
from tare.errors import PlatformError, UsageError
from tare.host import processes, state
from tare.host.kernel import process_table
from tare.host.resources.journal import Journal, sweep
from tare.image import image_build
from tare.platforms import platform_registry, ssh
from tare.platforms.ssh import Facts, SshTarget, explain

pytestmark = pytest.mark.own_host

#: What an sshd's host said to `look` on Debian 12, the model and the addresses shortened.
LOOKED = """\
Welcome, said a login script
tare-remote
uid=0
arch=x86_64
kernel=6.1.0-28-amd64
name=far
cpus=0,1
model=AMD EPYC
memory_kib=24682112
free_kib=73400320
missing=
limits=/sys/fs/cgroup/memory memory.limit_in_bytes
unsafe=
address=192.0.2.2
client=192.0.2.1
image=there
"""
FACTS = Facts.parse(LOOKED)
TARGET = SshTarget("far", None, None)


def test_a_target_is_user_host_and_port():
    assert SshTarget.parse("far") == TARGET
    assert SshTarget.parse("root@far.example:2222") == SshTarget("far.example", "root", 2222)
    assert SshTarget.parse("[2001:db8::1]:22") == SshTarget("2001:db8::1", None, 22)


def test_the_far_host_gets_neither_the_users_agent_nor_screen(tmp_path):
    config = tmp_path / "config"
    config.write_text("Host *\n  ForwardAgent yes\n  ForwardX11 yes\n")
    program, *words = TARGET.argv("true")
    shown = processes.run([program, "-F", str(config), "-G", *words], time_limit_s=20).require().text.splitlines()
    assert {line for line in shown if line.startswith(("forwardagent ", "forwardx11 "))} == {
        "forwardagent no",
        "forwardx11 no",
    }


@pytest.mark.parametrize(
    "wrong", ["-oProxyCommand=true", "a b", "far:", "far:0", "far:70000", "@far", "a;b", "2001:db8::1"]
)
def test_what_is_no_target_is_said(wrong):
    with pytest.raises(UsageError, match="not a host for ssh"):
        platform_registry.choose([f"ssh:{wrong}"])


def test_the_facts_are_read_after_what_a_login_prints():
    assert (FACTS.cpus, FACTS.image, FACTS.missing, FACTS.client) == ((0, 1), True, "", "192.0.2.1")
    with pytest.raises(PlatformError, match="answers strangely: no good 'image'"):
        Facts.parse(LOOKED.replace("image=there\n", ""))
    with pytest.raises(PlatformError, match="answers strangely: This account is not available"):
        Facts.parse("This account is not available.\n")


@pytest.mark.parametrize("cpus", ["0-4000000000", ",".join(["0-65535"] * 1000), "3-1", "all"])
def test_a_remote_host_cannot_have_any_number_of_cpus(cpus):
    with pytest.raises(PlatformError, match="answers strangely: no good") as error:
        Facts.parse(re.sub("cpus=.*", f"cpus={cpus}", LOOKED))
    assert len(error.value.what) < 200


@pytest.mark.parametrize(
    ("change", "what", "fix"),
    [
        ({"uid": 1000}, "not root", "ssh:root@far"),
        ({"arch": "aarch64"}, "it is aarch64", None),
        ({"missing": "unshare flock"}, "lacks unshare flock", "util-linux"),
        ({"unsafe": "/var/lib/tare"}, "/var/lib/tare there is not root's alone", "chmod go-w /var/lib/tare"),
    ],
)
def test_what_a_host_lacks_is_one_line_with_the_fix(monkeypatch, change, what, fix):
    monkeypatch.setattr(ssh.Ssh, "_look", lambda self, key: replace(FACTS, **change))
    answer = ssh.Ssh("far").detect()
    assert not answer.available
    assert what in answer.reason
    assert (fix or "") in answer.fix


@pytest.mark.parametrize(
    ("message", "what"),
    [
        ("ssh: Could not resolve hostname far: Name or service not known", "its name is not known"),
        ("ssh: connect to host far port 22: Connection timed out", "it is not reached"),
        ("root@far: Permission denied (publickey).", "without a password"),
        ("Host key verification failed.", "host key"),
        ("cat: write error: No space left on device", "no space is left there"),
        ("tare: the image arrived damaged: 00", "damaged"),
        ("", "ended without a word"),
        ("some new trouble", "some new trouble"),
    ],
)
def test_what_ssh_says_becomes_one_line_with_a_fix(message, what):
    error = explain(message, TARGET)
    assert what in error.what
    assert error.fix
    assert "\n" not in str(error)


def test_families_are_offered():
    [offer] = [offer for offer in platform_registry.offers() if offer["name"].startswith("ssh:")]
    assert offer["asks"].startswith("name a host: -p ssh:")


@pytest.fixture(scope="module")
def remote():
    """A host that several sessions reach, one after the other: the image is copied to it by the first."""
    with remote_host.remote_host() as remote:
        yield remote


@pytest.mark.host
@pytest.mark.parametrize("delay", [0.02, 0.15, 0.4])
def test_a_harness_killed_mid_start_leaves_nothing_here_nor_there(remote, delay):
    argv = [sys.executable, "-m", "tare.contract.victim", remote.platform]
    victim = subprocess.Popen(argv, stdout=subprocess.PIPE)
    label = victim.stdout.readline().decode().strip()
    assert label
    time.sleep(delay)
    victim.kill()
    victim.communicate()
    steps = list(sweep(Journal(state.journal())))
    assert steps
    # What lives belongs to others: the far host itself, say.
    assert [step for step in steps if step.kept and "still going" not in step.kept] == []
    # The far side cleans up by itself, when it has seen that the connection is gone.
    assert _gone_within(remote, label, 10), _left(remote, label)
    assert left_on_host(label) == []


# Against the same host, which has the image by now


@pytest.fixture(scope="module")
def bench(remote):
    [platform] = platform_registry.choose([remote.platform])
    answer = platform.detect()
    assert answer.available, answer.reason
    with suite.benches(lambda _: None) as bench_of:
        bench = bench_of(platform)
        assert platform.prepare(bench.launcher.image).disk_bytes > 50 << 20
        yield bench
        bench.close()


def _left(remote, label):
    """All on the far host that carries the label."""
    left = [str(path) for path in remote.disk.glob(f"remote/work/*{label}*")]
    left += [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/tare-remote-*{label}*")]
    left += re.findall(f".*{label}.*", Path(f"/proc/{_sshd(remote)}/mounts").read_text())
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            left += [str(cmdline)] if carries(label, cmdline.read_bytes().decode(errors="replace")) else []
    return left


def _sshd(remote):
    return int(Path(f"/proc/{remote.sshd.pid}/task/{remote.sshd.pid}/children").read_text().split()[0])


def _gone_within(remote, label, seconds):
    deadline = time.monotonic() + seconds
    while (left := _left(remote, label)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left == []


@pytest.mark.host
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_it_keeps_its_promise(bench, check):
    check.run(bench)


@pytest.mark.host
def test_it_is_on_the_far_host_with_as_many_cpus(bench, remote):
    inside = bench.running.session.execute(["sh", "-c", "nproc; ip -br addr"], time_limit_s=10).stdout.decode()
    assert inside.split()[0] == str(len(bench.running.instance.spec.resources.cpus))
    assert remote.address in inside
    assert bench.running.instance.address.host == remote.address
    assert bench.running.cpu_ns() is None


@pytest.mark.host
def test_stopping_leaves_the_image_and_nothing_else(bench, remote):
    running = bench.start()
    label = running.instance.spec.id
    assert _left(remote, label)
    running.stop()
    assert _left(remote, label) == []
    assert [path.name for path in (remote.disk / "remote").iterdir() if path.name != "work"] == [
        bench.platform._key(bench.launcher.image)
    ]


@pytest.mark.host
def test_a_connection_that_is_cut_cleans_up_there(bench, remote):
    running = bench.start()
    label = running.instance.spec.id
    running.session.start(["sh", "-c", "setsid sleep 1000 & sleep 1000"], time_limit_s=1000)
    for pid in running.instance.host_processes():
        os.kill(pid, signal.SIGKILL)
    try:
        assert _gone_within(remote, label, 10), _left(remote, label)
    finally:
        running.stop()


@pytest.mark.host
def test_what_was_killed_there_is_swept_by_the_next_campaign(bench, remote):
    running = bench.start()
    name = f"tare-{running.instance.spec.id}"
    for pid, argv in process_table.command_lines().items():
        if argv[0] == "/bin/sh" and {"launch", name} <= set(argv):
            os.kill(pid, signal.SIGKILL)
    running.stop()
    left = remote.disk / "remote" / "work" / name
    assert left.is_dir(), "it was killed before it could clean up"
    os.utime(left, (0, 0))
    [group] = Path("/sys/fs/cgroup").glob(f"**/tare-remote-{name}")
    straggler = processes.start(["sleep", "1000"], cgroup_procs=[group / "cgroup.procs"])
    try:
        bench.platform.prepare(bench.launcher.image)
        assert left.is_dir(), "by it the next campaign finds a group that was busy"
    finally:
        straggler.kill()
        straggler.wait()
    os.utime(left, (0, 0))
    bench.platform.prepare(bench.launcher.image)
    assert _gone_within(remote, running.instance.spec.id, 5), _left(remote, running.instance.spec.id)


@pytest.mark.host
def test_others_there_get_nothing_of_a_guests(bench, remote):
    with bench.fresh() as running:
        running.session.execute(["sh", "-c", "cp /usr/bin/id /data && chmod 6755 /data/id"], time_limit_s=30)
        [planted] = (remote.disk / "remote" / "work").glob(f"*{running.instance.spec.id}/data/id")
        assert planted.stat().st_mode & 0o7777 == 0o6755
        (remote.disk / "remote").parent.chmod(0o755)  # as TARE_HOME's parent may be there
        as_nobody = ["chroot", "--userspec=65534:65534", "--groups=", "/", str(planted)]
        done = processes.run(as_nobody)
        assert b"Permission denied" in done.stderr, done


@pytest.mark.host
def test_what_a_guest_made_immutable_keeps_no_campaign_from_starting(bench, remote):
    kept = remote.disk / "remote" / "work" / "tare-kept"
    gone = remote.disk / "remote" / "work" / "tare-zone"
    for folder in (kept, gone):
        (folder / "data").mkdir(parents=True)
        (folder / "lock").touch()
        processes.run(["chattr", "+i", str(folder / "data")]).require()
    there = ["nsenter", "-t", str(_sshd(remote)), "--mount"]
    far = f"{remote_host.FAR_HOME}/remote/work/tare-kept"
    processes.run([*there, "mount", "--bind", far, far]).require()  # what nobody can remove
    try:
        for folder in (kept, gone):
            os.utime(folder, (0, 0))
        bench.platform.prepare(bench.launcher.image)
        assert kept.is_dir()
        assert not gone.exists()
    finally:
        processes.run([*there, "umount", far]).require()
        os.utime(kept, (0, 0))
        bench.platform.prepare(bench.launcher.image)
    assert not kept.exists()


@pytest.mark.host
def test_a_folder_that_others_can_write_to_is_refused_there(bench, remote):
    (remote.disk / "remote").chmod(0o777)
    try:
        answer = bench.platform.detect()
        assert not answer.available
        assert "is not root's alone" in answer.reason
        with pytest.raises(PlatformError, match="open to others"):
            bench.start()
    finally:
        (remote.disk / "remote").chmod(0o700)


@pytest.mark.host
def test_the_image_is_copied_once(bench, remote):
    mark = next((remote.disk / "remote").glob("*/remote.sh")).stat()
    bench.platform.prepare(bench.launcher.image)
    assert next((remote.disk / "remote").glob("*/remote.sh")).stat().st_ino == mark.st_ino


@pytest.mark.host
@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("nobody@{}", "without a password"),
        ("{}:23", "it is not reached"),
        ("{}-strange", "host key"),
        ("no-such-host.invalid", "its name is not known"),
    ],
)
def test_a_host_that_does_not_let_us_in_is_one_line(remote, where, what):
    [platform] = platform_registry.choose(["ssh:" + where.format(remote.name)])
    answer = platform.detect()
    assert not answer.available
    assert what in answer.reason
    assert answer.fix
    assert "\n" not in answer.reason + answer.fix


@pytest.mark.host
def test_a_host_without_cpus_enough_is_one_line(bench):
    spec = bench.running.instance.spec
    wide = replace(spec, resources=replace(spec.resources, cpus=tuple(range(4096))))
    with pytest.raises(PlatformError, match="CPUs, and instances are to have 4096") as caught:
        bench.platform.launch(wide, None)
    assert caught.value.fix == "give fewer with --cpus"


@pytest.mark.host
def test_a_host_whose_image_was_removed_is_one_line(bench, remote):
    spec = bench.running.instance.spec
    image = replace(spec.image, hash="0" * 64)
    with pytest.raises(PlatformError, match="the image is not there any more"):
        bench.platform.launch(replace(spec, image=image), None)


@pytest.mark.host
def test_a_disk_that_is_too_small_is_one_line():
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    with remote_host.remote_host(disk_bytes=64 << 20, name="small") as remote:
        [platform] = platform_registry.choose([remote.platform])
        with pytest.raises(PlatformError, match="MiB are free, the image needs") as caught:
            platform.prepare(image)
        assert "rm -r" in caught.value.fix


@pytest.mark.host
def test_a_disk_that_fills_up_on_the_way_is_one_line(monkeypatch):
    monkeypatch.setattr(ssh, "COPIES", 0)
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    with remote_host.remote_host(disk_bytes=64 << 20, name="full") as remote:
        [platform] = platform_registry.choose([remote.platform])
        with pytest.raises(PlatformError, match="no space is left there"):
            platform.prepare(image)
