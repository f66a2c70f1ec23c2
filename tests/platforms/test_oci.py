from pathlib import Path

from tare.model import Resources
from tare.platforms.parts.bundles.oci_bundle import bundle_config
from tare.platforms.parts.common.root_rights import CAPABILITIES, MASKED, READ_ONLY

#: As `runc spec` and `crun spec` have it.
NO_DEVICES = {"devices": [{"allow": False, "access": "rwm"}]}


def test_a_bundle_has_the_limits_and_the_group():
    config = bundle_config(
        ["/agent", "serve"],
        Path("/root"),
        Path("/data"),
        Resources((2, 3), 1 << 30),
        "tare/x/box",
        Path("/run/netns/n"),
    )
    assert config["process"]["args"] == ["/agent", "serve"]
    limits = {"RLIMIT_NOFILE": 16_384, "RLIMIT_MEMLOCK": 8 << 20}
    assert config["process"]["rlimits"] == [{"type": name, "soft": n, "hard": n} for name, n in limits.items()]
    assert config["process"]["capabilities"]["bounding"] == list(CAPABILITIES)
    assert config["linux"]["cgroupsPath"] == "/tare/x/box"
    assert config["linux"]["maskedPaths"] == list(MASKED)
    assert config["linux"]["readonlyPaths"] == list(READ_ONLY)
    assert config["linux"]["resources"] == {**NO_DEVICES, "cpu": {"cpus": "2,3"}, "memory": {"limit": 1 << 30}}
    assert {"type": "network", "path": "/run/netns/n"} in config["linux"]["namespaces"]
    assert {mount["destination"] for mount in config["mounts"]} >= {"/proc", "/dev", "/sys", "/data"}


def test_without_a_namespace_to_join_a_bundle_gets_an_empty_one():
    config = bundle_config(["true"], Path("/root"), Path("/data"), Resources((0,), 1 << 30), "tare/x/box", None)
    assert {"type": "network"} in config["linux"]["namespaces"]


def test_a_bundle_has_the_quota_that_instances_are_given():
    resources = Resources((0, 1), 1 << 30, cpu_quota=1.5)
    config = bundle_config(["true"], Path("/root"), Path("/data"), resources, "tare/x/box", None)
    assert config["linux"]["resources"]["cpu"] == {"cpus": "0,1", "quota": 150_000, "period": 100_000}
