"""What is installed for what was asked: the plan, what apt prints, and what is done where nothing may be installed."""

import tomllib
from pathlib import Path

import pytest

from tare.errors import HostError, UsageError
from tare.host import distribution, processes
from tare.platforms import platform_registry
from tare.platforms.parts.libvirt import libvirtd
from tare.platforms.parts.machines import virtiofs, vm
from tare.setup import apt, carry_out, gvisor_build, host_packages
from tare.setup.components import COMPONENTS, DEVELOPMENT, EVERYTHING, FIRST, LIBVIRT_LXC, NATIVE, QEMU, RUST, VIRTIOFSD
from tare.setup.install_plan import named, plan, without, words

CAPTURED = Path(__file__).parent / "captured"
HERE = Path(__file__).parents[2]


def _packages(chosen):
    return [missing.package for missing in chosen.packages]


def _but(*missing):
    """A host that has everything but these words."""
    return words() - set(missing)


def test_a_bare_host_needs_the_baseline_alone():
    chosen = plan((), frozenset())
    assert chosen.components == (NATIVE,)
    assert _packages(chosen)[0] == "mmdebstrap"
    # What `make quick` must not bring to a machine that wants its first table.
    assert not {"lxd", "libvirt-daemon-system", "qemu-system-x86", "r-base-core", "clang", "docker.io"} & {
        *_packages(chosen)
    }


def test_a_clone_that_wants_its_first_answer_gets_what_that_weighs_and_no_other_daemon_and_no_analyser():
    script = (HERE / "scripts" / "setup").read_text()
    begin, names = script.index("weighed=$"), 'printf %s "$weighed"'
    asked = script[begin : script.index("\n", begin)].replace("$here", str(HERE))
    weighed = processes.run(["sh", "-c", f"{asked}; {names}"]).text.split(",")
    assert weighed == list(FIRST)
    only_runc = processes.run(["sh", "-c", f"{asked}; {names}"], env={"WITH": "runc"}).text
    assert only_runc == "runc"
    brought = set(_packages(plan(("clone", "native", *weighed), frozenset())))
    assert {"runc", "mmdebstrap", "python3-venv", "docker.io", "golang-go"} <= brought
    assert not {"lxd", "libvirt-daemon-system", "qemu-system-x86", "r-base-core", "clang"} & brought


def test_an_engine_that_is_there_gets_what_it_is_run_with():
    chosen = plan((), {"qemu-system-x86_64", "mmdebstrap"})
    assert "qemu" in chosen.components
    assert {"busybox-static", "cpio"} <= {*_packages(chosen)}
    assert "qemu-system-x86" not in _packages(chosen)
    assert "mmdebstrap" not in _packages(chosen)


def test_only_what_was_asked_is_installed():
    chosen = plan(named("docker"), _but("dockerd", "/var/run/docker.sock", "$DOCKER_HOST", "lxc-start"))
    assert _packages(chosen) == ["docker.io"]
    assert chosen.components == (NATIVE, "docker")
    assert "lxc" in chosen.more


def test_a_daemon_of_the_users_own_is_docker():
    assert _packages(plan(named("docker"), _but("dockerd", "$DOCKER_HOST"))) == []


def test_a_package_for_several_is_named_once_with_all_of_them():
    chosen = plan(named("podman,podman-rootless"), _but("podman"))
    assert [(missing.package, missing.components) for missing in chosen.packages] == [
        ("podman", ("podman", "podman-rootless"))
    ]


def test_podmans_come_with_all_that_they_are_run_with_whichever_release_it_is():
    """Debian 13's Podman 5 takes pasta for a user's network, its netavark nftables, and both only recommend it."""
    assert {"podman", "netavark", "nftables", "crun"} <= {*_packages(plan(named("podman"), frozenset()))}
    rootless = named("podman-rootless")
    assert {"passt", "slirp4netns", "crun", "uidmap"} <= {*_packages(plan(rootless, frozenset()))}
    assert _packages(plan(rootless, _but("pasta", "slirp4netns"))) == ["passt"]  # Podman 5 is there
    assert _packages(plan(rootless, _but("pasta", "slirp4netns", "podman>=5"))) == ["slirp4netns", "passt"]


def test_gvisor_is_built_unless_there_is_one_that_knows_systrap():
    assert plan(named("gvisor"), _but("bin/runsc", "runsc:systrap", "go")).built == ("gvisor",)
    assert _packages(plan(named("gvisor"), _but("bin/runsc", "runsc:systrap", "go"))) == ["golang-go"]
    assert plan(named("gvisor"), _but("bin/runsc", "go")).built == ()
    assert _packages(plan(named("gvisor"), _but("bin/runsc", "go"))) == []


def test_gvisors_shim_is_built_for_containerd_unless_one_is_there():
    lacking = ("containerd-shim-runsc-v1", "bin/containerd-shim-runsc-v1", "ctr")
    assert plan(named("containerd-gvisor"), _but(*lacking)).built == ("containerd-gvisor",)
    assert _packages(plan(named("containerd-gvisor"), _but(*lacking))) == ["containerd"]
    assert plan(named("containerd-gvisor"), _but("bin/containerd-shim-runsc-v1")).built == ()


def test_everything_is_all_but_what_tare_itself_is_built_with():
    assert named("everything") == EVERYTHING
    assert not {"clone", DEVELOPMENT} & {*EVERYTHING}
    assert "Rscript" in {word for need in COMPONENTS[DEVELOPMENT].needs for word in need.instead}


def test_a_wrong_name_is_told_with_the_nearest():
    with pytest.raises(UsageError, match="'gvisr' to set up") as raised:
        named("docker,gvisr")
    assert "gvisor" in raised.value.fix


def test_what_a_release_lacks_is_left_out_of_everything_and_an_error_where_it_was_named():
    chosen = plan(EVERYTHING, _but("incus", "podman", "lxd"))
    kept, left_out = without(chosen, {"incus"}, ["everything"])
    assert left_out == ("incus",)
    assert _packages(kept) == ["podman", "lxd"]
    assert "incus" not in kept.components
    with pytest.raises(UsageError, match="no package incus, which incus needs") as raised:
        without(chosen, {"incus"}, ["incus"])
    assert "--with lxd" in raised.value.fix


def test_without_what_native_needs_nothing_can_be_weighed():
    with pytest.raises(UsageError, match="no package mmdebstrap, which native needs"):
        without(plan(EVERYTHING, _but("mmdebstrap")), {"mmdebstrap"}, ["everything"])


def test_components_are_called_as_the_platforms_that_they_are_for():
    names = {*platform_registry.all_platforms(), *platform_registry.families()}
    assert set(COMPONENTS) - names == {"clone", "development", "footprint"}


def test_the_rust_is_that_of_the_agent():
    assert tomllib.loads((HERE / "agent" / "Cargo.toml").read_text())["package"]["rust-version"] == RUST


def test_what_apt_knows():
    candidates = apt.candidates((CAPTURED / "policy-debian12.txt").read_text())
    assert candidates == {"tar", "runsc", "mmdebstrap"}  # incus was asked for too
    assert apt.candidates("a:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n") == frozenset()


def test_how_much_apt_would_fetch():
    printed = (CAPTURED / "assume-no-debian12.txt").read_text()
    assert apt.parse_size(printed) == "27 packages, 22.1 MB to fetch, 63.9 MB on the disk"
    assert apt.parse_size("E: Unable to locate package incus\n") == ""


@pytest.mark.parametrize(
    ("os_release", "apt_there", "by_apt"),
    [
        ((CAPTURED / "os-release-debian12.txt").read_text(), True, True),
        ((CAPTURED / "os-release-fedora42.txt").read_text(), True, False),  # which has a package of apt
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\n', True, True),
        ("ID=debian\n", False, False),
    ],
)
def test_what_is_like_debian_is_installed_by_apt_where_there_is_apt(os_release, apt_there, by_apt, monkeypatch):
    monkeypatch.setattr(host_packages.processes, "find", lambda program: program if apt_there else None)
    monkeypatch.setattr(distribution, "here", lambda: distribution.parse(os_release))
    assert host_packages.has_apt() == by_apt


def test_packages_that_are_made_newer_are_counted_apart():
    printed = (CAPTURED / "assume-no-debian12.txt").read_text().replace("0 upgraded, 27", "2 upgraded, 27")
    assert apt.parse_size(printed).startswith("29 packages (2 of them newer than what is here), 22.1 MB")


@pytest.mark.parametrize("what", ["size", "install"])
def test_nothing_of_the_hosts_is_removed_for_it(what, monkeypatch):
    """As Debian 12's apt printed it, asked for sysvinit-core: `--no-remove` makes it refuse."""
    printed = (CAPTURED / "would-remove-debian12.txt").read_bytes()
    commands = []

    def run(argv, **_):
        commands.append(argv)
        return processes.Finished(tuple(argv), 100, printed, b"", 1)

    monkeypatch.setattr(apt.processes, "run", run)
    monkeypatch.setattr(apt.os, "geteuid", lambda: 0)
    with pytest.raises(HostError, match=r"that would remove at-spi2-core dbus-user-session .* systemd-sysv"):
        apt.size(["sysvinit-core"]) if what == "size" else apt.install(["sysvinit-core"], print)
    [argv] = commands  # and no second try, with lists that are read anew
    assert "--no-remove" in argv


def test_versions_of_go():
    assert gvisor_build.parse_version("go1.19.8\n") == (1, 19, 8)
    assert gvisor_build.parse_version("go1.26.3 X:nodwarf5\n") == (1, 26, 3)
    assert gvisor_build.parse_version("devel\n") == ()


def test_versions_of_programs_count_as_numbers(tmp_path, monkeypatch):
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\necho 'tool 1.9.2 (abc 2026-01-01)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert host_packages.present(["tool", "tool>=1.9", "tool>=1.10", "no-such-tool>=1.0", "/nowhere"]) == {
        "tool",
        "tool>=1.9",
    }


@pytest.fixture
def bare(monkeypatch):
    """A host that lacks everything; returns what was said, and which commands apt was given."""
    progress, ran = [], []
    monkeypatch.setattr(host_packages, "present", lambda _words: frozenset())
    monkeypatch.setattr(apt, "unknown", lambda _packages: frozenset())
    monkeypatch.setattr(apt, "size", lambda _packages: "1 MB to fetch, 2 MB on the disk")
    monkeypatch.setattr(apt, "install", lambda packages, _tell: ran.append(sorted(packages)))
    monkeypatch.setattr(host_packages, "has_apt", lambda: True)
    return progress, ran


@pytest.fixture
def fedora(bare, monkeypatch):
    """The same on a distribution without apt."""
    monkeypatch.setattr(host_packages, "has_apt", lambda: False)
    release = (CAPTURED / "os-release-fedora42.txt").read_text()
    monkeypatch.setattr(distribution, "here", lambda: distribution.parse(release))
    return bare


def test_another_distribution_is_told_its_own_names_and_nothing_is_installed(fedora):
    progress, ran = fedora
    with pytest.raises(HostError, match=r"Fedora Linux 42 \(Server Edition\) has no apt") as raised:
        carry_out.set_up("podman-rootless,lxd,charliecloud,uml", dry_run=False, tell=progress.append)
    packages = {line.split("  ")[1] for line in progress if line.startswith("  ")}
    assert {"podman", "shadow-utils", "charliecloud", "what has lxd", "what has linux.uml"} <= packages
    assert not {"uidmap", "charliecloud-runtime", "lxd", "user-mode-linux"} & packages
    assert raised.value.fix.startswith("by hand, which was never tried: dnf install --setopt=install_weak_deps=False ")
    assert "apt" not in raised.value.fix.split()
    assert "tare image import" in "\n".join(progress)  # in place of mmdebstrap
    assert ran == []


def test_a_dry_run_there_says_the_command_and_that_it_was_never_tried(fedora, monkeypatch):
    progress, _ = fedora
    carry_out.set_up("runc", dry_run=True, tell=progress.append)
    [command] = [line for line in progress if "by hand, which was never tried: dnf install" in line]
    assert command.endswith("iproute iptables-nft e2fsprogs util-linux tar runc")
    monkeypatch.setattr(distribution, "here", lambda: {"ID": "rocky", "ID_LIKE": "rhel centos fedora"})
    carry_out.set_up("lxc", dry_run=True, tell=progress.append)
    assert any(line.endswith("lxc (some of these are in EPEL)") for line in progress)


def test_one_that_is_not_known_is_told_the_programs(fedora, monkeypatch):
    progress, _ = fedora
    monkeypatch.setattr(distribution, "here", lambda: {"ID": "nixos", "NAME": "NixOS"})
    with pytest.raises(HostError, match="NixOS has no apt") as raised:
        carry_out.set_up("docker", dry_run=False, tell=progress.append)
    assert any(line.startswith("  what has dockerd  ") for line in progress)
    assert raised.value.fix.endswith("install what is listed")


def test_what_is_there_needs_no_apt(fedora, monkeypatch):
    progress, _ = fedora
    monkeypatch.setattr(host_packages, "present", frozenset)
    carry_out.set_up("docker", dry_run=False, tell=progress.append)
    assert progress[0] == "all there for native, docker"


def test_a_dry_run_says_it_all_and_does_nothing(bare, monkeypatch):
    progress, ran = bare
    monkeypatch.setattr(gvisor_build, "build", lambda _tell: ran.append("gvisor"))
    carry_out.set_up("gvisor", dry_run=True, tell=progress.append)
    assert ran == []
    assert progress[0] == "missing for native, gvisor:"
    assert "with what they depend on: 1 MB to fetch, 2 MB on the disk" in progress
    carry_out.set_up("gvisor", dry_run=False, tell=progress.append)
    assert ran[0] == sorted(_packages(plan(("gvisor",), frozenset())))
    assert ran[1:] == ["gvisor"]


def test_what_is_asked_for_by_name_with_a_space_before_it_is_not_left_out(bare, monkeypatch):
    progress, ran = bare
    monkeypatch.setattr(apt, "unknown", lambda packages: {"lxd"} & set(packages))
    with pytest.raises(UsageError, match="this release has no package lxd, which lxd needs"):
        carry_out.set_up("docker, lxd", dry_run=False, tell=progress.append)
    assert ran == []


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_a_release_has_in_another_package_is_no_package_of_it(dry_run, bare, monkeypatch):
    """virtiofsd: in Debian 12 a part of QEMU's package."""
    progress, ran = bare
    monkeypatch.setattr(apt, "unknown", lambda packages: frozenset(packages) & {"virtiofsd"})
    carry_out.set_up("qemu", dry_run=dry_run, tell=progress.append)
    assert not any("virtiofsd" in line for line in progress)
    assert "with what they depend on: 1 MB to fetch, 2 MB on the disk" in progress
    assert ran == ([] if dry_run else [sorted({*_packages(plan(("qemu",), frozenset()))} - {"virtiofsd"})])


def test_places_of_programs_are_those_that_platforms_look_at():
    assert (vm.PROGRAMS, virtiofs.PLACES, libvirtd.LXC_PLACES) == (QEMU, VIRTIOFSD, LIBVIRT_LXC)


def test_lists_that_were_never_read_condemn_nothing(bare, monkeypatch):
    progress, _ = bare
    monkeypatch.setattr(apt, "unknown", frozenset)
    carry_out.set_up("runc", dry_run=True, tell=progress.append)
    assert any(line.startswith("apt's lists do not have") and "runc" in line for line in progress)
