"""The example package of docs/examples: a platform with a resource and a family of its own, a workload with a layer."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from installed import installed
from tare import plugins
from tare.contract.leftovers import named_after, notes
from tare.errors import ParseError
from tare.host.resources import kinds
from tare.image import image_recipe
from tare.model import Arm
from tare.platforms import platform_contract
from tare.platforms import platform_registry as platforms
from tare.testing import Capture, damage, junk, problems
from tare.workloads import workload_registry as workloads

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "tare-firejail"
PARAMS = {"turns": 2, "steps": 1000}
#: Of CPython 3.11 in the image.
PRINTED = "499500 34127\n499500 33873\nin all 68000\n"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The package as pip would install it."""
    with installed(EXAMPLE, tmp_path, monkeypatch) as folder:
        yield folder


def test_all_that_it_registers_is_there_with_its_package(package):
    firejail = platforms.all_platforms()["firejail"]
    assert platform_contract.problems(firejail) == []
    assert platforms.package("firejail") == "tare-firejail 1.0"
    [family] = platforms.choose(["firejail-without:net_raw"])
    assert family.options == ["--caps.drop=net_raw"]
    assert platforms.package(family.name) == "tare-firejail 1.0"
    assert "firejail-without:CAPABILITY" in {offer["name"] for offer in platforms.offers()}
    assert list(kinds.registered()) == ["tare-firejail:notes"]
    assert workloads.package("python-loop") == ""  # until the registry was asked
    assert problems(workloads.get("python-loop")) == []
    assert workloads.package("python-loop") == "tare-firejail 1.0"
    assert workloads.package("primes") == ""


def test_its_workload_brings_its_layer(package):
    loop = workloads.get("python-loop")
    layered = image_recipe.load([loop.layer])
    assert (layered.layers, set(layered.recorded) - set(image_recipe.load().recorded)) == (
        ("python",),
        set(loop.packages),
    )


def test_its_parser_gives_no_wrong_figure(package):
    loop = workloads.get("python-loop")
    capture = [Capture(stdout=PRINTED)]
    read = loop.parse(PARAMS, [capture[0].completed()])
    assert read.series["steps-per-second"] == [pytest.approx(1000e9 / 34127), pytest.approx(1000e9 / 33873)]
    assert list(damage(loop, PARAMS, capture)) == []
    assert junk(loop, PARAMS, capture, "Traceback (most recent call last):") is None
    with pytest.raises(ParseError, match="more time than it took"):
        loop.parse(PARAMS, [Capture(stdout=PRINTED, wall_s=1e-6).completed()])


def test_other_installed_plug_ins_are_not_asked(package, monkeypatch):
    monkeypatch.setenv(plugins.ALLOWED, "")
    assert importlib.metadata.version("tare-firejail") == "1.0"
    assert "firejail" not in platforms.all_platforms()
    assert "python-loop" not in workloads.all_workloads()
    assert kinds.registered() == {}


@pytest.mark.thorough
def test_with_it_installed_tests_see_what_they_see_without(package):
    """Tests that count platforms or workloads are run as their own process, beside the installed package."""
    tests = ["tests/workloads/test_registry.py::test_all_workloads_by_family_and_name"]
    tests += ["tests/platforms/test_guide.py::test_every_platform_is_on_the_platforms_page"]
    root = Path(__file__).parents[1]
    path = ":".join([str(package), *(entry for entry in sys.path if entry)])
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    environment = {"PYTHONPATH": path, "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
    ran = subprocess.run(argv, check=False, cwd=root, env=environment, capture_output=True, text=True, timeout=120)
    assert "2 passed" in ran.stdout, ran.stdout


@pytest.mark.host
def test_killed_firejails_notes_are_removed(package, launcher):
    [firejail] = platforms.choose(["firejail"])
    assert firejail.detect().available, firejail.detect()
    firejail.prepare(launcher.image)
    before = notes()
    live = launcher.start(firejail, Arm("firejail"), measured=False)
    pids = live.instance.host_processes()
    assert named_after(pids, notes() - before), "firejail notes its sandboxes under their process"
    for pid in pids:
        subprocess.run(["kill", "-9", str(pid)], check=False)
    live.stop()
    assert named_after(pids, notes() - before) == []
