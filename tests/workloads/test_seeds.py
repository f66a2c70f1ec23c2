"""Seeds: made in the image or by the first trial in an instance, and a fresh copy of them each time."""

import os
import shlex
import subprocess

import pytest

from tare.image import image_recipe
from tare.workloads import workload_registry
from tare.workloads.applications import seeds
from workloads.test_plans import ROOMY

#: Files as a database has them: some of others' only, and a line for each time that they were made.
FILL = 'mkdir "$folder/new"; echo "$1 $2" >"$folder/new/table"; chmod 600 "$folder/new/table"; echo made >>"$log"'


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A function that copies a seed in a folder of its own; the image's place of seeds is ``packed`` below."""
    log, packed = tmp_path / "log", tmp_path / "packed"
    seed = seeds.Seed("words-5", FILL, ("one", "two"), owner=str(os.getuid()))

    def run(argv):
        placed = [word.replace(seeds.PLACE, str(packed)) for word in argv]
        subprocess.run(placed, check=True, env={**os.environ, "log": str(log)}, timeout=20)

    def copy():
        run(seed.copied(str(tmp_path / "data"), time_limit_s=1).argv)
        return (tmp_path / "data" / "db" / "table").read_text()

    def pack():
        chroot, root, *argv = shlex.split(seed.in_layer())
        assert (chroot, root) == ("chroot", "$1")
        run(argv)

    copy.pack, copy.table = pack, tmp_path / "data" / "db" / "table"
    copy.made = lambda: log.read_text().count("made")
    return copy


def test_the_first_trial_makes_it_and_the_next_finds_nothing_of_that_one(world):
    assert world() == "one two\n"
    world.table.write_text("what a trial wrote")
    (world.table.parent / "more").write_text("of it")
    assert world() == "one two\n"
    assert [path.name for path in world.table.parent.iterdir()] == ["table"]
    assert world.made() == 1


def test_of_an_image_that_has_it_no_trial_makes_it(world):
    world.pack()
    assert world() == "one two\n"
    world.table.write_text("what a trial wrote")
    assert world() == "one two\n"
    assert world.table.stat().st_mode & 0o777 == 0o600
    assert world.made() == 1
    assert world() == "one two\n"


@pytest.mark.parametrize(
    "name", ["mariadb-read", "mariadb-write-threads-40", "postgresql", "postgresql-select", "site", "site-users-50"]
)
def test_the_layers_have_the_seeds_of_quick_and_of_no_other(name):
    workload = workload_registry.get(name)
    [command] = image_recipe.load([workload.layer]).commands
    packed = shlex.split(command)
    for profile, there in (("quick", True), ("full", False)):
        copied = workload.plan(workload.profiles[profile], ROOMY).prepare[0].argv
        assert (copied[6:] == tuple(packed[packed.index("pack") + 1 :])) is there, "the same fill of the same name"
