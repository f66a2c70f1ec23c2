"""What goes on top of the image where a workload asks for it."""

import dataclasses
import hashlib
from pathlib import Path

import pytest

from tare.campaign.host_session import image_for
from tare.campaign.plan.campaign_plan import make_jobs
from tare.errors import ImageError
from tare.image import forms, image_build, image_recipe
from tare.model import Layer
from tare.platforms.parts.machines import vm
from tare.workloads import workload_registry

RECIPE = Path(image_recipe.__file__).with_name("recipe.toml")
LAYER = """
commands = ["second $1", "first $1"]
[pinned]
gcc = "3"
[recorded]
packages = ["bc"]
"""


KERNEL = workload_registry.get("kernel-compile").layer
#: Of the recipe with it, as all versions since 2026-11-23 have it (Redis came into the base): under it the cached base
#: lies.
KERNEL_HASH = "7e6b0923d790dbc0b770a62f80a03f5ef20fea99d7c2c8e84cb2fde8a94a3cf5"


class Watcher:
    def __init__(self):
        self.lines = []

    def doing(self, what):
        self.lines.append(what)


def test_a_layer_adds_to_the_recipe_and_is_in_its_hash():
    base = image_recipe.load()
    layered = image_recipe.on_top(base, Layer("some", LAYER))
    pins = sorted([*(f"{name}={version}" for name, version in base.pinned), "gcc=3"])
    assert layered.include == ",".join([*pins, *sorted([*base.recorded, "bc"])])
    assert (layered.layers, layered.commands) == (("some",), ("second $1", "first $1"))
    assert layered.hash not in (base.hash, image_recipe.on_top(base, Layer("some", LAYER + "#")).hash)
    kept = dataclasses.asdict(base).keys() - {"pinned", "recorded", "hash", "layers", "commands"}
    assert all(getattr(layered, name) == getattr(base, name) for name in kept)


def test_a_layer_of_what_the_image_has_is_none():
    base = image_recipe.load()
    tools = '[recorded]\npackages = ["iperf3", "redis-tools"]\n'
    assert image_recipe.load([Layer("app-cache", tools)]) == base
    assert image_recipe.load([Layer("app-cache", tools.replace("iperf3", "bc"))]).layers == ("app-cache",)


@pytest.mark.parametrize(
    "text",
    [
        "\udcff",
        "",
        LAYER.replace('commands = ["second $1", "first $1"]', 'commands = "first"'),
        "[pinned]\n",
        LAYER + 'package = ["zstd"]',
        'packages = ["zstd"]',
    ],
)
def test_a_layer_that_cannot_be_read_is_named(text):
    with pytest.raises(ImageError, match="layer 'some' cannot be read") as caught:
        image_recipe.on_top(image_recipe.load(), Layer("some", text))
    assert caught.value.fix == "mend the workload that asks for it (docs/add-a-workload.md)"


def test_a_layer_may_have_packages_alone():
    zstd = image_recipe.on_top(image_recipe.load(), Layer("zstd", '[recorded]\npackages = ["zstd"]'))
    assert (set(zstd.recorded) - set(image_recipe.load().recorded), zstd.commands) == ({"zstd"}, ())


def test_two_layers_of_one_name_are_not_taken_for_one():
    with pytest.raises(ImageError, match="ask for layers 'some'"):
        image_recipe.load([Layer("some", LAYER), Layer("some", LAYER + "#")])


def test_without_layers_the_image_is_what_it_was(bench):
    plain = image_build.ensure(bench.agent, progress=bench.progress.append)
    assert plain.layers == ()
    assert plain.manifest.recipe_hash == hashlib.sha256(RECIPE.read_bytes()).hexdigest()
    assert not any("customize-hook" in word for word in image_build.command(image_recipe.load(), bench.home, []))


def test_an_image_with_a_layer_is_another_one_with_more_packages(bench):
    plain = image_build.ensure(bench.agent, progress=bench.progress.append)
    bench.has(libc6="2.36-9", **dict(image_recipe.load([KERNEL]).pinned))
    image = image_build.ensure(bench.agent, progress=bench.progress.append, layers=[KERNEL])
    assert image.layers == ("kernel",)
    assert image.hash != plain.hash
    assert image.manifest.packages["gcc-12"] == dict(image_recipe.load([KERNEL]).pinned)["gcc-12"]
    assert bench.runs == 2
    assert image_build.ensure(bench.agent, progress=bench.progress.append) == plain
    assert image_build.ensure(bench.agent, progress=bench.progress.append, layers=[KERNEL]) == image
    assert bench.runs == 2
    assert [name for name in bench.places if name.startswith("base-kernel-")]


def test_a_layers_pins_are_held_too(bench):
    with pytest.raises(ImageError, match="the base has gcc-12 None, the recipe pins 12"):
        image_build.ensure(bench.agent, progress=bench.progress.append, layers=[KERNEL])


def test_its_commands_are_run_in_the_root_by_mmdebstrap(tmp_path):
    layered = image_recipe.on_top(image_recipe.load(), Layer("some", LAYER))
    argv = image_build.command(layered, tmp_path, ["/etc/apt/some.sources"])
    assert [word for word in argv if "hook" in word] == ["--customize-hook=second $1", "--customize-hook=first $1"]
    assert argv[-3:] == ["bookworm", str(tmp_path), "/etc/apt/some.sources"]


@pytest.mark.parametrize(
    ("names", "layers"),
    [(["primes", "sysbench-cpu"], ()), (["kernel-compile", "primes"], ("kernel",)), (["kernel-compile"], ("kernel",))],
)
def test_a_campaign_gets_the_layers_that_its_workloads_ask_for(bench, monkeypatch, names, layers):
    monkeypatch.setenv("TARE_AGENT", str(bench.agent))
    bench.has(libc6="2.36-9", coreutils="9.1-1", **dict(image_recipe.load([KERNEL]).pinned))
    jobs = make_jobs([workload_registry.get(name) for name in names], "quick")
    assert image_for((job.workload for job in jobs), Watcher().doing).layers == layers


def test_a_bare_image_has_the_agent_alone_and_is_for_workloads_that_need_no_other_program(bench, monkeypatch):
    monkeypatch.setenv("TARE_AGENT", str(bench.agent))
    bench.has(libc6="2.36-9", **dict(image_recipe.load().pinned))
    calls, tool = workload_registry.get("call-getpid"), workload_registry.get("sysbench-cpu")
    bare = image_for([calls], Watcher().doing, bare=True)
    files = {str(path.relative_to(bare.root)) for path in bare.root.rglob("*") if not path.is_dir()}
    assert files == {"usr/local/bin/tare-agent", "usr/local/bin/true", "etc/os-release", str(image_build.HASH_INSIDE)}
    assert bare.hash == image_for([calls], Watcher().doing, bare=True).hash
    whole = image_for([calls, tool], Watcher().doing, bare=True)
    assert whole.hash == image_for([calls, tool], Watcher().doing).hash != bare.hash


def test_every_layer_that_a_workload_asks_for_is_there():
    layers = {workload.layer for workload in workload_registry.all_workloads().values()} - {None}
    assert {layer.name for layer in layers} == {"build", "kernel", "key-value", "mariadb", "postgresql", "site", "web"}
    assert image_recipe.load(layers).layers == ("build", "kernel", "key-value", "mariadb", "postgresql", "site", "web")
    assert image_recipe.load([KERNEL]).hash == KERNEL_HASH, "bases that were built by earlier versions are built anew"


def test_a_package_that_the_image_lacks_ends_a_campaign_before_it_starts(bench, monkeypatch):
    monkeypatch.setenv("TARE_AGENT", str(bench.agent))
    bench.has(libc6="2.36-9", **dict(image_recipe.load().pinned))
    primes = workload_registry.get("primes")
    wanting = type("Wanting", (type(primes),), {"name": "wanting", "packages": ("libc6", "zstd")})()
    with pytest.raises(ImageError, match=r"^wanting needs zstd, which the image has not") as refused:
        image_for([primes, wanting], Watcher().doing)
    assert "a layer with it" in refused.value.fix


def test_a_machines_disk_has_room_for_a_layer(bench):
    image = image_build.ensure(bench.agent, progress=bench.progress.append)
    assert vm.root_disk(image).stat().st_size == vm.ROOT_BYTES
    layered = dataclasses.replace(image, layers=("kernel",))
    assert vm.root_disk(layered).stat().st_size == vm.LAYERED_BYTES > vm.ROOT_BYTES
    assert forms.disk_bytes(vm.root_disk(layered)) < 256 << 20, "it is sparse"
