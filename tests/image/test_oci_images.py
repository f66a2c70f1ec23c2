"""Container images as files: what comes out of a layout or an archive, and what is refused of a hostile one."""

import gzip
import hashlib
import io
import json
import os
import tarfile

import pytest
import zstandard

from image.tars import info as _info
from image.tars import tar as _tar
from tare.errors import ImageError
from tare.host.filesystems import archives
from tare.image import container_images, own
from tare.model import ImageSource


def _folder(name, **fields):
    return _info(name, type=tarfile.DIRTYPE, **fields)


def _link(name, to, kind=tarfile.SYMTYPE):
    return _info(name, type=kind, linkname=to)


def _sha(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def layout(tmp_path):
    """Writes an OCI layout of these layers (plain tars), and returns its folder."""
    place = tmp_path / "image"

    def blob(data, **fields):
        (place / "blobs/sha256").mkdir(parents=True, exist_ok=True)
        (place / "blobs/sha256" / _sha(data)).write_bytes(data)
        return {"digest": f"sha256:{_sha(data)}", "size": len(data), **fields}

    def write(*layers, pack=gzip.compress, config=None, tags=("latest",), diff_ids=None, arch=None):
        machine = arch or container_images.ARCHITECTURES.get(os.uname().machine, os.uname().machine)
        contents = {
            "architecture": machine,
            "os": "linux",
            "config": config or {},
            "rootfs": {"type": "layers", "diff_ids": diff_ids or [f"sha256:{_sha(layer)}" for layer in layers]},
        }
        listed = []
        for tag in tags:
            described = blob(json.dumps({**contents, "comment": tag}).encode())
            manifest = {"config": described, "layers": [blob(pack(layer)) for layer in layers]}
            listed.append(
                blob(
                    json.dumps(manifest).encode(),
                    mediaType="application/vnd.oci.image.manifest.v1+json",
                    annotations={"org.opencontainers.image.ref.name": tag},
                )
            )
        (place / "index.json").write_text(json.dumps({"manifests": listed}))
        return place

    return write


def _root(tmp_path, place, tag=None):
    root = tmp_path / "root"
    root.mkdir()
    container_images.unpack(place, container_images.read(place, tag), root)
    return root


LOWER = (_folder("etc"), _info("etc/keep"), _info("etc/gone"), _folder("old"), _info("old/a"), _info("kind"))


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress, bytes], ids=["gzip", "zstd", "plain"])
def test_layers_come_out_over_each_other_with_whiteouts_whatever_their_compression(tmp_path, layout, pack):
    upper = _tar(
        _info("etc/.wh.gone"), _info("old/new"), _info("old/.wh..wh..opq"), _folder("kind"), _info("kind/file"),
        _link("run", "/var/run"), _info("deep/below/it", mode=0o4755),
    )  # fmt: skip
    root = _root(tmp_path, layout(_tar(*LOWER), upper, pack=pack))
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*")) == [
        "deep", "deep/below", "deep/below/it", "etc", "etc/keep", "kind", "kind/file", "old", "old/new", "run",
    ]  # fmt: skip
    assert (root / "run").readlink().as_posix() == "/var/run"
    assert (root / "deep/below/it").stat().st_mode & 0o7777 == 0o4755


def test_a_tar_without_its_end_is_whole_as_umoci_writes_it(tmp_path, layout):
    short = _tar(_info("a"))[: 512 + 5]
    assert (_root(tmp_path, layout(short)) / "a").read_text() == "hello"


def test_an_archive_is_read_as_its_layout(tmp_path, layout):
    place = layout(_tar(_info("a")), config={"Entrypoint": ["/a"], "Cmd": ["-x"], "Env": ["B=c=d"], "User": "me"})
    packed = tmp_path / "image.tar"
    with tarfile.open(packed, "w") as tar:
        tar.add(place, arcname=".")
    image = container_images.read(packed)
    assert image == container_images.read(place)
    how = image.application
    assert (how.entrypoint, how.command, how.env, how.user, how.directory) == (
        ("/a",),
        ("-x",),
        {"B": "c=d"},
        "me",
        "/",
    )
    assert (_root(tmp_path, packed) / "a").read_text() == "hello"


def test_what_docker_saved_is_read(tmp_path):
    layer = _tar(_info("a"))
    machine = container_images.ARCHITECTURES.get(os.uname().machine, os.uname().machine)
    rootfs = {"type": "layers", "diff_ids": [f"sha256:{_sha(layer)}"]}
    config = json.dumps({"architecture": machine, "os": "linux", "rootfs": rootfs}).encode()
    saved = [{"Config": "c.json", "RepoTags": ["web:1"], "Layers": ["l/layer.tar"]}]
    packed = tmp_path / "saved.tar"
    with tarfile.open(packed, "w") as tar:
        for name, data in (("c.json", config), ("l/layer.tar", layer), ("manifest.json", json.dumps(saved).encode())):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    assert container_images.read(packed, "web:1").digests == {"config": _sha(config), "layer 1": _sha(layer)}
    assert (_root(tmp_path, packed) / "a").read_text() == "hello"
    with pytest.raises(ImageError, match="0 such images: web:1"):
        container_images.read(packed, "web:2")


def test_the_image_is_chosen_by_its_tag(layout):
    place = layout(_tar(_info("a")), tags=("one", "two"))
    assert container_images.read(place, "one").digest != container_images.read(place, "two").digest
    with pytest.raises(ImageError, match=r"2 images: it has one, two"):
        container_images.read(place)
    with pytest.raises(ImageError, match=r"no image 'three': it has one, two"):
        container_images.read(place, "three")


@pytest.mark.parametrize(
    "infos",
    [
        [_info("../out")],
        [_info("/out")],
        [_link("a", ".."), _info("a/out")],
        [_link("a", "/"), _info("a/out")],
        [_link("a", "../out", tarfile.LNKTYPE)],
        [_link("b", ".."), _link("a", "b/out", tarfile.LNKTYPE)],
        [_info("../.wh.out")],
        [_info(".wh...")],
        [_info(".wh..")],
        [_info(".wh.")],
        [_info("disk", type=tarfile.BLKTYPE, devmajor=8, devminor=0)],
        [_info("mem", type=tarfile.CHRTYPE, devmajor=1, devminor=1)],
        [_info("pipe", type=tarfile.FIFOTYPE)],
        [_info("a", uid=1 << 20)],
        [_info("a", pax_headers={"SCHILY.xattr.trusted.overlay.opaque": "y"})],
    ],
    ids=lambda infos: ",".join(f"{info.name}>{info.linkname}" if info.linkname else info.name for info in infos),
)
def test_a_hostile_layer_is_refused_and_reaches_nothing_outside(tmp_path, layout, infos):
    outside = tmp_path / "out"
    outside.write_text("mine")
    with pytest.raises(ImageError, match="cannot be unpacked"):
        _root(tmp_path, layout(_tar(*infos)))
    assert outside.read_text() == "mine"


def test_a_later_layer_is_not_led_out_by_a_link_of_an_earlier_one(tmp_path, layout):
    outside = tmp_path / "out"
    outside.mkdir()
    (outside / "file").write_text("mine")
    for later in ([_info("way/file")], [_info("way/.wh.file")], [_info("way/.wh..wh..opq")]):
        with pytest.raises(ImageError, match="way"):
            _root(tmp_path, layout(_tar(_link("way", str(outside))), _tar(*later)))
        (tmp_path / "root/way").unlink()
        (tmp_path / "root").rmdir()
    assert (outside / "file").read_text() == "mine"


def test_other_contents_than_the_digests_say_are_refused(tmp_path, layout):
    layer = _tar(_info("a"))
    with pytest.raises(ImageError, match="other contents than its digest"):
        _root(tmp_path, layout(layer, diff_ids=[f"sha256:{'0' * 64}"]))
    place = layout(layer)
    config = container_images.read(place).digest
    (place / "blobs/sha256" / config).write_text("{}")
    with pytest.raises(ImageError, match="has other contents"):
        container_images.read(place)


def test_a_blob_that_is_a_link_out_of_the_layout_is_not_read(tmp_path, layout):
    place = layout(_tar(_info("a")))
    blob = place / "blobs/sha256" / container_images.read(place).digest
    moved = tmp_path / "moved"
    blob.rename(moved)
    blob.symlink_to(moved)
    with pytest.raises(ImageError, match="has no file blobs/sha256"):
        container_images.read(place)


def test_more_than_the_bound_is_refused_while_it_is_unpacked(tmp_path, layout, monkeypatch):
    place = layout(_tar(_info("a"), data=bytes(1 << 20)))
    monkeypatch.setattr(container_images, "MAX_BYTES", 1 << 19)
    with pytest.raises(ImageError, match="unpacks to more than"):
        _root(tmp_path, place)


@pytest.mark.parametrize("broken", [b"", b"\x1f\x8bnot gzip at all", b"\x28\xb5\x2f\xfdnor zstd", b"x" * 600])
def test_a_damaged_layer_is_said_to_be_that(tmp_path, layout, broken):
    with pytest.raises(ImageError):
        _root(tmp_path, layout(_tar(_info("a")), pack=lambda _: broken))


def test_what_is_no_image_or_another_machines_is_refused(tmp_path, layout):
    with pytest.raises(ImageError, match="for linux on riscv64"):
        container_images.read(layout(_tar(_info("a")), arch="riscv64"))
    (tmp_path / "file").write_text("hello")
    with pytest.raises(ImageError, match="is no image"):
        container_images.read(tmp_path / "file")
    with pytest.raises(ImageError, match=r"neither index\.json nor manifest\.json"):
        container_images.read(tmp_path)
    (tmp_path / "index.json").write_text('{"manifests": 3}')
    with pytest.raises(ImageError, match=r"index\.json of the image cannot be read: manifests"):
        container_images.read(tmp_path)


def test_a_header_that_wants_a_terabyte_of_memory_does_not_get_it(tmp_path):
    header = _info("much", type=tarfile.XHDTYPE, size=1 << 40)
    (tmp_path / "image.tar").write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(2048))
    with pytest.raises(ImageError, match="at once"):
        container_images.read(tmp_path / "image.tar")


@pytest.mark.parametrize("path", ["usr", "usr/local", "usr/local/bin", "etc", "proc", "dev", "data"])
def test_the_agent_is_not_put_through_a_link_of_the_images(tmp_path, path):
    outside = tmp_path / "out"
    outside.mkdir()
    agent, root = tmp_path / "agent", tmp_path / "root"
    agent.write_bytes(b"agent")
    (root / path).parent.mkdir(parents=True)
    (root / path).symlink_to(outside)
    with pytest.raises(ImageError, match=f"/{path} of the image is no folder"):
        own.add_agent(root, agent, "0" * 64)
    assert not list(outside.iterdir())


def test_a_root_with_nothing_in_it_gets_what_every_instance_has(tmp_path):
    agent, root = tmp_path / "agent", tmp_path / "root"
    agent.write_bytes(b"agent")
    (root / "etc").mkdir(parents=True)
    (root / "etc/tare-image").symlink_to(tmp_path / "elsewhere")
    own.add_agent(root, agent, "0" * 64)
    assert (root / "usr/local/bin/tare-agent").stat().st_mode & 0o777 == 0o755
    assert (root / "usr/local/bin/true").readlink().as_posix() == "tare-agent"
    assert (root / "etc/tare-image").read_text() == f"{'0' * 64}\n"
    assert not (tmp_path / "elsewhere").exists()
    assert {"data", "dev", "proc", "sys", "run", "tmp"} <= {entry.name for entry in root.iterdir()}
    (root / "bin").mkdir()
    (root / "bin/true").write_text("")
    (root / "usr/local/bin/true").unlink()
    own.add_agent(root, agent, "0" * 64)
    assert not (root / "usr/local/bin/true").exists()


def test_a_layer_is_bounded_in_its_members(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    with pytest.raises(tarfile.ReadError, match="more than 3 members"):
        archives.unpack_layer(io.BytesIO(_tar(*(_folder(f"d{n}") for n in range(4)))), tmp_path, 1 << 20)


REFERENCE = "docker://registry.example/nothing:stable"
#: What skopeo 1.9 prints for a name that a registry has not.
UNKNOWN = (
    'time="2026-11-23T07:58:32Z" level=fatal msg="initializing source docker://registry.example/nothing:stable: '
    'reading manifest stable in registry.example/nothing: manifest unknown: manifest unknown"\n'
)


@pytest.fixture
def fetching(tmp_path, monkeypatch):
    """A skopeo that does what a script says, and nothing else on the PATH; counts its calls in ``calls``."""
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    tools = tmp_path / "tools"
    tools.mkdir()
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")

    def script(text):
        place = tools / "skopeo"
        place.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\n{text}')
        place.chmod(0o755)

    return script


def test_a_registrys_image_is_fetched_once(tmp_path, layout, fetching):
    place = layout(_tar(_info("a")), config={"Cmd": ["/a"]})
    fetching(f'to=${{4#oci:}}; cp -r {place}/. "${{to%:image}}"')
    messages = []
    for _ in range(2):
        assert container_images.read(own.fetched(ImageSource(REFERENCE), messages.append)).application.command == (
            "/a",
        )
    assert (tmp_path / "calls").read_text().count("copy --quiet docker://registry.example/nothing:stable oci:") == 1
    assert messages == [f"fetching {REFERENCE}"]


def test_what_a_registry_has_not_is_said_in_skopeos_words_and_leaves_nothing(tmp_path, fetching):
    fetching(f"cat >&2 <<'END'\n{UNKNOWN}END\nexit 1")
    with pytest.raises(ImageError, match=r"fetched: initializing source .* manifest unknown \(fix: see"):
        own.fetched(ImageSource(REFERENCE), print)
    assert not list((tmp_path / "home/images").iterdir())


def test_without_skopeo_the_fix_names_it_and_another_way(tmp_path, monkeypatch):
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImageError, match="skopeo, which is not installed") as caught:
        own.fetched(ImageSource(REFERENCE), print)
    assert "docker save" in caught.value.fix


def test_a_folder_larger_than_an_image_is_refused_before_the_disk_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(container_images, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(own.state, "images", lambda: tmp_path)
    folder, agent = tmp_path / "root", tmp_path / "agent"
    folder.mkdir()
    agent.write_bytes(b"agent")
    with (folder / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ImageError, match="has more than the 2 MiB that it may have"):
        own.ensure(ImageSource(str(folder), folder=True), agent, None, lambda text: None)
    assert sum(path.stat().st_blocks for path in tmp_path.rglob("*")) < 16_384
