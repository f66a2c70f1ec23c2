"""What virsh and /proc say, read; and what happens when a libvirtd dies."""

import os
import signal
from pathlib import Path

import pytest

from host.machines import write_process
from tare.contract import suite
from tare.errors import PlatformError, UsageError
from tare.host import processes, state
from tare.host.kernel import mounts, process_table
from tare.host.resources import removers
from tare.model import Arm
from tare.platforms import libvirt, libvirt_at, platform_registry
from tare.platforms.libvirt_at import LibvirtUri
from tare.platforms.parts.libvirt import libvirtd, virsh

VERSION = """\
Compiled against library: libvirt 9.0.0
Using library: libvirt 9.0.0
Using API: LXC 9.0.0
Running hypervisor: LXC 6.18.44
"""
NO_VMWARE = b"error: failed to connect to the hypervisor\nerror: internal error: vmrun utility is missing\n"
#: Of a libvirtd with its default security drivers on Debian, shortened.
CAPABILITIES = """\
    <secmodel>
      <model>apparmor</model>
      <doi>0</doi>
    </secmodel>
    <secmodel>
      <model>dac</model>
      <doi>0</doi>
      <baselabel type='kvm'>+64055:+994</baselabel>
    </secmodel>
"""
MOUNTINFO = b"""\
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""


def test_versions_and_errors_are_said_in_short():
    assert virsh.shown_version(VERSION) == "libvirt 9.0.0, LXC 6.18.44"
    assert virsh.last_error(NO_VMWARE) == "internal error: vmrun utility is missing"
    assert virsh.last_error(b"") == "no message"


def test_a_hierarchy_that_is_but_a_name_is_told_apart():
    every = [Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup/systemd")]
    assert libvirtd.named_out(mounts.parse(MOUNTINFO), every) == [Path("/sys/fs/cgroup/cpu")]


def test_security_models_that_confine_are_found():
    assert libvirt_at.security_models(CAPABILITIES) == ["apparmor", "dac"]
    assert libvirt_at.security_models("<secmodel><model>none</model><doi>0</doi></secmodel>") == []


def test_a_domains_processes_are_its_own_and_all_below(tmp_path, monkeypatch):
    for pid, parent, *argv in (
        (10, 1, "/usr/lib/libvirt/libvirt_lxc", "--name", "tare-a", "--console", "29"),
        (11, 10, "/usr/local/bin/tare-agent", "serve"),
        (12, 11, "sh"),
        (20, 1, "/usr/lib/libvirt/libvirt_lxc", "--name", "tare-ab", "--console", "29"),
        (21, 20, "/usr/local/bin/tare-agent", "serve"),
        (30, 1, "/usr/bin/qemu-system-x86_64", "-name", "guest=tare-a,debug-threads=on", "-S"),
        (40, 1, "virsh", "--name", "tare-a"),
    ):
        write_process(tmp_path, pid, parent, *argv)
    monkeypatch.setattr(process_table, "PROC", tmp_path)
    assert libvirt_at.family("tare-a") == [10, 11, 12, 30]


def test_a_uri_says_what_drives_and_where():
    assert LibvirtUri.parse("qemu+unix:///system?socket=/s") == LibvirtUri("qemu+unix:///system?socket=/s", "qemu", "")
    assert LibvirtUri.parse("esx://root@host.example/").host == "root@host.example"
    with pytest.raises(UsageError, match="not a URI"):
        LibvirtUri.parse("system")


@pytest.mark.host
def test_a_hypervisor_that_cannot_run_here_says_so_with_the_way_round():
    for name in ("libvirt-vbox", "libvirt-vmware", "libvirt-esx", "libvirt-xen"):
        [answer] = [platform.detect() for platform in platform_registry.choose([name])]
        assert not answer.available
        assert answer.reason
        assert "\n" not in answer.reason + answer.fix
    assert "ssh:HOST" in platform_registry.choose(["libvirt-vmware"])[0].detect().fix


def test_another_hosts_domains_are_weighed_by_ssh():
    answer = platform_registry.choose(["libvirt:qemu+ssh://host.example/system"])[0].detect()
    assert "another host" in answer.reason
    assert answer.fix == "-p ssh:host.example"


@pytest.mark.host
def test_a_daemon_that_does_not_answer_is_one_line(monkeypatch):
    answer = platform_registry.choose(["libvirt:qemu+unix:///system?socket=/nowhere"])[0].detect()
    assert "Failed to connect socket to '/nowhere'" in answer.reason
    assert "virsh -c" in answer.fix


def test_what_is_not_installed_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(libvirtd, "LXC_PLACES", ("/nowhere/libvirt_lxc",))
    monkeypatch.setattr(processes, "find", lambda program: f"/usr/bin/{program}")
    answer = libvirt.LibvirtLxc("libvirt-lxc", "").detect()
    assert answer.reason == "libvirt's lxc driver is not installed"
    assert answer.fix.endswith("libvirt-daemon-driver-lxc")


def test_a_program_that_machines_need_besides_is_named(monkeypatch):
    """Debian's qemu-system-x86 alone brings no qemu-img: not the driver lacks then."""
    monkeypatch.setattr(processes, "find", lambda program: None if program == "qemu-img" else f"/usr/bin/{program}")
    answer = libvirt.LibvirtQemu("libvirt-qemu", "").detect()
    assert answer.reason == "qemu-img is not installed"
    assert "qemu-utils" in answer.fix


def test_a_domain_of_a_daemon_that_is_gone_is_gone():
    removers.remove(removers.libvirt_domain("lxc:///", "tare-x", "/nowhere/libvirt-sock"))


@pytest.mark.host
def test_the_sockets_of_a_daemon_of_tares_are_roots_alone():
    platform = libvirt.LibvirtLxc("libvirt-lxc", "")
    try:
        daemon = platform._running_daemon()
        sockets = [path for path in Path(f"/proc/{daemon.pid}/root/run/libvirt").iterdir() if path.is_socket()]
        modes = {path.name: (path.stat().st_mode & 0o777, path.stat().st_uid) for path in sockets}
    finally:
        platform.close()
    assert modes == {f"libvirt-{kind}": (0o700, 0) for kind in ("sock", "sock-ro", "admin-sock")}


@pytest.mark.host
def test_a_domain_whose_instance_has_gone_does_not_start():
    platform = libvirt.LibvirtLxc("libvirt-lxc", "")
    try:
        daemon = platform._running_daemon()
        place = f"/proc/{daemon.pid}/root{daemon.entrance}"  # of the daemon's own mount namespace
        assert processes.run([place, "--name", "tare-none"]).code != 0
        assert processes.run([place, "--version"]).code == 0
    finally:
        platform.close()
    assert not list(state.work().glob(f"libvirt-lxc-{os.getpid()}*"))


@pytest.mark.host
def test_a_libvirtd_that_dies_is_one_line_and_the_next_start_has_another():
    [platform] = platform_registry.choose(["libvirt-lxc"])
    with suite.benches(lambda _: None) as bench_of:
        launcher = bench_of(platform).launcher
        try:
            running = launcher.start(platform, Arm(platform.name), measured=False)
            os.kill(platform._running_daemon().pid, signal.SIGKILL)
            platform._libvirtd._daemon.process.wait()
            assert running.session.execute(["true"], time_limit_s=10).code == 0  # a domain outlives its daemon
            running.stop()
            with pytest.raises(PlatformError, match="libvirtd was ended by signal 9 in the middle of its work"):
                launcher.start(platform, Arm(platform.name), measured=False)
            launcher.start(platform, Arm(platform.name), measured=False).stop()
        finally:
            platform.close()


def test_of_a_machines_log_what_follows_its_command_line_is_told_once_it_has_ended():
    log = (Path(__file__).parent / "captured" / "libvirt-9.0-qemu-killed.log").read_text()
    assert virsh.why_ended(log) == "2026-11-26 00:20:39.952+0000: shutting down, reason=crashed"
    assert virsh.why_ended(log.rpartition("2026-")[0]) == ""  # while it runs
    assert virsh.why_ended("") == ""


@pytest.mark.host
@pytest.mark.own_host
def test_a_machine_that_ends_before_its_agent_speaks_is_told_with_what_libvirt_logged(monkeypatch):
    [platform] = platform_registry.choose(["libvirt-qemu-tcg"])
    launch = platform.launch

    def launch_and_kill(spec, cleanup):
        instance = launch(spec, cleanup)
        spec.group.kill()
        return instance

    monkeypatch.setattr(platform, "launch", launch_and_kill)
    with suite.benches(lambda _: None) as bench_of:
        launcher = bench_of(platform).launcher
        platform.prepare(launcher.image)
        try:
            with pytest.raises(PlatformError, match=r"shutting down, reason=crashed"):
                launcher.start(platform, Arm(platform.name), measured=False)
        finally:
            platform.close()
