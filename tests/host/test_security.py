"""Security modules: what a host shows of them, and denials in the words of kernels and audit daemons."""

import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from host import machines
from tare.host import cgroup
from tare.host.facts import denials, security
from tare.platforms import podman

#: As the kernel of a stock Debian 12 (6.1) said it: root in a container of LXC's tried a door.
MOUNT = (
    'audit: type=1400 audit(1795394837.936:23): apparmor="DENIED" operation="mount" info="failed flags match" '
    'error=-13 profile="lxc-container-default-cgns" name="/" pid=935 comm="perl" flags="rw, rprivate"'
)
#: In the form of auditd's file: a container whose bind mount has no label. No host with SELinux could be had.
AVC = (
    'type=AVC msg=audit(1690581171.744:319): avc:  denied  { write } for  pid=1845 comm="tare-agent" name="data" '
    'dev="vda4" ino=4203 scontext=system_u:system_r:container_t:s0:c216,c981 '
    "tcontext=unconfined_u:object_r:var_lib_t:s0 tclass=dir permissive=0"
)


RESTRICTED = {
    "sys/module/apparmor/parameters/enabled": "Y",
    "proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
}


def test_a_denial_is_one_line_with_what_to_do():
    assert denials.parse(MOUNT) == (
        "AppArmor's profile lxc-container-default-cgns denies mount on / (failed flags match): "
        "let the profile allow it, or aa-complain lxc-container-default-cgns for as long"
    )
    assert denials.parse(AVC) == (
        "SELinux denies write of a dir on data (type var_lib_t) to type container_t: "
        "see `ausearch -m avc -ts recent`; a rule by audit2allow, or setenforce 0 for as long"
    )


def test_a_user_namespace_that_is_for_programs_with_a_profile_alone_has_a_fix_of_its_own():
    line = (
        'audit: type=1400 audit(1714500000.101:88): apparmor="DENIED" operation="userns_create" class="namespace" '
        'info="Userns create restricted - failed to find unprivileged_userns profile" error=-13 profile="unconfined" '
        'pid=4021 comm="bwrap" requested="userns_create" denied="userns_create" target="unprivileged_userns"'
    )
    assert denials.parse(line) == (
        "AppArmor denies bwrap a user namespace without root: give it a profile with `userns,`, or "
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    )


@pytest.mark.parametrize("line", ["", "6,1,1,-;Linux version 6.1", MOUNT.replace("DENIED", "STATUS")])
def test_other_lines_are_no_denial(line):
    assert denials.parse(line) is None


def test_only_what_is_written_meanwhile_counts(tmp_path):
    log = tmp_path / "audit.log"
    log.write_text(f"{AVC}\n")
    with denials.watched([log, tmp_path / "none"]) as denied:
        assert denied() is None
        with log.open("a") as file:
            file.write(f"type=SYSCALL\n{AVC.replace('write', 'read')}\n")
        assert "denies read" in denied()


@pytest.mark.parametrize(
    ("files", "module"),
    [
        ({}, "none"),
        ({"sys/module/apparmor/parameters/enabled": "Y\n"}, "AppArmor"),
        ({"sys/module/apparmor/parameters/enabled": "N\n"}, "none"),
        (RESTRICTED, "AppArmor, user namespaces without root by profile only"),
        ({"sys/fs/selinux/enforce": "1"}, "SELinux, enforcing"),
        ({"sys/fs/selinux/enforce": "0"}, "SELinux, permissive"),
    ],
)
def test_the_module_that_is_on(tmp_path, files, module):
    assert security.module(machines.write(tmp_path, files)) == module


def test_labels_of_processes_are_each_said_once(tmp_path):
    files = {
        "proc/7/task/7/attr/current": "docker-default (enforce)\n",
        "proc/8/task/8/attr/current": "unconfined\n",
        "proc/9/task/9/attr/current": "system_u:system_r:container_t:s0:c1,c2\0",
        "proc/10/task/10/attr/current": "unconfined\n",
    }
    root = machines.write(tmp_path, files)
    assert security.labels([7, 8, 10, 11], root) == "docker-default (enforce), unconfined"
    assert security.label(9, root=root) == "system_u:system_r:container_t:s0:c1,c2"
    assert security.labels([11], root) == "none"


def test_this_process_has_a_label_where_a_module_is_on():
    assert (security.labels([os.getpid()]) == "none") == (security.module(Path("/")) == "none")
    assert security.label(os.getpid(), threading.get_native_id()) == security.label(os.getpid())


@pytest.mark.parametrize(
    ("files", "mode", "trial"),
    [({}, "rw", []), ({"sys/fs/selinux/enforce": "1"}, "rw,Z", ["--security-opt=label=disable"])],
)
def test_where_selinux_is_on_an_instances_folder_gets_its_label_and_the_hosts_own_keep_theirs(
    monkeypatch, tmp_path, files, mode, trial
):
    monkeypatch.setattr(security, "ROOT", machines.write(tmp_path, files))
    assert security.writable_bind() == mode
    site = SimpleNamespace(folder=tmp_path / "x", group=cgroup.Group("tare-x"), cleanup=Owner())
    site.folder.mkdir()
    argv = podman.Podman("podman")._command(site)
    assert [word for word in argv if "label" in word] == trial
    assert not [word for word in argv if word.startswith("--volume") and "Z" in word.rpartition(":")[2]]


class Owner:
    """A cleanup stack for what is never made."""

    def own(self, *_):
        """Takes note of nothing."""
