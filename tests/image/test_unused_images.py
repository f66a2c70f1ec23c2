"""Which images are no use to this version of tare any more, told from those that the next campaign takes."""

import hashlib
import json

from tare.image import image_build
from tare.image.unused import unused
from tare.model import Layer

WEB = Layer("web", '[recorded]\npackages = ["nginx"]\n')
KEY_VALUE = Layer("key-value", '[recorded]\npackages = ["redis"]\n')


def ensure(bench, *layers):
    return image_build.ensure(bench.agent, progress=bench.progress.append, layers=layers).root.parent


def why_unused(bench, *layers):
    """What is unused, by the name of its folder."""
    return {folder.place.name: folder.why for folder in unused(bench.agent, layers)}


def test_what_the_next_campaign_takes_is_used(bench):
    ensure(bench)
    ensure(bench, KEY_VALUE, WEB)
    assert len(bench.places) == 4
    assert why_unused(bench, WEB, KEY_VALUE) == {}


def test_an_image_with_another_agent_is_not_and_engines_know_it_by_its_hash(bench):
    old = image_build.ensure(bench.agent, progress=bench.progress.append)
    bench.agent.write_bytes(b"another agent")
    ensure(bench)
    [folder] = unused(bench.agent, ())
    assert (folder.place, folder.why) == (old.root.parent, "of another agent")
    assert folder.image.hash == old.hash
    assert folder.image.root == old.root


def test_of_another_recipe_neither_base_nor_image_is(bench):
    image = ensure(bench)
    [base] = [bench.images / name for name in bench.places if name.startswith("base-")]
    for place in (base, image):
        manifest = json.loads((place / "manifest.json").read_text())
        (place / "manifest.json").write_text(json.dumps({**manifest, "recipe_hash": "0" * 64}))
    base.rename(base.with_name("base-0000000000000000"))
    assert why_unused(bench) == {"base-0000000000000000": "of another recipe", image.name: "of another recipe"}


def test_layers_are_those_of_the_workloads_and_unknown_ones_stay(bench):
    ensure(bench, KEY_VALUE, WEB)
    [base] = [name for name in bench.places if name.startswith("base-")]
    assert why_unused(bench, KEY_VALUE) == {}, "web may be a plug-in's that is not installed now"
    changed = Layer("web", '[recorded]\npackages = ["nginx", "wrk"]\n')
    assert why_unused(bench, KEY_VALUE, changed)[base] == "of another recipe"


def test_what_a_killed_build_left_and_a_damaged_base_are_unused(bench):
    image = ensure(bench)
    [base] = [bench.images / name for name in bench.places if name.startswith("base-")]
    (bench.images / "new-0123456789abcdef").mkdir()
    (base / "manifest.json").write_text("{")
    assert why_unused(bench) == {
        base.name: "damaged",
        image.name: "of another recipe",
        "new-0123456789abcdef": "half made",
    }


def test_an_image_of_a_users_own_is_told_by_its_agent_and_what_was_fetched_stays(bench):
    """One that `tare.image.own` made, which takes root, goes in tests/cli/test_unused_images_removed.py."""
    tools = ensure(bench)
    digest = hashlib.sha256(b"a user's own").hexdigest()
    mine = bench.images / f"own-{digest[:16]}"
    for path, contents in (
        (image_build.AGENT_INSIDE, bench.agent.read_bytes()),
        (image_build.HASH_INSIDE, f"{digest}\n".encode()),
    ):
        (mine / "root" / path).parent.mkdir(parents=True)
        (mine / "root" / path).write_bytes(contents)
    (bench.images / "fetched-0123456789abcdef").mkdir()
    assert why_unused(bench) == {}
    bench.agent.write_bytes(b"another agent")
    images = {folder.place: folder.image for folder in unused(bench.agent, ())}
    assert set(images) == {mine, tools}
    assert images[mine].hash == digest


def test_no_link_in_an_image_leads_out_of_it(bench, tmp_path):
    image = ensure(bench)
    (tmp_path / "etc").mkdir()
    (image / "root" / image_build.HASH_INSIDE).rename(tmp_path / image_build.HASH_INSIDE)
    for name in ("etc", "usr"):
        (image / "root" / name).rename(image / f"its-{name}")
    (image / "root/etc").symlink_to(tmp_path / "etc")
    (image / "root/usr").symlink_to("/dev")
    [folder] = unused(bench.agent, ())
    assert (folder.why, folder.image) == ("of another agent", None)
