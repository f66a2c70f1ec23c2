"""Which images are no use to this version of tare any more, told from those that the next campaign takes."""

import json
import os

import pytest

from tare.image import build, own
from tare.image.unused import unused
from tare.model import Layer, Source

WEB = Layer("web", '[recorded]\npackages = ["nginx"]\n')
KEY_VALUE = Layer("key-value", '[recorded]\npackages = ["redis"]\n')


def ensure(bench, *layers):
    return build.ensure(bench.agent, progress=bench.progress.append, layers=layers).root.parent


def told(bench, *layers):
    """What is unused, by the name of its folder."""
    return {found.place.name: found.why for found in unused(bench.agent, layers)}


def test_what_the_next_campaign_takes_is_used(bench):
    ensure(bench)
    ensure(bench, KEY_VALUE, WEB)
    assert len(bench.places) == 4
    assert told(bench, WEB, KEY_VALUE) == {}


def test_an_image_with_another_agent_is_not_and_engines_know_it_by_its_hash(bench):
    old = build.ensure(bench.agent, progress=bench.progress.append)
    bench.agent.write_bytes(b"another agent")
    ensure(bench)
    [found] = unused(bench.agent, ())
    assert (found.place, found.why) == (old.root.parent, "of another agent")
    assert found.image.hash == old.hash
    assert found.image.root == old.root


def test_of_another_recipe_neither_base_nor_image_is(bench):
    image = ensure(bench)
    [base] = [bench.images / name for name in bench.places if name.startswith("base-")]
    for place in (base, image):
        manifest = json.loads((place / "manifest.json").read_text())
        (place / "manifest.json").write_text(json.dumps({**manifest, "recipe_hash": "0" * 64}))
    base.rename(base.with_name("base-0000000000000000"))
    assert told(bench) == {"base-0000000000000000": "of another recipe", image.name: "of another recipe"}


def test_layers_are_those_of_the_workloads_and_unknown_ones_stay(bench):
    ensure(bench, KEY_VALUE, WEB)
    [base] = [name for name in bench.places if name.startswith("base-")]
    assert told(bench, KEY_VALUE) == {}, "web may be a plug-in's that is not installed now"
    changed = Layer("web", '[recorded]\npackages = ["nginx", "wrk"]\n')
    assert told(bench, KEY_VALUE, changed)[base] == "of another recipe"


def test_what_a_killed_build_left_and_a_damaged_base_are_unused(bench):
    image = ensure(bench)
    [base] = [bench.images / name for name in bench.places if name.startswith("base-")]
    (bench.images / "new-0123456789abcdef").mkdir()
    (base / "manifest.json").write_text("{")
    assert told(bench) == {
        base.name: "damaged",
        image.name: "of another recipe",
        "new-0123456789abcdef": "half made",
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make the files of an image")
def test_an_image_of_a_users_own_is_told_by_its_agent_and_what_was_fetched_stays(bench, tmp_path):
    tools = build.ensure(bench.agent, progress=bench.progress.append)
    (tmp_path / "root").mkdir()
    mine = own.ensure(Source(str(tmp_path / "root"), folder=True), bench.agent, tools, bench.progress.append)
    (bench.images / "fetched-0123456789abcdef").mkdir()
    assert told(bench) == {}
    bench.agent.write_bytes(b"another agent")
    found = {folder.place: folder for folder in unused(bench.agent, ())}
    assert set(found) == {mine.root.parent, tools.root.parent}
    assert found[mine.root.parent].image.hash == mine.hash


def test_no_link_in_an_image_leads_out_of_it(bench, tmp_path):
    image = ensure(bench)
    (tmp_path / "etc").mkdir()
    (image / "root" / build.HASH_INSIDE).rename(tmp_path / build.HASH_INSIDE)
    for name in ("etc", "usr"):
        (image / "root" / name).rename(image / f"its-{name}")
    (image / "root/etc").symlink_to(tmp_path / "etc")
    (image / "root/usr").symlink_to("/dev")
    [found] = unused(bench.agent, ())
    assert (found.why, found.image) == ("of another agent", None)
