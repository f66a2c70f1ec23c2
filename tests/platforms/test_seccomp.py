"""Docker's seccomp profile as a bundle has it: which rules hold for which container."""

import json
from pathlib import Path

import pytest

from tare.model import Resources
from tare.platforms.parts.bundles import seccomp
from tare.platforms.parts.bundles.oci_bundle import bundle_config
from tare.platforms.parts.common.root_rights import CAPABILITIES

FIRST_KERNEL = "6.1.0-40-amd64"


def _allowed(profile):
    return {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}


def test_with_dockers_capabilities_it_is_dockers_default():
    profile = seccomp.docker_profile(CAPABILITIES, "x86_64", FIRST_KERNEL)
    assert (profile["defaultAction"], profile["defaultErrnoRet"]) == ("SCMP_ACT_ERRNO", 1)
    assert profile["architectures"] == ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"]
    allowed = _allowed(profile)
    assert {"read", "chroot", "ptrace", "arch_prctl", "clone"} <= allowed, (
        "CAP_SYS_CHROOT's, a kernel's and Intel's too"
    )
    assert not {"mount", "unshare", "setns", "bpf", "keyctl", "add_key", "reboot"} & allowed
    [clone] = [rule for rule in profile["syscalls"] if "clone" in rule["names"]]
    assert clone["args"][0]["op"] == "SCMP_CMP_MASKED_EQ", "without the flags of namespaces"
    [clone3] = [rule for rule in profile["syscalls"] if "clone3" in rule["names"]]
    assert (clone3["action"], clone3["errnoRet"]) == ("SCMP_ACT_ERRNO", 38), "so that libc falls back to clone"
    assert not any({"includes", "excludes", "comment"} & set(rule) for rule in profile["syscalls"])


def test_what_depends_on_capability_machine_or_kernel_is_worked_out():
    admin = seccomp.docker_profile([*CAPABILITIES, "CAP_SYS_ADMIN"], "x86_64", FIRST_KERNEL)
    assert {"mount", "unshare", "clone3"} <= _allowed(admin)
    assert not any(rule.get("args") and "clone" in rule["names"] for rule in admin["syscalls"])
    arm = seccomp.docker_profile(CAPABILITIES, "aarch64", FIRST_KERNEL)
    assert arm["architectures"][0] == "SCMP_ARCH_AARCH64"
    assert "arch_prctl" not in _allowed(arm)
    assert "arm_fadvise64_64" in _allowed(arm)
    assert "ptrace" not in _allowed(seccomp.docker_profile(CAPABILITIES, "x86_64", "4.4.0"))


@pytest.mark.parametrize("filtered", [True, False])
def test_a_bundle_has_it_only_where_it_is_asked_for(filtered):
    resources = Resources((0,), 1 << 30)
    config = bundle_config(["true"], Path("/r"), Path("/d"), resources, "tare/x", None, filtered=filtered)
    assert ("seccomp" in config["linux"]) == filtered
    assert json.loads(json.dumps(config)) == config
