"""What keeps a process in, in words: from files as real sandboxes showed them, and of real ones."""

import os
import subprocess
from pathlib import Path

import pytest

from tare.campaign.instances import instance_posture as instances
from tare.host import processes
from tare.host.facts import posture
from tare.host.kernel import process_table
from tare.model import Arm
from tare.platforms import platform_contract, platform_registry

#: What the agent printed in sandboxes of this name on Linux 6.18 (`posture.show_argv`), 2026-11-23.
SHOWN = Path(__file__).parent / "data/posture"
DOCKERS = (
    "14: chown, dac_override, fowner, fsetid, kill, setgid, setuid, setpcap, net_bind_service, net_raw, sys_chroot, "
    "mknod, audit_write, setfcap"
)


def _of(name):
    shown = posture.parse_shown((SHOWN / f"{name}.txt").read_text())
    return posture.of_files({path.removeprefix("/proc/self/"): text for path, text in shown.items()})


def test_dockers_container_has_its_filter_and_its_rights():
    assert _of("docker") == {
        "seccomp": "filter (1)",
        "no new privileges": "no",
        "capabilities": DOCKERS,
        "bounding set": "the same",
        "users": "not mapped",
        "label": "none",
    }


def test_a_user_namespace_is_named_with_the_user_that_root_is():
    shown = _of("crun-userns")
    assert (shown["users"], shown["seccomp"]) == ("root is user 2000000000 outside, of 65,536", "none")


def test_bubblewraps_bounding_set_is_not_its_capabilities():
    shown = _of("bubblewrap")
    assert shown["no new privileges"] == "yes"
    assert shown["capabilities"].startswith("13: chown, ")
    assert shown["bounding set"] == "40, all but sys_resource"


def test_what_gvisors_kernel_shows_is_read_and_what_it_has_not_is_unknown():
    shown = _of("gvisor")
    assert (shown["seccomp"], shown["users"], shown["label"]) == ("none", "not mapped", "none")
    assert posture.of_files({}) == {
        "seccomp": "unknown",
        "no new privileges": "unknown",
        "capabilities": "unknown",
        "bounding set": "the same",
        "users": "unknown",
        "label": "none",
    }


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("docker-default (enforce)\n", "docker-default (enforce)"),
        ("lxd-tare-0a1b2x7_</var/lib/lxd>//&:lxd:unconfined", "lxd-NAME_</var/lib/lxd>//&:lxd:unconfined"),
        ("system_u:system_r:container_t:s0:c216,c981\0", "system_u:system_r:container_t:s0"),
        ("", "none"),
    ],
)
def test_a_label_is_the_same_in_every_start(label, words):
    assert posture.of_files({posture.LABEL: label}, "tare-0a1b2x7")["label"] == words


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ("0000000000000000", "none"),
        ("0000000000000400", "1: net_bind_service"),
        ("000001ffffffffff", "all 41"),
        ("0000003fffffffff", "all 38"),
        ("000001fffeffffff", "40, all but sys_resource"),
        ("ffffffffffffffffff", "unknown"),
        ("the agent's", "unknown"),
        ("", "unknown"),
    ],
)
def test_a_set_of_capabilities_in_words(mask, words):
    assert posture.capabilities(mask) == words


def test_users_of_maps_without_root():
    assert posture.users("1000 1000 1") == "no root, 1 users"
    assert posture.users("0 100000 65536\n") == "root is user 100000 outside, of 65,536"


@pytest.mark.parametrize("text", ["0 0", "0 0 lots", "0 0 -1", "\x1b[31m", "0 0 99999999999999999999", "0 0 \u0663"])
def test_a_guest_may_say_anything_of_its_users(text):
    assert posture.users(text) == "unknown"


def test_an_empty_field_takes_nothing_of_the_next():
    assert posture.of_files({posture.STATUS: "Groups:\t\nSeccomp:\t2\n"})["seccomp"] == "filter"


def test_this_process_is_read_as_it_is():
    facts = posture.of_process(os.getpid())
    assert facts["process"] == Path("/proc/self/comm").read_text().strip()
    assert facts["seccomp"].partition(" ")[0] in {"none", "filter"}
    shown = processes.run(posture.show_argv(mitigations=False))
    files = {name.removeprefix("/proc/self/"): text for name, text in posture.parse_shown(shown.text).items()}
    assert posture.of_files(files) == {name: value for name, value in facts.items() if name != "process"}
    assert posture.of_process(2**22 + 1) == {}


def test_the_mitigations_of_a_kernel_are_shown():
    shown = posture.parse_shown(processes.run(posture.show_argv(mitigations=True)).text)
    for file in Path(posture.MITIGATIONS).iterdir():
        assert shown[str(file)] == file.read_text().strip()


def test_the_agents_process_comes_before_the_largest(tmp_path, monkeypatch):
    monkeypatch.setattr(process_table, "PROC", tmp_path)
    for pid, name, size in ((7, "tare-agent", 10), (8, "qemu-system-x86", 999), (9, "runc", 99)):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "status").write_text(f"Name:\t{name}\nVmRSS:\t    {size} kB\n")
    assert posture.foremost([9, 8, 7, 6], "tare-agent") == 7
    assert posture.foremost([9, 8], "tare-agent") == 8
    assert posture.foremost([], "tare-agent") is None


#: By platform: seccomp inside, whether root is mapped, and whether the agent's own process is seen on the host.
REAL = {
    "native": ("none", False, True),
    "runc": ("none", False, True),
    "crun-userns": ("none", True, True),
    "bubblewrap": ("none", False, True),
    "nspawn": ("filter", False, True),
    "lxc": ("filter", False, True),
    "docker": ("filter", False, True),
    "podman": ("filter", False, True),
    "gvisor": ("none", False, False),
}


@pytest.mark.host
@pytest.mark.parametrize("name", REAL)
def test_of_a_real_instance_inside_and_outside(launcher, name):
    [platform] = platform_registry.choose([name])
    try:
        assert platform_contract.detected(platform).available
        platform_contract.prepared(platform, launcher.image)
        running = launcher.start(platform, Arm(name), measured=False)
        try:
            facts = instances.facts(platform, running)
        finally:
            running.stop()
    finally:
        platform.close()
    inside, outside = facts[instances.INSIDE], dict(facts[instances.OUTSIDE])
    seccomp, mapped, visible = REAL[name]
    assert inside["seccomp"].partition(" ")[0] == seccomp
    assert inside["users"].startswith("root is user") == mapped
    process = outside.pop("process")
    assert (process == "tare-agent") == visible
    if visible:
        assert outside == inside, "the host sees what the agent sees"
    else:
        assert (outside["seccomp"].partition(" ")[0], outside["no new privileges"]) == ("filter", "yes"), "the sentry's"


def test_devices_beside_an_instance_are_described_by_program_and_nothing_else():
    with _device() as first, _device() as second:
        pids = [first.pid, os.getpid(), second.pid]
        try:
            assert posture.beside(pids) == {"slirp4netns": posture.of_process(max(first.pid, second.pid))}
        finally:
            first.kill()
            second.kill()
    assert posture.beside(pids) == {}


def _device():
    return subprocess.Popen(["/usr/bin/slirp4netns", "60"], executable="/bin/sleep")


@pytest.mark.host
@pytest.mark.own_host
def test_the_network_of_a_rootless_container_has_rights_in_its_users_namespace_alone(launcher):
    [platform] = platform_registry.choose(["podman-rootless"])
    answer = platform_contract.detected(platform)
    assert answer.available, answer.reason
    platform_contract.prepared(platform, launcher.image)
    running = launcher.start(platform, Arm(platform.name), measured=False)
    try:
        beside = instances.facts(platform, running)[instances.BESIDE]
    finally:
        running.stop()
        platform.close()
    [(program, facts)] = beside.items()
    assert program in {"slirp4netns", "pasta", "pasta.avx2"}
    assert facts["users"].startswith("root is user ")
    assert facts["seccomp"].startswith("filter")
    assert facts["no new privileges"] == "yes"
