import contextlib
import hashlib
import json
import os
import signal
import tarfile
import tomllib
from pathlib import Path

import pytest

from tare.contract import suite
from tare.contract.leftovers import left_on_host
from tare.host import state
from tare.host.daemons import activation, containerd_access
from tare.image import image_manifest
from tare.image.forms import oci_archive
from tare.image.image_build import Image
from tare.platforms import platform_registry
from tare.platforms.containerd import too_old
from tare.platforms.parts.engines import containerd_server

#: What `ctr version` of Debian 12 printed.
VERSION = """\
Client:
  Version:  1.6.20~ds1
  Revision: 1.6.20~ds1-1+deb12u3
  Go version: go1.19.8

Server:
  Version:  1.6.21~ds1
  Revision: 1.6.20~ds1-1+deb12u3
  UUID: 5cdfe57a-056b-4c36-bd1f-569d484785c9
"""
#: What `ctr --namespace k8s.io images ls` of Debian 12 printed after an import, with shorter types
#: and digests, and without its last columns.
IMAGES = """\
REF TYPE DIGEST
localhost/tare:f82a44a81956 application/vnd sha256:3cb241c0
localhost/tare:pause application/vnd sha256:fa1bf283
sha256:835721c96d9d3a4703b2e3774c6f9705e348e62ad82577439b07a5e570e2965d application/vnd sha256:3cb241c0
sha256:fa7bfdd1c0ae78117b53f3635241ed3837602f8e052a476101be93e837dc5644 application/vnd sha256:fa1bf283
"""
#: The words of a shim that containerd 1.6 started.
SHIM = [
    "/bin/containerd-shim-runc-v2", "-namespace", "tare", "-id", "tare-ab12cx3", "-address", "/w/containerd.sock", "",
]  # fmt: skip


def _read(archive, name):
    return json.loads(archive.extractfile(name).read())


def _blob(archive, described):
    contents = archive.extractfile(f"blobs/{described['digest'].replace(':', '/')}").read()
    assert hashlib.sha256(contents).hexdigest() == described["digest"].removeprefix("sha256:")
    assert len(contents) == described["size"]
    return contents


def test_the_archive_has_two_images_of_one_layer_and_goes_after_use(tmp_path):
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "true").write_bytes(b"a program")
    image = Image("ab" * 32, root, image_manifest.Manifest(suite="none", recipe_hash="none", packages={}), "0")
    with oci_archive(image, ("localhost/tare:a", ["/bin/true"]), ("localhost/tare:b", ["/bin/sleep"])) as place:
        with tarfile.open(place) as archive:
            assert _read(archive, "oci-layout") == {"imageLayoutVersion": "1.0.0"}
            described = _read(archive, "index.json")["manifests"]
            names = [manifest["annotations"]["io.containerd.image.name"] for manifest in described]
            assert names == ["localhost/tare:a", "localhost/tare:b"]
            images = [json.loads(_blob(archive, manifest)) for manifest in described]
            configs = [json.loads(_blob(archive, manifest["config"])) for manifest in images]
            assert [config["config"]["Cmd"] for config in configs] == [["/bin/true"], ["/bin/sleep"]]
            [layers] = {json.dumps(manifest["layers"]) for manifest in images}
            [layer] = json.loads(layers)
            assert configs[0]["rootfs"]["diff_ids"] == [layer["digest"]]  # it is not compressed
            assert _blob(archive, layer) == (tmp_path / "root.tar").read_bytes()
        kept = place
    assert not kept.exists()


def test_an_image_goes_with_the_digest_that_the_cri_calls_it_by_unless_another_tag_has_it_too():
    tag = "localhost/tare:f82a44a81956"
    digest = "sha256:835721c96d9d3a4703b2e3774c6f9705e348e62ad82577439b07a5e570e2965d"
    assert containerd_access.references(IMAGES, tag) == [tag, digest]
    other = IMAGES.splitlines()[1].replace(tag, "localhost/mine:latest")
    assert containerd_access.references(f"{IMAGES}{other}\n", tag) == [tag]
    assert containerd_access.references(IMAGES, "localhost/tare:0000") == []
    assert containerd_access.references("", tag) == []


def test_a_daemon_of_tares_own_has_its_places_and_the_runtimes(tmp_path, monkeypatch):
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    config = tomllib.loads(containerd_server.configuration(Path("/w"), "/w/containerd.sock"))
    assert (config["version"], config["root"], config["state"]) == (2, "/w/root", "/w/state")
    assert config["grpc"]["address"] == "/w/containerd.sock"
    runtimes = config["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["runtimes"]
    assert {name: runtime["runtime_type"] for name, runtime in runtimes.items()} == {
        "runc": "io.containerd.runc.v2",
        "crun": "io.containerd.runc.v2",
        "runsc": "io.containerd.runsc.v1",
    }
    assert "crun" in runtimes["crun"]["options"]["BinaryName"]


def test_the_version_is_the_daemons_and_not_the_clients():
    assert containerd_server.server_version(VERSION) == "1.6.21~ds1"
    assert containerd_server.server_version("Client:\n  Version:  1.6.20\n") == "unknown"


def test_a_shim_helps_the_container_that_it_was_started_for():
    assert containerd_server.helps(SHIM, "tare-ab12cx3")
    assert not containerd_server.helps(SHIM, "tare-ab12cx")
    assert not containerd_server.helps(["/usr/bin/ctr", "-id", "tare-ab12cx3"], "tare-ab12cx3")


@pytest.mark.parametrize(
    ("runtime", "program"),
    [("runc", "runc-v2"), ("crun", "runc-v2"), ("runsc", "runsc-v1"), ("kata", "kata-v2")],
)
def test_a_shim_is_called_after_its_type(runtime, program):
    assert containerd_server.shim_program(runtime) == f"containerd-shim-{program}"


def test_a_socket_that_nobody_listens_on_is_no_daemon(tmp_path):
    assert not activation.runs(str(tmp_path / "containerd.sock"))


def test_a_daemon_that_cannot_talk_to_gvisors_shim_is_refused_with_its_version():
    refused = too_old("runsc", "1.6.20~ds1")
    assert refused.reason == "gVisor's shim needs containerd 1.7 or newer, and this is 1.6.20~ds1"
    assert "containerd-gvisor-runc" in refused.fix
    assert too_old("runsc", "1.7.24~ds1") is too_old("runsc", "v2.1.5") is too_old("runc", "1.6.20") is None


@pytest.mark.parametrize(
    ("name", "needs", "fix"),
    [
        ("containerd-kata", "containerd-shim-kata-v2", "kata-static"),
        ("containerd-gvisor", "containerd-shim-runsc-v1", "tare setup --with containerd-gvisor"),
    ],
)
def test_a_runtime_whose_shim_is_not_there_is_refused_with_the_fix(monkeypatch, tmp_path, name, needs, fix):
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    monkeypatch.setattr(
        "tare.platforms.containerd.processes.find", lambda program: None if program == needs else f"/usr/bin/{program}"
    )
    [platform] = platform_registry.choose([name])
    answer = platform.detect()
    assert not answer.available
    assert answer.reason == f"{needs} is not installed"
    assert fix in answer.fix
    assert not (state.home() / "journal").exists()  # nothing was started


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.parametrize("name", ["containerd", pytest.param("containerd-cri", marks=pytest.mark.slow)])
def test_of_a_daemon_that_was_killed_nothing_stays_and_the_next_start_has_a_new_one(name):
    [platform] = platform_registry.choose([name])
    with suite.benches(lambda _: None) as bench_of, contextlib.closing(platform):
        platform.detect()
        bench = bench_of(platform)
        platform.prepare(bench.launcher.image)
        others = _shims_sockets()  # Docker's shims listen there too
        running = bench.start()
        label, sockets = running.instance.spec.id, _shims_sockets() - others
        assert left_on_host(label)
        server = containerd_server.SHARED.held()
        assert server.own, "no other containerd runs on a host of its own"
        for pid in server.group().pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert "was ended by signal 9" in str(platform.daemon_failure())
        running.stop()
        assert left_on_host(label) == []
        assert sockets
        assert not _shims_sockets() & sockets
        with bench.fresh() as another:
            assert another.session.execute(["true"], time_limit_s=30).code == 0


def _shims_sockets():
    return {str(path) for path in Path("/run/containerd/s").glob("*")}


def test_what_kata_does_not_keep_of_counting_and_limits_is_in_the_manifest():
    [kata] = platform_registry.choose(["containerd-kata"])
    assert "sandbox_cgroup_only" in " ".join(kata.not_honoured)
    assert platform_registry.choose(["containerd"])[0].not_honoured == ()
