"""What Docker engines of several versions say, read.

Captured here (`captured/`): Docker 20.10.24 of Debian 12; and, with an image store of containerd's, 26.1.5 of Debian
13, 28.5.2 of Debian's unstable, and a 29 built of the Go module github.com/moby/moby/v2 at v2.0.0-beta.24. Of these
three it is what they answer by version 1.45 of the API, cut to what is read of it: with runtimes that are shims, and
(``remapped``) with ``userns-remap``.

Those of other versions are as published, cut to what is read of them: 28.4 and 29.0 in docker-mailserver's pull request
4606 and zimfarm's issue 1521, 29.7 in kitchen-docker's pull request 479, rootless 20.10 in minikube's 10878, the
versions of 29.0 in docker-etchosts' issue 20; the options of security in moby's pull request 27840.
"""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tare.errors import HostError
from tare.host.daemons.dockerd import api_version
from tare.platforms import docker, gvisor
from tare.platforms.parts.engines import engine
from tare.platforms.parts.engines.layers import stored

CAPTURED = Path(__file__).parent / "captured"
INFO = json.loads((CAPTURED / "docker-20.10-info.json").read_text())
CONTAINER = json.loads((CAPTURED / "docker-20.10-container.json").read_text())
STORES = {
    version: json.loads((CAPTURED / f"docker-{version}-containerd-store.json").read_text())
    for version in ("26.1", "28.5", "29")
}
ID_28 = "2a426fc9f069d3849efbca89c661d41f4ae06687efd35883c32053590538cd91"
CONTAINER_28 = {
    "Id": ID_28,
    "NetworkSettings": {
        "SandboxKey": "/var/run/docker/netns/9528a9bf4462",
        "IPAddress": "172.17.0.2",
        "Networks": {"bridge": {"IPAMConfig": None, "IPAddress": "172.17.0.2"}},
    },
}
#: `NetworkSettings` of 29.7.2 has these four alone.
CONTAINER_29 = {
    "Id": ID_28,
    "ResolvConfPath": f"/var/lib/docker/containers/{ID_28}/resolv.conf",
    "Driver": "overlayfs",
    "NetworkSettings": {
        "SandboxID": "9528a9bf4462ab058779d206bc3072263b4351cb7870305a4d6cac504acff6cb",
        "SandboxKey": "/var/run/docker/netns/9528a9bf4462",
        "Ports": {},
        "Networks": {"bridge": {"IPAMConfig": None, "IPAddress": "172.17.0.2"}},
    },
}
ROOTLESS = {
    "Driver": "overlay2",
    "CgroupDriver": "none",
    "SecurityOptions": ["name=seccomp,profile=default", "name=rootless"],
}
REMAPPED = {
    "Driver": "overlay2",
    "CgroupDriver": "systemd",
    "DockerRootDir": "/var/lib/docker/165536.165536",
    "SecurityOptions": ["name=apparmor", "name=seccomp,profile=builtin", "name=userns", "name=cgroupns"],
}


@pytest.mark.parametrize(
    "container",
    [CONTAINER, CONTAINER_28, CONTAINER_29, *(answers["container"] for answers in STORES.values())],
    ids=["20.10", "28.4", "29.7", *STORES],
)
def test_the_address_is_where_each_version_has_it(container):
    assert engine.address(container) == "172.17.0.2"


def test_without_a_network_of_its_own_there_is_no_address():
    for networks in ({"host": {"IPAddress": ""}}, {"none": None}, {}, None):
        assert engine.address({"NetworkSettings": {"Networks": networks}}) == ""
        assert engine.address({"NetworkSettings": {"Networks": networks, "IPAddress": ""}}) == ""


def test_what_a_daemon_leaves_of_a_container():
    record, mounts = engine.leftovers(CONTAINER)
    assert record == Path("/var/lib/docker/containers") / CONTAINER["Id"]
    assert mounts[0] == CONTAINER["GraphDriver"]["Data"]["MergedDir"]
    assert [mount.rpartition("/docker/netns/")[0] for mount in mounts[1:2]] == ["/run"]
    assert mounts[2] == f"{record}/mounts/shm"


def test_what_a_daemon_leaves_where_containerd_keeps_the_images():
    record, mounts = engine.leftovers(CONTAINER_29)
    assert mounts[0] == f"/var/lib/docker/rootfs/overlayfs/{ID_28}"
    assert record == Path("/var/lib/docker/containers") / ID_28


@pytest.mark.parametrize("version", STORES)
def test_what_each_leaves_where_containerd_keeps_the_images(version):
    container = STORES[version]["container"]
    record, mounts = engine.leftovers(container)
    assert record == Path("/var/lib/docker/containers") / container["Id"]
    assert mounts[0] == f"/var/lib/docker/rootfs/overlayfs/{container['Id']}"
    assert mounts[1].startswith("/run/docker/netns/")


@pytest.mark.parametrize("version", STORES)
def test_the_facts_of_each_tell_its_image_store_and_whose_users_there_are(version):
    facts = engine.details(STORES[version]["info"])
    assert (facts["storage"], facts["image store"], facts["users"]) == ("overlayfs", "containerd", "the host's")
    remapped = STORES[version]["remapped"]
    facts = engine.details(remapped)  # for these an engine has its own image store
    assert (facts["storage"], facts["image store"]) == ("overlay2", "the daemon's own")
    assert facts["users"] == "remapped (userns-remap)"
    assert engine.remapped(remapped) == (100000, 100000)


@pytest.mark.parametrize(
    ("version", "api", "parts"),
    [
        ("26.1", "1.45 (the daemon's: 1.24 to 1.45)", "containerd 1.7.24~ds1, runc 1.3.3"),
        ("28.5", "1.45 (the daemon's: 1.24 to 1.51)", "containerd 2.1.9+unknown, runc 1.3.3"),
        ("29", "1.45 (the daemon's: 1.40 to 1.56)", "containerd 2.1.9+unknown, runc 1.3.3"),
    ],
)
def test_the_facts_tell_the_api_that_is_spoken_and_what_starts_the_containers(version, api, parts):
    assert engine.versions(STORES[version]["version"], "1.45") == {"api": api, "parts": parts}


def test_the_facts_of_a_daemon():
    assert engine.details(INFO) == {
        "storage": "overlay2",
        "image store": "the daemon's own",
        "cgroup driver": "cgroupfs",
        "security": "seccomp (default)",
        "users": "the host's",
    }
    assert engine.details(ROOTLESS)["users"] == "a rootless daemon's"
    assert engine.details(REMAPPED)["users"] == "remapped (userns-remap)"
    assert engine.details(REMAPPED)["security"] == "apparmor, seccomp (builtin), cgroupns"
    store = {"Driver": "overlayfs", "DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]]}
    assert engine.details(store)["image store"] == "containerd"


def test_whose_ids_a_containers_root_has():
    assert engine.remapped(REMAPPED) == (165536, 165536)
    assert engine.remapped(INFO) is None
    assert engine.remapped(ROOTLESS) is None


def test_the_image_of_a_containerd_store_is_believed_in_its_size():
    # Its layers are containerd's, and the engine does not say where.
    form = stored("tare:0", {"Id": "sha256:0", "Size": 5_000_000, "Storage": {"RootFS": {"Snapshot": {}}}}, ["runc"])
    assert (form.disk_bytes, form.files) == (5_000_000, ())


@pytest.mark.parametrize("version", STORES)
def test_an_image_of_a_containerd_store_takes_what_is_packed_and_what_is_unpacked(version):
    """The program in it has 2,035,585 bytes; 26 and 28 say of the image that it takes 1.2 MB."""
    answers = STORES[version]
    form = stored("tare:0", engine.image(answers["image"], answers["images"]), ["runc"])
    assert (form.disk_bytes, form.files) == (answers["images"][0]["Size"], ())
    assert form.disk_bytes > 3_000_000


def test_of_a_list_without_the_image_its_size_is_not_taken():
    other = {"Id": "sha256:1", "Size": 7}
    assert engine.image({"Id": "sha256:0", "Size": 5}, [other])["Size"] == 5
    assert engine.image({"Id": "sha256:0", "Size": 5}, [])["Size"] == 5


# Runtimes


def test_the_runtimes_of_a_daemon():
    assert engine.runtime(INFO, "runc", {}).name == "runc"
    crun = engine.runtime(INFO, "crun", {})
    assert str(crun) == "crun (/var/lib/tare/bin/crun-without-v2)", "the script that runs crun is crun"
    assert engine.runtime(INFO, "runsc", {}).name == "runsc"
    assert engine.runtime(INFO, "runsc", {"platform": "ptrace"}).name == "runsc-ptrace"
    assert engine.runtime(INFO, "runsc", {"network": "host"}).name == "runsc-host"
    assert engine.runtime(INFO, "runsc", {"platform": "kvm"}) is None
    assert engine.runtime(INFO, "kata-runtime", {}) is None


@pytest.mark.parametrize(
    ("runtimes", "name", "program"),
    [
        # As gVisor's documentation and its apt package's `runsc install` have it, and a shim of containerd's is shown.
        ({"runsc": {"path": "/usr/local/bin/runsc", "runtimeArgs": []}}, "runsc", "/usr/local/bin/runsc"),
        ({"runsc": {"path": "/usr/bin/runsc"}}, "runsc", "/usr/bin/runsc"),
        ({"runsc": {}}, "runsc", ""),
        (
            {"gvisor": {"path": "/opt/gvisor/runsc", "runtimeArgs": ["--debug", "--platform", "systrap"]}},
            "gvisor",
            "/opt/gvisor/runsc",
        ),
        (
            {"a": {"path": "runsc"}, "runsc": {"path": "/usr/bin/runsc", "status": {"x": "{}"}}},
            "runsc",
            "/usr/bin/runsc",
        ),
    ],
)
def test_gvisor_is_known_by_what_it_runs_and_not_by_its_name(runtimes, name, program):
    chosen = engine.runtime({"Runtimes": runtimes}, "runsc", {})
    assert (chosen.name, chosen.path) == (name, program)


@pytest.mark.parametrize("version", STORES)
def test_of_a_shim_a_daemon_tells_the_name_alone(version):
    """Its settings have ``gv`` as gVisor's shim with a file of options, ``quick`` as a shim's path."""
    runtimes = {runtime.name: runtime for runtime in engine.runtimes(STORES[version]["info"])}
    assert str(runtimes["gv"]) == "gv (a shim, of which the daemon tells no options)"
    assert (runtimes["gv"].program, runtimes["quick"].program) == ("gv", "quick")
    assert str(runtimes["runc"]) == "runc"


@pytest.mark.parametrize("args", [["--platform=kvm"], ["-platform", "kvm"], ["--network=host"], ["--network", "none"]])
def test_a_runsc_with_other_options_is_no_plain_runsc(args):
    info = {"Runtimes": {"runsc": {"path": "/usr/bin/runsc", "runtimeArgs": args}}}
    assert engine.runtime(info, "runsc", {}) is None


def test_a_runsc_that_traps_by_ptrace_where_it_is_not_told_is_no_systrap():
    """Debian 12's own, of 2022: what `runsc flags` prints, captured."""
    captured = Path(__file__).parent / "captured"
    old, new = (
        gvisor.read_default_trap((captured / f"runsc-{version}-flags.txt").read_text())
        for version in ("20221219", "20260905")
    )
    assert (old, new) == ("ptrace", "systrap")
    info = {"Runtimes": {"runsc": {"path": "/usr/bin/runsc"}}}
    assert engine.runtime(info, "runsc", {}, lambda path: old) is None
    assert engine.runtime(info, "runsc", {"platform": "ptrace"}, lambda path: old).path == "/usr/bin/runsc"
    explicit = {"Runtimes": {"runsc": {"path": "/usr/bin/runsc", "runtimeArgs": ["--platform=systrap"]}}}
    assert engine.runtime(explicit, "runsc", {}, lambda path: old).name == "runsc"


@pytest.mark.parametrize(("name", "slow"), [("docker-gvisor", True), ("docker-gvisor-ptrace", False)])
def test_only_systrap_has_the_remark_on_its_fast_path(monkeypatch, name, slow):
    """A runsc that traps by ptrace by default has no word of it in its sandbox's command line."""
    monkeypatch.setattr(gvisor.process_table, "argv", lambda pid: ["runsc-sandbox", "boot", "--cpu-num", "1"])
    [platform] = [platform for platform in docker.PLATFORMS if platform.name == name]
    observed = platform.observed(SimpleNamespace(host_processes=lambda: [7]), lambda path: "")
    assert bool(observed.remarks) is slow


def test_a_user_s_crun_needs_no_script():
    info = {"Runtimes": {"fast": {"path": "/usr/bin/crun"}, "runc": {"path": "runc"}}}
    assert str(engine.runtime(info, "crun", {})) == "fast (/usr/bin/crun)"


# Versions of the API


@pytest.mark.parametrize(
    ("engine_version", "least", "most", "chosen"),
    [
        ("20.10.24+dfsg1", "1.12", "1.41", "1.41"),
        ("26.1.0", "1.24", "1.45", "1.45"),
        ("28.5.2", "1.24", "1.51", "1.45"),
        ("29.0.0", "1.44", "1.52", "1.45"),
    ],
)
def test_the_newest_version_that_both_know(engine_version, least, most, chosen):
    daemon = {"Version": engine_version, "MinAPIVersion": least, "ApiVersion": most}
    assert api_version(daemon, "1.45", "1.24") == chosen


def test_an_engine_that_is_too_new_or_too_old_is_said_in_one_line_with_the_fix():
    with pytest.raises(
        HostError, match=r"engine 29.0.0\) is too new: .* from version 1.44 on, .* up to 1.43"
    ) as refused:
        api_version({"Version": "29.0.0", "MinAPIVersion": "1.44", "ApiVersion": "1.52"}, "1.43", "1.24")
    assert "pip install --upgrade docker" in refused.value.fix
    with pytest.raises(HostError, match=r"engine 1.10.3\) is too old: it speaks its API up to version 1.22") as refused:
        api_version({"Version": "1.10.3", "ApiVersion": "1.22"}, "1.45", "1.24")
    assert "newer Docker engine" in refused.value.fix


@pytest.mark.parametrize(
    ("version", "ends"),
    [
        ("20.10.24+dfsg1", "by other links"),
        ("26.1.5+dfsg1", "by other links"),
        ("dev", "by other links"),
        ("28.1.1", "as Docker 28 and newer do"),  # does not start with the setting
        ("28.5.2", 'lets it through, but not with "firewall-backend": "nftables")'),
        ("29.0.0", 'lets it through, but not with "firewall-backend": "nftables")'),
    ],
)
def test_only_a_daemon_that_knows_the_setting_is_said_to_be_told(version, ends):
    assert engine.unpinged({"ServerVersion": version}).endswith(ends)
